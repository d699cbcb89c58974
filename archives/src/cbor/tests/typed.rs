//! Arrays of numbers: their bytes are RFC 8746's, and every bit comes back.

use std::fmt::Debug;

use ciborium::Value as Cbor;
use sde::Storable;

use super::*;

fn bytes_of<T: Storable>(value: T) -> Vec<u8> {
    encode(&ErasedValue::new(value), &Codec::of::<T>())
        .unwrap()
        .slices()
        .collect::<Vec<_>>()
        .concat()
}

fn read<T: Storable + Clone>(bytes: &[u8]) -> Result<T, String> {
    decode(bytes, &Codec::of::<T>()).map(|value| value.downcast_ref::<T>().unwrap().clone())
}

fn comes_back<T: Storable + Clone + PartialEq + Debug>(value: T) -> Vec<u8> {
    let bytes = bytes_of(value.clone());
    assert_eq!(read::<T>(&bytes), Ok(value));
    bytes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// From the RFC's tables; NumPy and cbor2 read the same.
#[test]
fn each_type_has_its_tag() {
    assert_eq!(hex(&comes_back(vec![1_u8, 255])), "d8404201ff");
    assert_eq!(hex(&comes_back(vec![0x0102_u16])), "d845420201");
    assert_eq!(hex(&comes_back(vec![0x01020304_u32])), "d8464404030201");
    assert_eq!(hex(&comes_back(vec![1_u64])), "d847480100000000000000");
    assert_eq!(hex(&comes_back(vec![-1_i8])), "d84841ff");
    assert_eq!(hex(&comes_back(vec![-2_i16])), "d84d42feff");
    assert_eq!(hex(&comes_back(vec![-2_i32])), "d84e44feffffff");
    assert_eq!(hex(&comes_back(vec![-2_i64])), "d84f48feffffffffffffff");
    assert_eq!(hex(&comes_back(vec![1.0_f32])), "d855440000803f");
    assert_eq!(hex(&comes_back(vec![1.0_f64])), "d85648000000000000f03f");
    assert_eq!(hex(&comes_back(Box::<[f32]>::from([]))), "d85540");
    // Lengths 1 and 2, then the numbers.
    let pairs = "d82882820102d85650000000000000f03f0000000000000040";
    assert_eq!(hex(&comes_back(vec![[1.0_f64, 2.0]])), pairs);
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Fields {
    name: String,
    #[serde(with = "sde::bulk")]
    list: Vec<f64>,
    #[serde(with = "sde::bulk")]
    nested: Vec<[[u16; 2]; 3]>,
    #[serde(with = "sde::bulk")]
    fixed: [i32; 40],
    #[serde(with = "sde::bulk")]
    boxed: Box<[u8]>,
    last: Option<u8>,
}

fn fields() -> Fields {
    Fields {
        name: "x".to_owned(),
        list: vec![1.5, -0.0],
        nested: vec![[[1, 2], [3, 4], [5, 6]]; 2],
        fixed: [-7; 40],
        boxed: Box::new([1, 2, 3]),
        last: None,
    }
}

#[test]
fn fields_are_typed_arrays_too() {
    let bytes = comes_back(fields());
    let Cbor::Map(map) = ciborium::from_reader(&*bytes).unwrap() else {
        panic!("no map")
    };
    let tags: Vec<u64> = map
        .iter()
        .filter_map(|(_, value)| value.as_tag().map(|(tag, _)| tag))
        .collect();
    assert_eq!(tags, [86, 40, 78, 64]);
}

/// For these types serde buffers the fields before it knows their types.
#[test]
fn fields_come_back_from_flattened_and_untagged_types() {
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Flat {
        id: u8,
        #[serde(flatten)]
        inner: Fields,
    }
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(untagged)]
    enum Either {
        Number(f64),
        Fields(Box<Fields>),
    }
    let inner = fields();
    comes_back(Flat { id: 1, inner });
    comes_back(Either::Fields(Box::new(fields())));
    comes_back(Either::Number(2.5));
}

#[test]
fn numbers_of_another_type_or_shape_are_refused() {
    let singles = bytes_of(vec![1.0_f32; 8]);
    let error = read::<Vec<f64>>(&singles).unwrap_err();
    assert!(
        error.contains("an array of f32 where an array of f64"),
        "{error}"
    );
    assert!(read::<Vec<u32>>(&singles).is_err());
    assert!(read::<Vec<[f64; 2]>>(&bytes_of(vec![1.0_f64; 8])).is_err());
    let pairs = bytes_of(vec![[1.0_f64; 2]; 3]);
    assert!(read::<Vec<f64>>(&pairs).is_err());
    assert!(read::<Vec<[f64; 3]>>(&pairs).is_err());
    // Seven bytes, and a shape of two times two around three numbers.
    assert!(read::<Vec<f64>>(b"\xd8\x56\x471234567").is_err());
    assert!(
        read::<Vec<[f64; 2]>>(&{
            let mut bytes = vec![0xd8, 0x28, 0x82, 0x82, 2, 2, 0xd8, 0x56, 0x58, 24];
            bytes.extend([0; 24]);
            bytes
        })
        .is_err()
    );
    // A plain list is no array of numbers.
    assert!(read::<Vec<u8>>(&[0x82, 1, 2]).is_err());
}

fn random(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1);
    *state ^ (*state >> 29)
}

