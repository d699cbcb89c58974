//! A place that holds an `Arc` and lets it be exchanged while others look at it.
//!
//! Looking must not touch the record's reference count, or every reader writes to one cache line. `arc-swap` does that.
//! Its code is not ours to check, so under the model checker a mutex stands in for it: the models prove the cells' use
//! of an atomic exchange, not the exchange.

#[cfg(not(sde_model))]
mod imp {
    use arc_swap::ArcSwapOption;
    use std::sync::Arc;

    /// An exchangeable `Option<Arc<T>>`; looking at it is lock-free and leaves the count alone.
    #[derive(Debug)]
    pub(crate) struct ArcCell<T>(ArcSwapOption<T>);

    impl<T> ArcCell<T> {
        /// An empty cell.
        pub(crate) const fn empty() -> Self {
            Self(ArcSwapOption::const_empty())
        }

        /// Shows the held value to `look`.
        #[inline]
        pub(crate) fn look<R>(&self, look: impl FnOnce(Option<&T>) -> R) -> R {
            look(self.0.load().as_deref())
        }

        /// Puts `new` in and drops the old value. The writes of the caller before this are visible to the thread that
        /// replaces `new` in turn.
        pub(crate) fn replace(&self, new: Option<T>) {
            drop(self.0.swap(new.map(Arc::new)));
        }
    }
}

#[cfg(sde_model)]
mod imp {
    use loom::sync::{Arc, Mutex};

    /// The model's stand-in: the same meaning, by a mutex.
    #[derive(Debug)]
    pub(crate) struct ArcCell<T>(Mutex<Option<Arc<T>>>);

    impl<T> ArcCell<T> {
        /// An empty cell.
        pub(crate) fn empty() -> Self {
            Self(Mutex::new(None))
        }

        /// Shows the held value to `look`.
        pub(crate) fn look<R>(&self, look: impl FnOnce(Option<&T>) -> R) -> R {
            // A lock that is poisoned means the model failed already.
            let held = self.0.lock().ok().and_then(|held| held.clone());
            look(held.as_deref())
        }

        /// Puts `new` in and drops the old value.
        pub(crate) fn replace(&self, new: Option<T>) {
            let new = new.map(Arc::new);
            let old = self
                .0
                .lock()
                .ok()
                .map(|mut held| std::mem::replace(&mut *held, new));
            drop(old);
        }
    }
}

pub(crate) use imp::ArcCell;
