//! The tag bytes of the encoding, and the limits that decide its shape.
//!
//! Every number here is part of the format: changing one changes keys, and [`FORMAT`] with it.

/// The version of the encoding. It is part of every digest and key.
pub const FORMAT: u8 = 1;

/// The longest encoding, in bytes, that enters its holder unchanged. A longer one enters as a marker, its length and
/// its digest.
pub const INLINE_LIMIT: usize = 1024;

/// The kind of an item of an encoding, which is the item's first byte.
pub(crate) mod item {
    /// Ends the fields of a structure.
    pub const END: u8 = 0x00;
    /// Several items (or none) written by one value: count, then the items.
    pub const GROUP: u8 = 0x01;
    /// A value whose encoding is longer than the limit: length, digest.
    pub const COLLAPSED: u8 = 0x02;
    /// A whole list of inputs that is longer than the limit: length, digest. Unlike `COLLAPSED`, so that a list of
    /// items is never taken for one value with the same content.
    pub const COLLAPSED_ROOT: u8 = 0x03;
    /// A named item: length of the name, the name, the item.
    pub const NAMED: u8 = 0x04;

    pub const UNIT: u8 = 0x30;
    pub const TEXT: u8 = 0x31;
    pub const NONE: u8 = 0x32;
    pub const SOME: u8 = 0x33;
    pub const OK: u8 = 0x34;
    pub const ERR: u8 = 0x35;
    /// A sequence of values that are not scalars: count, then the items.
    pub const SEQUENCE: u8 = 0x36;
    /// A sequence of scalars: tag of the scalar, count, then their bytes.
    pub const SCALARS: u8 = 0x37;
    pub const TUPLE: u8 = 0x38;
    pub const STRUCTURE: u8 = 0x39;
    pub const VARIANT: u8 = 0x3a;
    pub const MAP: u8 = 0x3b;
    pub const SET: u8 = 0x3c;
    pub const PATH: u8 = 0x3d;
    pub const OS_TEXT: u8 = 0x3e;
    pub const FILE: u8 = 0x3f;
    pub const DURATION: u8 = 0x40;
    pub const SYSTEM_TIME: u8 = 0x41;
    pub const NON_ZERO: u8 = 0x42;
    pub const ORDERING: u8 = 0x43;
    pub const RANGE: u8 = 0x44;
    pub const PHANTOM: u8 = 0x45;
    pub const ROUNDED: u8 = 0x46;
    pub const ARRAY: u8 = 0x47;
    pub const DIGEST: u8 = 0x48;
    pub const KEY: u8 = 0x49;
    pub const C_TEXT: u8 = 0x4a;
    pub const SERDE: u8 = 0x60;
    /// A sequence whose length is not known at its start: items, then `END`.
    pub const STREAM: u8 = 0x61;
}

/// Shapes: they stand for a type where there is no value of it.
pub(crate) mod shape {
    /// A type without a declared shape.
    pub const OPAQUE: u8 = 0x70;
    /// A value behind a trait object.
    pub const DYNAMIC: u8 = 0x71;
    /// A type with a declared name: name, count of its type arguments, their shapes.
    pub const DECLARED: u8 = 0x72;
}
