//! A cell that one thread at a time may enter, and that other threads pass by.
#![allow(
    unsafe_code,
    reason = "std has no lock without a second read-modify-write on leaving; model-checked"
)]

use crate::sync::UnsafeCell;
use crate::sync::atomic::{AtomicBool, Ordering};

/// How often `empty` tries to get in. A thread is inside for some nanoseconds, unless stopped there.
const LOOKS: usize = if cfg!(sde_model) { 1 } else { 100 };

/// A value with a flag that says whether a thread is inside.
///
/// Like a mutex with `try_lock` only. A mutex must also wake its waiters, so its unlocking is a second
/// read-modify-write. Without waiters a plain store is enough; these two operations are most of the cost of a hit.
#[derive(Debug)]
pub(super) struct TryCell<T> {
    busy: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: a `&TryCell` gives access to the value from one thread at a time (see `enter`), and that
// may be any thread: this moves the value between threads, which `T: Send` allows.
unsafe impl<T: Send> Sync for TryCell<T> {}

impl<T> TryCell<T> {
    pub(super) fn new(value: T) -> Self {
        Self {
            busy: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Lets `inside` have the value, or returns `None` if a thread is inside already: another one, or this one further
    /// up its stack.
    #[inline]
    pub(super) fn enter<R>(&self, inside: impl FnOnce(&mut T) -> R) -> Option<R> {
        if self.busy.swap(true, Ordering::Acquire) {
            return None;
        }
        let _leave = Leave(&self.busy);
        Some(self.value.with_mut(|value| {
            // SAFETY: `busy` was false and we made it true; it becomes false again when `_leave` is
            // dropped, after this reference is gone. Until then nobody else gets past the swap. The
            // swap acquires what the last visitor's store released, so its writes are visible.
            inside(unsafe { &mut *value })
        }))
    }
}

impl<T> TryCell<Option<T>> {
    /// Takes the value out and drops it outside the cell. `false` if a thread was inside all the time.
    pub(super) fn empty(&self) -> bool {
        for _ in 0..LOOKS {
            if let Some(old) = self.enter(Option::take) {
                drop(old);
                return true;
            }
            std::hint::spin_loop();
        }
        false
    }
}

/// Opens the cell again, also when `inside` panics.
struct Leave<'cell>(&'cell AtomicBool);

impl Drop for Leave<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
