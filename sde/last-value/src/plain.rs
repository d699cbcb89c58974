//! The types that a [`LastValueWords`](super::LastValueWords) can hold.

/// A small value that is nothing but its bytes.
///
/// [`LastValueWords`](super::LastValueWords) keeps its record in atomic words: only so may one thread read a record
/// that another is writing. So key and value are converted to a fixed number of bytes. Implemented for the numbers,
/// `bool`, `char`, `()`, `Option`, arrays and tuples up to eight.
///
/// Keys are compared by their bytes: a NaN is found again, and `0.0` is not `-0.0`.
///
/// # Examples
///
/// ```
/// use sde::last_value::Plain;
///
/// #[derive(Debug, PartialEq)]
/// struct Point { x: f64, y: f64 }
///
/// impl Plain for Point {
///     const BYTES: usize = <(f64, f64)>::BYTES;
///     fn write(&self, out: &mut [u8]) {
///         (self.x, self.y).write(out);
///     }
///     fn read(bytes: &[u8]) -> Self {
///         let (x, y) = Plain::read(bytes);
///         Point { x, y }
///     }
/// }
///
/// let mut bytes = [0; Point::BYTES];
/// Point { x: 1.0, y: 2.0 }.write(&mut bytes);
/// assert_eq!(Point::read(&bytes), Point { x: 1.0, y: 2.0 });
/// ```
pub trait Plain: Sized {
    /// The number of bytes that a value takes.
    const BYTES: usize;

    /// Writes the value to `out`, which has [`BYTES`](Self::BYTES) bytes, all zero. Equal values
    /// write equal bytes.
    fn write(&self, out: &mut [u8]);

    /// The value from which [`write`](Self::write) made these [`BYTES`](Self::BYTES) bytes.
    fn read(bytes: &[u8]) -> Self;
}
