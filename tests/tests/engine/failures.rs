//! What becomes of a failure: who gets it, who tries again, and what is remembered.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use sde::archiver::{Archiver, MemoryArchiver};
use sde::record::failure_key;
use sde::{AppError, ErrorKind, Failure, Policy, Sde};
use sde_tests::{Counter, Gate, LIMIT, Made, Watch, Watchdog, number, says, until, x, y};

use super::watched;

const WAITERS: usize = 8;

/// What the caller of one run got: a number, an error, or a panic.
type Got = Result<Result<u64, sde::Error>, String>;

fn got(sde: &Sde, app: &Made) -> Got {
    let run = || {
        sde.run(app, &x(1))
            .map(|results| y(&results).expect("a result"))
    };
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>();
        text.copied().unwrap_or("no text").to_owned()
    })
}

/// One runs and is held at the gate until the others wait; what the runner got, and the others.
fn run_with_waiters(sde: &Sde, watch: &Watch, app: &Made, gate: Gate) -> (Got, Vec<Got>) {
    thread::scope(|scope| {
        let runner = scope.spawn(|| got(sde, app));
        gate.arrived(1);
        let waiters: Vec<_> = (0..WAITERS)
            .map(|_| scope.spawn(|| got(sde, app)))
            .collect();
        watch.waiting("fails", WAITERS);
        gate.open();
        let others = waiters.into_iter().map(|t| t.join().unwrap()).collect();
        (runner.join().unwrap(), others)
    })
}

/// An app whose first call is held at the gate. The closure is told which call it is.
fn held(
    gate: Gate,
    calls: Counter,
    then: impl Fn(usize) -> Result<u64, AppError> + Send + Sync + 'static,
) -> Made {
    number("fails", move |_, _| {
        let call = calls.add();
        if call == 0 {
            gate.pass();
        }
        then(call)
    })
}

fn error(got: &Got) -> &sde::Error {
    got.as_ref().expect("no panic").as_ref().unwrap_err()
}

#[test]
fn an_ordinary_error_is_shared_and_not_remembered() {
    let _dog = Watchdog::new("an ordinary error", LIMIT);
    let (sde, watch) = watched();
    let (gate, calls) = (Gate::new(), Counter::new());
    let app = held(gate, calls, |call| match call {
        0 => Err(AppError::message("did not converge")),
        _ => Ok(7),
    });
    let (runner, others) = run_with_waiters(&sde, &watch, &app, gate);
    let first = error(&runner);
    assert!(matches!(first.kind(), ErrorKind::App { .. }), "{first}");
    assert!(format!("{first:#}").ends_with("failed: did not converge"));
    assert!(others.iter().all(|other| error(other).is_same(first)));
    assert_eq!(calls.get(), 1);
    // It is not remembered: the next run tries again.
    assert_eq!(got(&sde, &app).unwrap().unwrap(), 7);
    assert_eq!(sde.stats().total.failures, WAITERS as u64 + 1);
}

fn always(calls: Counter, fails: impl Fn() -> AppError + Send + Sync + 'static) -> Made {
    number("fails", move |_, _| {
        calls.add();
        Err(fails())
    })
}

