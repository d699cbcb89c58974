//! Scalars: values of a fixed size whose bytes are their identity.

/// A kind of scalar, as its tag byte. The list only ever grows at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each name says it")]
pub enum Scalar {
    U8 = 0x10,
    U16,
    U32,
    U64,
    U128,
    /// Eight bytes on every target.
    Usize,
    I8,
    I16,
    I32,
    I64,
    I128,
    /// Eight bytes on every target.
    Isize,
    F32,
    F64,
    Bool,
    /// Four bytes.
    Char,
    C32,
    C64,
}
