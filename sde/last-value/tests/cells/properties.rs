//! The last-value cells against what they mean, with random types, operations and threads.

use proptest::prelude::*;
use sde::last_value::{LastValue, LastValuePerThread, LastValueWords, Plain, Recent};
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Barrier};
use std::thread;

/// A value comes back as it was put in, also through a cell, as key and as value.
fn round_trip<T: Plain + Debug>(value: &T, same: impl Fn(&T, &T) -> bool) {
    let mut bytes = vec![0; T::BYTES];
    value.write(&mut bytes);
    let back = T::read(&bytes);
    assert!(same(value, &back), "{value:?} came back as {back:?}");
    let cell = LastValueWords::<T, u8>::new();
    assert!(cell.set(value, &1));
    assert_eq!(cell.get(value), Some(1));
    let cell = LastValueWords::<u8, T>::new();
    assert!(cell.set(&1, value));
    assert!(cell.get(&1).is_some_and(|back| same(value, &back)));
}

macro_rules! round_trips {
    ($($name:ident: $type:ty),* $(,)?) => {
        proptest! {$(
            #[test]
            fn $name(value: $type) {
                round_trip(&value, |one, two| one == two);
            }
        )*}
    };
}

round_trips! {
    integers: (u8, u16, u32, u64, i8, i16, i32, i64),
    wide: (u128, i128),
    sizes: (usize, isize),
    flags_and_letters: (bool, char, bool, char),
    optional: (Option<u64>, Option<Option<char>>, Option<bool>),
    arrays: ([u8; 32], [[i16; 3]; 2], [bool; 7], [(u8, u32); 2]),
    nothing: ((), [u64; 0], [u8; 1]),
    nested: ((u8, (u16, (u32, (u64,)))), Option<(char, [u8; 5])>),
    all_the_room: [u8; 96],
}

proptest! {
    #[test]
    fn floats_by_their_bits(double in any::<u64>(), single in any::<u32>()) {
        // From bits, so that every NaN comes up.
        let value = (f64::from_bits(double), f32::from_bits(single));
        round_trip(&value, |one, two| {
            one.0.to_bits() == two.0.to_bits() && one.1.to_bits() == two.1.to_bits()
        });
    }
}

/// What can be done to a cell; keys are few so that they meet.
#[derive(Debug, Clone, Copy)]
enum Step {
    Get(u8),
    Set(u8, u32),
    GetOrCompute(u8, u32),
    /// Sets with the epoch that was taken so many steps ago.
    SetLate(u8, u32, usize),
    Clear,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = 0u8..4;
    let step = prop_oneof![
        4 => key.clone().prop_map(Step::Get),
        2 => (key.clone(), any::<u32>()).prop_map(|(key, value)| Step::Set(key, value)),
        2 => (key.clone(), any::<u32>()).prop_map(|(key, value)| Step::GetOrCompute(key, value)),
        1 => (key, any::<u32>(), 0usize..6).prop_map(|(key, value, ago)| Step::SetLate(key, value, ago)),
        1 => Just(Step::Clear),
    ];
    prop::collection::vec(step, 1..60)
}

/// One thread alone meets no conflict, so the cell must do exactly what an `Option` would.
macro_rules! like_an_option {
    ($steps:expr, $cell:expr, |$key:ident| $as_key:expr, |$value:ident| $as_value:expr) => {{
        let cell = $cell;
        let mut last: Option<(u8, u32)> = None;
        let mut clears = 0;
        let mut epochs = Vec::new();
        for step in $steps {
            epochs.push((clears, cell.epoch()));
            let known = |key| last.filter(|last| last.0 == key).map(|last| last.1);
            match step {
                Step::Get($key) => prop_assert_eq!(cell.get(&$key), known($key)),
                Step::Set($key, $value) => {
                    prop_assert!(cell.set($as_key, $as_value));
                    last = Some(($key, $value));
                }
                Step::GetOrCompute($key, value) => {
                    let expected = known($key).unwrap_or(value);
                    prop_assert_eq!(cell.get_or_compute(&$key, || value), expected);
                    last = Some(($key, expected));
                }
                Step::SetLate($key, $value, ago) => {
                    let (then, epoch) = epochs[epochs.len() - 1 - ago.min(epochs.len() - 1)];
                    prop_assert_eq!(cell.set_at(epoch, $as_key, $as_value), then == clears);
                    if then == clears {
                        last = Some(($key, $value));
                    }
                }
                Step::Clear => {
                    cell.clear();
                    clears += 1;
                    last = None;
                }
            }
        }
    }};
}

