//! The last-value cells under a model checker: loom tries every interleaving of the threads, and
//! every value that the memory model lets a load return, up to the stated number of preemptions.
//!
//! These tests can fail. Each change below was tried alone, and was found:
//!
//! | in | change | found by |
//! |---|---|---|
//! | `words.rs`, `get` | no `fence(Acquire)` | `words_two_readers` and 3 others |
//! | | first load of the version Relaxed | `words_two_readers` and 1 other |
//! | | no second look at the version | `words_two_readers` and 3 others |
//! | | an odd version taken for even | `words_two_readers` and 1 other |
//! | | no look at the epoch | `words_clear_beats_a_late_set` |
//! | `words.rs`, `set` | no `fence(Release)` | `words_two_readers` and 3 others |
//! | | last store Relaxed | `words_two_readers` and 3 others |
//! | | compare-and-swap Relaxed | `words_two_writers` and 1 other |
//! | | a store in place of the compare-and-swap | `words_two_writers` and 1 other |
//! | | stamped with the current epoch, not the given one | `words_clear_beats_a_late_set` |
//! | `swapped.rs` | stamped with the current epoch | `swapped_clear_leaves_nothing_behind` |
//! | | no second look at the epoch | `swapped_clear_leaves_nothing_behind` |
//! | `try_cell.rs` | swap Relaxed | `per_thread_one_slot` and 2 others |
//! | | store Relaxed | `per_thread_one_slot` and 2 others |
//! | | load and store in place of the swap | `per_thread_one_slot` and 2 others |
//! | `per_thread.rs` | no look at the epoch | `per_thread_clear_leaves_nothing_behind` |
//! | | the look before entering the slot | `per_thread_clear_leaves_nothing_behind` |
//!
//! All threads have the same slot here, so that `LastValuePerThread` is tried where it is shared.
//! Inside `LastValue` the exchange of the `Arc` itself is a stand-in: what is checked is the use
//! the cell makes of it.

#![cfg(sde_model)]
#![allow(clippy::unwrap_used, reason = "a failure is the point")]

use loom::sync::Arc;
use loom::thread::JoinHandle;
use sde::last_value::{LastValue, LastValuePerThread, LastValueWords, Recent};

/// Runs `model` in every way that `preemptions` allow. Threads also switch wherever they block or
/// end, so two or three preemptions reach the known kinds of mistakes; more takes minutes.
fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// Has another thread do something with what the two share.
fn beside<S: Clone + 'static, T: 'static>(
    shared: &S,
    does: impl FnOnce(S) -> T + 'static,
) -> JoinHandle<T> {
    let shared = shared.clone();
    loom::thread::spawn(move || does(shared))
}

type Words = LastValueWords<u64, (u64, u64)>;

fn set(cell: &Words, key: u64, value: u64) {
    cell.set(&key, &(value, value));
}

/// What is found under `key` is whole and was stored under `key`.
fn look(cell: &Words, key: u64) {
    if let Some((first, second)) = cell.get(&key) {
        assert_eq!(first, second, "two records mixed");
        assert_eq!(first / 10, key, "another key's value");
    }
}

#[test]
fn words_two_readers() {
    explore(2, || {
        let cell = Arc::new(Words::new());
        set(&cell, 1, 10);
        let readers = [(); 2].map(|()| beside(&cell, |cell| look(&cell, 1)));
        set(&cell, 1, 11);
        for reader in readers {
            reader.join().unwrap();
        }
        assert_eq!(cell.get(&1), Some((11, 11)));
    });
}

#[test]
fn words_reader_of_another_key() {
    explore(2, || {
        let cell = Arc::new(Words::new());
        set(&cell, 1, 10);
        let reader = beside(&cell, move |cell| {
            look(&cell, 1);
            look(&cell, 2);
        });
        set(&cell, 2, 20);
        set(&cell, 1, 11);
        reader.join().unwrap();
    });
}

#[test]
fn words_two_writers() {
    explore(3, || {
        let cell = Arc::new(Words::new());
        let writers = [1, 2].map(|key| beside(&cell, move |cell| set(&cell, key, 10 * key)));
        look(&cell, 1);
        for writer in writers {
            writer.join().unwrap();
        }
        // One of them got in, whole.
        look(&cell, 1);
        look(&cell, 2);
        assert!(cell.get(&1).is_some() != cell.get(&2).is_some());
    });
}

