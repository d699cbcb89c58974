//! serde's sequences, structures and maps, piece by piece.

use serde::ser::{self, Serialize, SerializeMap};

use super::serializer::Adapter;
use crate::key::items::Fields;
use crate::key::tag::item;
use crate::key::unordered::Unordered;
use crate::key::{Encoder, FingerprintError};

type Done = Result<(), FingerprintError>;

/// An item that serde gives in several calls.
pub(super) struct Compound<'e, 'b> {
    parts: Fields<'e, 'b>,
    /// The position of the next part, for names and for errors.
    next: usize,
}

impl<'e, 'b> Compound<'e, 'b> {
    fn open(to: &'e mut Encoder<'b>, tag: u8) -> Self {
        let mut parts = Fields::open(to);
        parts.bytes([tag]);
        Self { parts, next: 0 }
    }

    /// A sequence of unknown length.
    pub(super) fn stream(to: &'e mut Encoder<'b>) -> Self {
        Self::open(to, item::STREAM)
    }

    /// Ends like a stream, since serde does not check that the declared length is right.
    pub(super) fn tuple(to: &'e mut Encoder<'b>, length: usize) -> Self {
        let mut open = Self::open(to, item::TUPLE);
        open.parts.varint(length as u64);
        open
    }

    pub(super) fn structure(to: &'e mut Encoder<'b>, name: &str) -> Self {
        let mut open = Self::open(to, item::STRUCTURE);
        open.parts.with_shape(|shape| shape.declared(name, 0));
        open
    }

    pub(super) fn variant(to: &'e mut Encoder<'b>, name: &str, variant: &str) -> Self {
        let mut open = Self::open(to, item::VARIANT);
        open.parts.with_shape(|shape| shape.declared(name, 0));
        open.parts.text(variant.as_bytes());
        open
    }

    fn put<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        self.next += 1;
        self.parts.node(|to| value.serialize(Adapter { to }))
    }

    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        let index = self.next;
        self.put(value).map_err(|error| error.in_element(index))
    }

    pub(super) fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Done {
        self.parts.field_name(name);
        self.put(value).map_err(|error| error.in_field(name))
    }

    /// A field without a name has its position for one.
    fn position<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        let name = self.next.to_string();
        self.field(&name, value)
    }

    pub(super) fn finish(mut self) -> Done {
        self.parts.bytes([item::END]);
        self.parts.close();
        Ok(())
    }
}

macro_rules! compounds {
    ($($trait:ident::$method:ident => $writer:ident($($name:ident)?);)*) => {$(
        impl ser::$trait for Compound<'_, '_> {
            type Ok = ();
            type Error = FingerprintError;

            fn $method<T: Serialize + ?Sized>(&mut self, $($name: &'static str,)? value: &T) -> Done {
                self.$writer($($name,)? value)
            }

            fn end(self) -> Done {
                self.finish()
            }
        }
    )*};
}

compounds! {
    SerializeSeq::serialize_element => element();
    SerializeTuple::serialize_element => element();
    SerializeTupleStruct::serialize_field => position();
    SerializeTupleVariant::serialize_field => position();
    SerializeStruct::serialize_field => field(name);
    SerializeStructVariant::serialize_field => field(name);
}

/// The entries of a map, to be put in order.
pub(super) struct Entries<'e, 'b> {
    parts: Fields<'e, 'b>,
    all: Unordered,
    /// The encoding of a key whose value is to come.
    key: Vec<u8>,
}

impl<'e, 'b> Entries<'e, 'b> {
    pub(super) fn new(to: &'e mut Encoder<'b>) -> Self {
        let mut parts = Fields::open(to);
        parts.bytes([item::MAP]);
        Self {
            parts,
            all: Unordered::default(),
            key: Vec::new(),
        }
    }
}

impl SerializeMap for Entries<'_, '_> {
    type Ok = ();
    type Error = FingerprintError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Done {
        let mut buffer = Vec::new();
        let mut to = Encoder::new(&mut buffer);
        to.item(|parts| parts.node(|to| key.serialize(Adapter { to })))?;
        self.key = to.finish()?.to_vec();
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        let key = std::mem::take(&mut self.key);
        self.all.add(|to| {
            to.item(|parts| {
                parts.slice(&key);
                Ok(())
            })?;
            to.item(|parts| parts.node(|to| value.serialize(Adapter { to })))
        })
    }

    fn end(mut self) -> Done {
        self.all.write(&mut self.parts);
        self.parts.close();
        Ok(())
    }
}