#[test]
fn a_permanent_error_is_remembered() {
    let calls = Counter::new();
    let app = always(calls, || AppError::message("does not compile").permanent());
    let store = MemoryArchiver::new();
    let program = || {
        let builder = Sde::builder().store(store.clone());
        builder.save(sde::SavePolicy::OnRequest).build().unwrap()
    };
    let sde = program();
    let first = sde.run(&app, &x(1)).unwrap_err();
    let again = sde.run(&app, &x(1)).unwrap_err();
    assert!(again.is_same(&first));
    assert_eq!(calls.get(), 1);
    // It is one key's failure, not the app's.
    assert!(!sde.run(&app, &x(2)).unwrap_err().is_same(&first));
    assert_eq!(calls.get(), 2);
    sde.finish().unwrap();
    // No archive has it.
    let key = failure_key(&sde.peek(&app, &x(1)).unwrap().key());
    let archive = store.archive_only();
    assert!(store.look(&key).unwrap().is_some() && archive.look(&key).unwrap().is_none());

    let later = program();
    let given = later.run(&app, &x(1)).unwrap_err();
    says(
        &format!("{given:#}"),
        "failed: does not compile (it failed ",
    );
    // From here on it is in memory.
    assert!(later.run(&app, &x(1)).unwrap_err().is_same(&given));
    assert_eq!(calls.get(), 2);
    let refresh = later.request(&app, &x(1)).policy(Policy::Refresh).run();
    assert!(refresh.is_err());
    assert_eq!(calls.get(), 3);
    // Without a store, clearing has it tried again.
    let sde = Sde::new();
    assert!(sde.run(&app, &x(1)).is_err());
    sde.clear_app("fails").unwrap();
    assert!(sde.run(&app, &x(1)).is_err());
    assert_eq!(calls.get(), 5);
}

#[test]
fn an_app_can_say_how_long_its_failures_last() {
    let calls = Counter::new();
    let app = always(calls, || AppError::message("no"))
        .described(|info| info.failures(Failure::Permanent));
    let sde = Sde::new();
    let first = sde.run(&app, &x(1)).unwrap_err();
    assert!(sde.run(&app, &x(1)).unwrap_err().is_same(&first));
    // What the error says itself has the last word.
    let calls = Counter::new();
    let app = always(calls, || AppError::message("no").lasting(Failure::Ordinary))
        .described(|info| info.failures(Failure::Permanent));
    let sde = Sde::new();
    assert!(sde.run(&app, &x(1)).is_err());
    assert!(sde.run(&app, &x(1)).is_err());
    assert_eq!(calls.get(), 2);
}

/// Flies until at least one of the waiters was asleep in time to take over; those that only meant
/// to wait get the error.
fn run_until_taken_over(
    then: impl Fn(usize) -> Result<u64, AppError> + Copy + Send + Sync + 'static,
) -> (Sde, Got, Vec<Got>, usize, Made) {
    loop {
        let (sde, watch) = watched();
        let (gate, calls) = (Gate::new(), Counter::new());
        let app = held(gate, calls, then);
        let (runner, others) = run_with_waiters(&sde, &watch, &app, gate);
        let takers = watch.taken_over("fails");
        assert!(takers <= 1, "{takers} took over in one flight");
        if takers == 1 {
            return (sde, runner, others, calls.get(), app);
        }
    }
}

#[test]
fn after_a_transient_failure_one_waiter_takes_over() {
    let _dog = Watchdog::new("a transient failure", LIMIT);
    let (_, runner, others, calls, _) = run_until_taken_over(|call| match call {
        0 => Err(AppError::message("busy").transient()),
        _ => Ok(7),
    });
    says(error(&runner), "busy");
    assert_eq!(calls, 2);
    assert!(others.iter().all(|other| matches!(other, Ok(Ok(7)))));
}

#[test]
fn a_flight_is_taken_over_once() {
    let _dog = Watchdog::new("a second transient failure", LIMIT);
    let (_, runner, others, calls, _) = run_until_taken_over(|call| {
        Err(AppError::message(["busy", "still busy"][call.min(1)]).transient())
    });
    assert_eq!(calls, 2);
    says(error(&runner), "failed: busy");
    let second = error(&others[0]);
    says(second, "still busy");
    assert!(others.iter().all(|other| error(other).is_same(second)));
}

#[test]
fn a_panic_reaches_its_caller_and_a_waiter_takes_over() {
    let _dog = Watchdog::new("a panic", LIMIT);
    let (_, runner, others, calls, _) = run_until_taken_over(|call| match call {
        0 => panic!("out of range"),
        _ => Ok(7),
    });
    assert_eq!(runner.unwrap_err(), "out of range");
    assert_eq!(calls, 2);
    assert!(others.iter().all(|other| matches!(other, Ok(Ok(7)))));
}

