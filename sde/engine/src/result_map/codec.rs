//! Writing type-erased values and reading them back.
//!
//! The cache holds values whose types it doesn't know; a store must write them
//! through serde, and must know the type to read them back. So the app's
//! declaration of each result carries a codec: a few functions that know the type.

use std::any::TypeId;

use serde::de::{DeserializeOwned, Error as _};
use serde::ser::Error as _;
use serde::{Deserializer, Serialize, Serializer};

use super::bulk_types;
use super::data::in_bulk;
use super::value::ErasedValue;
use crate::bulk::BulkBytes;
use crate::sync::user_code;

/// A type that can be saved: serde can write and read it, and threads can share it. Every such type implements this
/// trait.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be saved",
    label = "has no `Serialize` and `Deserialize`, or threads can't share it",
    note = "derive both (`#[derive(serde::Serialize, serde::Deserialize)]`), or tag a result `expendable`, so that it is not \
            saved; if a struct that an app returns derives `sde::Results`, write `#[sde::app(results)]`"
)]
pub trait Storable: Serialize + DeserializeOwned + Send + Sync + 'static {}

impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> Storable for T {}

/// Shows a value to a function, if it is of the codec's type.
type Show = fn(&ErasedValue, &mut dyn FnMut(&dyn erased_serde::Serialize));
type Bytes = for<'a> fn(&'a ErasedValue) -> Option<BulkBytes<'a>>;

/// Writes and reads the values of one type, through any serde format.
#[derive(Clone, Copy)]
pub struct Codec(&'static Ops);

/// The functions of a codec. Each type has one static table, since every remembered result has a codec.
struct Ops {
    type_name: fn() -> &'static str,
    type_id: fn() -> TypeId,
    show: Show,
    bytes: Bytes,
    decode: bulk_types::Read,
    is_bulk: fn() -> bool,
}

impl Codec {
    /// The codec of a type.
    #[must_use]
    pub const fn of<T: Storable>() -> Self {
        Self(
            const {
                &Ops {
                    type_name: std::any::type_name::<T>,
                    type_id: TypeId::of::<T>,
                    show: show::<T>,
                    bytes: bytes::<T>,
                    decode: decode::<T>,
                    is_bulk: || in_bulk::<T>().is_some(),
                }
            },
        )
    }

    /// The name of the type, for messages only: it may change from one compiler
    /// to the next.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        (self.0.type_name)()
    }

    /// The type, within this process.
    #[must_use]
    pub fn type_id(&self) -> TypeId {
        (self.0.type_id)()
    }

    /// Whether its values are lists or arrays of numbers, which are read without code of users.
    pub(crate) fn is_bulk(&self) -> bool {
        (self.0.is_bulk)()
    }

    /// Writes a value.
    ///
    /// # Errors
    /// If the value is of another type, or its `Serialize` or the format fails.
    pub fn encode<S: Serializer>(&self, value: &ErasedValue, to: S) -> Result<S::Ok, S::Error> {
        user_code("`Serialize`");
        let mut to = Some(to);
        let mut written = None;
        (self.0.show)(value, &mut |value| {
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

    /// Shows a value to a function, if it is of the codec's type.
    pub(crate) fn show(
        &self,
        value: &ErasedValue,
        to: &mut dyn FnMut(&dyn erased_serde::Serialize),
    ) {
        (self.0.show)(value, to);
    }

    /// The bytes of a value that is itself a list or an array of numbers, as in memory; [`encode`](Self::encode) would
    /// show a format the same bytes.
    ///
    /// `None` for all other types, and for a value of another type.
    #[must_use]
    pub fn bulk<'a>(&self, value: &'a ErasedValue) -> Option<BulkBytes<'a>> {
        (self.0.bytes)(value)
    }

    /// Reads a value.
    ///
    /// # Errors
    /// If the bytes are not such a value.
    pub fn decode<'de, D: Deserializer<'de>>(&self, from: D) -> Result<ErasedValue, D::Error> {
        user_code("`Deserialize`");
        let mut from = <dyn erased_serde::Deserializer<'_>>::erase(from);
        (self.0.decode)(&mut from).map_err(D::Error::custom)
    }
}

fn show<T: Storable>(value: &ErasedValue, to: &mut dyn FnMut(&dyn erased_serde::Serialize)) {
    let Some(value) = value.downcast_ref::<T>() else {
        return;
    };
    match in_bulk::<T>().and_then(|known| (known.view)(value)) {
        Some(numbers) => numbers.show(to),
        None => to(value),
    }
}

fn bytes<T: Storable>(value: &ErasedValue) -> Option<BulkBytes<'_>> {
    let known = in_bulk::<T>()?;
    (known.view)(value.downcast_ref::<T>()?).map(|numbers| numbers.bytes())
}

fn decode<T: Storable>(
    from: &mut dyn erased_serde::Deserializer<'_>,
) -> Result<ErasedValue, erased_serde::Error> {
    match in_bulk::<T>() {
        Some(known) => (known.read)(from),
        None => erased_serde::deserialize::<T>(from).map(ErasedValue::new),
    }
}

impl std::fmt::Debug for Codec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Codec<{}>", self.type_name())
    }
}
