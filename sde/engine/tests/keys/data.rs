//! Values without a Rust type have the keys of the Rust values that they equal.

use std::collections::BTreeMap;

use sde::bulk::{AxisOrder, NumberType};
use sde::key::{TypeShape, describe};
use sde::{AnyArray, Data, Fingerprint, KeyedArray, Value};

use super::digest;

#[track_caller]
fn alike(data: &Data, rust: &(impl Fingerprint + TypeShape + ?Sized)) {
    assert_eq!(digest(data), digest(rust), "{data:?}");
    // In a list, where a value that is not alone is written as a node.
    let pair = (data, 1_u8);
    assert_eq!(digest(&pair), digest(&(rust, 1_u8)), "{data:?} in a pair");
    let shared = Data::from(Value::new(data.clone()));
    assert_eq!(digest(&shared), digest(rust), "{data:?}, shared");
    assert_eq!(data.to_scalar(), rust.to_scalar());
    // Those of a list and a map name the type of their elements.
    if !matches!(data, Data::List(_) | Data::Map(_)) {
        assert_eq!(describe(data), describe(rust));
    }
}

#[test]
fn data_has_the_keys_of_its_rust_values() {
    alike(&Data::None, &());
    alike(&Data::Bool(true), &true);
    alike(&Data::Int(-3), &-3_i64);
    alike(&Data::Float(1.5), &1.5_f64);
    alike(&"6-31G*".into(), "6-31G*");
    alike(&"long ".repeat(300).into(), "long ".repeat(300).as_str());
    alike(&vec![1_u8, 2, 255].into(), &[1_u8, 2, 255]);
    let texts = || ["a".to_owned(), "b".to_owned()];
    alike(&texts().map(Data::Text).to_vec().into(), &texts());
    let floats = vec![Data::Float(1.0), Data::Int(2)];
    alike(&floats.clone().into(), &floats);
    let map = BTreeMap::from([("x".to_owned(), 1.0), ("y".to_owned(), 2.0)]);
    let of_data: BTreeMap<_, _> = map
        .iter()
        .map(|(k, v)| (k.clone(), Data::from(*v)))
        .collect();
    alike(&of_data.into(), &map);
    let file = std::env::temp_dir().join(format!("sde-data-{}", std::process::id()));
    std::fs::write(&file, "content").unwrap();
    let file = sde::OutputFile::new(file).unwrap();
    alike(&file.clone().into(), &file);
    std::fs::remove_file(file.path()).unwrap();
}

#[test]
fn lists_of_numbers_have_the_keys_of_theirs() {
    macro_rules! each {
        ($($type:ty)*) => {$({
            let items: Vec<$type> = (0..50).map(|at| at as $type).collect();
            alike(&AnyArray::from(items.clone()).into(), &items);
            let short = items[..3].to_vec();
            alike(&AnyArray::from(short.clone()).into(), &short);
            alike(&AnyArray::from(Vec::<$type>::new()).into(), &Vec::<$type>::new());
        })*};
    }
    each!(u8 u16 u32 u64 i8 i16 i32 i64 f32 f64);
    let bytes: Vec<u8> = [1.5_f64, 2.5]
        .into_iter()
        .flat_map(f64::to_le_bytes)
        .collect();
    let read = AnyArray::from_bytes(NumberType::F64, &bytes, None).unwrap();
    alike(&read.clone().into(), &[1.5, 2.5]);
    assert!(AnyArray::from_bytes(NumberType::F64, &bytes[1..], None).is_err());
    let shape = Some((vec![2, 2], AxisOrder::Rows));
    assert!(AnyArray::from_bytes(NumberType::F64, &bytes, shape).is_err());
    assert!(AnyArray::shaped(vec![1_u8], [usize::MAX, 2], AxisOrder::Columns).is_err());
}

