//! Digests and keys that must never change.
//!
//! A remembered result is found by its key, in this build or another, in this release or the next.
//! `tests/data/golden_keys.txt` holds the digests of one value of each kind. When this test fails
//! the format has changed: then `FORMAT` in `key/tag.rs` must change too, the file with it, and the
//! changelog must say that no old result will be found.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ffi::OsStr;
use std::marker::PhantomData;
use std::num::NonZero;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use sde::key::{
    BySerde, Digest, Encoder, FingerprintError, InputFile, Key, Rounded, keyed, with_encoder,
};
use sde::{Fingerprint, Value};

use super::digest;

const GOLDEN: &str = include_str!("../data/golden_keys.txt");

#[derive(Fingerprint)]
struct Atom {
    symbol: String,
    position: [f64; 3],
    #[fingerprint(skip)]
    _color: u32,
    #[fingerprint(round = 6)]
    mass: f64,
    #[fingerprint(name = "isotope")]
    number: Option<u16>,
}

#[derive(Fingerprint)]
struct Metres(f64);

#[derive(Fingerprint)]
struct Marker;

#[derive(Fingerprint)]
#[fingerprint(name = "Quantity")]
struct Measured<U> {
    value: f64,
    unit: PhantomData<U>,
}

#[derive(Fingerprint)]
enum Method {
    Exact,
    Damped { factor: f64 },
    Shifted(f64, u8),
}

#[derive(serde::Serialize)]
struct Foreign {
    name: &'static str,
    values: BTreeMap<String, Vec<f32>>,
    choice: Option<u8>,
}

/// Writes so many items, without a frame, that with one they have this many bytes.
struct Items(usize);

impl Fingerprint for Items {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.u16(7);
        (0..(self.0 - 6) / 2).for_each(|_| to.u8(7));
        Ok(())
    }
}

fn atom() -> Atom {
    Atom {
        symbol: "O".into(),
        position: [0.0, 0.0, 0.1173],
        _color: 7,
        mass: 15.999_000_000_1,
        number: Some(16),
    }
}

fn foreign() -> Foreign {
    let values = BTreeMap::from([("x".into(), vec![1.0, 2.0]), ("y".into(), vec![])]);
    Foreign {
        name: "foreign",
        values,
        choice: None,
    }
}

