//! Foreign types, keyed as they show themselves to serde.
//!
//! A type of another crate has no [`Fingerprint`], but often has `Serialize`. serde shows less than all of a value, so
//! this is an adapter to be asked for, never the way by default.

mod compound;
mod serializer;

use serde::Serialize;

use super::encoder::Encoder;
use super::error::FingerprintError;
use super::fingerprint::Fingerprint;
use super::shape::TypeWriter;
use super::short::Short;
use super::tag::item;
use serializer::Adapter;

/// A value that enters keys as it shows itself to serde.
///
/// **Read this before using it; each point can make a wrong hit or a needless miss:**
///
/// - A field that its author left out of serialization (`#[serde(skip)]`, `skip_serializing_if`)
///   is **not in the key**. If it can change a result, two runs that differ in it are taken for
///   one.
/// - serde cannot tell a set from a list. A `HashSet` inside is written in the order in which it is
///   walked: the same set gets another key in another process. Maps are sorted.
/// - The serialized form of a value may change with the version of its crate, and with it the key.
///
/// - serde shows no types without values: `None` of one type and `None` of another are alike, and so are two empty
///   lists.
/// - The value may change while it is held: a `Mutex` or an atomic is shown by its present content. So it is keyed anew
///   each time, also within a shared [`Value`](crate::Value), reused [`Inputs`](crate::Inputs) and a prepared app. That
///   costs a pass over its data for each run. For large values that are asked for often, write a `Fingerprint`.
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
        // serde shows the present content of a `Mutex` or an atomic.
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

    fn shape(to: &mut TypeWriter<'_, '_>) {
        to.tag(item::SERDE);
    }
}
