//! Giving up on calls.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use crate::sync::lock;

/// A computation that callers wait for, each until it is cancelled.
pub(crate) trait Wake: Send + Sync {
    /// Has all waiters check again whether to wait.
    fn wake(&self);

    /// Whether anybody but the computing call wants the result.
    fn is_wanted(&self) -> bool {
        false
    }
}

/// Cancels the calls of the handles that have it, by [`Handle::with_cancel`](crate::Handle::with_cancel).
///
/// A cancelled caller gets an error at once if it waits for another run. A running body sees the
/// cancelling through [`Handle::is_cancelled`](crate::Handle::is_cancelled), but only once nobody else waits for its
/// result: one caller's cancelling does not take the result from others.
///
/// ```
/// use sde::{CancelToken, Sde};
///
/// #[sde::app]
/// fn cube(x: f64) -> f64 {
///     x.powi(3)
/// }
///
/// let (sde, token) = (Sde::new(), CancelToken::new());
/// // Another thread has a clone, and cancels.
/// let button = token.clone();
/// std::thread::spawn(move || button.cancel()).join().unwrap();
/// let error = cube.call(&sde.with_cancel(&token), 2.0).unwrap_err();
/// assert!(error.is_cancelled());
/// assert_eq!(*cube.call(&sde, 2.0)?, 8.0);
/// # Ok::<(), sde::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct CancelToken(Arc<TokenState>);

#[derive(Default)]
struct TokenState {
    cancelled: AtomicBool,
    waiting: Mutex<Vec<Weak<dyn Wake>>>,
}

impl CancelToken {
    /// A token that is not cancelled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels every call that has this token, now and later.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::SeqCst);
        let waiting = std::mem::take(&mut *lock(&self.0.waiting));
        for waiter in waiting.iter().filter_map(Weak::upgrade) {
            waiter.wake();
        }
    }

    /// Whether it was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::SeqCst)
    }

    /// Registers a waiter to be woken on cancelling. The waiter must look at
    /// [`is_cancelled`](Self::is_cancelled) after this call and before it sleeps.
    pub(crate) fn wakes(&self, waiter: Weak<dyn Wake>) {
        let mut waiting = lock(&self.0.waiting);
        waiting.retain(|old| old.strong_count() > 0);
        waiting.push(waiter);
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CancelToken({})", self.is_cancelled())
    }
}
