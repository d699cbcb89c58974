//! Apps that use rayon directly, where the engine can't see who steals what.
//!
//! The program that hangs other memoizers every time: a builder that uses rayon inside, and many
//! requests for its key that its own pool steals while it builds. Here nothing may hang; that some
//! results are computed twice is the price, which is counted.
//!
//! These tests can fail. Each change below was tried alone, and the watchdog ended the program:
//!
//! | change | in |
//! |---|---|
//! | `Waits::begin` never says `Compute`, and no worker loses patience | `stolen`, `hidden` |
//! | no worker loses patience | `hidden` |

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use sde::{AppError, Handle, Sde};
use sde_tests::{Counter, Gate, LIMIT, Made, Watchdog, number, x, y};

const REQUESTS: usize = 32;

/// Some work for rayon to split up and for its workers to steal.
fn split_up(each: impl Fn(u64) -> Result<u64, AppError> + Send + Sync) -> Result<u64, AppError> {
    let parts: Result<Vec<u64>, AppError> = (0..64_u64).into_par_iter().map(each).collect();
    Ok(parts?.iter().fold(0, |sum, part| sum.wrapping_add(*part)))
}

fn busy(n: u64) -> u64 {
    (0..200).fold(n, |n, i| n.wrapping_mul(31).wrapping_add(i))
}

fn flat(_: &Handle, n: u64) -> Result<u64, AppError> {
    split_up(|i| Ok(busy(n + i)))
}

/// What the first builder does before its work, so that its workers steal for certain.
type Before = fn(&Counter);

/// Nothing: who steals what is left to chance.
fn by_chance(_: &Counter) {}

/// Half of the builder's work is taken by another worker and ends when another thread builds; so the
/// builder has to wait for it, and to steal a request for what it is building itself.
fn stolen(builders: &Counter) {
    let taken = Counter::new();
    rayon::join(
        || taken.reach(1),
        || {
            taken.add();
            builders.reach(2);
        },
    );
}

/// As `stolen`, on a worker that does a part of the build which the engine knows nothing of: the
/// builder itself steals nothing.
fn hidden(builders: &Counter) {
    let (taken, ended) = (Counter::new(), Counter::new());
    rayon::join(
        || ended.reach(1),
        || {
            stolen(builders);
            taken.add();
            ended.add();
        },
    );
}

/// One program: what the builder does, for how many keys, on how many workers at least.
struct Program {
    name: &'static str,
    before: Before,
    /// Whether the parts of the work are runs themselves, of a few keys that all share, and that
    /// use rayon too.
    nested: bool,
    least_workers: usize,
}

const PROGRAMS: [Program; 4] = [
    Program {
        name: "one key, by chance",
        before: by_chance,
        nested: false,
        least_workers: 1,
    },
    Program {
        name: "nested keys, by chance",
        before: by_chance,
        nested: true,
        least_workers: 1,
    },
    Program {
        name: "nested keys, stolen",
        before: stolen,
        nested: true,
        least_workers: 2,
    },
    Program {
        name: "nested keys, hidden",
        before: hidden,
        nested: true,
        least_workers: 3,
    },
];

impl Program {
    fn builder(&self, gate: Gate) -> Made {
        let (before, nested) = (self.before, self.nested);
        let builders = Counter::new();
        let part = number("part", flat);
        number("builder", move |sde, n| {
            if builders.add() == 0 {
                // From here on the requests come in.
                gate.pass();
                before(&builders);
            }
            match nested {
                false => flat(sde, n),
                true => split_up(|i| Ok(y(&sde.run(&part, &x(i % 4))?)?.wrapping_add(n))),
            }
        })
    }

    /// Runs it once; how many bodies were run although another was running.
    fn run(&self, pool: &ThreadPool) -> u64 {
        let patience = Duration::from_millis(3);
        let sde = Sde::builder().rayon_patience(patience).build();
        let sde = sde.expect("no store");
        let gate = Gate::new();
        let app = self.builder(gate);
        let done = Counter::new();
        let results = Arc::new(Mutex::new(Vec::new()));
        let request = || {
            let (sde, app) = (sde.clone(), app.clone());
            let results = Arc::clone(&results);
            pool.spawn(move || {
                let result = sde.run(&app, &x(0)).map(|map| y(&map).expect("a result"));
                results.lock().expect("no panic").push(result);
                done.add();
            });
        };
        request();
        gate.arrived(1);
        (0..REQUESTS).for_each(|_| request());
        gate.open();
        done.reach(REQUESTS + 1);
        let results = results.lock().expect("no panic");
        let first = results[0].as_ref().expect("no error");
        let mut each = results.iter();
        assert!(each.all(|one| one.as_ref().expect("no error") == first));
        sde.stats().total.duplicates
    }
}

