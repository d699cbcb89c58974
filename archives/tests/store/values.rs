//! Values come back with the same bits, or are not saved.

use std::collections::BTreeMap;

use proptest::prelude::*;
use sde::archiver::{ArchiveError, Archiver, Codec};
use sde::{ErrorKind, SavePolicy, Source, Storable, Value, inputs};
use sde_archives::DirStore;
use serde::{Deserialize, Serialize};
use tempfile::tempdir;

use super::apps::{Echo, engine, fresh, page};

/// Saves a value, and reads it in what could be another process.
fn there_and_back<T: Storable>(value: T) -> Result<Value<T>, sde::Error> {
    let (dir, sde) = fresh(SavePolicy::OnRequest);
    let echo = |value| Echo { app: "echo", value };
    sde.run(&echo(Some(Value::new(value))), &inputs! {})?;
    sde.checkpoint()?;
    let (later, _) = engine(dir.path(), SavePolicy::OnRequest);
    later.run(&echo(None), &inputs! {})?.get("value")
}

/// Why a value was not saved.
fn refused<T: Storable>(value: T) -> String {
    let error = there_and_back(value).map(drop).unwrap_err();
    match error.kind() {
        ErrorKind::Archive {
            source: ArchiveError::Encode { why, .. },
            ..
        } => why.clone(),
        other => panic!("{other}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn doubles_keep_their_bits(bits in prop::collection::vec(any::<u64>(), 1000)) {
        let values: Vec<f64> = bits.iter().map(|bits| f64::from_bits(*bits)).collect();
        let back = there_and_back(values).unwrap();
        let back: Vec<u64> = back.iter().map(|x| x.to_bits()).collect();
        prop_assert_eq!(back, bits);
    }

    #[test]
    fn singles_keep_their_bits(bits in prop::collection::vec(any::<u32>(), 1000)) {
        let values: Vec<f32> = bits.iter().map(|bits| f32::from_bits(*bits)).collect();
        let back = there_and_back(values).unwrap();
        let back: Vec<u32> = back.iter().map(|x| x.to_bits()).collect();
        prop_assert_eq!(back, bits);
    }

    #[test]
    fn integers_and_text_come_back(
        integers in prop::collection::vec((any::<u64>(), any::<i64>(), any::<u128>(), any::<i128>()), 0..50),
        text in ".*",
        letters in prop::collection::vec(any::<char>(), 0..50),
    ) {
        let value = (integers, text, letters);
        prop_assert_eq!(&*there_and_back(value.clone()).unwrap(), &value);
    }
}

#[test]
fn special_numbers_keep_their_bits() {
    let bits = [
        0x0000_0000_0000_0000,
        0x8000_0000_0000_0000, // -0.0
        0x7ff0_0000_0000_0000,
        0xfff0_0000_0000_0000,
        0x7ff8_0000_0000_0000, // a quiet NaN
        0xfff8_0000_0000_0000,
        0x7ff8_0000_dead_beef, // with a payload
        0x7ffc_0000_0000_0000, // with one that fits half precision
        0x7ff8_0000_2000_0000, // and single
        0x7ff0_0000_0000_0001, // signalling NaNs
        0x7ff4_0000_0000_0000,
        0xfff0_0000_2000_0000,
        0x0000_0000_0000_0001, // subnormal
        0x3ff0_0000_0000_0000, // 1.0, not the integer
        0x7fef_ffff_ffff_ffff,
    ];
    let back = there_and_back(bits.map(f64::from_bits).to_vec()).unwrap();
    assert_eq!(back.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), bits);
    // A signalling NaN of 32 bits on its own; ciborium would make it quiet.
    let single = f32::from_bits(0x7fa0_0001);
    let back = there_and_back((single, Some(single))).unwrap();
    assert_eq!(back.0.to_bits(), single.to_bits());
    assert_eq!(back.1.map(f32::to_bits), Some(single.to_bits()));
    let integers = (u64::MAX, i64::MIN, u128::MAX, i128::MIN, u64::MAX - 1);
    assert_eq!(*there_and_back(integers).unwrap(), integers);
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Shape {
    Unit,
    New(Option<u8>),
    Pair(f64, String),
    Named {
        a: Vec<Shape>,
        b: Option<Box<Shape>>,
    },
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Nothing;

#[test]
fn structures_come_back() {
    let shape = || Shape::Named {
        a: vec![Shape::Unit, Shape::New(None), Shape::New(Some(0))],
        b: Some(Box::new(Shape::Pair(-0.0, "\u{0}\u{1f600}".to_owned()))),
    };
    let map: BTreeMap<(u8, String), Vec<Option<i32>>> = BTreeMap::from([
        ((1, "a".to_owned()), vec![None, Some(-1)]),
        ((2, String::new()), vec![]),
    ]);
    let value = || (shape(), map.clone(), Nothing, (), None::<()>, [(); 3]);
    assert_eq!(*there_and_back(value()).unwrap(), value());
}

/// Reads bytes in the way that borrows them, which ciborium does by a buffer.
#[derive(Debug, PartialEq)]
struct Bytes(Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Bytes;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("bytes")
            }
            fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(bytes.to_vec()))
            }
        }
        from.deserialize_bytes(Visitor)
    }
}

