//! The types of numbers.

/// A type of number whose bytes are its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each name says it")]
pub enum NumberType {
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F32,
    F64,
}

const PREFIX: &str = "$sde::bulk::";

impl NumberType {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::F32,
        Self::F64,
    ];

    /// The name of the newtype struct that such numbers are shown as.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::U8 => "$sde::bulk::u8",
            Self::U16 => "$sde::bulk::u16",
            Self::U32 => "$sde::bulk::u32",
            Self::U64 => "$sde::bulk::u64",
            Self::I8 => "$sde::bulk::i8",
            Self::I16 => "$sde::bulk::i16",
            Self::I32 => "$sde::bulk::i32",
            Self::I64 => "$sde::bulk::i64",
            Self::F32 => "$sde::bulk::f32",
            Self::F64 => "$sde::bulk::f64",
        }
    }

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

    /// The bytes of one number.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }
}
