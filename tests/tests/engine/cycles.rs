//! A run that needs its own result is told so at once, with the path; one that needs other results
//! of its own app is not.

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use sde::{Error, Policy, Sde};
use sde_tests::{LIMIT, Made, Watchdog, number, x, y};

use super::{Captured, cycle, watched};

/// An app that needs the app registered as `next`, for the same input.
fn needs(name: &'static str, next: &'static str) -> Made {
    number(name, move |sde, n| Ok(y(&sde.run(next, &x(n))?)?))
}

fn ring(names: &[&'static str]) -> Sde {
    let sde = Sde::new();
    for (i, name) in names.iter().enumerate() {
        let next = names[(i + 1) % names.len()];
        sde.apps().register(name, needs(name, next)).unwrap();
    }
    sde
}

#[test]
fn a_run_that_needs_itself() {
    let error = ring(&["A"]).run("A", &x(1)).unwrap_err();
    assert_eq!(cycle(&error).unwrap(), ["A", "A"]);
    let text = error.root().to_string();
    assert!(
        text.starts_with("a run needs its own result: A ["),
        "{text}"
    );
    assert!(text.ends_with("give the inner run other inputs"), "{text}");
}

#[test]
fn a_run_that_needs_itself_through_another() {
    let error = ring(&["A", "B"]).run("A", &x(1)).unwrap_err();
    assert_eq!(cycle(&error).unwrap(), ["A", "B", "A"]);
    let error = ring(&["A", "B", "C"]).run("B", &x(1)).unwrap_err();
    assert_eq!(cycle(&error).unwrap(), ["B", "C", "A", "B"]);
}

/// Runs that are never looked up claim nothing, so only their ancestry tells.
#[test]
fn a_run_that_is_not_remembered_and_needs_itself() {
    let sde = Sde::new();
    let app = needs("A", "A").described(sde::AppInfo::nondeterministic);
    sde.apps().register("A", app).unwrap();
    let error = sde.run("A", &x(1)).unwrap_err();
    assert_eq!(cycle(&error).unwrap(), ["A", "A"]);

    let sde = Sde::new();
    let app = number("A", |sde, n| {
        let outcome = sde.request("A", &x(n)).policy(Policy::Bypass).run()?;
        Ok(y(&outcome.results)?)
    });
    sde.apps().register("A", app).unwrap();
    let error = sde.run("A", &x(1)).unwrap_err();
    assert_eq!(cycle(&error).unwrap(), ["A", "A"]);
}

/// Three threads, each in one run of the ring before any asks for the next: the errors, and how
/// long they took.
fn three_threads() -> (Vec<Error>, Duration) {
    let all_in = Arc::new(Barrier::new(3));
    let sde = Sde::new();
    for (name, next) in [("A", "B"), ("B", "C"), ("C", "A")] {
        let all_in = Arc::clone(&all_in);
        let app = number(name, move |sde, n| {
            all_in.wait();
            Ok(y(&sde.run(next, &x(n))?)?)
        });
        sde.apps().register(name, app).unwrap();
    }
    let start = Instant::now();
    let errors = thread::scope(|scope| {
        let threads = ["A", "B", "C"].map(|name| {
            let sde = &sde;
            scope.spawn(move || sde.run(name, &x(1)).unwrap_err())
        });
        threads.map(|thread| thread.join().unwrap()).into()
    });
    (errors, start.elapsed())
}

#[test]
fn a_cycle_over_three_threads() {
    let _dog = Watchdog::new("a cycle over three threads", LIMIT);
    let mut fastest = Duration::MAX;
    for _ in 0..20 {
        let (errors, took) = three_threads();
        for error in &errors {
            let path = cycle(error).expect("every one of them is told").concat();
            assert!(["ABCA", "BCAB", "CABC"].contains(&&*path), "{path}");
        }
        fastest = fastest.min(took);
    }
    // Of twenty, so that a busy machine does not fail the test; a time-out in the engine would.
    assert!(fastest < Duration::from_secs(1), "{fastest:?}");
}

/// An app that uses the user's own engine, which knows nothing of who calls.
fn captures(captured: Captured) -> Made {
    number("A", move |_, n| {
        let sde = captured.get().expect("set by the test");
        Ok(y(&sde.run("A", &x(n))?)?)
    })
}

fn captured() -> Sde {
    let captured = Captured::default();
    let builder = Sde::builder().rayon_patience(Duration::from_millis(1));
    let sde = builder.build().unwrap();
    sde.apps().register("A", captures(captured)).unwrap();
    captured.set(sde.clone()).unwrap();
    sde
}

#[test]
fn a_cycle_through_a_captured_engine() {
    let error = captured().run("A", &x(1)).unwrap_err();
    assert_eq!(cycle(&error).unwrap(), ["A", "A"]);
}

#[test]
fn a_cycle_through_a_captured_engine_on_a_rayon_worker() {
    let _dog = Watchdog::new("a cycle on a rayon worker", LIMIT);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build();
    let sde = captured();
    let error = pool.unwrap().install(|| sde.run("A", &x(1))).unwrap_err();
    assert_eq!(cycle(&error).unwrap()[..2], ["A", "A"]);
}

#[test]
fn other_inputs_are_no_cycle() {
    let (sde, _) = watched();
    let fibonacci = number("fibonacci", |sde, n| match n {
        0 | 1 => Ok(n),
        _ => {
            let of = |n| y(&sde.run("fibonacci", &x(n))?);
            Ok(of(n - 1)? + of(n - 2)?)
        }
    });
    sde.apps().register("fibonacci", fibonacci).unwrap();
    let result = sde.run("fibonacci", &x(60)).unwrap();
    assert_eq!(y(&result).unwrap(), 1_548_008_755_920);
    assert_eq!(sde.stats().total.computed, 61);
}
