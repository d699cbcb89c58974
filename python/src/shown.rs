//! How arguments look to people: in `why`, in listings, and in the columns of tables. No key depends on it.

use std::borrow::Borrow;

use sde::Data;
use sde::key::{Encoder, Fingerprint, FingerprintError, Scalar, Short};

/// An argument: the key of its value, and a text and fields as a Python user would name them.
pub(crate) struct Shown<D>(pub(crate) D);

impl<D: Borrow<Data>> Fingerprint for Shown<D> {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        self.0.borrow().fingerprint(to)
    }

    fn write_node(&self, to: &mut Encoder<'_>, at: usize) -> Result<usize, FingerprintError> {
        self.0.borrow().write_node(to, at)
    }

    fn describe(&self, out: &mut Short) {
        match (self.0.borrow(), self.to_scalar()) {
            (_, Some(scalar)) => scalar.describe(out),
            (Data::None, _) => out.show("None"),
            (Data::List(items), _) => sequence("[", items, "]", out),
            (Data::Map(map), _) => match kind_of(self.0.borrow()) {
                Some((kind, of)) => describe_kind(kind, of, out),
                None => structure(
                    "dict",
                    map.iter().map(|(name, value)| (&**name, value)),
                    out,
                ),
            },
            (other, _) => other.describe(out),
        }
    }

    fn to_scalar(&self) -> Option<Scalar> {
        match kind_of(self.0.borrow()) {
            Some(("numpy.scalar", of)) => number(of),
            Some((kind, Data::Text(text))) if kind != "int" => Data::Text(text.clone()).to_scalar(),
            Some(_) => None,
            None => self.0.borrow().to_scalar(),
        }
    }
}

/// What [`tagged`](crate::write::tagged) made.
fn kind_of(data: &Data) -> Option<(&str, &Data)> {
    let Data::Map(map) = data else { return None };
    match (map.len(), map.get("py"), map.get("of")) {
        (2, Some(Data::Text(kind)), Some(of)) => Some((kind, of)),
        _ => None,
    }
}

fn describe_kind(kind: &str, of: &Data, out: &mut Short) {
    let parts = parts_of(of);
    match (kind, parts) {
        ("tuple", Some(items)) => sequence("(", items, ")", out),
        ("complex", Some(items)) => sequence("complex(", items, ")", out),
        ("set" | "frozenset", Some(items)) => sequence("{", items, "}", out),
        ("dict", Some(pairs)) => match named(pairs) {
            Some(fields) => structure("dict", fields.into_iter(), out),
            None => out.show(format_args!("dict of {}", pairs.len())),
        },
        ("object", Some(parts)) => instance(parts, out),
        ("enum", Some([class, Data::Text(name), ..])) => {
            out.show(format_args!("{}.{name}", name_of(class)));
        }
        ("function" | "class", Some([Data::Text(name), ..])) => out.show(name),
        ("numpy.ndarray", _) => of.describe(out),
        _ => match of {
            Data::Text(digits) => out.show(format_args!("0x{digits}")),
            _ => out.show(kind),
        },
    }
}

/// An instance with its attributes: the parts are those that `_instance` of `_values.py` gives.
fn instance(parts: &[Data], out: &mut Short) {
    let name = parts.first().map_or("", name_of);
    let fields = match parts.get(8..) {
        Some([Data::List(names), values @ ..]) => names
            .iter()
            .zip(values)
            .filter_map(|(name, value)| match name {
                Data::Text(name) => Some((&**name, value)),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    };
    structure(name, fields.into_iter(), out);
}

/// The name of a class, without its module.
fn name_of(class: &Data) -> &str {
    match kind_of(class) {
        Some(("class", Data::List(parts))) => match parts.first() {
            Some(Data::Text(name)) => name.rsplit('.').next().unwrap_or(name),
            _ => "",
        },
        _ => "",
    }
}

/// The entries of a dict that was written as pairs, if texts name them all.
fn named(pairs: &[Data]) -> Option<Vec<(&str, &Data)>> {
    let pairs = pairs.iter().map(|pair| match parts_of(pair) {
        Some([Data::Text(name), value]) => Some((&**name, value)),
        _ => None,
    });
    pairs.collect()
}

/// The number of a scalar of NumPy: name, type, lengths and bytes.
fn number(of: &Data) -> Option<Scalar> {
    let [Data::Text(name), .., Data::Bytes(bytes)] = parts_of(of)? else {
        return None;
    };
    Some(match &**name {
        "float64" => Scalar::F64(f64::from_ne_bytes(bytes[..].try_into().ok()?)),
        "float32" => Scalar::F32(f32::from_ne_bytes(bytes[..].try_into().ok()?)),
        "int64" => Scalar::I64(i64::from_ne_bytes(bytes[..].try_into().ok()?)),
        "int32" => Scalar::I32(i32::from_ne_bytes(bytes[..].try_into().ok()?)),
        "uint64" => Scalar::U64(u64::from_ne_bytes(bytes[..].try_into().ok()?)),
        "bool" | "bool_" => Scalar::Bool(bytes.first()? != &0),
        _ => return None,
    })
}

/// The elements of a list, or of a tuple.
fn parts_of(data: &Data) -> Option<&[Data]> {
    match (data, kind_of(data)) {
        (Data::List(items), _) | (_, Some(("tuple", Data::List(items)))) => Some(items),
        _ => None,
    }
}

fn sequence(begin: &str, items: &[Data], end: &str, out: &mut Short) {
    out.show(begin);
    let items: Vec<_> = items.iter().take(80).map(Shown).collect();
    out.list(&items);
    out.show(end);
}

fn structure<'a>(name: &str, fields: impl Iterator<Item = (&'a str, &'a Data)>, out: &mut Short) {
    let fields: Vec<_> = fields.map(|(name, value)| (name, Shown(value))).collect();
    let fields: Vec<_> = fields
        .iter()
        .map(|(name, value)| (*name, value as &dyn Fingerprint))
        .collect();
    out.structure(name, &fields);
}