#[test]
fn words_clear_beats_a_late_set() {
    explore(3, || {
        let cell = Arc::new(Words::new());
        let epoch = cell.epoch();
        let writer = beside(&cell, move |cell| {
            cell.set_at(epoch, &1, &(10, 10));
        });
        cell.clear();
        assert_eq!(cell.get(&1), None);
        // May meet the writer, but if it got in, it stays.
        let stored = cell.set(&1, &(11, 11));
        if stored {
            assert!(matches!(cell.get(&1), None | Some((11, 11))));
        }
        writer.join().unwrap();
        assert_ne!(cell.get(&1), Some((10, 10)));
    });
}

#[test]
fn words_clear_beats_a_late_compute() {
    explore(3, || {
        let cell = Arc::new(Words::new());
        let other = beside(&cell, move |cell| {
            cell.get_or_compute(&1, || {
                cell.clear();
                (10, 10)
            });
        });
        assert_eq!(cell.get(&1), None);
        other.join().unwrap();
        assert_eq!(cell.get(&1), None);
    });
}

#[test]
fn swapped_readers_and_a_writer() {
    explore(3, || {
        let cell = Arc::new(LastValue::<u64, Arc<u64>>::new());
        cell.set(1, Arc::new(10));
        let readers = [(); 2].map(|()| {
            beside(&cell, move |cell| {
                assert!(cell.get(&1).is_none_or(|value| *value == 10));
            })
        });
        cell.set(2, Arc::new(20));
        for reader in readers {
            reader.join().unwrap();
        }
        assert_eq!(cell.get(&2).as_deref(), Some(&20));
    });
}

#[test]
fn swapped_clear_leaves_nothing_behind() {
    explore(3, || {
        let cell = Arc::new(LastValue::<u64, std::sync::Arc<u64>>::new());
        let value = std::sync::Arc::new(10);
        let epoch = cell.epoch();
        let writer = beside(&(cell.clone(), value.clone()), move |(cell, value)| {
            cell.set_at(epoch, 1, value);
        });
        cell.clear();
        assert_eq!(cell.get(&1), None);
        writer.join().unwrap();
        assert_eq!(cell.get(&1), None);
        assert_eq!(
            std::sync::Arc::strong_count(&value),
            1,
            "kept, though not to be found"
        );
    });
}

#[test]
fn per_thread_one_slot() {
    explore(3, || {
        let cell = Arc::new(LastValuePerThread::<u64, Arc<u64>>::with_slots(1));
        let others = [1, 2].map(|key| {
            beside(&cell, move |cell| {
                cell.set(key, Arc::new(10 * key));
                let found = cell.get(&key);
                assert!(found.is_none_or(|value| *value == 10 * key));
            })
        });
        assert!(cell.get(&1).is_none_or(|value| *value == 10));
        for other in others {
            other.join().unwrap();
        }
    });
}

#[test]
fn per_thread_clear_leaves_nothing_behind() {
    explore(3, || {
        let cell = Arc::new(LastValuePerThread::<u64, std::sync::Arc<u64>>::with_slots(
            1,
        ));
        let value = std::sync::Arc::new(10);
        let epoch = cell.epoch();
        let writer = beside(&(cell.clone(), value.clone()), move |(cell, value)| {
            cell.set_at(epoch, 1, value);
        });
        let emptied = cell.clear();
        assert_eq!(cell.get(&1), None);
        writer.join().unwrap();
        assert_eq!(cell.get(&1), None);
        let holders = std::sync::Arc::strong_count(&value);
        assert!(!emptied || holders == 1, "kept, though not to be found");
    });
}

#[test]
fn recent_two_threads_in_one_slot() {
    explore(3, || {
        let recent = Arc::new(Recent::<Arc<u64>>::new());
        let identity = [7; 32];
        let find = move |recent: &Recent<Arc<u64>>, encoded: &[u8], epoch| {
            recent.look(&identity, encoded, epoch, |value| Some(**value))
        };
        let offer = move |recent: &Recent<Arc<u64>>, encoded: &[u8], value| {
            if let Err(place) = find(recent, encoded, 1) {
                recent.offer(place, &identity, encoded, 1, || (Arc::new(value), 0));
            }
        };
        let other = beside(&recent, move |recent| offer(&recent, b"two", 2));
        offer(&recent, b"one", 1);
        assert!(find(&recent, b"one", 1).unwrap_or(1) == 1);
        assert!(find(&recent, b"two", 1).unwrap_or(2) == 2);
        assert!(find(&recent, b"one", 2).is_err());
        other.join().unwrap();
    });
}
