//! The last-value cells as a user sees them: one thread, stopped threads, panics, re-entry, drops.
//!
//! What happens when threads meet at every possible point is in `tests/model.rs`.

use sde::last_value::{LastValue, LastValuePerThread, LastValueWords, MAX_ENCODED, Recent};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, Weak, mpsc};
use std::thread;

type Words = LastValueWords<u64, (u64, f64)>;

/// Runs `check` while another thread is stopped between the first and the last store of setting
/// `key`; then lets that thread go on and end.
fn with_stopped_writer(cell: &Words, key: u64, check: impl FnOnce()) {
    thread::scope(|scope| {
        let (stopped, is_stopped) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel::<()>();
        scope.spawn(move || {
            cell.set_stopping(cell.epoch(), &key, &(key, 0.5), || {
                stopped.send(()).unwrap();
                // Returns also if the check panics and drops its end.
                let _ = may_go_on.recv();
            });
        });
        is_stopped.recv().unwrap();
        check();
        drop(go_on);
    });
}

#[test]
fn words_remember_the_last_pair_only() {
    let cell = Words::new();
    let got = cell.get(&0);
    assert_eq!(got, None, "a new cell is empty, also for a key of zeros");
    assert!(cell.set(&1, &(1, 1.5)));
    assert_eq!(cell.get(&1), Some((1, 1.5)));
    assert!(cell.set(&2, &(2, 2.5)));
    assert_eq!(cell.get(&1), None);
    assert_eq!(cell.get(&2), Some((2, 2.5)));
    cell.clear();
    assert_eq!(cell.get(&2), None);
}

#[test]
fn a_stopped_writer_makes_the_others_compute_and_nobody_wait() {
    let cell = Words::new();
    cell.set(&1, &(1, 0.5));
    with_stopped_writer(&cell, 2, || {
        assert_eq!(cell.get(&1), None);
        assert_eq!(cell.get(&2), None);
        assert!(!cell.set(&3, &(3, 0.5)));
        assert_eq!(cell.get_or_compute(&4, || (4, 4.5)), (4, 4.5));
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(cell.get_or_compute(&5, || (5, 5.5)), (5, 5.5)));
        });
    });
    let got = cell.get(&2);
    assert_eq!(got, Some((2, 0.5)), "it finished what it had begun");
    assert!(cell.set(&3, &(3, 0.5)));
}

#[test]
fn clearing_does_not_wait_for_a_stopped_writer_and_is_not_lost() {
    let cell = Words::new();
    with_stopped_writer(&cell, 2, || {
        cell.clear();
        assert_eq!(cell.get(&2), None);
    });
    assert_eq!(cell.get(&2), None, "it had begun before the clear");
    assert!(cell.set(&2, &(2, 2.5)));
    assert_eq!(cell.get(&2), Some((2, 2.5)));
}

#[test]
fn a_key_is_its_bits() {
    let cell = LastValueWords::<f64, u8>::new();
    cell.set(&f64::NAN, &1);
    assert_eq!(cell.get(&f64::NAN), Some(1));
    cell.set(&0.0, &2);
    assert_eq!(cell.get(&-0.0), None);
}

#[test]
fn what_was_computed_before_a_clear_is_not_stored_after_it() {
    let words = LastValueWords::<u8, u8>::new();
    let shared = LastValue::<u8, u8>::new();
    let per_thread = LastValuePerThread::<u8, u8>::new();
    words.get_or_compute(&1, || {
        words.clear();
        1
    });
    shared.get_or_compute(&1, || {
        shared.clear();
        1
    });
    per_thread.get_or_compute(&1, || {
        assert!(per_thread.clear());
        1
    });
    let got = (words.get(&1), shared.get(&1), per_thread.get(&1));
    assert_eq!(got, (None, None, None));
}

#[test]
fn remembered_values_are_not_computed() {
    let words = LastValueWords::<u8, u8>::new();
    let shared = LastValue::<u8, u8>::new();
    let per_thread = LastValuePerThread::<u8, u8>::new();
    for expected in [3, 0] {
        let mut computed = 0;
        let mut compute = || {
            computed += 1;
            7
        };
        assert_eq!(words.get_or_compute(&1, &mut compute), 7);
        assert_eq!(shared.get_or_compute(&1, &mut compute), 7);
        assert_eq!(per_thread.get_or_compute(&1, &mut compute), 7);
        assert_eq!(computed, expected);
    }
}

