//! The engine's first level: the key has an identity and 150 bytes of inputs, the value is an `Arc`.
//!
//! The reference is the cost of a hit without it: hashing the inputs, a look into the map, and a
//! clone of the `Arc`.

use crate::table::{Column, Found, Table};
use dashmap::DashMap;
use sde::last_value::{LastValue, Recent};
use sde_benches::{Run, Settings, repeat};
use std::sync::{Arc, Mutex, RwLock};

type Value = Arc<[u64; 4]>;

const COLUMNS: [Column; 3] = [
    Column {
        title: "1 thread",
        threads: 1,
    },
    Column {
        title: "2 threads, same inputs",
        threads: 2,
    },
    Column {
        title: "2 threads, different inputs",
        threads: 2,
    },
];

#[derive(Clone, PartialEq)]
struct Key {
    identity: [u8; 32],
    encoded: Vec<u8>,
}

/// A cache of runs.
trait Level: Sync {
    fn get(&self, key: &Key) -> Option<Value>;
    fn put(&self, key: &Key, value: &Value);
}

impl Level for Recent<Value> {
    fn get(&self, key: &Key) -> Option<Value> {
        let clone = |value: &Value| Some(Arc::clone(value));
        self.look(&key.identity, &key.encoded, 1, clone).ok()
    }

    fn put(&self, key: &Key, value: &Value) {
        let Err(place) = self.look(&key.identity, &key.encoded, 1, |_| None::<()>) else {
            return;
        };
        let value = || (Arc::clone(value), 0);
        self.offer(place, &key.identity, &key.encoded, 1, value);
    }
}

impl Level for LastValue<Key, Value> {
    fn get(&self, key: &Key) -> Option<Value> {
        self.get_by(|last| last == key)
    }

    fn put(&self, key: &Key, value: &Value) {
        self.set(key.clone(), Arc::clone(value));
    }
}

impl Level for Mutex<Option<(Key, Value)>> {
    fn get(&self, key: &Key) -> Option<Value> {
        let last = self.lock().unwrap();
        last.as_ref()
            .filter(|last| last.0 == *key)
            .map(|last| Arc::clone(&last.1))
    }

    fn put(&self, key: &Key, value: &Value) {
        *self.lock().unwrap() = Some((key.clone(), Arc::clone(value)));
    }
}

impl Level for RwLock<Option<(Key, Value)>> {
    fn get(&self, key: &Key) -> Option<Value> {
        let last = self.read().unwrap();
        last.as_ref()
            .filter(|last| last.0 == *key)
            .map(|last| Arc::clone(&last.1))
    }

    fn put(&self, key: &Key, value: &Value) {
        *self.write().unwrap() = Some((key.clone(), Arc::clone(value)));
    }
}

/// The reference: a hashed key and a map.
struct Map(DashMap<[u8; 32], Value>);

impl Level for Map {
    fn get(&self, key: &Key) -> Option<Value> {
        let digest = blake3::keyed_hash(&key.identity, &key.encoded);
        self.0
            .get(digest.as_bytes())
            .map(|value| Arc::clone(&value))
    }

    fn put(&self, key: &Key, value: &Value) {
        let digest = blake3::keyed_hash(&key.identity, &key.encoded);
        self.0.insert(*digest.as_bytes(), Arc::clone(value));
    }
}

/// Asks for the runs: in the last column each thread has its own, and the reference's map
/// holds both.
fn calls(level: &impl Level, runs: &[(Key, Value); 2], column: usize, run: Run) -> u64 {
    let (key, value) = &runs[if column == 2 { run.thread } else { 0 }];
    let mut computed = 0;
    repeat(run, |_| {
        level.get(key).unwrap_or_else(|| {
            computed += 1;
            level.put(key, value);
            Arc::clone(value)
        })
    });
    computed
}

/// Measures and prints.
pub fn report(settings: Settings) {
    let runs = [1u8, 2].map(|number| {
        // The inputs differ only at the end, so that a comparison reads all of them.
        let mut encoded = vec![7; 150];
        encoded[149] = number;
        (
            Key {
                identity: [3; 32],
                encoded,
            },
            Arc::new([u64::from(number); 4]),
        )
    });
    let (recent, swapped) = (Recent::new(), LastValue::new());
    let (mutex, rw) = (Mutex::new(None), RwLock::new(None));
    let map = Map(DashMap::new());
    let found: [[Found; 3]; 5] = Default::default();

    let mut table = Table::new(settings, &COLUMNS);
    let runs = &runs;
    table.row("`Recent`", &found[0], |column, run| {
        calls(&recent, runs, column, run)
    });
    table.row("`LastValue`", &found[1], |column, run| {
        calls(&swapped, runs, column, run)
    });
    table.row("Mutex, lock", &found[2], |column, run| {
        calls(&mutex, runs, column, run)
    });
    table.row("RwLock, read", &found[3], |column, run| {
        calls(&rw, runs, column, run)
    });
    table.row("BLAKE3 + DashMap", &found[4], |column, run| {
        calls(&map, runs, column, run)
    });
    table.print(
        "The engine's first level: 150 bytes of inputs",
        "BLAKE3 + DashMap",
    );
}
