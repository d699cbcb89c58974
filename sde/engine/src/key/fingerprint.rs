//! The trait that decides which parts of a value are its identity.

use std::any::Any;

use super::encoder::Encoder;
use super::error::FingerprintError;
use super::scalar::{Scalar, ScalarKind};
use super::shape::TypeWriter;
use super::short::Short;

/// A value that can be part of a key.
///
/// Derive it. What it writes must determine what a computation on the value can see of it, and
/// nothing else: leave out thread counts and loggers (`#[fingerprint(skip)]`), leave in all else.
/// Two values of one type write the same bytes exactly when they are the same input.
///
/// # Deriving it
///
/// The derived code writes the bare name of the type, its type arguments, the name of the variant,
/// and each field's name and value. It does not write the module: two types of one name and with
/// equal fields are alike, and moving a type does not change keys. Renaming a type or a field does,
/// unless its old name is kept as `name`.
///
/// | attribute | where | what it does |
/// |---|---|---|
/// | `name = ".."` | type, variant, field | the name in the key, in place of the one in the source |
/// | `skip` | field | leaves it out: **a promise that it can't change a result** |
/// | `round = DIGITS` | field | rounds floats for the key ([`Rounded`](super::Rounded)) |
/// | `serde` | field | takes what the value shows serde ([`BySerde`](super::BySerde), with its traps) |
/// | `crate = path` | type | where to find this crate, if not at `::sde` |
///
/// ```
/// use sde::Fingerprint;
/// use sde::key::commit;
///
/// #[derive(Fingerprint)]
/// struct Scf {
///     basis: String,
///     #[fingerprint(round = 6)]
///     damping: f64,
///     #[fingerprint(skip)]
///     threads: usize,
/// }
/// let one = Scf { basis: "6-31G*".into(), damping: 0.3, threads: 1 };
/// let many = Scf { basis: "6-31G*".into(), damping: 0.1 + 0.2, threads: 64 };
/// assert_eq!(commit(&one)?, commit(&many)?);
/// # Ok::<(), sde::key::FingerprintError>(())
/// ```
///
/// # Types without it
///
/// Types with interior mutability (`Cell`, `RefCell`, `Mutex`, atomics), raw pointers, functions and closures do not
/// implement it: their content can change after the key was made, or cannot be seen at all.
///
/// ```compile_fail
/// sde::key::commit(&std::cell::Cell::new(1));
/// ```
/// ```compile_fail
/// sde::key::commit(&std::sync::Mutex::new(1));
/// ```
/// ```compile_fail
/// sde::key::commit(&std::sync::atomic::AtomicU32::new(1));
/// ```
/// ```compile_fail
/// sde::key::commit(&std::ptr::null::<u8>());
/// ```
/// ```compile_fail
/// sde::key::commit(&|x: f64| x + 1.0);
/// ```
///
/// # By hand
///
/// For a type whose identity is less than its fields:
///
/// ```
/// use sde::key::{commit, Encoder, Fingerprint, FingerprintError};
///
/// struct Cached { source: String, parsed: Vec<f64> }
///
/// impl Fingerprint for Cached {
///     fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
///         to.structure("Cached", |fields| fields.field("source", &self.source))
///     }
/// }
/// let parsed = Cached { source: "1 2".into(), parsed: vec![1.0, 2.0] };
/// let fresh = Cached { source: "1 2".into(), parsed: vec![] };
/// assert_eq!(commit(&parsed)?, commit(&fresh)?);
/// # Ok::<(), FingerprintError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of a key",
    label = "has no `Fingerprint`",
    note = "derive it (`#[derive(sde::Fingerprint)]`), or wrap a foreign type that has `Serialize` in `sde::key::BySerde`",
    note = "types with interior mutability, pointers and closures have no identity that a key could hold: mark such a field `#[fingerprint(skip)]` if it cannot change a result"
)]
pub trait Fingerprint {
    /// Writes the value: one item, made of its parts.
    ///
    /// # Errors
    /// When part of the value has no identity, such as a file that cannot be read. Pass on the
    /// errors of parts with `?`: an encoder that saw one gives no key.
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError>;

    /// Writes a short text for people, to explain which input of two runs differs. It is not part
    /// of the key. By default the name of the type.
    fn describe(&self, out: &mut Short) {
        out.type_name::<Self>();
    }

    /// Writes the type where there is no value of it: for `None`, for an empty list. By default nothing, so that
    /// `None::<A>` and `None::<B>` of two such types are alike.
    fn shape(to: &mut TypeWriter<'_, '_>)
    where
        Self: Sized,
    {
        to.opaque();
    }

    /// The most bytes that a value's encoding can have, if the type limits them; never less than the length of its
    /// shape. A type that gives at most [`INLINE_LIMIT`](super::INLINE_LIMIT) has `put_bounded`.
    #[doc(hidden)]
    #[inline]
    fn bound() -> usize
    where
        Self: Sized,
    {
        usize::MAX
    }

    /// Writes the value's encoding, of at most `bound` bytes, to `room` at `at`; gives its end.
    #[doc(hidden)]
    #[inline]
    fn put_bounded(&self, _room: &mut [u8], at: usize) -> usize {
        at
    }

    /// Writes the value as a node at the end `at` of what `to` holds; gives the new end. Types that
    /// know their encoding to be one short item leave out the opening and closing of the node.
    #[doc(hidden)]
    #[inline]
    fn write_node(&self, to: &mut Encoder<'_>, at: usize) -> Result<usize, FingerprintError> {
        to.node_at(at, |to| self.fingerprint(to))
    }

    /// The value as a scalar, if it writes and describes itself as that does: records keep it.
    #[doc(hidden)]
    fn to_scalar(&self) -> Option<Scalar> {
        None
    }

    /// The kind of scalar that the type is, if it is one. A handle gives that of its target.
    #[doc(hidden)]
    fn scalar() -> Option<ScalarKind>
    where
        Self: Sized,
    {
        None
    }

    /// The bytes of many scalars, if memory holds them as they are encoded.
    #[doc(hidden)]
    fn scalar_bytes(_items: &[Self]) -> Option<&[u8]>
    where
        Self: Sized,
    {
        None
    }

    /// The shared value that this is a handle of, in the form that inputs hold.
    #[doc(hidden)]
    fn to_shared_value(&self) -> Option<Box<dyn Any>> {
        None
    }
}
