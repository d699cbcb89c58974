//! What records keep of the fields of inputs: bounded, and nothing large is encoded for it once more.

use std::cell::Cell;

use sde::key::{Digest, Encoder, FingerprintError, Scalar, Short};
use sde::record::ValueSummary;
use sde::{Fingerprint, Inputs, Sde};

thread_local! {
    static ENCODED: Cell<usize> = const { Cell::new(0) };
}

/// A value that is large, as far as its fingerprint goes.
#[derive(Clone, Copy)]
struct Large;

impl Fingerprint for Large {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        ENCODED.set(ENCODED.get() + 1);
        to.structure("Large", |_| Ok(()))
    }

    fn describe(&self, out: &mut Short) {
        out.show("large");
    }
}

#[derive(Clone, Fingerprint)]
struct Deep<T> {
    level: u8,
    inner: T,
}

#[derive(Clone, Fingerprint)]
enum Shape {
    Ball { r: f64 },
    Point,
}

/// The record's summary of this input.
fn summary<T: Fingerprint + Clone + Send + Sync + 'static>(value: T) -> ValueSummary {
    let sde = Sde::new();
    sde.run(&Takes, &Inputs::new().with("value", value))
        .unwrap();
    let mut found = None;
    sde.records(|record| found = Some(record.inputs[0].clone()));
    found.unwrap()
}

#[derive(Fingerprint)]
struct Takes;

impl sde::App for Takes {
    fn info(&self) -> sde::AppInfo {
        sde::AppInfo::new("fields.Takes", "1")
    }

    fn run(&self, _: &sde::Handle, _: &Inputs) -> Result<sde::ResultMap, sde::AppError> {
        Ok(sde::ResultMap::new())
    }
}

#[test]
fn fields_are_kept_with_their_values() {
    let found = summary(Deep {
        level: 7,
        inner: Shape::Ball { r: 0.5 },
    });
    let [level, inner] = &*found.fields else {
        panic!("{found:?}")
    };
    assert_eq!(*level, Scalar::U8(7).summary("level"));
    assert_eq!(inner.name, "inner");
    let expected = [
        Scalar::Text("Ball".into()).summary(""),
        Scalar::F64(0.5).summary("r"),
    ];
    assert_eq!(*inner.fields, expected);
    // Its text says all.
    let point = summary(Shape::Point);
    assert_eq!((&*point.short, point.fields.len()), ("Point", 0));
    assert_eq!(summary(1.5).fields.len(), 0);
}

#[test]
fn a_large_field_is_not_encoded_once_more() {
    let count = |run: &dyn Fn() -> ValueSummary| {
        ENCODED.set(0);
        (run(), ENCODED.get())
    };
    let (_, alone) = count(&|| summary(Large));
    let (found, as_field) = count(&|| {
        summary(Deep {
            level: 1,
            inner: Large,
        })
    });
    assert_eq!(as_field, alone);
    assert_eq!(found.fields[1].short, "large");
    assert_eq!(found.fields[1].digest, Digest::from_bytes([0; 32]));
}

/// Has more fields than are kept, each with fields within fields.
#[derive(Clone)]
struct Wide;

impl Fingerprint for Wide {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.structure("Wide", |_| Ok(()))
    }

    fn describe(&self, out: &mut Short) {
        let names: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        let inner = Deep {
            level: 1,
            inner: 2_u8,
        };
        let field = |name| -> (&str, &dyn Fingerprint) { (name, &inner) };
        let fields: Vec<_> = names.iter().map(|name| field(&**name)).collect();
        out.structure("Wide", &fields);
    }
}

#[test]
fn depth_and_number_are_bounded() {
    fn depth(of: &ValueSummary) -> usize {
        of.fields
            .iter()
            .map(|field| 1 + depth(field))
            .max()
            .unwrap_or(0)
    }
    fn deep<T>(inner: T) -> Deep<T> {
        Deep { level: 0, inner }
    }
    let found = summary(deep(deep(deep(deep(deep(deep(1_u8)))))));
    assert_eq!(depth(&found), 4);
    assert_eq!(summary(Wide).fields.len(), 64);
}
