//! Formats see numbers as they should, and give them back; bytes and bits are tested with the store.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::write::swap;
use super::{AxisOrder, Bulk, NumberType, bytes_of};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
struct Field<B: Bulk>(#[serde(with = "super")] B);

fn readable<B: Bulk + PartialEq + std::fmt::Debug>(value: B) -> serde_json::Value {
    let field = Field(value);
    let seen = serde_json::to_value(&field).unwrap();
    assert_eq!(
        serde_json::from_value::<Field<B>>(seen.clone()).unwrap(),
        field
    );
    seen
}

#[test]
fn people_see_plain_lists() {
    assert_eq!(readable(vec![1.5_f64, 2.0]), json!([1.5, 2.0]));
    assert_eq!(readable([[1_u8, 2], [3, 4]]), json!([[1, 2], [3, 4]]));
    assert_eq!(readable(Box::<[i64]>::from([-1])), json!([-1]));
}

#[test]
fn names_are_found_again() {
    for kind in NumberType::ALL {
        assert_eq!(NumberType::of_name(kind.name()), Some(kind));
        assert!(kind.rust_name().ends_with(&(8 * kind.size()).to_string()));
    }
    for order in [AxisOrder::Rows, AxisOrder::Columns] {
        assert_eq!(AxisOrder::of_name(order.name()), Some(order));
    }
    assert_eq!(NumberType::of_name("f64"), None);
}

#[test]
fn elements_with_dimensions_have_a_shape() {
    assert_eq!(bytes_of(&vec![1_u8]).shape, None);
    let nested = vec![[[0_u16; 2]; 3]; 5];
    let shape = bytes_of(&nested).shape.unwrap();
    assert_eq!(shape.lengths, [5, 3, 2]);
    assert_eq!(shape.order, AxisOrder::Rows);
}

/// A big-endian host does this before it writes and after it has read.
#[test]
fn each_number_is_turned_around() {
    let mut bytes = [1, 2, 3, 4, 5, 6, 7, 8];
    swap(NumberType::U16, &mut bytes);
    assert_eq!(bytes, [2, 1, 4, 3, 6, 5, 8, 7]);
    swap(NumberType::U8, &mut bytes);
    assert_eq!(bytes, [2, 1, 4, 3, 6, 5, 8, 7]);
    swap(NumberType::F64, &mut bytes);
    assert_eq!(bytes, [7, 8, 5, 6, 3, 4, 1, 2]);
}

#[cfg(feature = "num-complex-0_4")]
#[test]
fn a_complex_number_is_two() {
    use num_complex::Complex;
    let values = vec![Complex::new(1.0_f32, 2.0), Complex::new(3.0, 4.0)];
    assert_eq!(bytes_of(&values).shape.unwrap().lengths, [2, 2]);
    assert_eq!(readable(values), json!([[1.0, 2.0], [3.0, 4.0]]));
}

#[cfg(feature = "ndarray-0_17")]
#[test]
fn arrays_keep_how_they_lie() {
    use ndarray::{Array2, arr2};
    let rows = arr2(&[[1, 2, 3], [4, 5, 6]]);
    assert_eq!(
        &*bytes_of(&rows).bytes,
        bytemuck::cast_slice::<i32, u8>(&[1, 2, 3, 4, 5, 6])
    );
    let columns = rows.clone().reversed_axes();
    let written = bytes_of(&columns);
    assert_eq!(written.shape.unwrap().order, AxisOrder::Columns);
    assert_eq!(
        &*written.bytes,
        bytemuck::cast_slice::<i32, u8>(&[1, 2, 3, 4, 5, 6])
    );
    let seen = json!({"by_columns": [[3, 2], [1, 2, 3, 4, 5, 6]]});
    assert_eq!(readable(columns.clone()), seen);
    let back: Field<Array2<i32>> = serde_json::from_value(seen).unwrap();
    assert_eq!(back.0.strides(), columns.strides());
    // One that does not lie side by side is copied.
    let every_second = rows.slice_move(ndarray::s![.., ..;2]);
    assert_eq!(
        &*bytes_of(&every_second).bytes,
        bytemuck::cast_slice::<i32, u8>(&[1, 3, 4, 6])
    );
    readable(every_second);
}

#[cfg(all(feature = "ndarray-0_17", feature = "num-complex-0_4"))]
#[test]
fn the_dimensions_of_an_element_run_fastest() {
    use ndarray::Array2;
    use num_complex::Complex;
    let rows = Array2::<Complex<f64>>::zeros((3, 4));
    assert_eq!(bytes_of(&rows).shape.unwrap().lengths, [3, 4, 2]);
    let columns = rows.reversed_axes();
    assert_eq!(bytes_of(&columns).shape.unwrap().lengths, [2, 4, 3]);
}
