//! Locks, and the order in which a thread takes them.
//!
//! A thread that holds a lock asks only for locks of a later rank, so no two threads wait for each other. The ranks,
//! from the first to the last:
//!
//! 1. [`TRIM`]: superseded scratch is removed, or what there is of it is handed over, by one thread at a time;
//! 2. [`MANIFESTS`]: the manifests that are known;
//! 3. [`WRITERS`]: the segments that this process writes;
//! 4. [`SEGMENTS`]: the segments that are known;
//! 5. [`INDEX`]: what lies where in them;
//! 6. [`LEASE`]: by what other processes know that this one lives;
//! 7. [`LAST`]: all others. Who holds one of these asks for no other lock.
//!
//! Builds with debug assertions check the order at each lock, so all tests do. Values of a user are encoded and decoded with
//! [no lock held](no_lock_is_held): their code may ask for anything.

use std::ops::{Deref, DerefMut};
use std::sync::{
    Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
};

pub(crate) const TRIM: u8 = 1;
pub(crate) const MANIFESTS: u8 = 2;
pub(crate) const WRITERS: u8 = 3;
pub(crate) const SEGMENTS: u8 = 4;
pub(crate) const INDEX: u8 = 5;
#[cfg(target_os = "linux")]
pub(crate) const LEASE: u8 = 6;
pub(crate) const LAST: u8 = 7;

/// A mutex with its rank. What a thread that panicked has left is as good as what it found.
#[derive(Debug, Default)]
pub(crate) struct Lock<T, const RANK: u8 = LAST>(Mutex<T>);

impl<T, const RANK: u8> Lock<T, RANK> {
    pub(crate) const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// The lock, if no thread holds it.
    pub(crate) fn try_lock(&self) -> Option<Guard<MutexGuard<'_, T>, RANK>> {
        let held = Held::note();
        let guard = match self.0.try_lock() {
            Err(TryLockError::WouldBlock) => return None,
            Err(TryLockError::Poisoned(left)) => left.into_inner(),
            Ok(guard) => guard,
        };
        Some(Guard { guard, held })
    }
}

/// The lock of a mutex.
pub(crate) fn lock<T, const RANK: u8>(mutex: &Lock<T, RANK>) -> Guard<MutexGuard<'_, T>, RANK> {
    let held = Held::note();
    let guard = mutex.0.lock().unwrap_or_else(PoisonError::into_inner);
    Guard { guard, held }
}

/// A lock that many threads hold at once to read, with its rank.
#[derive(Debug, Default)]
pub(crate) struct ReadLock<T, const RANK: u8>(RwLock<T>);

impl<T, const RANK: u8> ReadLock<T, RANK> {
    pub(crate) fn read(&self) -> Guard<RwLockReadGuard<'_, T>, RANK> {
        let held = Held::note();
        let guard = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Guard { guard, held }
    }

    pub(crate) fn write(&self) -> Guard<RwLockWriteGuard<'_, T>, RANK> {
        let held = Held::note();
        let guard = self.0.write().unwrap_or_else(PoisonError::into_inner);
        Guard { guard, held }
    }
}

/// A lock that is held, until this is dropped.
pub(crate) struct Guard<G, const RANK: u8> {
    // Before what notes it: a lock is noted for as long as it is held.
    guard: G,
    held: Held<RANK>,
}

impl<G, const RANK: u8> Guard<G, RANK> {
    /// Waits with the lock given up, as `wait` does.
    pub(crate) fn wait(self, wait: impl FnOnce(G) -> G) -> Self {
        let Self { guard, held } = self;
        let guard = wait(guard);
        Self { guard, held }
    }
}

impl<G: Deref, const RANK: u8> Deref for Guard<G, RANK> {
    type Target = G::Target;

    fn deref(&self) -> &G::Target {
        &self.guard
    }
}

impl<G: DerefMut, const RANK: u8> DerefMut for Guard<G, RANK> {
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.guard
    }
}

/// Notes that this thread holds a lock of a rank, in builds with debug assertions.
struct Held<const RANK: u8>;

#[cfg(debug_assertions)]
thread_local! {
    static HELD: std::cell::RefCell<Vec<u8>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// Does something with the ranks of the locks that this thread holds, unless the thread is about to end.
#[cfg(debug_assertions)]
fn with_held(job: impl FnOnce(&mut Vec<u8>)) {
    let _ = HELD.try_with(|held| job(&mut held.borrow_mut()));
}

impl<const RANK: u8> Held<RANK> {
    fn note() -> Self {
        #[cfg(debug_assertions)]
        with_held(|held| {
            assert!(
                held.iter().all(|rank| *rank < RANK),
                "a thread asks for a lock of rank {RANK} while it holds those of ranks {held:?}"
            );
            held.push(RANK);
        });
        Self
    }
}

impl<const RANK: u8> Drop for Held<RANK> {
    fn drop(&mut self) {
        #[cfg(debug_assertions)]
        with_held(|held| held.retain(|rank| *rank != RANK));
    }
}

/// Checks that this thread holds no lock of a store, in builds with debug assertions.
pub(crate) fn no_lock_is_held() {
    #[cfg(debug_assertions)]
    with_held(|held| {
        assert!(
            held.is_empty(),
            "a value is encoded or decoded while locks of ranks {held:?} are held"
        );
    });
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;

    #[test]
    fn locks_are_taken_in_the_order_of_their_ranks() {
        let (writers, segments) = (Lock::<_, WRITERS>::new(1), Lock::<_, SEGMENTS>::new(2));
        for _ in 0..2 {
            let one = lock(&writers);
            assert_eq!(*one + *lock(&segments), 3);
        }
    }

    #[test]
    #[should_panic(expected = "a lock of rank 3 while it holds those of ranks [4]")]
    fn a_lock_of_an_earlier_rank_is_refused() {
        let (writers, segments) = (Lock::<_, WRITERS>::new(1), Lock::<_, SEGMENTS>::new(2));
        let _held = lock(&segments);
        drop(lock(&writers));
    }

    #[test]
    #[should_panic(expected = "a lock of rank 7 while it holds those of ranks [7]")]
    fn no_other_lock_is_taken_after_the_last() {
        let (one, two) = (Lock::<_>::new(1), Lock::<_>::new(2));
        let _held = lock(&one);
        drop(lock(&two));
    }
}
