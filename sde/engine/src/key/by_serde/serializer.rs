//! The scalars of serde's data model, and the start of its compounds.

use serde::ser::{Serialize, Serializer};

use super::compound::{Compound, Entries};
use crate::key::tag::item;
use crate::key::{Encoder, FingerprintError};

type Done = Result<(), FingerprintError>;
type Begun<'e, 'b> = Result<Compound<'e, 'b>, FingerprintError>;

/// Writes one serde value as one item.
pub(super) struct Adapter<'e, 'b> {
    pub(super) to: &'e mut Encoder<'b>,
}

macro_rules! scalars {
    ($($method:ident => $writer:ident($type:ty);)*) => {$(
        fn $method(self, value: $type) -> Done {
            self.to.$writer(value);
            Ok(())
        }
    )*};
}

impl<'e, 'b> Serializer for Adapter<'e, 'b> {
    type Ok = ();
    type Error = FingerprintError;
    type SerializeSeq = Compound<'e, 'b>;
    type SerializeTuple = Compound<'e, 'b>;
    type SerializeTupleStruct = Compound<'e, 'b>;
    type SerializeTupleVariant = Compound<'e, 'b>;
    type SerializeMap = Entries<'e, 'b>;
    type SerializeStruct = Compound<'e, 'b>;
    type SerializeStructVariant = Compound<'e, 'b>;

    scalars! {
        serialize_bool => bool(bool);
        serialize_i8 => i8(i8);
        serialize_i16 => i16(i16);
        serialize_i32 => i32(i32);
        serialize_i64 => i64(i64);
        serialize_i128 => i128(i128);
        serialize_u8 => u8(u8);
        serialize_u16 => u16(u16);
        serialize_u32 => u32(u32);
        serialize_u64 => u64(u64);
        serialize_u128 => u128(u128);
        serialize_f32 => f32(f32);
        serialize_f64 => f64(f64);
        serialize_char => char(char);
        serialize_str => str(&str);
        serialize_bytes => bytes(&[u8]);
    }

    fn serialize_unit(self) -> Done {
        self.to.unit();
        Ok(())
    }

    fn serialize_none(self) -> Done {
        self.to.fixed([item::NONE]);
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Done {
        self.to.item(|parts| {
            parts.bytes([item::SOME]);
            parts.node(|to| value.serialize(Adapter { to }))
        })
    }

    fn serialize_unit_struct(self, name: &str) -> Done {
        self.to.structure(name, |_| Ok(()))
    }

    fn serialize_unit_variant(self, name: &str, _: u32, variant: &str) -> Done {
        Compound::variant(self.to, name, variant).finish()
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, name: &str, value: &T) -> Done {
        let mut fields = Compound::structure(self.to, name);
        fields.field("0", value)?;
        fields.finish()
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &str,
        _: u32,
        variant: &str,
        value: &T,
    ) -> Done {
        let mut fields = Compound::variant(self.to, name, variant);
        fields.field("0", value)?;
        fields.finish()
    }

    fn serialize_seq(self, _: Option<usize>) -> Begun<'e, 'b> {
        Ok(Compound::stream(self.to))
    }

    fn serialize_tuple(self, length: usize) -> Begun<'e, 'b> {
        Ok(Compound::tuple(self.to, length))
    }

    fn serialize_tuple_struct(self, name: &str, _: usize) -> Begun<'e, 'b> {
        Ok(Compound::structure(self.to, name))
    }

    fn serialize_tuple_variant(self, name: &str, _: u32, variant: &str, _: usize) -> Begun<'e, 'b> {
        Ok(Compound::variant(self.to, name, variant))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Entries<'e, 'b>, FingerprintError> {
        Ok(Entries::new(self.to))
    }

    fn serialize_struct(self, name: &str, _: usize) -> Begun<'e, 'b> {
        Ok(Compound::structure(self.to, name))
    }

    fn serialize_struct_variant(
        self,
        name: &str,
        _: u32,
        variant: &str,
        _: usize,
    ) -> Begun<'e, 'b> {
        Ok(Compound::variant(self.to, name, variant))
    }

    /// Texts for people may lose digits.
    fn is_human_readable(&self) -> bool {
        false
    }
}
