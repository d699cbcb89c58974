//! Values without a Rust type: what a program in another language gives to apps and gets from them.
//!
//! Such a program does not know Rust's types, and Rust code does not know its own. A [`Data`] stands for the Rust value
//! that it equals: it has that value's key and that value's bytes in a store.

mod array;
mod convert;
mod keyed;
mod serde;

use std::collections::BTreeMap;

pub use array::AnyArray;
pub(super) use convert::in_bulk;
pub use keyed::KeyedArray;

use super::value::Value;
use crate::key::{Encoder, Fingerprint, FingerprintError, Scalar, Short};
use crate::output_file::OutputFile;

/// A value without a Rust type of its own, as programs in Python, commands and plug-ins have them.
///
/// As an input it makes the key of the Rust value that it equals: `Data::Float(1.5)` that of `1.5_f64`, `Int` that of
/// an `i64`, `Text` of a `String`, `Bytes` of a `Vec<u8>`, `List` of a `Vec<Data>`, `Map` of a `BTreeMap<String, Data>`,
/// `None` of `()`. As a result it is stored as that value is, but for a `File`. An empty `List` has no type of elements, so its key is
/// not that of an empty `Vec` of another type.
///
/// [`get`](Self::get) gives a Rust value, and so does [`ResultMap::get`](crate::ResultMap::get) on a result that is a
/// `Data`.
///
/// ```
/// use sde::key::commit;
/// use sde::{Data, ResultMap};
///
/// assert_eq!(commit(&Data::Float(1.5))?, commit(&1.5_f64)?);
/// let map = ResultMap::new().with("energy", Data::Float(-76.0)).with("cycles", Data::Int(11));
/// assert_eq!(*map.get::<f64>("energy")?, -76.0);
/// assert_eq!(*map.get::<u32>("cycles")?, 11);
/// assert!(map.get::<u32>("energy").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Data {
    /// No value.
    None,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A number.
    Float(f64),
    /// A text.
    Text(String),
    /// Bytes. An [`Array`](Self::Array) that is a list of `u8` has the same key, and is `Bytes` when it is loaded.
    Bytes(Vec<u8>),
    /// A list of any values.
    List(Vec<Data>),
    /// Values by name.
    Map(BTreeMap<String, Data>),
    /// Numbers of one type.
    Array(AnyArray),
    /// A file that an app has written.
    File(OutputFile),
    /// A value that is never copied, and keyed once. It is stored as the value itself.
    Shared(Value<Data>),
    /// The key of an array, for an input whose numbers nobody asks for. It can't be stored.
    #[doc(hidden)]
    Keyed(KeyedArray),
}

macro_rules! from {
    ($($type:ty: $variant:ident;)*) => {$(
        impl From<$type> for Data {
            fn from(value: $type) -> Self {
                Self::$variant(value.into())
            }
        }
    )*};
}

from! {
    bool: Bool;
    i64: Int;
    f64: Float;
    &str: Text;
    String: Text;
    Vec<u8>: Bytes;
    Vec<Self>: List;
    BTreeMap<String, Self>: Map;
    AnyArray: Array;
    OutputFile: File;
    Value<Self>: Shared;
}

impl Data {
    /// The handle of the value itself, if it is shared.
    pub(crate) fn shared(&self) -> Option<&Value<Self>> {
        match self {
            Self::Shared(value) => value.shared().or(Some(value)),
            _ => None,
        }
    }

    /// The Rust value that it equals.
    fn held(&self) -> &dyn Fingerprint {
        match self {
            Self::None => &(),
            Self::Bool(value) => value,
            Self::Int(value) => value,
            Self::Float(value) => value,
            Self::Text(value) => value,
            Self::Bytes(value) => value,
            Self::List(value) => value,
            Self::Map(value) => value,
            Self::Array(value) => value,
            Self::File(value) => value,
            Self::Shared(value) => value,
            Self::Keyed(value) => value,
        }
    }
}

impl Fingerprint for Data {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        self.held().fingerprint(to)
    }

    fn write_node(&self, to: &mut Encoder<'_>, at: usize) -> Result<usize, FingerprintError> {
        self.held().write_node(to, at)
    }

    fn describe(&self, out: &mut Short) {
        self.held().describe(out);
    }

    fn to_scalar(&self) -> Option<Scalar> {
        self.held().to_scalar()
    }
}
