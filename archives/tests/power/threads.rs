//! Many threads run while one saves all the time: what a power failure leaves of a copy of the medium taken after any save loads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};

use sde::SavePolicy;

use crate::count;
use crate::engine::{all_load, engine, expected, open, page, read_only};
use crate::kit::{Random, Sim};

const THREADS: u64 = 16;
/// After so many runs a thread waits for the next snapshot, so that saves and runs take turns.
const TURN: u64 = 20;

/// Does something when a thread ends, also by a failed check, so that no other waits for it.
pub struct AtEnd<F: Fn()>(pub F);

impl<F: Fn()> Drop for AtEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn every_snapshot_loads() {
    let runs = count(1_000, 10_000);
    let sim = Sim::new();
    let sde = engine(open(&sim).unwrap(), SavePolicy::OnRequest);
    let ended = AtomicUsize::new(0);
    let taken = (Mutex::new(0), Condvar::new());
    let snapshots = std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (sde, ended, taken) = (&sde, &ended, &taken);
            scope.spawn(move || {
                let _end = AtEnd(|| {
                    ended.fetch_add(1, Ordering::SeqCst);
                });
                let mut random = Random::new(thread);
                for run in 0..runs {
                    let snapshots = taken.0.lock().unwrap();
                    let enough = taken.1.wait_while(snapshots, |taken| *taken < run / TURN);
                    drop(enough.unwrap());
                    // Half are those of others.
                    let number = random.within(0..run / 16 + 8);
                    assert_eq!(*page.call(sde, number).unwrap(), expected(number));
                }
            });
        }
        let saver = scope.spawn(|| {
            let mut snapshots = 0;
            let _end = AtEnd(|| {
                *taken.0.lock().unwrap() = u64::MAX;
                taken.1.notify_all();
            });
            let mut random = Random::new(99);
            while ended.load(Ordering::SeqCst) < THREADS as usize {
                // What is there now is to be in the snapshot.
                let known = random.within(0..8);
                page.call(&sde, known).unwrap();
                sde.checkpoint().unwrap();
                let seed = random.number();
                all_load(read_only(&sim.power_loss(seed)), [known].into_iter());
                snapshots += 1;
                *taken.0.lock().unwrap() = snapshots;
                taken.1.notify_all();
            }
            snapshots
        });
        saver.join().unwrap()
    });
    sde.checkpoint().unwrap();
    all_load(read_only(&sim.power_loss(0)), 0..8);
    println!("{snapshots} snapshots, {THREADS} threads with {runs} runs each");
    std::mem::forget(sde);
}
