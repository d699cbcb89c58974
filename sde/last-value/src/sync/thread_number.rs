//! A small dense number for the calling thread, to pick a slot of its own in a padded array.
//!
//! `ThreadId` grows for ever, so over a long run with many short threads two live ones would meet
//! in one slot while others stand empty. These numbers are handed back when a thread ends, and the
//! lowest free one is given out next: `n` live threads have the numbers `0..n`, or nearly so.
//!
//! The number is a hint. Two threads may hold the same one while a thread's locals are being torn down, so code that
//! picks a slot by it must guard that slot.

/// The calling thread's number. A load from thread-local storage after the first call, which takes
/// a lock.
#[cfg(not(sde_model))]
#[inline]
pub fn thread_number() -> usize {
    let number = imp::NUMBER.get();
    if number == imp::NONE {
        imp::take()
    } else {
        number
    }
}

/// The calling thread's number, if no other live thread has the same one. `None` for a thread whose number was handed
/// back already.
#[cfg(not(sde_model))]
#[inline]
pub fn own_thread_number() -> Option<usize> {
    // A shared number 0, which `take` gives to a thread past its destructor, is never kept in `NUMBER`.
    thread_number();
    let number = imp::NUMBER.get();
    (number != imp::NONE).then_some(number)
}

/// In a model no thread has a number of its own.
#[cfg(sde_model)]
pub fn own_thread_number() -> Option<usize> {
    None
}

/// In a model all threads share one slot: that is where they can meet.
#[cfg(sde_model)]
pub fn thread_number() -> usize {
    0
}

#[cfg(not(sde_model))]
mod imp {
    use std::cell::Cell;
    use std::collections::BTreeSet;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    pub(super) const NONE: usize = usize::MAX;

    /// Numbers `0..next` have been given out at some time; those in `free` came back.
    struct Numbers {
        next: usize,
        free: BTreeSet<usize>,
    }

    static NUMBERS: Mutex<Numbers> = Mutex::new(Numbers {
        next: 0,
        free: BTreeSet::new(),
    });

    fn numbers() -> MutexGuard<'static, Numbers> {
        NUMBERS.lock().unwrap_or_else(PoisonError::into_inner)
    }

    thread_local! {
        // Needs no destructor, so reading it is one load and works at any time.
        pub(super) static NUMBER: Cell<usize> = const { Cell::new(NONE) };
        static LEASE: Lease = const { Lease };
    }

    /// Hands the thread's number back when the thread ends.
    struct Lease;

    impl Drop for Lease {
        fn drop(&mut self) {
            let number = NUMBER.replace(NONE);
            if number != NONE {
                let mut numbers = numbers();
                numbers.free.insert(number);
            }
        }
    }

    #[cold]
    pub(super) fn take() -> usize {
        // Registers the destructor. A thread already past it must not take a number it could not
        // give back; it shares number 0.
        if LEASE.try_with(|_| ()).is_err() {
            return 0;
        }
        let mut numbers = numbers();
        let number = numbers.free.pop_first().unwrap_or_else(|| {
            let number = numbers.next;
            numbers.next += 1;
            number
        });
        NUMBER.set(number);
        number
    }
}

#[cfg(all(test, not(sde_model)))]
mod tests {
    use super::thread_number;
    use std::sync::Barrier;

    #[test]
    fn live_threads_have_different_numbers_and_keep_them() {
        let barrier = Barrier::new(8);
        let mut numbers: Vec<usize> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        let number = thread_number();
                        barrier.wait();
                        assert_eq!(number, thread_number());
                        number
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 8);
    }

    #[test]
    fn numbers_come_back() {
        // One thread at a time: without the hand-back the thousandth would be past 900, however
        // many threads the other tests of this process hold.
        let highest = (0..1000)
            .map(|_| std::thread::spawn(thread_number).join().unwrap())
            .max();
        assert!(highest < Some(900), "{highest:?}");
    }
}