/// A name and a digest of each kind of value.
fn values() -> Vec<(&'static str, Digest)> {
    macro_rules! values {
        ($($name:literal: $value:expr,)*) => { vec![$(($name, digest(&$value))),*] };
    }
    let mut all = values! {
        "u8": 200_u8,
        "u16": 50_000_u16,
        "u32": 4_000_000_000_u32,
        "u64": u64::MAX - 1,
        "u128": u128::MAX - 1,
        "usize": 12_345_usize,
        "i8": -100_i8,
        "i16": -30_000_i16,
        "i32": -2_000_000_000_i32,
        "i64": i64::MIN + 1,
        "i128": i128::MIN + 1,
        "isize": -12_345_isize,
        "f32": 0.1_f32,
        "f64": 0.1_f64,
        "f64 nan": f64::from_bits(0x7ff8_0000_0000_0000),
        "f64 zero": 0.0_f64,
        "f64 negative zero": -0.0_f64,
        "bool": true,
        "char": 'Å',
        "unit": (),
        "text": "6-31G*",
        "text empty": "",
        "text long": "ångström ".repeat(200),
        "path": Path::new("data/water.xyz"),
        "os text": OsStr::new("water"),
        "c text": c"water",
        "tuple 1": (1_u8,),
        "tuple 3": (1_u8, "two", 3.0_f64),
        "tuple 12": (1_u8, 2_u8, 3_u8, 4_u8, 5_u8, 6_u8, 7_u8, 8_u8, 9_u8, 10_u8, 11_u8, 12_u8),
        "numbers": vec![1.0_f64, 2.0, 3.0],
        "numbers none": Vec::<f64>::new(),
        "numbers long": (0..10_000).map(f64::from).collect::<Vec<_>>(),
        "numbers huge": (0..1_000_000_u32).collect::<Vec<_>>(),
        "bytes at the limit": vec![7_u8; 1020],
        "bytes beyond the limit": vec![7_u8; 1021],
        "flags": [true, false],
        "letters": ['a', 'b'],
        "machine words": [1_usize, 2],
        "texts": ["a", "b"],
        "texts none": Vec::<String>::new(),
        "lists": vec![vec![1_u8], vec![], vec![2, 3]],
        "lists, held in arrays": VecDeque::from([[1_u8, 2], [3, 4]]),
        "texts long": vec!["text".to_owned(); 20_000],
        "some": Some(1.5_f64),
        "none": None::<f64>,
        "ok": Ok::<u8, String>(1),
        "err": Err::<u8, String>("no".into()),
        "map": HashMap::from([("b", 2_u8), ("a", 1)]),
        "map long": (0..1000_u32).map(|n| (n, n.to_string())).collect::<HashMap<_, _>>(),
        "map none": BTreeMap::<String, f64>::new(),
        "set": BTreeSet::from([3_u8, 1]),
        "set none": BTreeSet::<u8>::new(),
        "duration": Duration::new(5, 6),
        "time": UNIX_EPOCH + Duration::new(1_800_000_000, 5),
        "time before": UNIX_EPOCH - Duration::new(5, 6),
        "non-zero": NonZero::<u32>::MIN,
        "ordering": Ordering::Less,
        "range": 1_u8..3,
        "range inclusive": 1_u8..=3,
        "range from": 1_u8..,
        "range to": ..3_u8,
        "range to inclusive": ..=3_u8,
        "marker": PhantomData::<Metres>,
        "rounded": Rounded::new(0.1 + 0.2, 10),
        "rounded list": Rounded::new(vec![1.0 / 3.0, -0.0], 5),
        "rounded list none": Rounded::new(Vec::<f64>::new(), 5),
        "digest": Digest::from_bytes([1; 32]),
        "key": Key::from_bytes([1; 32]),
        "shared": Value::new(vec![1.0_f64; 500]),
        "derived": atom(),
        "derived tuple": Metres(2.0),
        "derived unit": Marker,
        "derived generic": Measured::<Metres> { value: 2.0, unit: PhantomData },
        "derived variant": Method::Exact,
        "derived variant with fields": Method::Damped { factor: 0.5 },
        "derived variant with positions": Method::Shifted(0.5, 2),
        "derived list": vec![atom(), atom()],
        "derived none": None::<Method>,
        "items": Items(20),
        "items at the limit": Items(1024),
        "items beyond the limit": Items(1026),
        "by serde": BySerde(foreign()),
        "file": InputFile::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/golden_input.txt")),
    };
    #[cfg(feature = "num-complex-0_4")]
    all.extend(values! {
        "complex": num_complex::Complex::new(1.0_f64, -2.0),
        "complex list": vec![num_complex::Complex::new(1.0_f32, -2.0); 3],
    });
    #[cfg(feature = "ndarray-0_17")]
    all.extend(values! {
        "array": ndarray::arr2(&[[1.0_f64, 2.0], [3.0, 4.0]]),
        "array of texts": ndarray::arr1(&["a", "b"]),
    });
    all.extend(super::golden_apps::apps());
    all.push(("key of a run", Digest::from_bytes(*run(1).as_bytes())));
    all.push((
        "key of a run with many inputs",
        Digest::from_bytes(*run(100).as_bytes()),
    ));
    all
}

/// The key of a run: inputs with names, keyed by the digest of an app.
fn run(angles: u32) -> Key {
    let app = with_encoder(|to| {
        to.str("an app");
        to.str("version 1");
        to.digest().expect("texts have digests")
    });
    with_encoder(|to| {
        for _ in 0..angles {
            to.named("angle", &104.5_f64)
                .expect("a number can be encoded");
        }
        to.named("basis", "6-31G*").expect("a text can be encoded");
        keyed(&app, to.finish().expect("nothing failed"))
    })
}

#[test]
fn golden_digests_are_what_they_were() {
    let golden: BTreeMap<&str, &str> = GOLDEN
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .filter_map(|line| line.split_once(char::is_whitespace))
        .map(|(digest, name)| (name.trim(), digest))
        .collect();
    let mut changed = String::new();
    let values = values();
    for (name, digest) in &values {
        let digest = digest.to_string();
        if golden.get(name) != Some(&digest.as_str()) {
            changed.push_str(&format!("{digest}  {name}\n"));
        }
    }
    assert!(
        changed.is_empty(),
        "these digests are new or have changed:\n{changed}"
    );
    // Without the features some of the values are not there; with them, none may be missing.
    if cfg!(all(feature = "num-complex-0_4", feature = "ndarray-0_17")) {
        assert_eq!(
            golden.len(),
            values.len(),
            "the file names values that are no longer checked"
        );
    }
}
