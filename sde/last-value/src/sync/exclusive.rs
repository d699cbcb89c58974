//! An `UnsafeCell` with loom's interface, so that loom can see each access.
//!
//! Loom reports two accesses that may overlap; for that it must know where one begins and ends,
//! hence the closures in place of `get`.

#[cfg(sde_model)]
pub(crate) use loom::cell::UnsafeCell;

/// `std`'s `UnsafeCell` behind loom's interface; costs nothing.
#[cfg(not(sde_model))]
#[derive(Debug, Default)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(sde_model))]
impl<T> UnsafeCell<T> {
    /// Wraps `value`.
    pub(crate) const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Calls `f` with a pointer for writing; the code that dereferences it vouches for exclusiveness.
    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}