/// Including signalling NaNs; without many of them the test would prove little.
#[test]
fn a_million_random_bit_patterns_come_back() {
    let mut state = 7;
    let bits: Vec<u64> = (0..1_000_000).map(|_| random(&mut state)).collect();
    let doubles: Vec<f64> = bits.iter().copied().map(f64::from_bits).collect();
    let back = read::<Vec<f64>>(&bytes_of(doubles)).unwrap();
    assert!(back.iter().map(|x| x.to_bits()).eq(bits.iter().copied()));

    let bits: Vec<u32> = bits.iter().map(|bits| (bits >> 16) as u32).collect();
    let signalling = |bits: &&u32| **bits & 0x7fc0_0000 == 0x7f80_0000 && **bits & 0x3f_ffff != 0;
    assert!(bits.iter().filter(signalling).count() > 1000);
    let singles: Vec<f32> = bits.iter().copied().map(f32::from_bits).collect();
    let back = read::<Vec<f32>>(&bytes_of(singles.clone())).unwrap();
    assert!(back.iter().map(|x| x.to_bits()).eq(bits.iter().copied()));
    // And one by one.
    let back = read::<Vec<(f32,)>>(&bytes_of(singles.iter().map(|x| (*x,)).collect::<Vec<_>>()));
    assert!(back.unwrap().iter().map(|x| x.0.to_bits()).eq(bits));
}

#[test]
fn numbers_of_a_value_are_not_copied() {
    let value = ErasedValue::new(vec![1.0_f64; 100_000]);
    let at = value.downcast_ref::<Vec<f64>>().unwrap().as_ptr().addr();
    let encoded = encode(&value, &Codec::of::<Vec<f64>>()).unwrap();
    drop(value);
    let large = encoded.slices().find(|slice| slice.len() == 800_000);
    assert_eq!(large.unwrap().as_ptr().addr(), at);
    assert_eq!(encoded.length(), 2 + 5 + 800_000);
    let digest = encoded.digest();
    assert_eq!(
        digest,
        *blake3::hash(&encoded.slices().collect::<Vec<_>>().concat()).as_bytes()
    );
}

/// The bytes would be another value, or no CBOR.
#[test]
fn a_wrong_number_of_elements_is_refused() {
    #[derive(Deserialize)]
    struct Liar;
    impl Serialize for Liar {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            use serde::ser::SerializeSeq;
            let mut list = to.serialize_seq(Some(2))?;
            list.serialize_element(&1)?;
            list.end()
        }
    }
    let error = encode(&ErasedValue::new(Liar), &Codec::of::<Liar>());
    assert!(
        error
            .err()
            .unwrap()
            .contains("announced 2 elements and gave 1")
    );
}
