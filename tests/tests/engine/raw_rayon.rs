//! Apps that use rayon directly, where the engine can't see who steals what.
//!
//! The program that hangs other memoizers every time: a builder that uses rayon inside, and many
//! requests for its key that its own pool steals while it builds. Here nothing may hang; that some
//! results are computed twice is the price, which is counted.

use std::time::Duration;

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use sde::{AppError, Handle, Sde};
use sde_tests::{Counter, Gate, LIMIT, Made, Watchdog, number, x, y};

const REQUESTS: usize = 32;
/// The program is written for one key; with nested keys the requests are for two.
const KEYS: u64 = 2;

/// Some work for rayon to split up and for its workers to steal into.
fn split_up(each: impl Fn(u64) -> Result<u64, AppError> + Send + Sync) -> Result<u64, AppError> {
    let parts: Result<Vec<u64>, AppError> = (0..64_u64).into_par_iter().map(each).collect();
    Ok(parts?.iter().fold(0, |sum, part| sum.wrapping_add(*part)))
}

fn busy(n: u64) -> u64 {
    (0..200).fold(n, |n, i| n.wrapping_mul(31).wrapping_add(i))
}

/// A builder that tells when it is building, and goes on when the requests are in.
fn builder(
    gate: &Gate,
    body: impl Fn(&Handle, u64) -> Result<u64, AppError> + Send + Sync + 'static,
) -> Made {
    let gate = gate.clone();
    number("builder", move |sde, n| {
        gate.pass();
        body(sde, n)
    })
}

fn flat(gate: &Gate) -> Made {
    builder(gate, |_, n| split_up(|i| Ok(busy(n + i))))
}

/// The parts of the work are runs themselves, of a few keys that all share, and use rayon too.
fn nested(gate: &Gate) -> Made {
    let part = number("part", |_, n| split_up(|i| Ok(busy(n + i))));
    builder(gate, move |sde, n| {
        split_up(|i| Ok(y(&sde.run(&part, &x(i % 4))?)?.wrapping_add(n)))
    })
}

/// Runs the program once; how many bodies were run although another was running.
fn program(pool: &ThreadPool, make: fn(&Gate) -> Made, keys: u64) -> u64 {
    let sde = Sde::builder()
        .rayon_patience(Duration::from_millis(3))
        .build()
        .expect("no store");
    let gate = Gate::new();
    let app = make(&gate);
    let done = Counter::new();
    let results = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let request = |n: u64| {
        let (sde, app, done) = (sde.clone(), app.clone(), done.clone());
        let results = std::sync::Arc::clone(&results);
        pool.spawn(move || {
            let result = sde.run(&app, &x(n)).map(|map| y(&map).expect("a result"));
            results.lock().expect("no panic").push((n, result));
            done.add();
        });
    };
    request(0);
    gate.arrived(1);
    for i in 0..REQUESTS {
        request(i as u64 % keys);
    }
    gate.open();
    done.reach(REQUESTS + 1);
    let results = results.lock().expect("no panic");
    for (n, result) in results.iter() {
        let same = results
            .iter()
            .find(|(other, _)| other == n)
            .expect("itself");
        let result = result.as_ref().expect("no error");
        assert_eq!(result, same.1.as_ref().expect("no error"));
    }
    let total = sde.stats().total;
    assert_eq!(total.failures, 0);
    total.duplicates
}

fn pool(workers: usize) -> ThreadPool {
    let pool = ThreadPoolBuilder::new().num_threads(workers).build();
    pool.expect("a pool")
}

#[test]
fn nothing_hangs() {
    let _dog = Watchdog::new("the program with raw rayon", LIMIT);
    for workers in [1, 2, 3, 4, 8, 16] {
        let pool = pool(workers);
        for _ in 0..5 {
            let alone = program(&pool, flat, 1);
            assert!(
                workers > 1 || alone == 0,
                "{alone} duplicates on one worker"
            );
            program(&pool, nested, KEYS);
        }
    }
}

/// The figures of `docs/reliability.md`.
#[test]
#[ignore = "long: a thousand runs of each program"]
fn nothing_hangs_in_a_thousand_runs() {
    const RUNS: usize = 1000;
    for (name, make, keys) in [
        ("one key", flat as fn(&Gate) -> Made, 1),
        ("nested keys", nested, KEYS),
    ] {
        for workers in 1..=16 {
            let _dog = Watchdog::new("the program with raw rayon", 5 * LIMIT);
            let pool = pool(workers);
            let runs = RUNS / 16 + usize::from(workers <= RUNS % 16);
            let mut duplicates: Vec<u64> = (0..runs).map(|_| program(&pool, make, keys)).collect();
            duplicates.sort_unstable();
            let sum: u64 = duplicates.iter().sum();
            println!(
                "{name}, {workers} workers: {runs} runs, 0 hangs, duplicates per run: mean {:.1}, median {}, most {}",
                sum as f64 / runs as f64,
                duplicates[runs / 2],
                duplicates[runs - 1],
            );
        }
    }
}
