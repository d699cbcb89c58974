//! How a type-erased value becomes bytes and comes back.
//!
//! The cache holds values whose types it doesn't know; a store must write them
//! through serde, and must know the type to read them back. So the app's
//! declaration of each result carries a codec: two functions that know the type.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::value::ErasedValue;

/// What can be saved: a type that serde can write and read, and that threads can
/// share. It is implemented by every such type.
pub trait Storable: Serialize + DeserializeOwned + Send + Sync + 'static {}

impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> Storable for T {}

type Encode =
    fn(&ErasedValue, &mut dyn erased_serde::Serializer) -> Result<(), erased_serde::Error>;
type Decode =
    fn(&mut dyn erased_serde::Deserializer<'_>) -> Result<ErasedValue, erased_serde::Error>;

/// Writes and reads the values of one type, through any serde format.
#[derive(Clone, Copy)]
pub struct Codec {
    type_name: fn() -> &'static str,
    encode: Encode,
    decode: Decode,
}

impl Codec {
    /// The codec of a type.
    #[must_use]
    pub const fn of<T: Storable>() -> Self {
        Self {
            type_name: std::any::type_name::<T>,
            encode: encode::<T>,
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
    pub fn encode(
        &self,
        value: &ErasedValue,
        to: &mut dyn erased_serde::Serializer,
    ) -> Result<(), erased_serde::Error> {
        (self.encode)(value, to)
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

fn encode<T: Storable>(
    value: &ErasedValue,
    to: &mut dyn erased_serde::Serializer,
) -> Result<(), erased_serde::Error> {
    let Some(value) = value.downcast::<T>() else {
        let text = format!(
            "a {} was given to the codec of {}",
            value.type_name(),
            std::any::type_name::<T>()
        );
        return Err(<erased_serde::Error as serde::ser::Error>::custom(text));
    };
    erased_serde::Serialize::erased_serialize(&*value, to)
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
