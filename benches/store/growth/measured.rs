//! The measurements at one number of entries.

use std::hint::black_box;
use std::time::{Duration, Instant};

use sde::{MemoryBudget, SavePolicy, Sde};
use sde_archives::DirStore;

use crate::in_a_process;

/// The measured quantities, and their units.
pub const MEASURED: [(&str, &str); 11] = [
    ("run", "ns"),
    ("hit", "ns"),
    ("evict, and run another", "ns"),
    ("checkpoint", "ns"),
    ("open, until the first hit", "ns"),
    ("load", "ns"),
    ("resident memory", "bytes"),
    ("memory as counted", "bytes"),
    ("resident memory, of saved ones", "bytes"),
    ("that as counted", "bytes"),
    ("store", "bytes"),
];

/// The measured values at one number of entries.
pub struct Measured {
    pub entries: usize,
    /// In the order of [`MEASURED`].
    pub values: Vec<f64>,
}

impl Measured {
    pub fn print(&self) {
        let values: Vec<_> = self.values.iter().map(f64::to_string).collect();
        println!("{} {}", self.entries, values.join(" "));
    }

    pub fn read(line: &str) -> Self {
        let mut words = line.split_whitespace();
        Self {
            entries: words.next().unwrap().parse().unwrap(),
            values: words.map(|word| word.parse().unwrap()).collect(),
        }
    }
}

#[sde::app(name = "growth.square")]
fn square(number: u64) -> u64 {
    number * number
}

/// A folder for a store, on another disk if `SDE_BENCH_DIR` says so.
pub fn folder() -> tempfile::TempDir {
    let own = || env!("CARGO_TARGET_TMPDIR").into();
    let below = std::env::var_os("SDE_BENCH_DIR").unwrap_or_else(own);
    tempfile::tempdir_in(below).unwrap()
}

/// The operations that are timed at least, and at most where all are alike.
const TIMED: usize = 100_000;

pub fn measure(entries: usize) -> Measured {
    let folder = folder();
    let store = || DirStore::open(folder.path()).unwrap();
    let each = |took: Duration, of: usize| took.as_nanos() as f64 / of as f64;

    let before = resident();
    let builder = Sde::builder().store(store()).save(SavePolicy::OnRequest);
    let budget = MemoryBudget::bytes(usize::MAX - 1);
    let sde = builder.memory_budget(budget).build().unwrap();
    let run = time(|| call(&sde, 0..entries));
    let memory = (resident() - before) as f64 / entries as f64;
    let counted = sde.stats().memory.unwrap().bytes as f64 / entries as f64;
    let hit = time(|| call(&sde, scattered(entries)));
    let checkpoint = time(|| sde.checkpoint().unwrap());
    drop(sde);

    let mut sde = None;
    let open = time(|| {
        let opened = Sde::builder()
            .store(store())
            .save(SavePolicy::OnRequest)
            .build()
            .unwrap();
        call(&opened, 0..1);
        sde = Some(opened);
    });
    let sde = sde.unwrap();
    let loads = TIMED.min(entries - 1);
    let load = time(|| {
        call(
            &sde,
            (1..=loads).map(|number| number * ((entries - 1) / loads)),
        )
    });
    assert_eq!(sde.stats().total.computed, 0);
    drop(sde);
    let stored = stored(folder.path()) as f64 / entries as f64;

    let budget = MemoryBudget::unlimited().entries(entries).forget_records();
    let sde = Sde::builder().memory_budget(budget).build().unwrap();
    call(&sde, 0..entries);
    let evict = time(|| call(&sde, entries..entries + TIMED));
    assert!(sde.stats().total.evicted as usize >= TIMED - 1);

    let mut values = vec![each(run, entries), each(hit, TIMED), each(evict, TIMED)];
    values.extend([
        each(checkpoint, entries),
        each(open, entries),
        each(load, loads),
    ]);
    values.extend([memory, counted]);
    values.extend(
        in_a_process(&format!("saved={entries}"))
            .split_whitespace()
            .map(|of| of.parse::<f64>().unwrap()),
    );
    values.push(stored);
    Measured { entries, values }
}

/// Prints the bytes that an entry takes, and counts with, where a store has the entries; finds all of them again.
pub fn measure_saved(entries: usize) {
    let folder = folder();
    let store = DirStore::open(folder.path()).unwrap();
    let builder = Sde::builder().store(store).save(SavePolicy::OnRequest);
    let budget = MemoryBudget::bytes(usize::MAX - 1);
    let before = resident();
    let sde = builder.memory_budget(budget).build().unwrap();
    for first in (0..entries).step_by(SAVED_AT_ONCE) {
        call(&sde, first..entries.min(first + SAVED_AT_ONCE));
        sde.checkpoint().unwrap();
    }
    let counted = sde.stats().memory.unwrap().bytes;
    let [resident, counted] =
        [resident() - before, counted].map(|bytes| bytes as f64 / entries as f64);
    drop(sde);
    let store = DirStore::open(folder.path()).unwrap();
    let budget = MemoryBudget::unlimited().entries(SAVED_AT_ONCE);
    let sde = Sde::builder()
        .store(store)
        .save(SavePolicy::OnRequest)
        .memory_budget(budget);
    let sde = sde.build().unwrap();
    call(&sde, 0..entries);
    assert_eq!(sde.stats().total.computed, 0);
    println!("{resident} {counted}");
}

const SAVED_AT_ONCE: usize = 10_000;

pub fn call(sde: &Sde, numbers: impl Iterator<Item = usize>) {
    for number in numbers {
        black_box(square.call(sde, number as u64).unwrap());
    }
}

/// Numbers below this in scattered order, the same in each run.
fn scattered(entries: usize) -> impl Iterator<Item = usize> {
    let step = |seed: u64| {
        seed.wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407)
    };
    let numbers = std::iter::successors(Some(1_u64), move |seed| Some(step(*seed)));
    numbers
        .map(move |seed| (seed >> 33) as usize % entries)
        .take(TIMED)
}

fn time(what: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    what();
    begun.elapsed()
}

/// The bytes of this process that are in memory.
pub fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<usize>()
        .unwrap()
        * 4096
}

fn stored(folder: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .map(|entry| match entry.file_type().unwrap().is_dir() {
            true => stored(&entry.path()),
            false => entry.metadata().unwrap().len(),
        })
        .sum()
}
