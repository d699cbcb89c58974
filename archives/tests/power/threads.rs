//! Many threads run while one saves all the time: a copy of the medium taken after any save loads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use sde::SavePolicy;

use crate::count;
use crate::engine::{all_load, engine, expected, open, page, read_only};
use crate::kit::{Random, Sim};

const THREADS: u64 = 16;

#[test]
fn every_snapshot_loads() {
    let runs = count(1_000, 10_000);
    let sim = Sim::new();
    let sde = engine(open(&sim).unwrap(), SavePolicy::OnRequest);
    let ended = AtomicUsize::new(0);
    let snapshots = std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (sde, ended) = (&sde, &ended);
            scope.spawn(move || {
                let mut random = Random::new(thread);
                for run in 0..runs {
                    // Half are those of others.
                    let number = random.within(0..run / 8 + 2);
                    assert_eq!(*page.call(sde, number).unwrap(), expected(number));
                }
                ended.fetch_add(1, Ordering::SeqCst);
            });
        }
        let saver = scope.spawn(|| {
            let mut snapshots = 0;
            let mut random = Random::new(99);
            while ended.load(Ordering::SeqCst) < THREADS as usize {
                let begun = Instant::now();
                // What is there now is to be in the snapshot.
                let known = random.within(0..8);
                page.call(&sde, known).unwrap();
                sde.checkpoint().unwrap();
                let seed = random.number();
                all_load(read_only(&sim.power_loss(seed)), [known].into_iter());
                snapshots += 1;
                while begun.elapsed() < Duration::from_millis(1) {
                    std::thread::yield_now();
                }
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