#[test]
fn a_second_panic_is_an_error_for_the_rest_and_no_key_is_poisoned() {
    let _dog = Watchdog::new("two panics", LIMIT);
    let (sde, runner, others, calls, app) = run_until_taken_over(|call| match call {
        0 | 1 => panic!("out of range"),
        _ => Ok(7),
    });
    assert!(runner.is_err());
    assert_eq!(calls, 2);
    let panicked = others.iter().filter(|other| other.is_err()).count();
    assert_eq!(panicked, 1, "the one that took over");
    for other in others.iter().filter(|other| other.is_ok()) {
        let ErrorKind::Panicked { message, .. } = error(other).kind() else {
            panic!("{other:?}");
        };
        assert_eq!(message, "out of range");
    }
    assert_eq!(got(&sde, &app).unwrap().unwrap(), 7);
}

/// Found by a stress of 30,000 keys: the flight of a permanent failure was over before the failure was noted, and a caller that came
/// in between computed again (2,120 bodies more than keys).
#[test]
fn a_permanent_failure_is_computed_once() {
    const KEYS: u64 = 20_000;
    let calls = Counter::new();
    let app = always(calls, || AppError::message("no").permanent());
    let sde = Sde::new();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..KEYS).for_each(|n| assert!(sde.run(&app, &x(n)).is_err())));
        }
    });
    assert_eq!(calls.get() as u64, KEYS);
}

/// Found by a hostile program: a run that goes on after a failure is recorded as one that may come out otherwise.
/// From then on each of sixteen threads that asked for it computed it, all at once, and no duplicate was counted.
#[test]
fn after_a_tolerated_failure_a_key_is_shared_again() {
    const THREADS: usize = 16;
    let _dog = Watchdog::new("a key after a tolerated failure", LIMIT);
    let (sde, watch) = watched();
    let (gate, risky, calls) = (Gate::new(), Counter::new(), Counter::new());
    let fails = number("fails", move |_, n| match risky.add() {
        0 => Err(AppError::message("busy").transient()),
        _ => Ok(n),
    });
    let tolerant = number("tolerant", move |sde, n| {
        if calls.add() > 0 {
            gate.pass();
        }
        Ok(sde.run(&fails, &x(n)).map_or(0, |_| 1))
    });
    let ask = || y(&sde.run(&tolerant, &x(1)).unwrap()).unwrap();
    assert_eq!(ask(), 0);
    thread::scope(|scope| {
        let all: Vec<_> = (0..THREADS).map(|_| scope.spawn(ask)).collect();
        let waiting = |event: &sde::Event| matches!(event, sde::Event::Waiting { app, .. } if &**app == "tolerant");
        until("all wait or compute", || {
            watch.count(waiting) + calls.get() - 1 == THREADS
        });
        gate.open();
        all.into_iter()
            .for_each(|thread| assert_eq!(thread.join().unwrap(), 1));
    });
    assert_eq!(calls.get(), 2);
}

static DRAWS: AtomicU64 = AtomicU64::new(0);

#[sde::app(nondeterministic)]
fn draw() -> u64 {
    DRAWS.fetch_add(1, Ordering::SeqCst)
}

#[sde::app(failures = "permanent")]
fn by_draw(sde: &sde::Handle) -> Result<u64, AppError> {
    match *draw.call(sde)? {
        0 => Err(AppError::message("the draw was bad")),
        good => Ok(good),
    }
}

#[sde::app]
fn lenient(sde: &sde::Handle) -> u64 {
    by_draw.call(sde).map_or(99, |value| *value)
}

/// Found by a hostile program: what failed for good after a bad draw was remembered, and who tolerated that took it for something that
/// lasts: a wrong number in the store.
#[test]
fn what_failed_by_chance_may_go_well() {
    let store = MemoryArchiver::default();
    for expected in [[99, 1], [2, 3]] {
        let sde = Sde::builder()
            .store(store.clone())
            .save(sde::SavePolicy::OnRequest)
            .build()
            .unwrap();
        let got = [lenient.call(&sde).unwrap(), lenient.call(&sde).unwrap()];
        assert_eq!(got.map(|value| *value), expected);
        sde.finish().unwrap();
    }
}
