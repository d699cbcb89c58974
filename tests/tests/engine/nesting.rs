//! The engine's own parallelism, rayon, plain threads and a second engine, nested in every way.
//!
//! Found by hostile programs: `par_map` on rayon's workers, whose items use rayon, had both workers
//! wait for helpers that waited for a worker; and a plain thread with a clone of the handle, beneath
//! a job that a worker had stolen, waited for a run that was suspended below that job. What keeps them
//! from it is `docs/decisions/0015-no-hang-under-rayon.md`; a model of the rule is in
//! `tests/tests/engine/nesting_rule.rs`.
//!
//! Threads that are no workers use rayon's global pool, whose size is that of the process: each size is
//! a process of its own, the ignored test `of_this_process`.

use std::process::Command;
use std::thread;
use std::time::Duration;

use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use sde::{AppError, Handle, Sde};
use sde_tests::{LIMIT, Made, Watchdog, number, x, y};

/// How a run asks for the runs nested in it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Own,
    Rayon,
    Threads,
    /// One after another, through a second engine that the body captured.
    Engine,
}

const WAYS: [Way; 4] = [Way::Own, Way::Rayon, Way::Threads, Way::Engine];

/// Rayon on a thread that holds up a worker waits for just that worker, engine or no engine, if there is no other.
fn hangs_by_itself(ways: &[Way]) -> bool {
    let after = |ways: &[Way], way| ways.iter().position(|one| *one == way);
    after(ways, Way::Rayon)
        .and_then(|at| after(&ways[at..], Way::Threads).map(|more| at + more))
        .is_some_and(|at| ways[at..].contains(&Way::Rayon))
}

/// The runs that a run of this level asks for: two of the level below, which all runs of a level share.
fn beneath(ways: &'static [Way], other: Option<&Sde>) -> Made {
    let other = other.cloned();
    number(NAMES[ways.len()], move |sde, n| {
        ask(sde, other.as_ref(), ways, n)
    })
}

const NAMES: [&str; 4] = ["leaf", "first", "second", "third"];

fn ask(sde: &Handle, other: Option<&Sde>, ways: &'static [Way], n: u64) -> Result<u64, AppError> {
    let Some((way, rest)) = ways.split_first() else {
        return Ok((0..50).fold(n, |n, i| n * 31 % 1009 + i));
    };
    let app = beneath(rest, other);
    let one = |sde: &Handle, n: u64| y(&sde.run(&app, &x(n))?);
    let keys = [n % 2, (n + 1) % 2, n % 2];
    let all: Vec<Result<u64, sde::Error>> = match way {
        Way::Own => sde.par_each(&keys, |sde, n| one(sde, *n)),
        Way::Rayon => keys.into_par_iter().map(|n| one(sde, n)).collect(),
        Way::Threads => thread::scope(|scope| {
            let threads = keys.map(|n| {
                let (sde, one) = (sde.clone(), &one);
                scope.spawn(move || one(&sde, n))
            });
            threads
                .map(|thread| thread.join().expect("no panic"))
                .into()
        }),
        Way::Engine => {
            let other = other.expect("a second engine");
            keys.map(|n| one(other, n)).into()
        }
    };
    all.into_iter().try_fold(0, |sum, one| Ok(sum + one?))
}

fn engine(threads: usize) -> Sde {
    Sde::builder()
        .threads(threads)
        .rayon_patience(Duration::from_millis(2))
        .build()
        .expect("no store")
}

/// On rayon's global pool as it is in this process: all nestings of three ways, and the loop over scans, which
/// hung where there were as many helpers as workers.
#[test]
#[ignore = "part of `nothing_hangs_whatever_is_nested`, in processes of its own"]
fn of_this_process() {
    for threads in [2, 4, 16] {
        let _dog = Watchdog::new("a loop over scans", LIMIT);
        loop_over_scans(&engine(threads), &engine(threads));
    }
    for at in 0..WAYS.len().pow(3) {
        let ways: Vec<Way> = (0..3).map(|place| WAYS[at >> (2 * place) & 3]).collect();
        let ways: &'static [Way] = ways.leak();
        for threads in [1, 2, 5] {
            let _dog = Watchdog::new(format!("{ways:?} with {threads} threads").leak(), LIMIT);
            nested(ways, threads);
        }
    }
}

