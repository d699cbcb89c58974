//! Locks.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The lock of a mutex. What a thread that panicked has left is as good as what it found.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
