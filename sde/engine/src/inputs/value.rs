//! The value of an input, of erased type.

use std::any::{Any, TypeId};
use std::borrow::Cow;

use crate::key::short::ValueSummary;
use crate::key::{Digest, EncodedCursor, Fingerprint, Short, describe};
use crate::result_map::{Data, ErasedValue, Value};

/// A value of any type in a key: an input, or a setting of an app.
pub(crate) trait AnyInput: Any + Fingerprint + Send + Sync {
    fn summary(&self, name: Cow<'static, str>, cursor: &mut EncodedCursor<'_>) -> ValueSummary;
}

impl<T: Fingerprint + Send + Sync + 'static> AnyInput for T {
    fn summary(&self, name: Cow<'static, str>, cursor: &mut EncodedCursor<'_>) -> ValueSummary {
        summary(name, self, cursor)
    }
}

macro_rules! input_value {
    ($($inline:ident: $type:ty),* $(,)?) => {
        /// Numbers and literals, as most inputs are, lie beside their names: an allocation would cost more than the
        /// rest of a hit. Other values are shared.
        #[derive(Clone)]
        pub(super) enum InputValue {
            $($inline($type),)*
            Shared(ErasedValue, fn(&ErasedValue) -> &dyn AnyInput),
        }

        impl InputValue {
            #[inline]
            pub(super) fn new<T: Fingerprint + Send + Sync + 'static>(value: T) -> Self {
                let any: &dyn Any = &value;
                $(if let Some(value) = any.downcast_ref::<$type>() {
                    return Self::$inline(*value);
                })*
                Self::Shared(ErasedValue::new(value), |value| match value.downcast_ref::<T>() {
                    Some(value) => value,
                    None => unreachable!("an input changed its type"),
                })
            }

            #[inline]
            pub(super) fn any(&self) -> &dyn AnyInput {
                match self {
                    $(Self::$inline(value) => value,)*
                    Self::Shared(value, any) => any(value),
                }
            }

            #[inline]
            pub(super) fn type_id(&self) -> TypeId {
                match self {
                    $(Self::$inline(_) => TypeId::of::<$type>(),)*
                    Self::Shared(..) => Any::type_id(self.any()),
                }
            }

            pub(super) fn to_shared(&self) -> ErasedValue {
                match self {
                    $(Self::$inline(value) => ErasedValue::new(*value),)*
                    Self::Shared(value, _) => value.clone(),
                }
            }
        }
    };
}

input_value! {
    U8: u8, U16: u16, U32: u32, U64: u64, Usize: usize,
    I8: i8, I16: i16, I32: i32, I64: i64, Isize: isize,
    F32: f32, F64: f64, Bool: bool, Char: char, Text: &'static str,
}

impl InputValue {
    /// The value as a `T`, if it is one.
    pub(super) fn downcast_ref<T: 'static>(&self) -> Option<&T> {
        let any: &dyn Any = self.any();
        any.downcast_ref()
    }

    /// The value as a shared one, whether it was given as a [`Value`] or bare.
    pub(super) fn erased(&self) -> ErasedValue {
        let shared = self.any().to_shared_value();
        let shared = shared.and_then(|shared| shared.downcast().ok());
        shared.map_or_else(|| self.to_shared(), |shared| *shared)
    }

    /// The value, if it was given without a Rust type.
    pub(super) fn data(&self) -> Option<&Data> {
        let shared = || self.downcast_ref::<Value<Data>>().map(|value| &**value);
        self.downcast_ref().or_else(shared)
    }
}

/// The readable line of one argument. Used by the macros.
#[doc(hidden)]
pub fn summary(
    name: impl Into<Cow<'static, str>>,
    value: &impl Fingerprint,
    cursor: &mut EncodedCursor<'_>,
) -> ValueSummary {
    let (name, scalar) = (name.into(), value.to_scalar());
    let (short, fields) = match scalar {
        Some(_) => (describe(value), Vec::new()),
        None => Short::with_fields(value, false),
    };
    ValueSummary {
        short,
        digest: Digest::from_bytes(cursor.digest(&name, value)),
        name,
        scalar,
        fields: fields.into(),
    }
}
