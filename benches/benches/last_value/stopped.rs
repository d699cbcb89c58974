//! The calls of [`small`](super::small) while one thread is stopped half-way through writing.
//!
//! Caches that wait are left out: their calls would not return before that thread goes on.

use crate::cells::{MutexTry, RwTry};
use crate::small::calls;
use crate::table::{Column, Found, Table};
use sde::last_value::{LastValue, LastValuePerThread, LastValueWords};
use sde_benches::Settings;
use std::sync::{Barrier, mpsc};
use std::thread;

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

/// Measures and prints.
pub fn report(settings: Settings) {
    let words = LastValueWords::new();
    let swapped = LastValue::new();
    let per_thread = LastValuePerThread::new();
    let (mutex_try, rw_try) = (MutexTry::default(), RwTry::default());
    let (words, swapped, per_thread) = (&words, &swapped, &per_thread);
    let (mutex_try, rw_try) = (&mutex_try, &rw_try);
    // A thread can only be stopped inside a comparison if there is a key to compare.
    swapped.set(0, 7);

    let all_stopped = Barrier::new(6);
    thread::scope(|scope| {
        let mut ends = Vec::new();
        // Dropping `ends` lets all threads go on.
        let mut stop = || {
            let (end, ended) = mpsc::channel::<()>();
            ends.push(end);
            let all_stopped = &all_stopped;
            move || {
                all_stopped.wait();
                let _ = ended.recv();
            }
        };
        let (stop_words, stop_swapped, stop_per_thread) = (stop(), stop(), stop());
        let (stop_mutex, stop_rw) = (stop(), stop());
        scope.spawn(move || words.set_stopping(words.epoch(), &0, &7, stop_words));
        scope.spawn(move || {
            swapped.get_by(|_| {
                stop_swapped();
                true
            })
        });
        scope.spawn(move || {
            let key = |_| {
                stop_per_thread();
                0
            };
            per_thread.set_with(per_thread.epoch(), key, 7)
        });
        scope.spawn(move || {
            let _guard = mutex_try.0.lock();
            stop_mutex();
        });
        scope.spawn(move || {
            let _guard = rw_try.0.write();
            stop_rw();
        });
        all_stopped.wait();

        let found: [[Found; 2]; 5] = Default::default();
        let mut table = Table::new(settings, &COLUMNS);
        table.row("`LastValueWords`", &found[0], |_, run| calls(words, run));
        table.row("`LastValue` (a reader stopped)", &found[1], |_, run| {
            calls(swapped, run)
        });
        table.row("`LastValuePerThread`", &found[2], |_, run| {
            calls(per_thread, run)
        });
        table.row("Mutex, try_lock", &found[3], |_, run| calls(mutex_try, run));
        table.row("RwLock, try_read", &found[4], |_, run| calls(rw_try, run));
        table.print("The same with a writer stopped half-way", "Mutex, try_lock");
        drop(ends);
    });
    println!("`Mutex::lock` and `RwLock::read` do not return before the writer goes on.\n");
}
