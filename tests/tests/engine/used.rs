//! What a store is told of what is used from memory.

use std::sync::{Arc, Mutex};

use sde::archiver::{Archiver, MemoryArchiver};
use sde::{Key, SavePolicy, Sde};
use sde_tests::{Made, forward, number, x};

/// A store that takes note of what it is told, and says whether it counts uses.
struct Told(MemoryArchiver, Arc<Mutex<Vec<Vec<Key>>>>, bool);

impl Archiver for Told {
    forward!(0: save, find, find_scratch, marks, describe);

    fn note_uses(&self, keys: &[Key]) -> bool {
        self.1.lock().unwrap().push(keys.to_vec());
        self.2
    }
}

fn double() -> Made {
    number("double", |_, n| Ok(2 * n))
}

/// Makes runs and a checkpoint after each list of them; what the store was told, by the numbers.
fn told(counts: bool, lists: &[&[u64]]) -> (Vec<Vec<u64>>, Sde) {
    let told = Arc::default();
    let store = Told(MemoryArchiver::new(), Arc::clone(&told), counts);
    let builder = Sde::builder().store(store).save(SavePolicy::OnRequest);
    let sde = builder.build().unwrap();
    for list in lists {
        for n in *list {
            sde.run(&double(), &x(*n)).unwrap();
        }
        sde.checkpoint().unwrap();
    }
    let key = |n: u64| sde.peek(&double(), &x(n)).unwrap().key();
    let number = |of: &Key| (0..10).find(|n| key(*n) == *of).unwrap();
    let of = |keys: &Vec<Key>| {
        let mut numbers: Vec<u64> = keys.iter().map(number).collect();
        numbers.sort_unstable();
        numbers
    };
    let told = told.lock().unwrap().iter().map(of).collect();
    (told, sde)
}

/// Found by use: what was asked for a thousand times, from memory, left the store first.
#[test]
fn a_store_is_told_what_was_used_since_the_last_time() {
    let lists: &[&[u64]] = &[&[1, 2, 3, 3], &[1, 1, 1, 1], &[2, 1, 2, 1], &[], &[3]];
    let (told, sde) = told(true, lists);
    assert_eq!(told, [vec![3], vec![1], vec![1, 2], vec![], vec![3]]);
    // Only the first hit of an entry after each time is not one of the thread's recent ones.
    let of = sde.stats().apps["double"];
    assert_eq!((of.computed, of.map_hits, of.recent_hits), (3, 5, 5));
}

#[test]
fn a_store_that_counts_no_uses_is_told_none() {
    let lists: &[&[u64]] = &[&[1], &[1, 1], &[1, 1]];
    let (told, sde) = told(false, lists);
    assert_eq!(told, [[0_u64; 0]; 3]);
    let of = sde.stats().apps["double"];
    assert_eq!((of.computed, of.map_hits, of.recent_hits), (1, 1, 3));
}
