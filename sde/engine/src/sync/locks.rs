//! Locks that stay usable when a thread panics with one in hand: what they guard is whole at any time.
//!
//! Two rules keep threads from waiting for one another for ever. Users' code (a destructor, an observer, the
//! serialization or fingerprint of a value) may call the engine, so none of it runs with a lock held. Each place that
//! calls it says so by [`user_code`]. And two locks are always taken in one order. Builds with debug assertions panic
//! where either rule is broken, whether that would have hung this time or not.

use std::ops::{Deref, DerefMut};
use std::sync::{self, Condvar, LockResult, Mutex, PoisonError, RwLock, TryLockError};
use std::time::{Duration, Instant};

/// A lock that this thread holds.
#[derive(Debug)]
pub struct Guard<G> {
    guard: G,
    held: Held,
}

/// The guard of a mutex.
pub type MutexGuard<'a, T> = Guard<sync::MutexGuard<'a, T>>;

impl<G: Deref> Deref for Guard<G> {
    type Target = G::Target;

    #[inline]
    fn deref(&self) -> &G::Target {
        &self.guard
    }
}

impl<G: DerefMut> DerefMut for Guard<G> {
    #[inline]
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.guard
    }
}

pub(crate) fn unpoisoned<T>(locked: LockResult<T>) -> T {
    locked.unwrap_or_else(PoisonError::into_inner)
}

#[inline]
fn guard<T: ?Sized, G>(lock: impl FnOnce() -> LockResult<G>) -> Guard<G> {
    let held = Held::of::<T>();
    let guard = unpoisoned(lock());
    Guard { guard, held }
}

/// The lock of a mutex.
#[inline]
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    guard::<T, _>(|| mutex.lock())
}

/// The lock of a mutex, if no thread holds it.
pub fn try_lock<T: ?Sized>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    let held = Held::of::<T>();
    let guard = match mutex.try_lock() {
        Err(TryLockError::WouldBlock) => return None,
        Err(TryLockError::Poisoned(left)) => left.into_inner(),
        Ok(guard) => guard,
    };
    Some(Guard { guard, held })
}

/// The lock of a user's sink or iterator, which is called with it held. A thread that waits for this lock holds no other.
pub(crate) fn turn<T>(mutex: &Mutex<T>) -> sync::MutexGuard<'_, T> {
    user_code("a sink or an iterator");
    unpoisoned(mutex.lock())
}

/// The lock of an `RwLock`, to read.
#[inline]
pub fn read<T: ?Sized>(lock: &RwLock<T>) -> Guard<sync::RwLockReadGuard<'_, T>> {
    guard::<T, _>(|| lock.read())
}

/// The lock of an `RwLock`, to write.
#[inline]
pub fn write<T: ?Sized>(lock: &RwLock<T>) -> Guard<sync::RwLockWriteGuard<'_, T>> {
    guard::<T, _>(|| lock.write())
}

/// Sleeps until woken, with the lock free.
pub fn wait<'a, T>(on: &Condvar, lock: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    let Guard { guard, held } = lock;
    let guard = unpoisoned(on.wait(guard));
    Guard { guard, held }
}

/// Sleeps until woken, or for so long, with the lock free; says whether the time was up.
pub fn wait_timeout<'a, T>(
    on: &Condvar,
    lock: MutexGuard<'a, T>,
    left: Duration,
) -> (MutexGuard<'a, T>, bool) {
    let Guard { guard, held } = lock;
    let (guard, waited) = unpoisoned(on.wait_timeout(guard, left));
    (Guard { guard, held }, waited.timed_out())
}

/// Sleeps until woken, or until `end`, with the lock free.
pub(crate) fn wait_until<'a, T>(
    on: &Condvar,
    lock: MutexGuard<'a, T>,
    end: Option<Instant>,
) -> MutexGuard<'a, T> {
    match end {
        None => wait(on, lock),
        Some(end) => wait_timeout(on, lock, end.saturating_duration_since(Instant::now())).0,
    }
}

/// How the panics begin that tell of a broken rule. They are no code's of users, and nobody takes them for that.
pub(crate) const BROKEN: &str = "a rule of locks is broken: ";

pub(crate) use rules::Held;
pub use rules::user_code;

/// Both rules, for builds with debug assertions.
#[cfg(debug_assertions)]
mod rules {
    use super::BROKEN;
    use std::any::type_name;
    use std::cell::RefCell;
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::{Mutex, PoisonError};

