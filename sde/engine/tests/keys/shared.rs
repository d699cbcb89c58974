//! A value and a shared value are the same input, wherever they stand, on both sides of the length
//! from which a value enters by its digest.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;

use sde::key::{Commitment, Encoder, FingerprintError, INLINE_LIMIT, commit, keyed, with_encoder};
use sde::{Fingerprint, Value};

use super::{digest, same};

#[derive(Fingerprint, Clone)]
#[fingerprint(name = "Record")]
struct Plain {
    name: String,
    data: Vec<u8>,
}

#[derive(Fingerprint)]
#[fingerprint(name = "Holder")]
struct Holds<T> {
    before: u32,
    value: T,
    after: u32,
}

/// The same in every place where a value can stand.
fn check<T: Fingerprint + Clone + Ord + Send + Sync + 'static>(value: &T, what: impl Debug) {
    macro_rules! same {
        ($($place:literal: $one:expr, $other:expr;)*) => {
            $(assert_eq!(digest(&$one), digest(&$other), "{what:?} {}", $place);)*
        };
    }
    let shared = Value::new(value.clone());
    let warm = shared.clone();
    assert_eq!(digest(value), digest(&shared), "{what:?} by itself");
    for shared in [shared, warm] {
        let (v, s) = (|| value.clone(), || shared.clone());
        same! {
            "in a list": vec![v(), v()], vec![s(), s()];
            "in an array": [v()], [s()];
            "in an option": Some(v()), Some(s());
            "in a tuple": (1_u8, v()), (1_u8, s());
            "in a box": Box::new(v()), Box::new(s());
            "shared twice": &v(), Value::new(s());
            "where there is none": None::<T>, None::<Value<T>>;
            "in an empty list": Vec::<T>::new(), Vec::<Value<T>>::new();
            "in a map": BTreeMap::from([(1, v())]), HashMap::from([(1, s())]);
            "in a field": Holds { before: 1, value: vec![v()], after: 2 }, Holds { before: 1, value: vec![s()], after: 2 };
        }
    }
}

/// The length of a value's encoding.
fn length<T: Fingerprint>(value: &T) -> u64 {
    match commit(value).unwrap() {
        Commitment::Inline(bytes) => bytes.len() as u64,
        Commitment::Digest { length, .. } => length,
        _ => unreachable!("a commitment is one of the two"),
    }
}

#[test]
fn scalars_lists_and_texts() {
    check(&7_u64, "a number");
    check(&'x', "a character");
    check(&String::from("6-31G*"), "a text");
    check(&vec![1_u32, 2, 3], "a list");
    check(&vec![vec![1_u32; 400], vec![2]], "a list of lists");
    check(&(1_u8, 2_u16), "a tuple");
    check(&Some(2_u16), "an option");
    check(&BTreeMap::from([(1_u8, String::from("x"))]), "a map");
    check(&(1_u8, String::from("x"), None::<u8>), "a mixed tuple");
}

#[test]
fn around_the_length_where_a_digest_takes_over() {
    let limit = INLINE_LIMIT as u64;
    let mut lengths = Vec::new();
    for size in 990..1040 {
        let bytes = vec![7_u8; size];
        lengths.push(length(&bytes));
        check(&bytes, ("bytes", size));
        check(&"x".repeat(size), ("text", size));
        check(&vec!["x".to_owned(); size / 4], ("list", size));
    }
    for exact in [limit - 1, limit, limit + 1] {
        assert!(
            lengths.contains(&exact),
            "no encoding of {exact} bytes was tried"
        );
    }
    assert!(
        matches!(commit(&vec![7_u8; 1020]).unwrap(), Commitment::Inline(bytes) if bytes.len() == 1024)
    );
    assert!(matches!(
        commit(&vec![7_u8; 1021]).unwrap(),
        Commitment::Digest { length: 1025, .. }
    ));
}

#[test]
fn long_values_in_buffers_of_all_sizes() {
    for size in [2_000, 4_095, 4_096, 5_000, 32_767, 32_769, 70_000, 300_000] {
        check(&vec![3_u8; size], ("bytes", size));
        check(&vec![3_u16; size / 2], ("numbers", size));
        check(&vec![String::from("six"); size / 8], ("texts", size));
    }
}

/// Short values stay as they are wherever the buffer has to grow.
#[test]
fn many_short_values_in_buffers_of_all_sizes() {
    let values = vec![("x".to_owned(), vec![1_u16; 30], "y".to_owned()); 1_000];
    let digest_in = |room: usize| {
        let mut buffer = vec![0; room];
        let mut to = Encoder::new(&mut buffer);
        to.value(&values).unwrap();
        to.digest().unwrap()
    };
    let with_room = digest_in(1 << 20);
    for room in (0..=70_000).step_by(1_009) {
        assert_eq!(digest_in(room), with_room, "{room} bytes");
    }
}

#[test]
fn a_structure_of_long_parts() {
    for size in [10, 1020, 1021, 40_000] {
        let plain = Plain {
            name: "x".repeat(size),
            data: vec![1; size],
        };
        let shared = Value::new(plain.clone());
        same(&plain, &shared);
        same(&vec![plain.clone(), plain], &vec![shared.clone(), shared]);
    }
}

#[test]
fn a_block_of_shared_numbers_is_a_block() {
    for count in [1, 3, 200, 5_000] {
        let block: Vec<f64> = (0..count).map(f64::from).collect();
        let shared: Vec<Value<f64>> = block.iter().copied().map(Value::new).collect();
        assert_eq!(digest(&block), digest(&shared), "{count} numbers");
    }
}

/// Writes its value by what was kept of it.
struct Kept<'a>(&'a Commitment);

impl Fingerprint for Kept<'_> {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.commitment(self.0);
        Ok(())
    }
}

#[test]
fn a_commitment_writes_what_its_value_writes() {
    let app = sde::key::Digest::from_bytes([9; 32]);
    for size in [1, 1000, 1020, 1021, 100_000] {
        let value = vec![5_u8; size];
        let kept = commit(&value).unwrap();
        let by_value = with_encoder(|to: &mut Encoder<'_>| {
            to.str("x");
            to.value(&value).unwrap();
            keyed(&app, to.finish().unwrap())
        });
        let by_commitment = with_encoder(|to: &mut Encoder<'_>| {
            to.str("x");
            to.value(&Kept(&kept)).unwrap();
            keyed(&app, to.finish().unwrap())
        });
        assert_eq!(by_value, by_commitment, "{size} bytes");
    }
}