/// ciborium's own buffer has 4 KiB, and what does not fit is an error (its
/// issue 96).
#[test]
fn long_bytes_come_back_to_types_that_borrow_them() {
    let bytes = || Bytes((0..100_000_u32).map(|x| x as u8).collect());
    assert_eq!(*there_and_back(bytes()).unwrap(), bytes());
}

/// CBOR by serde has one null for `None`, `Some(None)` and `()`: a restart would
/// go on with another value.
#[test]
fn what_would_come_back_as_another_value_is_refused() {
    assert!(refused(Some(None::<f64>)).contains("come back as `None`"));
    assert!(refused(vec![Some(())]).contains("come back as `None`"));
    assert!(refused(Some(Nothing)).contains("come back as `None`"));
    assert_eq!(*there_and_back(Some(Some(1))).unwrap(), Some(Some(1)));
    assert_eq!(*there_and_back(None::<Option<u8>>).unwrap(), None);
}

#[derive(Serialize, Deserialize)]
struct Nested(Option<Box<(Nested,)>>);

#[test]
fn what_is_too_deep_to_be_read_again_is_refused() {
    let nested = |depth| (0..depth).fold(Nested(None), |inner, _| Nested(Some(Box::new((inner,)))));
    assert!(there_and_back(nested(200)).is_ok());
    assert!(refused(nested(300)).contains("nested"));
}

/// One value that can't be saved must not keep the others from being saved, nor
/// be tried for ever.
#[test]
fn all_else_is_saved_beside_a_value_that_can_not_be() {
    let dir = tempdir().unwrap();
    let (sde, log) = engine(dir.path(), SavePolicy::OnRequest);
    let bad = Echo {
        app: "bad",
        value: Some(Value::new(Some(None::<u8>))),
    };
    sde.run(&bad, &inputs! {}).unwrap();
    page.call(&sde, 7).unwrap();
    let error = format!("{:#}", sde.checkpoint().unwrap_err());
    assert!(error.contains("result \"value\" of bad"), "{error}");
    assert!(error.contains("tag it expendable"), "{error}");
    sde.checkpoint().unwrap();
    let warnings = log.events();
    let warnings = warnings
        .iter()
        .filter(|e| matches!(e, sde::Event::Warning { .. }));
    assert_eq!(warnings.count(), 1);
    std::mem::forget(sde);

    let (later, log) = engine(dir.path(), SavePolicy::OnRequest);
    page.call(&later, 7).unwrap();
    later.run(&bad, &inputs! {}).unwrap();
    assert_eq!(log.sources("page"), [Source::Loaded]);
    assert_eq!(log.sources("bad"), [Source::Computed]);
    std::mem::forget(later);
}

