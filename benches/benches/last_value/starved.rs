//! Whether readers starve writers. In one case 13 threads all change to another key, the seed document's case against
//! readers-writer locks. In the other, one of 17 threads stores without a pause.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;

use sde::last_value::{LastValue, LastValuePerThread, LastValueWords};
use sde_benches::Settings;

use crate::cells::{Cell, MutexLock, MutexTry, RwRead, RwTry};

/// The number of times that each thread asks for one key.
const CALLS: u64 = 1000;
const GOING_OVER: usize = 13;
const WITH_A_WRITER: usize = 17;

/// Measures and prints.
pub fn report(settings: Settings) {
    let times = if settings.rounds > Settings::quick().rounds {
        100
    } else {
        2
    };
    println!("### Starvation: calls of {CALLS} that compute, in the median and at worst\n");
    println!(
        "| | {GOING_OVER} threads go over to another key | {WITH_A_WRITER} threads, one stores other keys all the time |"
    );
    println!("|---|---:|---:|");
    row("`LastValueWords`", times, &LastValueWords::new());
    row("`LastValue`", times, &LastValue::new());
    row(
        "`LastValuePerThread`",
        times,
        &LastValuePerThread::with_slots(WITH_A_WRITER),
    );
    row("Mutex, lock", times, &MutexLock::default());
    row("Mutex, try_lock", times, &MutexTry::default());
    row("RwLock, read", times, &RwRead::default());
    row("RwLock, try_read", times, &RwTry::default());
    println!();
}

fn row(name: &str, times: u64, cell: &impl Cell) {
    let going_over = computed(cell, times, GOING_OVER, false);
    let with_a_writer = computed(cell, times, WITH_A_WRITER, true);
    println!("| {name} | {going_over} | {with_a_writer} |");
}

/// The number of calls per thread that compute: all ask for one key [`CALLS`] times, then for the next.
fn computed(cell: &impl Cell, times: u64, threads: usize, has_writer: bool) -> String {
    let (together, is_over) = (
        Barrier::new(threads - usize::from(has_writer)),
        AtomicBool::new(false),
    );
    let counts = Mutex::new(Vec::new());
    let running = AtomicU64::new(threads as u64 - u64::from(has_writer));
    thread::scope(|scope| {
        if has_writer {
            scope.spawn(|| {
                let mut key = u64::MAX;
                while !is_over.load(Ordering::Relaxed) {
                    key -= 1;
                    cell.value(key, || key);
                }
            });
        }
        for _ in usize::from(has_writer)..threads {
            scope.spawn(|| {
                for time in 1..=times {
                    together.wait();
                    let mut computed = 0;
                    for _ in 0..CALLS {
                        cell.value(time, || {
                            computed += 1;
                            time
                        });
                    }
                    counts.lock().unwrap().push(computed);
                }
                if running.fetch_sub(1, Ordering::Relaxed) == 1 {
                    is_over.store(true, Ordering::Relaxed);
                }
            });
        }
    });
    let mut counts: Vec<u64> = counts.into_inner().unwrap();
    counts.sort_unstable();
    format!(
        "{} ({})",
        counts[counts.len() / 2],
        counts[counts.len() - 1]
    )
}
