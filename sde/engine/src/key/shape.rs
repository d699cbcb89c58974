//! Shapes of types, written where no value shows the type.
//!
//! `None::<f64>` and `None::<u8>` hold no value, and neither do two empty lists. They differ in type only, so their
//! keys must have the type. A shape is its text-free rendering. It comes from declared names, never from `type_name`,
//! which changes when a type moves.

use super::fingerprint::Fingerprint;
use super::items::Fields;
use super::tag::shape;

/// Receives the shape of a type.
#[derive(Debug)]
pub struct TypeWriter<'e, 'b> {
    to: Fields<'e, 'b>,
}

impl<'e, 'b> TypeWriter<'e, 'b> {
    pub(crate) fn new(to: Fields<'e, 'b>) -> Self {
        Self { to }
    }

    pub(crate) fn at(&self) -> usize {
        self.to.at()
    }

    /// The type has no declared shape.
    pub fn opaque(&mut self) {
        self.tag(shape::OPAQUE);
    }

    /// The type has a declared name and `arguments` type arguments, whose shapes follow
    /// ([`of`](TypeWriter::of)).
    #[inline]
    pub fn declared(&mut self, name: &str, arguments: usize) {
        self.to.framed(shape::DECLARED, name.as_bytes());
        self.to.varint(arguments as u64);
    }

    /// The shape of another type.
    #[inline]
    pub fn of<T: TypeShape + ?Sized>(&mut self) {
        T::type_shape(self);
    }

    /// A constant among the type's arguments, such as a length: a scalar. Counts as one of the
    /// arguments. Of use to the derive macro.
    #[doc(hidden)]
    #[inline]
    pub fn constant<T: Fingerprint>(&mut self, value: &T) {
        self.to.bounded(value);
    }

    #[inline]
    pub(crate) fn tag(&mut self, tag: u8) {
        self.to.bytes([tag]);
    }
}

/// The type behind a pointer, also where it has no size (`str`, `[T]`, trait objects).
///
/// Every sized [`Fingerprint`] has it. A trait object of your own that is to stand behind `Arc`,
/// `Box` or `&` needs one line:
///
/// ```
/// use sde::key::{commit, Fingerprint, TypeShape};
///
/// trait Potential: Fingerprint {}
/// impl TypeShape for dyn Potential + '_ {}
///
/// #[derive(sde::Fingerprint)]
/// struct Harmonic { k: f64 }
/// impl Potential for Harmonic {}
///
/// let boxed: Box<dyn Potential> = Box::new(Harmonic { k: 2.0 });
/// assert_eq!(commit(&boxed)?, commit(&Harmonic { k: 2.0 })?);
/// # Ok::<(), sde::key::FingerprintError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of a key",
    label = "has no `Fingerprint`, or is a trait object without `TypeShape`",
    note = "for a trait object of your own, write `impl sde::key::TypeShape for dyn YourTrait + '_ {{}}`"
)]
pub trait TypeShape {
    /// Writes a type's shape, as [`Fingerprint::shape`] does.
    fn type_shape(to: &mut TypeWriter<'_, '_>) {
        to.tag(shape::DYNAMIC);
    }

    #[doc(hidden)]
    fn type_scalar() -> Option<super::ScalarKind> {
        None
    }

    #[doc(hidden)]
    fn type_bound() -> usize {
        usize::MAX
    }
}

impl<T: Fingerprint> TypeShape for T {
    fn type_shape(to: &mut TypeWriter<'_, '_>) {
        T::shape(to);
    }

    fn type_scalar() -> Option<super::ScalarKind> {
        T::scalar()
    }

    fn type_bound() -> usize {
        T::bound()
    }
}

impl TypeShape for dyn Fingerprint + '_ {}
impl TypeShape for dyn Fingerprint + Send + '_ {}
impl TypeShape for dyn Fingerprint + Sync + '_ {}
impl TypeShape for dyn Fingerprint + Send + Sync + '_ {}
