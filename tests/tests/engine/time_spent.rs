//! The time that apps take.
//!
//! Found by using it: twenty fast calls were reported as 1.5 s. What nested runs took was counted once more for each
//! level above, and waiting for the disk as computing. What is counted on one thread are pieces of the time that has
//! passed, no two of which overlap, so their sum can't be more than that.

use std::hint::spin_loop;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use sde::archiver::{Batch, MemoryArchiver};
use sde::{AppError, Event, SavePolicy, Sde};
use sde_tests::{Before, Made, Watch, number, x, y};

use super::watched;

const LEVELS: [&str; 5] = ["bottom", "low", "middle", "high", "top"];
const WORK: Duration = Duration::from_millis(2);

fn take_time() {
    let start = Instant::now();
    while start.elapsed() < WORK {
        spin_loop();
    }
}

/// Calls the one below; the lowest takes time.
fn level(at: usize) -> Made {
    number(LEVELS[at], move |sde, n| match at {
        0 => {
            take_time();
            Ok(n)
        }
        _ => Ok(y(&sde.run(&level(at - 1), &x(n))?)?),
    })
}

#[test]
fn what_runs_beneath_is_not_counted_twice() {
    let (sde, _) = watched();
    let start = Instant::now();
    for n in 0..4 {
        sde.run(&level(4), &x(n)).expect("no error");
    }
    let passed = start.elapsed();
    let stats = sde.stats();
    let spent = stats.total.time_spent;
    assert!(spent <= passed, "{spent:?} of {passed:?}");
    assert!(spent >= 4 * WORK, "{spent:?}");
    let sum: Duration = stats.apps.values().map(|app| app.time_spent).sum();
    assert_eq!(sum, spent);
    // To have it again would take all of it.
    sde.run(&level(4), &x(0)).expect("no error");
    assert!(sde.stats().apps["top"].time_saved >= WORK);
}

#[test]
fn waiting_for_the_disk_is_no_computing() {
    let watch = Watch::new();
    let sde = Sde::builder().observer(watch.clone());
    let sde = sde.store(Before(MemoryArchiver::new(), |_: &Batch| {
        // Longer than the apps.
        take_time();
        Ok(())
    }));
    let sde = sde.save(SavePolicy::EveryResult).build().expect("a store");
    let start = Instant::now();
    for n in 0..4 {
        sde.run(&level(4), &x(n)).expect("no error");
    }
    let passed = start.elapsed();
    let saving = |event: &Event| match event {
        Event::Saved { took, .. } => *took,
        _ => Duration::ZERO,
    };
    let saving: Duration = watch.events().iter().map(saving).sum();
    assert!(saving >= 20 * WORK, "{saving:?}");
    let spent = sde.stats().total.time_spent;
    assert!(
        spent + saving <= passed,
        "{spent:?} and {saving:?} of {passed:?}"
    );
}

/// Found by reading: a body that waited for helpers was counted as computing.
#[test]
fn waiting_for_helpers_is_not_computing() {
    let caller_waits = Arc::new(Barrier::new(2));
    let app = number("waits", move |sde, n| {
        let caller = std::thread::current().id();
        let both = || {
            caller_waits.wait();
            if std::thread::current().id() != caller {
                (0..100).for_each(|_| take_time());
            }
        };
        sde.join(|_| both(), |_| both());
        Ok(n)
    });
    let sde = Sde::builder().threads(2).build().expect("threads");
    let start = Instant::now();
    sde.run(&app, &x(1)).expect("no error");
    let passed = start.elapsed();
    let spent = sde.stats().total.time_spent;
    assert!(spent + 50 * WORK <= passed, "{spent:?} of {passed:?}");
}

/// What failed took its time too.
#[test]
fn a_body_that_fails_is_counted() {
    let (sde, _) = watched();
    let app = number("fails", |_, _| {
        take_time();
        Err(AppError::message("no"))
    });
    let above = number("above", move |sde, n| Ok(y(&sde.run(&app, &x(n))?)?));
    let start = Instant::now();
    sde.run(&above, &x(1)).expect_err("it fails");
    let passed = start.elapsed();
    let stats = sde.stats();
    assert!(stats.apps["fails"].time_spent >= WORK);
    assert!(stats.total.time_spent <= passed);
}