fn pool(workers: usize) -> ThreadPool {
    let pool = ThreadPoolBuilder::new().num_threads(workers).build();
    pool.expect("a pool")
}

#[test]
fn nothing_hangs() {
    for workers in [1, 2, 3, 4, 8, 16] {
        let pool = pool(workers);
        for program in PROGRAMS.iter().filter(|p| p.least_workers <= workers) {
            let _dog = Watchdog::new(program.name, LIMIT);
            for _ in 0..4 {
                let duplicates = program.run(&pool);
                // Chance may give none or some; the others show what they claim.
                assert!(duplicates > 0 || program.least_workers == 1);
            }
        }
    }
}

/// The commonest way to get there: a parallel loop whose bodies all need one result, which is made
/// in parallel too.
#[test]
fn a_parallel_loop_over_one_shared_result() {
    let _dog = Watchdog::new("a parallel loop", LIMIT);
    for workers in [2, 4, 16] {
        let sde = Sde::new();
        let shared = number("shared", |_, n| {
            split_up(|i| Ok((0..100).fold(n + i, |n, _| busy(n))))
        });
        let ask = |_| {
            sde.run(&shared, &x(0))
                .map(|map| y(&map).expect("a result"))
        };
        let all: Result<Vec<u64>, _> =
            pool(workers).install(|| (0..5000).into_par_iter().map(ask).collect());
        let all = all.expect("no error, in particular no cycle");
        assert!(all.iter().all(|one| *one == all[0]));
        assert_eq!(sde.stats().total.failures, 0);
    }
}

/// An app that needs itself, through an engine it captured, on rayon's workers: the engine can't see
/// who calls. Each call became four, without end.
#[test]
fn a_parallel_loop_that_needs_itself() {
    let _dog = Watchdog::new("a parallel loop that needs itself", LIMIT);
    let captured = super::Captured::default();
    let app = number("endless", move |_, n| {
        let sde = captured.get().expect("set by the test");
        // All of them, whatever comes of the first.
        let parts: Vec<Result<u64, sde::Error>> = (0..4)
            .into_par_iter()
            .map(|_| y(&sde.run("endless", &x(n))?))
            .collect();
        Ok(parts.into_iter().sum::<Result<u64, _>>()?)
    });
    let patience = Duration::from_millis(1);
    let sde = Sde::builder().rayon_patience(patience).build();
    let sde = sde.expect("no store");
    sde.apps().register("endless", app).expect("a new name");
    captured.set(sde.clone()).expect("set once");
    for workers in [1, 2, 4] {
        let error = pool(workers).install(|| sde.run("endless", &x(workers as u64)).unwrap_err());
        assert_eq!(
            super::cycle(&error).expect("a cycle")[..2],
            ["endless", "endless"]
        );
    }
}

/// The figures of `docs/reliability.md`.
#[test]
#[ignore = "long: a thousand runs of each program"]
fn nothing_hangs_in_a_thousand_runs() {
    const RUNS: usize = 1000;
    for program in &PROGRAMS {
        println!(
            "{}: workers, runs, hangs, duplicates per run (mean, median, most)",
            program.name
        );
        for workers in program.least_workers..=16 {
            let _dog = Watchdog::new(program.name, 5 * LIMIT);
            let pool = pool(workers);
            let runs = RUNS.div_ceil(17 - program.least_workers);
            let mut duplicates: Vec<u64> = (0..runs).map(|_| program.run(&pool)).collect();
            duplicates.sort_unstable();
            let mean = duplicates.iter().sum::<u64>() as f64 / runs as f64;
            let most = duplicates[runs - 1];
            println!(
                "| {workers} | {runs} | 0 | {mean:.2} | {} | {most} |",
                duplicates[runs / 2]
            );
        }
    }
}

/// Found by reading: a patience without end was more than a clock can hold, and a panic.
#[test]
fn a_worker_may_wait_for_ever() {
    let _dog = Watchdog::new("a patient worker", LIMIT);
    let (gate, watch) = (Gate::new(), sde_tests::Watch::new());
    let builder = Sde::builder().observer(watch.clone());
    let sde = builder
        .rayon_patience(Duration::MAX)
        .build()
        .expect("no store");
    let app = number("held", move |_, n| {
        gate.pass();
        Ok(n)
    });
    let ask = || y(&sde.run(&app, &x(1)).expect("no error")).expect("a result");
    std::thread::scope(|scope| {
        let runner = scope.spawn(ask);
        gate.arrived(1);
        let worker = scope.spawn(|| pool(1).install(ask));
        watch.waiting("held", 1);
        gate.open();
        assert_eq!(
            (
                runner.join().expect("no panic"),
                worker.join().expect("no panic")
            ),
            (1, 1)
        );
    });
    assert_eq!(sde.stats().total.duplicates, 0);
}