/// Two types of one name, as before and after an edit, computed and then looked for.
#[test]
fn a_type_that_has_changed_since_is_a_miss() {
    let dir = tempdir().unwrap();
    let echo = "echo of a model";
    let before = {
        #[derive(Serialize, Deserialize)]
        struct Model {
            energy: f64,
        }
        let (sde, _) = engine(dir.path(), SavePolicy::OnRequest);
        let value = Some(Value::new(Model { energy: 0.1 }));
        sde.run(&Echo { app: echo, value }, &inputs! {}).unwrap();
        sde.checkpoint().unwrap();
        let (later, _) = engine(dir.path(), SavePolicy::OnRequest);
        let nothing = Echo::<Model> {
            app: echo,
            value: None,
        };
        let found = later.run(&nothing, &inputs! {}).unwrap();
        assert_eq!(found.get::<Model>("value").unwrap().energy, 0.1);
        std::any::type_name::<Model>()
    };
    #[derive(Serialize, Deserialize)]
    struct Model {
        energy: f32,
    }
    assert_eq!(std::any::type_name::<Model>(), before);
    let (sde, _) = engine(dir.path(), SavePolicy::OnRequest);
    let value = Some(Value::new(Model { energy: 0.2 }));
    let (echo, inputs) = (Echo { app: echo, value }, inputs! {});
    let found = sde.request(&echo, &inputs).names(&["value"]).run().unwrap();
    assert_eq!(found.source, Source::Computed);
    assert_eq!(found.results.get::<Model>("value").unwrap().energy, 0.2);
}

/// Whether a value that was saved as one type is loaded as another.
fn is_loaded_as<S: Storable, T: Storable>(saved: S, computed: T) -> bool {
    let dir = tempdir().unwrap();
    let app = "echo of a moved type";
    let (sde, _) = engine(dir.path(), SavePolicy::OnRequest);
    let value = Some(Value::new(saved));
    sde.run(&Echo { app, value }, &inputs! {}).unwrap();
    sde.checkpoint().unwrap();
    let (later, _) = engine(dir.path(), SavePolicy::OnRequest);
    let value = Some(Value::new(computed));
    let (echo, inputs) = (Echo { app, value }, inputs! {});
    let found = later.request(&echo, &inputs).names(&["value"]).run();
    let source = found.unwrap().source;
    std::mem::forget((sde, later));
    source == Source::Loaded
}

macro_rules! module_of_a_model {
    ($module:ident) => {
        mod $module {
            #[derive(serde::Serialize, serde::Deserialize)]
            pub struct Model {
                pub energy: f64,
            }
        }
    };
}

module_of_a_model!(before);
module_of_a_model!(after);

/// Found by reading: the type was told by its path, so each value was lost when a type moved to another module, or when a compiler
/// wrote the path otherwise.
#[test]
fn a_value_is_loaded_although_its_type_has_moved() {
    let (saved, moved) = (before::Model { energy: 0.1 }, after::Model { energy: 0.2 });
    assert!(is_loaded_as(vec![Some(saved)], vec![Some(moved)]));
}

#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct Celsius(f64);

#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct Kelvin(f64);

#[derive(Serialize, Deserialize)]
struct Length<Unit>(f64, std::marker::PhantomData<Unit>);

#[derive(Serialize, Deserialize)]
struct Metre;

#[derive(Serialize, Deserialize)]
struct Foot;

/// The engine asks first what a value may be; a store refuses all the same.
#[test]
fn a_value_is_read_as_no_other_type() {
    let (dir, sde) = fresh(SavePolicy::OnRequest);
    let value = Some(Value::new(Celsius(20.0)));
    let (echo, inputs) = (Echo { app: "echo", value }, inputs! {});
    let key = sde.request(&echo, &inputs).run().unwrap().key;
    sde.checkpoint().unwrap();
    std::mem::forget(sde);
    let store = DirStore::open_read_only(dir.path()).unwrap();
    let found = store.find(&key).unwrap().unwrap();
    let payload = found.results[0].payload.as_ref().unwrap();
    assert!(payload.decode(&Codec::of::<Kelvin>()).is_err());
    assert!(payload.decode(&Codec::of::<Celsius>()).is_ok());
}

/// serde sees no difference between these.
#[test]
fn a_type_of_another_name_is_a_miss_although_it_looks_alike() {
    assert!(!is_loaded_as(Celsius(20.0), Kelvin(293.15)));
    let length = std::marker::PhantomData;
    assert!(!is_loaded_as(
        Length::<Metre>(1.0, length),
        Length::<Foot>(3.28, std::marker::PhantomData)
    ));
}
