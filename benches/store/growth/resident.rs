//! Resident memory beside the engine's count: 16 threads, and values of four times the budget.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use sde::{MemoryBudget, Sde};
use sde_archives::DirStore;

use crate::measured::{folder, resident};

const MIB: usize = 1 << 20;
const BUDGET: usize = 512 * MIB;
const THREADS: u64 = 16;

/// The size of values in KiB, and whether only saved ones may be evicted.
pub const CASES: [(usize, bool); 4] = [(256, false), (256, true), (4, false), (4, true)];

#[sde::app(name = "growth.field")]
fn field(number: u64, kib: usize) -> Vec<u64> {
    vec![number; kib * 128]
}

pub fn print_head() {
    println!(
        "\n| values of | what may leave | counted at most | in the end | resident at most | in the end |"
    );
    println!("|---|---|---:|---:|---:|---:|");
}

/// Prints a row, in MiB.
pub fn measure((kib, only_saved): (usize, bool)) {
    let folder = folder();
    let budget = MemoryBudget::bytes(BUDGET);
    let sde = match only_saved {
        true => {
            let builder = Sde::builder()
                .store(DirStore::open(folder.path()).unwrap())
                .save(sde::SavePolicy::OnRequest);
            builder.memory_budget(budget.only_saved()).build().unwrap()
        }
        false => Sde::builder()
            .memory_budget(budget.forget_records())
            .build()
            .unwrap(),
    };
    let (sde, before) = (&sde, resident());
    let (mut most_counted, mut most_resident) = (0, 0);
    let counted = || sde.stats().memory.unwrap().bytes;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || ask(sde, thread, kib)))
            .collect();
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                most_counted = most_counted.max(counted());
                most_resident = most_resident.max(resident().saturating_sub(before));
                thread::sleep(Duration::from_millis(5));
            }
        });
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
    });
    let leaves = if only_saved {
        "what the store has"
    } else {
        "all"
    };
    let figures = [
        most_counted,
        counted(),
        most_resident,
        resident().saturating_sub(before),
    ];
    let figures = figures.map(|bytes| (bytes / MIB).to_string());
    println!("| {kib} KiB | {leaves} | {} |", figures.join(" | "));
}

/// Asks for values in scattered order, twice for each on average.
fn ask(sde: &Sde, thread: u64, kib: usize) {
    let values = (4 * BUDGET / (kib * 1024)) as u64;
    let mut random = thread + 1;
    for _ in 0..2 * values / THREADS {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let number = random % values;
        assert_eq!(field.call(sde, number, kib).unwrap()[5], number);
    }
}
