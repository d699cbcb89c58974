//! Row 4: whether hits on two threads go as fast as hits on one.
//!
//! Each thread has half of the inputs for itself, with one thread as with two. The rows compare
//! the growth of the rate with the second thread: for hits, for hashing alone (the machine's own
//! limit, since two threads share its power and its caches), and for maps alone.

use crate::work::{KEYS, Trace, energy, hash};
use dashmap::DashMap;
use sde::key::{BuildKeyHasher, Key};
use sde::{Instance, Prepared, Sde};
use sde_benches::table::{Aim, Row};
use sde_benches::{Comparison, Measured, Run, Settings, repeat};
use std::sync::Arc;

const HASHING: &str = "BLAKE3 alone";
const TYPED: &str = "typed call, different inputs";
const PREBUILT: &str = "`run`, kept `Inputs`, different inputs";
const TYPED_SAME: &str = "typed call, each thread's own inputs again and again";
const DASHMAP: &str = "BLAKE3 + DashMap get + Arc clone";
const DASHMAP_SHARDS: &str = "BLAKE3 + DashMap with 1024 shards get + Arc clone";
const PAPAYA: &str = "BLAKE3 + papaya get + Arc clone";

type DashMapOf = DashMap<Key, Arc<f64>, BuildKeyHasher>;

struct Caches {
    trace: Trace,
    sde: Sde,
    app: Prepared,
    dashmap: DashMapOf,
    dashmap_shards: DashMapOf,
    papaya: papaya::HashMap<Key, Arc<f64>, BuildKeyHasher>,
}

impl Caches {
    fn new() -> Self {
        let trace = Trace::new();
        let sde = Sde::new();
        let app = sde.prepare(&Instance::new(energy)).unwrap();
        let caches = Self {
            dashmap: DashMap::with_hasher(BuildKeyHasher::default()),
            dashmap_shards: DashMap::with_hasher_and_shard_amount(BuildKeyHasher::default(), 1024),
            papaya: papaya::HashMap::with_hasher(BuildKeyHasher::default()),
            trace,
            sde,
            app,
        };
        for at in 0..KEYS {
            caches
                .sde
                .run(&caches.app, &caches.trace.inputs[at])
                .unwrap();
            let key = hash(&caches.trace.encoded[at]);
            caches.dashmap.insert(key, Arc::new(0.0));
            caches.dashmap_shards.insert(key, Arc::new(0.0));
            caches.papaya.pin().insert(key, Arc::new(0.0));
        }
        caches
    }

    /// The case `name` on one thread and on two.
    fn both<'a, T>(
        comparison: &mut Comparison<'a>,
        name: &str,
        call: impl Fn(usize, u64) -> T + Sync + Copy + 'a,
    ) {
        for threads in [1, 2] {
            comparison.case(on(name, threads), threads, move |run: Run| {
                repeat(run, |number| call(run.thread, number));
            });
        }
    }

    fn measure(&self, settings: Settings) -> Measured {
        let mut comparison = Comparison::new(settings);
        let to = &mut comparison;
        let trace = &self.trace;
        let key = |thread, number| hash(&trace.encoded[trace.at_half(thread, number)]);
        let typed = |at: usize| trace.arguments[at].call(&self.sde);
        Self::both(to, HASHING, key);
        Self::both(to, TYPED, |thread, number| {
            typed(trace.at_half(thread, number))
        });
        Self::both(to, PREBUILT, |thread, number| {
            let inputs = &trace.inputs[trace.at_half(thread, number)];
            self.sde.run(&self.app, inputs)
        });
        Self::both(to, TYPED_SAME, |thread, _| typed(trace.at_half(thread, 0)));
        Self::both(to, DASHMAP, |thread, number| {
            let value = self.dashmap.get(&key(thread, number));
            value.map(|value| Arc::clone(&value))
        });
        Self::both(to, DASHMAP_SHARDS, |thread, number| {
            let value = self.dashmap_shards.get(&key(thread, number));
            value.map(|value| Arc::clone(&value))
        });
        Self::both(to, PAPAYA, |thread, number| {
            let map = self.papaya.pin();
            map.get(&key(thread, number)).map(Arc::clone)
        });
        comparison.run()
    }
}

fn on(name: &str, threads: usize) -> String {
    format!("{name}, threads: {threads}")
}

/// Row 4.
pub fn rows(settings: Settings) -> Vec<Row> {
    let measured = Caches::new().measure(settings);
    let row = |name: &str, aim: Aim| {
        let times = [on(name, 1), on(name, 2), on(HASHING, 1), on(HASHING, 2)];
        Row {
            number: 4,
            work: format!("rate on two threads over one: {name}"),
            reference: format!("the same for {HASHING}"),
            // Rates are 1 / t and 2 / t; the twos cancel.
            ratio: measured.of_each_round(
                times.each_ref().map(String::as_str),
                |[one, two, hash_one, hash_two]| (one / two) / (hash_one / hash_two),
            ),
            aim,
            time: measured.nanoseconds(&times[1]),
            reference_time: measured.nanoseconds(&times[3]),
        }
    };
    vec![
        row(TYPED, Aim::AtLeast(0.95)),
        row(PREBUILT, Aim::AtLeast(0.95)),
        row(TYPED_SAME, Aim::AtLeast(0.95)),
        row(DASHMAP, Aim::Shown),
        row(DASHMAP_SHARDS, Aim::Shown),
        row(PAPAYA, Aim::Shown),
    ]
}
