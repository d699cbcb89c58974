//! Row 1 with a million different inputs, more than a first level holds, and during evictions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use dashmap::DashMap;
use sde::key::{BuildKeyHasher, Key};
use sde::{MemoryBudget, Sde};
use sde_benches::table::{Aim, Row};
use sde_benches::{Comparison, Run, Settings, repeat};

use crate::work::{KEYS, Trace, hash};

const REFERENCE: &str = "BLAKE3 + DashMap get + Arc clone";
const TYPED: &str = "typed call";

/// An app whose values mostly don't fit.
#[sde::app]
fn passing(number: u64) -> Vec<f64> {
    vec![number as f64; 128]
}

pub fn rows(settings: Settings) -> Vec<Row> {
    let is_thorough = settings.rounds > Settings::quick().rounds;
    let many = if is_thorough { 1_000_000 } else { KEYS };
    let sde = Sde::new();
    let mut rows = vec![row(settings, &sde, many, Aim::AtMost(1.2), "inputs")];
    let sde = Sde::builder()
        .memory_budget_of("passing", MemoryBudget::bytes(64 * 1024))
        .build()
        .unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                passing.call(&sde, number).unwrap();
                thread::sleep(Duration::from_millis(1));
            }
        });
        let what = "inputs while 1000 entries a second are evicted";
        rows.push(row(settings, &sde, KEYS, Aim::AtMost(0.6), what));
        is_over.store(true, Ordering::Relaxed);
    });
    rows
}

fn row(settings: Settings, sde: &Sde, keys: usize, aim: Aim, what: &str) -> Row {
    let trace = &Trace::of(keys);
    let map = DashMap::<Key, Arc<f64>, BuildKeyHasher>::with_hasher(BuildKeyHasher::default());
    for (arguments, encoded) in trace.arguments.iter().zip(&trace.encoded) {
        let value = arguments.call(sde).unwrap();
        map.insert(hash(encoded), Arc::new(*value));
    }
    let mut comparison = Comparison::new(settings);
    comparison.case(REFERENCE.to_owned(), 1, |run: Run| {
        repeat(run, |number| {
            let key = hash(&trace.encoded[trace.at(number)]);
            map.get(&key).map(|value| Arc::clone(&value))
        });
    });
    comparison.case(TYPED.to_owned(), 1, |run: Run| {
        repeat(run, |number| trace.arguments[trace.at(number)].call(sde));
    });
    let measured = comparison.run();
    Row {
        number: 1,
        ratio: measured.ratio(TYPED, REFERENCE),
        time: measured.nanoseconds(TYPED),
        reference_time: measured.nanoseconds(REFERENCE),
        work: format!("{keys} {what}: {TYPED}"),
        reference: REFERENCE.to_owned(),
        aim,
    }
}
