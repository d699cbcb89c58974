//! Keys do not depend on how many threads hash.

use std::sync::{Mutex, PoisonError};

use sde::key::{commit, set_hash_threads};

/// The number of threads is the process's: one test at a time.
static SETTING: Mutex<()> = Mutex::new(());

#[test]
fn one_thread_many_threads_and_a_rayon_worker_agree() {
    let _held = SETTING.lock().unwrap_or_else(PoisonError::into_inner);
    for size in [262_144 / 8 - 1, 262_144 / 8, 262_144 / 8 + 1, 1_000_003] {
        let numbers: Vec<u64> = (0..size as u64)
            .map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .collect();
        set_hash_threads(1);
        let one = commit(&numbers).unwrap();
        for threads in [2, 3, 0] {
            set_hash_threads(threads);
            assert_eq!(
                one,
                commit(&numbers).unwrap(),
                "{threads} threads, {size} numbers"
            );
        }
        let (left, right) = rayon::join(|| commit(&numbers).unwrap(), || commit(&numbers).unwrap());
        let got = (&left, &right);
        assert_eq!(got, (&one, &one), "{size} numbers on rayon's workers");
    }
    set_hash_threads(0);
}

/// The workers of rayon's global pool may all be waiting for what a thread outside it is to publish,
/// and that thread may have to hash something large first: it must not need one of them.
#[test]
fn hashing_needs_no_worker_of_the_global_pool() {
    let _held = SETTING.lock().unwrap_or_else(PoisonError::into_inner);
    set_hash_threads(2);
    let (stuck, is_stuck) = std::sync::mpsc::channel();
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    let is_done = Mutex::new(is_done);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            rayon::broadcast(|_| {
                stuck.send(()).unwrap();
                // Until the sender is dropped.
                let _ = is_done.lock().unwrap().recv();
            });
        });
        for _ in 0..rayon::current_num_threads() {
            is_stuck.recv().unwrap();
        }
        commit(&vec![1.5_f64; 1_000_000]).unwrap();
        drop(done);
    });
    set_hash_threads(0);
}