    thread_local! {
        /// The locks that this thread holds, by the type of what they guard.
        static HELD: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
    }

    /// For each lock those that were taken while it was held, by any thread.
    static TAKEN_WITHIN: Mutex<BTreeMap<&str, BTreeSet<&str>>> = Mutex::new(BTreeMap::new());

    /// Notes that this thread holds a lock, of whatever kind.
    #[derive(Debug)]
    pub struct Held(&'static str);

    impl Held {
        /// For the lock of a `T`, which is about to be taken.
        pub(crate) fn of<T: ?Sized>() -> Self {
            let new = type_name::<T>();
            // A thread that is ending holds none.
            let before = HELD.try_with(|held| held.borrow().clone());
            for before in before.iter().flatten() {
                note(before, new);
            }
            let _ = HELD.try_with(|held| held.borrow_mut().push(new));
            Self(new)
        }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            let _ = HELD.try_with(|held| {
                let mut held = held.borrow_mut();
                let at = held.iter().rposition(|one| *one == self.0);
                at.map(|at| held.remove(at))
            });
        }
    }

    fn note(before: &'static str, new: &'static str) {
        let mut taken = TAKEN_WITHIN.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = |within: &BTreeSet<_>| within.contains(new);
        if taken.get(before).is_some_and(is_known) {
            return;
        }
        let (mut later, mut next) = (BTreeSet::from([new]), vec![new]);
        while let Some(one) = next.pop() {
            let within = taken.get(one).into_iter().flatten().copied();
            next.extend(within.filter(|within| later.insert(within)));
        }
        assert!(
            !later.contains(before),
            "{BROKEN}the lock of {new} is taken while that of {before} is held, which elsewhere comes later: {later:?}"
        );
        taken.entry(before).or_default().insert(new);
    }

    /// Declares that users' code follows: a thread that holds a lock here may come to wait for itself.
    #[track_caller]
    pub fn user_code(what: &str) {
        let held = HELD
            .try_with(|held| held.borrow().clone())
            .unwrap_or_default();
        assert!(
            held.is_empty() || std::thread::panicking(),
            "{BROKEN}{what} is called with locks held: {held:?}"
        );
    }
}

#[cfg(not(debug_assertions))]
mod rules {
    /// Notes a held lock only in builds with debug assertions.
    #[derive(Debug)]
    pub struct Held;

    impl Held {
        #[inline(always)]
        pub(crate) fn of<T: ?Sized>() -> Self {
            Self
        }
    }

    /// Declares that users' code follows.
    #[inline(always)]
    pub fn user_code(_: &str) {}
}

#[cfg(all(test, debug_assertions))]
#[allow(clippy::unwrap_used, reason = "a test that fails says where")]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    /// The message of a panic of `job`.
    fn panics(job: impl FnOnce() + std::panic::UnwindSafe) -> String {
        *catch_unwind(job).unwrap_err().downcast::<String>().unwrap()
    }

    #[test]
    fn code_of_users_with_a_lock_held_panics() {
        struct Guarded;
        let mutex = Mutex::new(Guarded);
        user_code("a destructor");
        let said = panics(|| {
            let _held = lock(&mutex);
            user_code("a destructor");
        });
        assert!(
            said.contains("a destructor is called with locks held"),
            "{said}"
        );
        // The panic has released the lock.
        user_code("a destructor");
        let shared = RwLock::new(Guarded);
        panics(|| {
            let _held = read(&shared);
            drop(turn(&mutex));
        });
    }

    /// A hostile program hung: of two threads that saved to a store with a capacity, one held the first of two locks and the
    /// other the second.
    #[test]
    fn two_locks_in_the_other_order_panic_on_one_thread() {
        struct One;
        struct Two;
        struct Three;
        let (one, two, three) = (Mutex::new(One), Mutex::new(Two), Mutex::new(Three));
        let take = |_: &dyn std::any::Any, _: &dyn std::any::Any| ();
        take(&*lock(&one), &*lock(&two));
        take(&*lock(&two), &*lock(&three));
        take(&*lock(&one), &*lock(&three));
        let said = panics(|| {
            let _three = lock(&three);
            let _one = lock(&one);
        });
        assert!(said.contains("One is taken while that of"), "{said}");
    }
}
