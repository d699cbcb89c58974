//! Foreign types, by what they show serde.
//!
//! A type of another crate has no [`Fingerprint`], and often has `Serialize`. What serde shows is
//! less than what the type is, so this is an adapter to be asked for, never the way by default.

mod compound;
mod serializer;

use serde::Serialize;

use super::encoder::Encoder;
use super::error::FingerprintError;
use super::fingerprint::Fingerprint;
use super::shape::Shape;
use super::short::Short;
use super::tag::item;
use serializer::Adapter;

/// A value that enters keys by what it shows serde.
///
/// **Read this before using it; each point can make a wrong hit or a needless miss:**
///
/// - A field that its author left out of serialization (`#[serde(skip)]`, `skip_serializing_if`)
///   is **not in the key**. If it can change a result, two runs that differ in it are taken for
///   one.
/// - serde cannot tell a set from a list. A `HashSet` inside is written in the order in which it is
///   walked: the same set gets another key in another process. Maps are sorted.
/// - What a value shows may change with the version of the crate that it comes from, and with it
///   the key.
///
/// - Where there is no value serde shows no type: `None` of one type and `None` of another, and two
///   empty lists, are alike.
/// - What holds it may change while it is held (a `Mutex` and an atomic are shown by what they
///   hold now). So it is keyed anew each time, also within a shared [`Value`](crate::Value), reused
///   [`Inputs`](crate::Inputs) and a prepared app: that costs a pass over its data for each run. For what is
///   large and asked for often, write a `Fingerprint`.
///
/// Types are kept apart as far as serde shows them: `1u8` and `1i32` differ, and so do structures
/// of different names. A value by serde and the same value by its own `Fingerprint` have different
/// keys.
///
/// ```
/// use sde::key::{commit, BySerde};
/// #[derive(serde::Serialize)]
/// struct Foreign { charge: i32, name: String }
///
/// let ion = Foreign { charge: 1, name: "H3O".into() };
/// let molecule = Foreign { charge: 0, name: "H3O".into() };
/// assert_ne!(commit(&BySerde(&ion))?, commit(&BySerde(&molecule))?);
/// # Ok::<(), sde::key::FingerprintError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BySerde<T>(pub T);

impl<T: Serialize> Fingerprint for BySerde<T> {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        // What serde shows of a `Mutex` or an atomic is what it holds now.
        to.volatile();
        to.item(|parts| {
            parts.bytes([item::SERDE]);
            parts.node(|to| self.0.serialize(Adapter { to }))
        })
    }

    fn describe(&self, out: &mut Short) {
        out.type_name::<T>();
        out.show(" by serde");
    }

    fn shape(to: &mut Shape<'_, '_>) {
        to.tag(item::SERDE);
    }
}
