//! A number for a key and a number for a value, as in the seed document's program.

use crate::cells::{Cell, MutexLock, MutexTry, RwRead, RwTry};
use crate::table::{Column, Found, Table};
use sde::last_value::{LastValue, LastValuePerThread, LastValueWords};
use sde_benches::{Run, Settings, repeat};

/// Two calls of 2048 compute: one asks for another key, the next for the usual one again.
const PERIOD: u64 = 2048;

const COLUMNS: [Column; 2] = [
    Column {
        title: "1 thread",
        threads: 1,
    },
    Column {
        title: "2 threads",
        threads: 2,
    },
];

/// Calls `cell` as often as `run` says, and counts the computations.
pub fn calls(cell: &impl Cell, run: Run) -> u64 {
    let mut computed = 0;
    repeat(run, |number| {
        let key = u64::from(number % PERIOD == PERIOD - 1);
        cell.value(key, || {
            computed += 1;
            key + 7
        })
    });
    computed
}

/// Measures and prints.
pub fn report(settings: Settings) {
    let words = LastValueWords::new();
    let swapped = LastValue::new();
    let per_thread = LastValuePerThread::new();
    let (mutex, mutex_try) = (MutexLock::default(), MutexTry::default());
    let (rw, rw_try) = (RwRead::default(), RwTry::default());
    let found: [[Found; 2]; 7] = Default::default();

    let mut table = Table::new(settings, &COLUMNS);
    table.row("`LastValueWords`", &found[0], |_, run| calls(&words, run));
    table.row("`LastValue`", &found[1], |_, run| calls(&swapped, run));
    table.row("`LastValuePerThread`", &found[2], |_, run| {
        calls(&per_thread, run)
    });
    table.row("Mutex, lock", &found[3], |_, run| calls(&mutex, run));
    table.row("Mutex, try_lock", &found[4], |_, run| {
        calls(&mutex_try, run)
    });
    table.row("RwLock, read", &found[5], |_, run| calls(&rw, run));
    table.row("RwLock, try_read", &found[6], |_, run| calls(&rw_try, run));
    table.print("One number for another, misses 1/1024", "Mutex, lock");
}
