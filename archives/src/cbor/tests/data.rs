//! Values without a Rust type: they have the bytes of the Rust values that they equal, and come back as they were.

use std::collections::BTreeMap;

use sde::bulk::AxisOrder;
use sde::{AnyArray, Data, OutputFile, Storable, Value};

use super::*;

fn bytes_of<T: Storable>(value: T) -> Vec<u8> {
    let encoded = encode(&ErasedValue::new(value), &Codec::of::<T>()).unwrap();
    encoded.slices().collect::<Vec<_>>().concat()
}

fn read(bytes: &[u8]) -> Result<Data, String> {
    decode(bytes, &Codec::of::<Data>()).map(|value| value.downcast_ref::<Data>().unwrap().clone())
}

/// It has the bytes of the Rust value, alone and in a list, and is read from them.
fn stored_as<T: Storable + Clone>(data: Data, value: T) {
    let bytes = bytes_of(data.clone());
    assert_eq!(bytes, bytes_of(value));
    assert_eq!(read(&bytes), Ok(data.clone()));
    let list = Data::from(vec![data.clone(), Data::None]);
    assert_eq!(read(&bytes_of(list.clone())), Ok(list));
    assert_eq!(bytes_of(Data::from(Value::new(data))), bytes);
}

#[test]
fn values_are_stored_as_their_rust_values() {
    stored_as(Data::None, ());
    stored_as(true.into(), true);
    for int in [0, -1, i64::MIN, i64::MAX] {
        stored_as(int.into(), int);
    }
    // The last two are written in 16 and 32 bits.
    for float in [0.1, f64::INFINITY, -0.0, 1.5, f64::from(0.1_f32)] {
        stored_as(float.into(), float);
        let read = read(&bytes_of(Data::Float(float))).unwrap();
        assert_eq!(read.get::<f64>().unwrap().to_bits(), float.to_bits());
    }
    stored_as("text".into(), "text".to_owned());
    stored_as(vec![1_u8, 2].into(), vec![1_u8, 2]);
    stored_as(
        Data::List(vec![Data::Int(1), "a".into()]),
        (1, "a".to_owned()),
    );
    let map = BTreeMap::from([("x".to_owned(), 1.5)]);
    let of_data = map.iter().map(|(name, x)| (name.clone(), Data::from(*x)));
    stored_as(of_data.collect::<BTreeMap<_, _>>().into(), map);
}

#[test]
fn every_bit_of_a_nan_comes_back() {
    for bits in [
        0x7ff8_0000_0000_0000,
        0x7ff0_0000_0000_0001,
        0xfff7_0000_2000_0000,
    ] {
        let bytes = bytes_of(Data::Float(f64::from_bits(bits)));
        let Ok(Data::Float(read)) = read(&bytes) else {
            panic!("{bytes:02x?}");
        };
        assert_eq!(read.to_bits(), bits);
    }
}

#[test]
fn arrays_are_stored_in_bulk() {
    let numbers: Vec<f64> = (0..100_000).map(f64::from).collect();
    let encoded = |value: &ErasedValue, codec| encode(value, codec).ok().unwrap();
    let data = ErasedValue::new(Data::from(AnyArray::from(numbers.clone())));
    let data = encoded(&data, &Codec::of::<Data>());
    let lengths: Vec<_> = data.slices().map(<[u8]>::len).collect();
    // The numbers are not copied: they are a piece of their own.
    assert!(lengths.contains(&800_000), "{lengths:?}");
    stored_as(AnyArray::from(numbers.clone()).into(), numbers);
    stored_as(AnyArray::from(vec![-1_i16, 2]).into(), vec![-1_i16, 2]);
    let pairs = vec![[1.0_f64, 2.0], [3.0, 4.0]];
    stored_as(AnyArray::from(pairs.clone()).into(), pairs);
    let by_columns =
        AnyArray::shaped(vec![1.0, 3.0, 2.0, 4.0], [2, 2], AxisOrder::Columns).unwrap();
    let map = Data::from(BTreeMap::from([("fock".to_owned(), by_columns.into())]));
    assert_eq!(read(&bytes_of(map.clone())), Ok(map));
}

#[test]
fn a_file_is_told_from_a_map() {
    let file = OutputFile::new("Cargo.toml").unwrap();
    let data = Data::List(vec![file.clone().into()]);
    let (bytes, shown) = OutputFile::shown_in(|| bytes_of(data.clone()));
    assert_eq!((read(&bytes), shown), (Ok(data), vec![file]));
    let map = BTreeMap::from([("$sde::file".to_owned(), Data::None)]);
    let refused = encode(&ErasedValue::new(Data::from(map)), &Codec::of::<Data>());
    let why = refused.err().unwrap();
    assert!(why.contains("$sde::file"), "{why}");
}

#[test]
fn forged_bytes_are_refused() {
    let refused = |bytes: &[u8], why: &str| {
        let error = read(bytes).unwrap_err();
        assert!(error.contains(why), "{error}");
    };
    let mut deep = vec![0x81; 100_000];
    deep.push(0xf6);
    refused(&deep, "deeply");
    // An array of arrays; five bytes of 64-bit numbers; two numbers with the shape [2^32, 2^32].
    refused(
        &[
            0xd8, 40, 0x82, 0x81, 1, 0xd8, 40, 0x82, 0x81, 1, 0xd8, 64, 0x41, 1,
        ],
        "array",
    );
    refused(&[0xd8, 86, 0x45, 1, 2, 3, 4, 5], "5 bytes");
    let huge = [0x1b, 0, 0, 0, 1, 0, 0, 0, 0];
    let bytes = [
        &[0xd8, 40, 0x82, 0x82][..],
        &huge,
        &huge,
        &[0xd8, 64, 0x42, 1, 2],
    ]
    .concat();
    refused(&bytes, "lengths");
    // An integer of 64 bits; a map whose names are numbers.
    refused(&[0x1b, 255, 255, 255, 255, 255, 255, 255, 255], "63 bits");
    refused(&[0xa1, 1, 2], "expected a string");
}