/// Asks from a loop of rayon's and from one of the engine's own at once, which share all keys.
fn nested(ways: &'static [Way], threads: usize) {
    let (sde, other) = (engine(threads), engine(threads));
    let app = beneath(ways, Some(&other));
    let run = |n: u64| y(&sde.run(&app, &x(n % 2)).expect("no error")).expect("a result");
    let keys: Vec<u64> = (0..4).collect();
    let (of_rayon, own) = thread::scope(|scope| {
        let in_rayon = || match hangs_by_itself(&[&[Way::Rayon], ways].concat()) {
            false => keys.par_iter().map(|n| run(*n)).collect(),
            true => Vec::new(),
        };
        let of_rayon = scope.spawn(in_rayon);
        let own: Vec<u64> = match hangs_by_itself(ways) {
            false => sde.par_each(&keys, |_, n| run(*n)),
            true => Vec::new(),
        };
        (of_rayon.join().expect("no panic"), own)
    });
    let alone = engine(1);
    let expected: Vec<u64> = match hangs_by_itself(ways) {
        false => keys
            .iter()
            .map(|n| ask(&alone, Some(&alone), ways, n % 2).expect("no error"))
            .collect(),
        true => Vec::new(),
    };
    assert_eq!(own, expected, "{ways:?}");
    assert!(of_rayon.is_empty() || of_rayon == expected, "{ways:?}");
}

fn in_processes(workers: impl IntoIterator<Item = usize>) {
    for workers in workers {
        let program = std::env::current_exe().expect("the name of this program");
        let ended = Command::new(program)
            .args(["--exact", "nesting::of_this_process", "--ignored"])
            .env("RAYON_NUM_THREADS", workers.to_string())
            .output()
            .expect("this program runs");
        let said = String::from_utf8_lossy(&ended.stderr) + String::from_utf8_lossy(&ended.stdout);
        assert!(ended.status.success(), "{workers} workers: {said}");
        assert!(said.contains("1 passed"), "{said}");
    }
}

#[test]
fn nothing_hangs_whatever_is_nested() {
    in_processes([1, 2, 3, 16]);
}

#[test]
#[ignore = "long: each number of workers from 1 to 16, ten times"]
fn nothing_hangs_whatever_is_nested_in_the_long_run() {
    (0..10).for_each(|_| in_processes(1..=16));
}

/// A loop over scans, each of which is a `par_map` over arithmetic that uses rayon.
fn loop_over_scans(sde: &Sde, other: &Sde) {
    let arithmetic = number("arithmetic", |_, n| {
        Ok((0..64_u64).into_par_iter().map(|i| i ^ n).sum())
    });
    let scan = number("scan", move |sde, n| {
        let list: Vec<_> = (0..8).map(|i| x(8 * n + i)).collect();
        let all = sde.par_map(&arithmetic, &list).into_iter();
        Ok(all.map(|map| y(&map?)).sum::<Result<u64, _>>()?)
    });
    let engine = |n: u64| if n.is_multiple_of(2) { sde } else { other };
    let sums: Vec<u64> = (0..16_u64)
        .into_par_iter()
        .map(|n| y(&engine(n).run(&scan, &x(n)).expect("no error")).expect("a result"))
        .collect();
    assert_eq!(sums.len(), 16);
}

/// On one worker `outer` is stolen on top of `slow`, and asks for it on a thread of its own.
#[test]
fn a_thread_beneath_a_stolen_job() {
    let _dog = Watchdog::new("a thread beneath a stolen job", LIMIT);
    let slow = number("slow", |_, n| {
        if rayon::current_thread_index().is_some() {
            rayon::yield_now();
        }
        Ok(n)
    });
    let outer = {
        let slow = slow.clone();
        number("outer", move |sde, n| {
            let beneath = thread::scope(|scope| {
                let sde = sde.clone();
                let run = scope.spawn(|| y(&{ sde }.run(&slow, &x(n))?));
                run.join().expect("no panic")
            });
            Ok(beneath? + 1)
        })
    };
    let pool = ThreadPoolBuilder::new().num_threads(1).build();
    let sde = engine(1);
    let run = |app| y(&sde.run(app, &x(7)).expect("no error")).expect("a result");
    let both = pool
        .expect("a pool")
        .install(|| rayon::join(|| run(&slow), || run(&outer)));
    assert_eq!(both, (7, 8));
    assert_eq!(sde.stats().total.duplicates, 1);
}