#[test]
fn clearing_drops_what_is_held() {
    let value = Arc::new(());
    let shared = LastValue::new();
    let per_thread = LastValuePerThread::new();
    let hold = || {
        shared.set(1, Arc::clone(&value));
        per_thread.set(1, Arc::clone(&value));
    };
    hold();
    thread::scope(|scope| {
        scope.spawn(hold);
    });
    assert!(Arc::strong_count(&value) >= 4);
    shared.clear();
    assert!(per_thread.clear());
    assert_eq!(Arc::strong_count(&value), 1);
    hold();
    drop((shared, per_thread));
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn a_thread_stopped_in_its_slot_stops_nobody() {
    // One slot, so that all threads share it.
    let cell = LastValuePerThread::<u8, u8>::with_slots(1);
    cell.set(1, 10);
    thread::scope(|scope| {
        let (stopped, is_stopped) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel::<()>();
        let cell = &cell;
        scope.spawn(move || {
            let found = cell.get_by(|_| {
                stopped.send(()).unwrap();
                let _ = may_go_on.recv();
                true
            });
            assert_eq!(found, Some(10));
        });
        is_stopped.recv().unwrap();
        assert_eq!(cell.get(&1), None);
        assert!(!cell.set(2, 20));
        assert_eq!(cell.get_or_compute(&3, || 30), 30);
        assert!(!cell.clear(), "passed over");
        drop(go_on);
    });
    assert_eq!(cell.get(&1), None, "cleared, though still there");
    assert!(cell.set(2, 20));
    assert_eq!(cell.get(&2), Some(20));
}

#[test]
fn each_thread_has_its_own() {
    let cell = LastValuePerThread::<String, u8>::with_slots(1024);
    cell.set("ours".to_owned(), 1);
    thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(cell.get("ours"), None);
            assert!(cell.set("theirs".to_owned(), 2));
        });
    });
    assert_eq!(cell.get("ours"), Some(1));
}

#[test]
fn a_panic_inside_leaves_the_cell_usable() {
    let shared = LastValue::<u8, u8>::new();
    let per_thread = LastValuePerThread::<u8, u8>::new();
    shared.set(1, 10);
    per_thread.set(1, 10);
    let panics = |run: &dyn Fn()| assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
    panics(&|| _ = shared.get_by(|_| panic!("in the comparison")));
    panics(&|| _ = per_thread.get_by(|_| panic!("in the comparison")));
    assert_eq!((shared.get(&1), per_thread.get(&1)), (Some(10), Some(10)));
    panics(&|| {
        let epoch = per_thread.epoch();
        per_thread.set_with(epoch, |_| panic!("in making the key"), 20);
    });
    assert_eq!(per_thread.get(&1), None, "left empty");
    assert!(per_thread.set(1, 30));
    assert_eq!(per_thread.get(&1), Some(30));
}

/// Uses the cell it lies in: when cloned, inside its slot, and when dropped, outside.
struct Reenters {
    cell: Weak<LastValuePerThread<u8, Reenters>>,
    seen_at_drop: Arc<Mutex<Vec<u8>>>,
}

impl Reenters {
    fn keys_seen(&self) -> Vec<u8> {
        let mut keys = Vec::new();
        if let Some(cell) = self.cell.upgrade() {
            cell.get_by(|key| {
                keys.push(*key);
                false
            });
        }
        keys
    }
}

impl Clone for Reenters {
    fn clone(&self) -> Self {
        assert_eq!(self.keys_seen(), [], "the slot is taken");
        Reenters {
            cell: Weak::new(),
            seen_at_drop: Arc::default(),
        }
    }
}

impl Drop for Reenters {
    fn drop(&mut self) {
        let keys = self.keys_seen();
        self.seen_at_drop.lock().unwrap().extend(keys);
    }
}

#[test]
fn a_value_may_use_the_cell_it_lies_in() {
    let cell = Arc::new(LastValuePerThread::new());
    let seen = Arc::default();
    for key in 1..4 {
        let value = Reenters {
            cell: Arc::downgrade(&cell),
            seen_at_drop: Arc::clone(&seen),
        };
        assert!(cell.set_with(cell.epoch(), |_| key, value));
        assert!(cell.get(&key).is_some());
    }
    // The drops of the first two looked, and found their successor there: the slot was free.
    assert_eq!(*seen.lock().unwrap(), [2, 3]);
}

#[test]
fn set_with_hands_out_the_old_key_for_reuse() {
    let cell = LastValuePerThread::<String, u8>::new();
    cell.set("a longer name".to_owned(), 1);
    let epoch = cell.epoch();
    let reuse = |old: Option<String>| {
        let mut key = old.unwrap();
        assert_eq!(key, "a longer name");
        key.clear();
        key.push_str("short");
        key
    };
    assert!(cell.set_with(epoch, reuse, 2));
    assert_eq!(cell.get("short"), Some(2));
    cell.clear();
    assert!(!cell.set_with(epoch, |_| unreachable!("the epoch is over"), 3));
}

