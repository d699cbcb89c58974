//! Objects of Python that no value of Rust is. The Python package stores each as a map of two entries: `py` is its kind,
//! and `of` what it is made of.

use std::sync::LazyLock;

use sde::Data;
use sde::key::{Digest, commit};
use sde_archives::inspect::Decoded;

/// The digest of `None`.
pub static NONE: LazyLock<Option<Digest>> =
    LazyLock::new(|| commit(&Data::None).ok().map(|one| one.digest()));

/// The kind of such an object, and what it is made of; `None` for other maps.
pub fn tagged(fields: &[(Decoded, Decoded)]) -> Option<(&str, &Decoded)> {
    match fields {
        [
            (Decoded::Text(of), parts),
            (Decoded::Text(py), Decoded::Text(kind)),
        ] if of == "of" && py == "py" => Some((kind, parts)),
        _ => None,
    }
}

/// The keys and values of a dict, in its order.
pub fn pairs<'a>(kind: &str, of: &'a Decoded) -> Option<Vec<(&'a Decoded, &'a Decoded)>> {
    let (Decoded::List(pairs), "dict") = (of, kind) else {
        return None;
    };
    let pair = |pair: &'a Decoded| match pair {
        Decoded::List(pair) => match &pair[..] {
            [key, value] => Some((key, value)),
            _ => None,
        },
        _ => None,
    };
    pairs.iter().map(pair).collect()
}

/// The items of a tuple or a set; the two parts of a complex number.
pub fn items<'a>(kind: &str, of: &'a Decoded) -> Option<&'a [Decoded]> {
    match of {
        Decoded::List(items) if ["tuple", "set", "frozenset", "complex"].contains(&kind) => {
            Some(items)
        }
        _ => None,
    }
}

/// The value of an integer of more than 64 bits, whose digits are hexadecimal, of what is written as a text, and of a
/// NumPy scalar, if a number of Rust is one.
pub fn scalar(kind: &str, of: &Decoded) -> Option<Decoded> {
    match (kind, of) {
        ("int", Decoded::Text(digits)) => return Some(Decoded::Text(format!("0x{digits}"))),
        (_, Decoded::Text(text)) => return Some(Decoded::Text(text.clone())),
        _ => {}
    }
    let (Decoded::Map(fields), "numpy.scalar") = (of, kind) else {
        return None;
    };
    let (kind, of) = tagged(fields)?;
    match items(kind, of)? {
        [
            _,
            value @ (Decoded::Bool(_) | Decoded::Integer(_) | Decoded::Float(_)),
        ] => Some(value.clone()),
        // Numbers of 32 bits are kept as their bytes.
        [Decoded::Text(dtype), Decoded::Numbers(_, bytes)] if dtype == "<f4" => {
            let number = f32::from_le_bytes(bytes.as_slice().try_into().ok()?);
            Some(Decoded::Float(number.into()))
        }
        _ => None,
    }
}