/// An element like `[f64; 3]` is one more dimension. An array by columns has the key of an equal one by rows.
#[test]
fn an_array_has_one_key_however_it_lies() {
    let by_rows = AnyArray::shaped(vec![1, 2, 3, 4, 5, 6], [2, 3], AxisOrder::Rows).unwrap();
    let by_columns = AnyArray::shaped(vec![1, 4, 2, 5, 3, 6], [2, 3], AxisOrder::Columns).unwrap();
    assert_eq!(digest(&by_rows), digest(&by_columns));
    assert_eq!(describe(&by_rows), describe(&by_columns));
    assert_ne!(by_rows, by_columns);
    let of_rows = AnyArray::from(vec![[1, 2, 3], [4, 5, 6]]);
    assert_eq!(of_rows, by_rows);
    let list = AnyArray::from(vec![1, 2, 3, 4, 5, 6]);
    assert_ne!(digest(&list), digest(&by_rows));
    let empty = AnyArray::shaped(Vec::<f64>::new(), [0, 3], AxisOrder::Columns).unwrap();
    let other = AnyArray::shaped(Vec::<f64>::new(), [3, 0], AxisOrder::Columns).unwrap();
    assert_ne!(digest(&empty), digest(&other));
}

#[test]
fn an_array_is_given_as_rust_types() {
    let rows = AnyArray::from(vec![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    assert_eq!(rows.lengths(), [2, 3]);
    assert_eq!(rows.get::<Vec<[f64; 3]>>().unwrap()[1], [4.0, 5.0, 6.0]);
    assert!(rows.get::<Vec<[f64; 2]>>().is_none());
    assert!(rows.get::<Vec<f64>>().is_none());
    assert!(rows.get::<String>().is_none());
    let list = AnyArray::from(vec![7_u64, 8]);
    assert_eq!(*list.get::<Vec<usize>>().unwrap(), [7, 8]);
    assert!(list.get::<Vec<i64>>().is_none());
    let (one, two) = (
        list.get::<Vec<u64>>().unwrap(),
        list.get::<Vec<u64>>().unwrap(),
    );
    assert!(Value::ptr_eq(&one, &two));
}

#[cfg(feature = "ndarray-0_17")]
#[test]
fn arrays_have_the_keys_of_those_of_ndarray() {
    use ndarray::{Array1, Array2, Array3, ShapeBuilder, arr2};
    let values: Vec<f64> = (0..24_u8).map(f64::from).collect();
    for (order, by_columns) in [(AxisOrder::Rows, false), (AxisOrder::Columns, true)] {
        let any = AnyArray::shaped(values.clone(), [2, 3, 4], order).unwrap();
        let shape = (2, 3, 4).set_f(by_columns);
        let array = Array3::from_shape_vec(shape, values.clone()).unwrap();
        alike(&any.clone().into(), &array);
        assert_eq!(*any.get::<Array3<f64>>().unwrap(), array);
        assert!(any.get::<Array2<f64>>().is_none());
        assert_eq!(AnyArray::from(array), any);
    }
    let array = arr2(&[[1.0_f32, 2.0]]);
    alike(&AnyArray::from(array.clone()).into(), &array);
    let list = AnyArray::from(vec![1_i32, 2]);
    assert_eq!(
        *list.get::<Array1<i32>>().unwrap(),
        Array1::from(vec![1, 2])
    );
}

/// Whatever the type and the place in memory, also of an array without numbers, of few and of many.
#[test]
fn an_array_is_keyed_where_it_lies() {
    for kind in NumberType::ALL {
        for lengths in [vec![0, 3], vec![2, 3], vec![5], vec![20, 30, 7]] {
            let length = lengths.iter().product::<usize>() * kind.size();
            let bytes: Vec<u8> = (0..=length).map(|at| (at * 7 % 61) as u8).collect();
            // One of the two is not aligned.
            for bytes in [&bytes[1..], &bytes[..length]] {
                let shape = Some((lengths.clone(), AxisOrder::Rows));
                let array = AnyArray::from_bytes(kind, bytes, shape).unwrap();
                let keyed = KeyedArray::from_bytes(kind, bytes, lengths.clone());
                let keyed = Data::Keyed(keyed.unwrap());
                assert_eq!(digest(&keyed), digest(&array), "{array:?}");
                assert_eq!(digest(&(&keyed, 1)), digest(&(&array, 1)), "{array:?}");
                assert_eq!(describe(&keyed), describe(&array));
                assert!(serde_json::to_string(&keyed).is_err());
            }
        }
    }
    assert!(KeyedArray::from_bytes(NumberType::F64, &[0; 17], vec![2]).is_err());
    assert!(KeyedArray::from_bytes(NumberType::F64, &[0; 16], vec![3]).is_err());
}