proptest! {
    #[test]
    fn words_are_like_an_option(steps in steps()) {
        like_an_option!(steps, LastValueWords::<u8, u32>::new(), |key| &key, |value| &value);
    }

    #[test]
    fn shared_is_like_an_option(steps in steps()) {
        like_an_option!(steps, LastValue::<u8, u32>::new(), |key| key, |value| value);
    }

    #[test]
    fn per_thread_is_like_an_option(steps in steps()) {
        like_an_option!(steps, LastValuePerThread::<u8, u32>::new(), |key| key, |value| value);
    }

    #[test]
    fn recent_finds_exactly_what_was_put(
        puts in prop::collection::vec((any::<[bool; 2]>(), 0usize..4, 0u64..3), 1..40),
        asks in prop::collection::vec((any::<[bool; 2]>(), 0usize..4, 0u64..3), 1..40),
    ) {
        // Identities that differ in one byte at either end, encodings that are prefixes.
        let identity = |ends: [bool; 2]| {
            let mut identity = [9; 32];
            identity[0] = u8::from(ends[0]);
            identity[31] = u8::from(ends[1]);
            identity
        };
        let encoded = |length: usize| &[0u8; 4][..length];
        let (recent, mut model) = (Recent::new(), HashMap::new());
        let find = |ask: &([bool; 2], usize, u64)| {
            recent.look(&identity(ask.0), encoded(ask.1), ask.2, |found| Some(*found))
        };
        for put in puts {
            if let Err(place) = find(&put) {
                recent.offer(place, &identity(put.0), encoded(put.1), put.2, || (put, 0));
                model.insert((put.0, put.1), put);
            }
            prop_assert_eq!(find(&put).ok(), Some(put));
            // Where the quick hash of two is the same, the second takes the place of the first.
            for ask in &asks {
                let put = model.get(&(ask.0, ask.1)).filter(|put| put.2 == ask.2);
                prop_assert!(find(ask).ok().is_none_or(|found| Some(&found) == put));
            }
        }
    }
}

/// Calls `work` with 0, 1, 2 and 3 on four threads that start together.
fn on_four_threads(work: impl Fn(u64) + Sync) {
    let start = Barrier::new(4);
    thread::scope(|scope| {
        for number in 0..4 {
            let (work, start) = (&work, &start);
            scope.spawn(move || {
                start.wait();
                work(number);
            });
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Whatever threads do to one another, what is found under a key was computed for that key.
    #[test]
    fn never_anothers_value(keys in prop::collection::vec(0u64..5, 100..2000), slots in 1usize..5) {
        let expected = |key: u64| [key, !key, key.rotate_left(17), key ^ 0x5555];
        let words = LastValueWords::<u64, [u64; 4]>::new();
        let shared = LastValue::<u64, Arc<[u64; 4]>>::new();
        let per_thread = LastValuePerThread::<u64, Arc<[u64; 4]>>::with_slots(slots);
        on_four_threads(|thread| {
            for key in &keys {
                let key = (key + thread) % 5;
                assert_eq!(words.get_or_compute(&key, || expected(key)), expected(key));
                let value = || Arc::new(expected(key));
                assert_eq!(*shared.get_or_compute(&key, value), expected(key));
                assert_eq!(*per_thread.get_or_compute(&key, value), expected(key));
                if key == 4 {
                    words.clear();
                    shared.clear();
                    per_thread.clear();
                }
            }
        });
    }
}
