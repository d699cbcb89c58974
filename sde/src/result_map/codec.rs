//! How a type-erased value becomes bytes and comes back.
//!
//! The cache holds values whose types it doesn't know; a store must write them
//! through serde, and must know the type to read them back. So the app's
//! declaration of each result carries a codec: two functions that know the type.

use serde::de::DeserializeOwned;
use serde::ser::Error as _;
use serde::{Serialize, Serializer};

use super::value::ErasedValue;

/// What can be saved: a type that serde can write and read, and that threads can
/// share. It is implemented by every such type.
pub trait Storable: Serialize + DeserializeOwned + Send + Sync + 'static {}

impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> Storable for T {}

/// Shows a value to somebody, if it is of the codec's type.
type Show = fn(&ErasedValue, &mut dyn FnMut(&dyn erased_serde::Serialize));
type Decode =
    fn(&mut dyn erased_serde::Deserializer<'_>) -> Result<ErasedValue, erased_serde::Error>;

/// Writes and reads the values of one type, through any serde format.
#[derive(Clone, Copy)]
pub struct Codec {
    type_name: fn() -> &'static str,
    show: Show,
    decode: Decode,
}

impl Codec {
    /// The codec of a type.
    #[must_use]
    pub const fn of<T: Storable>() -> Self {
        Self {
            type_name: std::any::type_name::<T>,
            show: show::<T>,
            decode: decode::<T>,
        }
    }

    /// The name of the type, for messages only: it may change from one compiler
    /// to the next.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        (self.type_name)()
    }

    /// Writes a value.
    ///
    /// # Errors
    /// If the value is of another type, or its `Serialize` or the format fails.
    pub fn encode<S: Serializer>(&self, value: &ErasedValue, to: S) -> Result<S::Ok, S::Error> {
        let mut to = Some(to);
        let mut written = None;
        (self.show)(value, &mut |value| {
            written = to.take().map(|to| erased_serde::serialize(value, to));
        });
        written.unwrap_or_else(|| {
            Err(S::Error::custom(format_args!(
                "a {} was given to the codec of {}",
                value.type_name(),
                self.type_name()
            )))
        })
    }

    /// Reads a value.
    ///
    /// # Errors
    /// If the bytes are not such a value.
    pub fn decode(
        &self,
        from: &mut dyn erased_serde::Deserializer<'_>,
    ) -> Result<ErasedValue, erased_serde::Error> {
        (self.decode)(from)
    }
}

fn show<T: Storable>(value: &ErasedValue, to: &mut dyn FnMut(&dyn erased_serde::Serialize)) {
    if let Some(value) = value.downcast::<T>() {
        to(&*value);
    }
}

fn decode<T: Storable>(
    from: &mut dyn erased_serde::Deserializer<'_>,
) -> Result<ErasedValue, erased_serde::Error> {
    erased_serde::deserialize::<T>(from).map(ErasedValue::new)
}

impl std::fmt::Debug for Codec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Codec<{}>", self.type_name())
    }
}
