//! The types of numbers.

use serde::Serializer;

const PREFIX: &str = "$sde::bulk::";

macro_rules! number_types {
    ($($variant:ident $type:ident),*; $count:literal) => {
        /// A type of number whose bytes are its value.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[allow(missing_docs, reason = "each name says it")]
        pub enum NumberType {
            $($variant),*
        }

        impl NumberType {
            /// All of them.
            pub const ALL: [Self; $count] = [$(Self::$variant),*];

            /// The name of the newtype struct that such numbers are shown as.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!("$sde::bulk::", stringify!($type)),)*
                }
            }

            /// The bytes of one number.
            #[must_use]
            pub const fn size(self) -> usize {
                match self {
                    $(Self::$variant => size_of::<$type>(),)*
                }
            }

            /// Shows the numbers that these bytes are, as a list.
            pub(super) fn one_by_one<S: Serializer>(self, bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$variant => {
                        let (numbers, _) = bytes.as_chunks();
                        to.collect_seq(numbers.iter().copied().map($type::from_le_bytes))
                    })*
                }
            }
        }
    };
}

number_types! {
    U8 u8, U16 u16, U32 u32, U64 u64, I8 i8, I16 i16, I32 i32, I64 i64, F32 f32, F64 f64; 10
}

impl NumberType {
    /// The type that has this [`name`](Self::name).
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        // Nearly all names are of other structs.
        if !name.starts_with(PREFIX) {
            return None;
        }
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Rust's name of the type.
    #[must_use]
    pub fn rust_name(self) -> &'static str {
        &self.name()[PREFIX.len()..]
    }
}