/// Offers a value for inputs, as one does that has looked for them first.
fn offer<V>(recent: &Recent<V>, identity: &[u8; 32], encoded: &[u8], epoch: u64, value: V) -> bool {
    let Err(place) = recent.look(identity, encoded, epoch, |_| None::<()>) else {
        return false;
    };
    recent.offer(place, identity, encoded, epoch, || (value, 0))
}

fn find<V: Clone>(
    recent: &Recent<V>,
    identity: &[u8; 32],
    encoded: &[u8],
    epoch: u64,
) -> Option<V> {
    let clone = |value: &V| Some(value.clone());
    recent.look(identity, encoded, epoch, clone).ok()
}

#[test]
fn recent_tells_apart_identity_inputs_and_epoch() {
    let recent = Recent::new();
    let (one, other) = ([1; 32], [2; 32]);
    assert!(offer(&recent, &one, b"inputs", 5, 10));
    assert_eq!(find(&recent, &one, b"inputs", 5), Some(10));
    assert_eq!(find(&recent, &other, b"inputs", 5), None);
    assert_eq!(find(&recent, &one, b"input", 5), None);
    assert_eq!(find(&recent, &one, b"inputs", 6), None);
    let again = find(&recent, &one, b"inputs", 5);
    assert_eq!(again, Some(10), "looking changed nothing");
}

#[test]
fn recent_keeps_inputs_up_to_the_limit() {
    let recent = Recent::new();
    let long = vec![1; MAX_ENCODED + 1];
    assert!(offer(&recent, &[0; 32], &long[1..], 1, 10));
    assert_eq!(find(&recent, &[0; 32], &long[1..], 1), Some(10));
    assert!(!offer(&recent, &[0; 32], &long, 1, 20));
    assert_eq!(find(&recent, &[0; 32], &long, 1), None);
}

/// Many different runs, each asked for once, push out none of those that come again; these enter where the others
/// are when they come the second time; and what a table takes has a bound.
#[test]
fn recent_keeps_what_comes_again() {
    let recent = Recent::new();
    let identity = [3; 32];
    let ask = |number: u64| {
        let encoded = number.to_le_bytes();
        find(&recent, &identity, &encoded, 1).is_some() || {
            offer(&recent, &identity, &encoded, 1, number);
            false
        }
    };
    let round = |numbers: std::ops::Range<u64>| numbers.filter(|number| ask(*number)).count();
    assert_eq!(round(0..1000), 0);
    let kept = round(0..1000);
    assert!(kept > 990, "{kept}");
    assert_eq!(round(1000..100_000), 0);
    let kept = round(0..1000);
    assert!(kept > 980, "{kept} of 1000 after others came once");
    let (mut kept, full) = (0, recent.bytes());
    for _ in 0..4 {
        kept = round(1_000_000..1_001_000);
    }
    assert!(kept > 900, "{kept} of another 1000, the fourth time");
    assert!(
        recent.bytes() == full && full < 1_000_000,
        "{full} and {}",
        recent.bytes()
    );
    // What was put in another epoch is no more than room.
    assert!(offer(&recent, &identity, b"new", 2, 1));
}

#[test]
fn recent_lets_go_of_what_it_replaces() {
    let (recent, value) = (Recent::new(), Arc::new(()));
    for epoch in 1..10 {
        assert!(offer(&recent, &[0; 32], b"1", epoch, Arc::clone(&value)));
    }
    assert_eq!(Arc::strong_count(&value), 2);
    drop(recent);
    assert_eq!(Arc::strong_count(&value), 1);
}

/// What is compared is all that was encoded, not its hash.
#[test]
fn recent_tells_apart_what_has_the_same_place() {
    let (recent, identity) = (Recent::new(), [0; 32]);
    let place = |encoded: &[u8]| recent.look(&identity, encoded, 1, |number| Some(*number));
    let mut places = HashMap::new();
    let (one, other) = (0u32..)
        .find_map(|number| {
            let place = place(&number.to_le_bytes()).unwrap_err();
            Some((places.insert(place, number)?, number))
        })
        .unwrap();
    let [one, other] = [one, other].map(u32::to_le_bytes);
    assert!(offer(&recent, &identity, &one, 1, 1));
    assert_eq!(find(&recent, &identity, &other, 1), None);
    assert!(offer(&recent, &identity, &other, 1, 2));
    assert_eq!(find(&recent, &identity, &one, 1), None);
    assert_eq!(find(&recent, &identity, &other, 1), Some(2));
}
