//! Floats by their bits, rounding only where asked for, blocks of numbers as their elements.

use sde::key::{Encoder, Fingerprint, FingerprintError, Rounded};

use super::{differ, digest, same};

#[test]
fn floats_count_by_their_bits() {
    assert_eq!(digest(&f64::NAN), digest(&f64::NAN));
    assert_ne!(digest(&f64::NAN), digest(&-f64::NAN));
    differ(&f64::from_bits(0x7ff8_0000_0000_0001), &f64::NAN);
    assert_ne!(digest(&0.0_f64), digest(&-0.0_f64));
    assert_ne!(digest(&0.0_f32), digest(&-0.0_f32));
    assert_ne!(digest(&(0.1 + 0.2)), digest(&0.3));
    assert_ne!(digest(&vec![0.0]), digest(&vec![-0.0]));
    assert_eq!(digest(&vec![f64::NAN]), digest(&vec![f64::NAN]));
}

#[test]
fn rounding_is_for_the_digits_that_count() {
    let rounded = |value: f64, digits| digest(&Rounded::new(value, digits));
    assert_eq!(rounded(0.1 + 0.2, 10), rounded(0.3, 10));
    assert_ne!(rounded(0.1 + 0.2, 17), rounded(0.3, 17));
    assert_eq!(rounded(0.0, 5), rounded(-0.0, 5));
    assert_eq!(rounded(f64::NAN, 5), rounded(-f64::NAN, 5));
    assert_ne!(rounded(f64::INFINITY, 5), rounded(f64::MAX, 5));
    assert_ne!(rounded(1.0, 5), rounded(10.0, 5));
    assert_ne!(rounded(1.0, 5), rounded(-1.0, 5));
    assert_eq!(rounded(1.0, 0), rounded(1.2, 0));
    same(
        &Rounded::new([1.000_001, 2.0], 4),
        &Rounded::new(vec![1.0, 2.000_001], 4),
    );
    differ(&Rounded::new([1.01, 2.0], 4), &Rounded::new([1.0, 2.0], 4));
    differ(&Rounded::new(None::<f64>, 4), &Rounded::new(None::<f32>, 4));
}

/// A number that does not say that it lies in memory as it is encoded: what a machine with another
/// order of bytes sees.
struct Apart(f64);

impl Fingerprint for Apart {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        self.0.fingerprint(to)
    }

    fn shape(to: &mut sde::key::TypeWriter<'_, '_>) {
        to.of::<f64>();
    }

    fn scalar() -> Option<sde::key::ScalarKind> {
        f64::scalar()
    }

    fn bound() -> usize {
        f64::bound()
    }

    fn put_bounded(&self, room: &mut [u8], at: usize) -> usize {
        self.0.put_bounded(room, at)
    }
}

#[test]
fn a_block_is_the_same_number_by_number() {
    for length in [0, 1, 2, 31, 126, 127, 128, 129, 1000, 5_000, 70_000] {
        let block: Vec<f64> = (0..length).map(|n| f64::from(n) * 0.37).collect();
        let apart: Vec<Apart> = block.iter().copied().map(Apart).collect();
        assert_eq!(digest(&block), digest(&apart), "{length} numbers");
    }
}

#[test]
fn every_element_of_a_block_counts() {
    let block = vec![1.5_f64; 10_000];
    let base = digest(&block);
    for place in [0, 1, 127, 128, 4_095, 9_999] {
        let mut other = block.clone();
        other[place] = 1.500_000_000_000_000_2;
        assert_ne!(digest(&other), base, "element {place}");
    }
}

#[cfg(feature = "num-complex-0_4")]
#[test]
fn complex_numbers_are_scalars_of_their_own() {
    use num_complex::Complex;
    let one = Complex::new(1.0_f64, 2.0);
    assert_ne!(digest(&one), digest(&Complex::new(2.0_f64, 1.0)));
    assert_ne!(digest(&one), digest(&Complex::new(1.0_f32, 2.0)));
    assert_ne!(digest(&one), digest(&(1.0_f64, 2.0_f64)));
    assert_ne!(digest(&vec![one]), digest(&vec![1.0_f64, 2.0]));
    assert_eq!(digest(&vec![one; 300]), digest(&vec![&one; 300]));
}

#[cfg(feature = "ndarray-0_17")]
#[test]
fn arrays_count_by_shape_and_logical_order() {
    use ndarray::{ArcArray, Array1, Array2, Array3, arr2, s};
    let rows = arr2(&[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    let base = digest(&rows);
    assert_eq!(base, digest(&rows.view()));
    assert_eq!(base, digest(&ArcArray::from(rows.clone())));
    // The same matrix, laid out by columns.
    let columns = arr2(&[[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]).reversed_axes();
    assert_eq!(rows, columns);
    assert_eq!(base, digest(&columns));
    assert_eq!(base, digest(&rows.clone().into_dyn()));
    // A strided view of a larger array.
    let mut large = Array2::zeros((4, 6));
    large.slice_mut(s![..;2, ..;2]).assign(&rows);
    assert_eq!(base, digest(&large.slice(s![..;2, ..;2])));

    assert_ne!(base, digest(&rows.t()));
    assert_ne!(base, digest(&rows.to_shape((3, 2)).unwrap()));
    assert_ne!(base, digest(&rows.to_shape(6).unwrap()));
    assert_ne!(base, digest(&rows.to_shape((1, 2, 3)).unwrap()));
    differ(
        &rows.to_shape(6).unwrap(),
        &vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    );
    differ(&None::<Array1<f64>>, &None::<Array1<f32>>);
    differ(&None::<Array1<f64>>, &None::<f64>);
    differ(&Array2::<f64>::zeros((0, 3)), &Array2::<f64>::zeros((3, 0)));
    differ(&Array1::<f64>::zeros(0), &Array1::<f32>::zeros(0));
    let names = Array1::from(vec!["a".to_owned(), "b".to_owned()]);
    assert_ne!(digest(&names), digest(&names.slice(s![..;-1])));
    let big = Array3::from_shape_fn((40, 30, 20), |(i, j, k)| (i * 600 + j * 20 + k) as f64);
    let turned = big.clone().permuted_axes([2, 0, 1]);
    assert_eq!(digest(&turned), digest(&turned.as_standard_layout()));
    assert_ne!(digest(&turned), digest(&big));
}

/// Written by hand, in one go.
struct Bytes(Vec<u8>);

impl Fingerprint for Bytes {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.bytes(&self.0);
        Ok(())
    }
}

#[test]
fn bytes_are_a_slice_of_u8() {
    for bytes in [vec![], vec![7], vec![7, 8], vec![7; 5_000]] {
        assert_eq!(digest(&Bytes(bytes.clone())), digest(&bytes));
    }
}
