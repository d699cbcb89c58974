//! Giving up ends one's own wait, and nobody else's.

use std::thread;

use sde::{AppError, AppInfo, CancelToken, Error, Handle, ResultMap, ResultSpec, Sde, inputs};
use sde_tests::{Counter, Gate, LIMIT, Made, Watchdog, made, number, says, until, x, y};

use super::watched;

fn held(gate: Gate) -> Made {
    number("held", move |_, x| {
        gate.pass();
        Ok(x + 1)
    })
}

fn ask(sde: &Sde, app: &Made, token: &CancelToken) -> Result<u64, Error> {
    let outcome = sde.with_cancel(token).request(app, &x(1)).run()?;
    y(&outcome.results)
}

#[test]
fn one_waiter_gives_up_and_the_flight_goes_on() {
    let _dog = Watchdog::new("a waiter that gives up", LIMIT);
    let (sde, watch) = watched();
    let gate = Gate::new();
    let app = held(gate);
    let (gives_up, stays) = (CancelToken::new(), CancelToken::new());
    thread::scope(|scope| {
        let runner = scope.spawn(|| ask(&sde, &app, &CancelToken::new()));
        gate.arrived(1);
        let first = scope.spawn(|| ask(&sde, &app, &gives_up));
        let second = scope.spawn(|| ask(&sde, &app, &stays));
        watch.waiting("held", 2);
        gives_up.cancel();
        // It ends although the gate is closed.
        assert!(first.join().unwrap().unwrap_err().is_cancelled());
        gate.open();
        assert_eq!(runner.join().unwrap().unwrap(), 2);
        assert_eq!(second.join().unwrap().unwrap(), 2);
    });
    assert_eq!(watch.started("held"), 1);
}

/// An app that gives up as soon as nobody wants its result.
fn patient(started: Counter) -> Made {
    number("patient", move |sde, x| {
        if started.add() == 0 {
            until("nobody wants it", || sde.is_cancelled());
            return Err(AppError::message("nobody wants it"));
        }
        Ok(x + 1)
    })
}

/// What comes of a run that is cancelled after something, and for which something else is done then.
fn cancelled(
    sde: &Sde,
    app: &Made,
    after: impl FnOnce(),
    then: impl FnOnce(),
) -> Result<u64, Error> {
    let token = CancelToken::new();
    thread::scope(|scope| {
        let runner = scope.spawn(|| ask(sde, app, &token));
        after();
        token.cancel();
        then();
        runner.join().unwrap()
    })
}

#[test]
fn a_body_hears_that_nobody_wants_its_result() {
    let _dog = Watchdog::new("a cancelled body", LIMIT);
    let (sde, _) = watched();
    let started = Counter::new();
    let app = patient(started);
    let error = cancelled(&sde, &app, || started.reach(1), || ()).unwrap_err();
    says(&error, "nobody wants it");
    // Nothing of that is remembered.
    assert_eq!(y(&sde.run(&app, &x(1)).unwrap()).unwrap(), 2);
}

/// A body that is told that nobody wants its result may return what it has so far: that was
/// remembered as the whole.
#[test]
fn what_a_cancelled_body_returns_is_not_remembered() {
    let _dog = Watchdog::new("a cancelled body that returns", LIMIT);
    let (sde, _) = watched();
    let started = Counter::new();
    let app = number("partial", move |sde, x| {
        if started.add() == 0 {
            until("nobody wants it", || sde.is_cancelled());
            return Ok(0);
        }
        Ok(x + 1)
    });
    let error = cancelled(&sde, &app, || started.reach(1), || ()).unwrap_err();
    assert!(error.is_cancelled());
    assert_eq!(y(&sde.run(&app, &x(1)).unwrap()).unwrap(), 2);
}

/// A body that did not ask did all its work.
#[test]
fn what_a_body_returns_that_never_heard_of_it_is_remembered() {
    let _dog = Watchdog::new("a body that never asks", LIMIT);
    let (sde, _) = watched();
    let gate = Gate::new();
    let app = held(gate);
    let result = cancelled(&sde, &app, || gate.arrived(1), || gate.open());
    assert_eq!(result.unwrap(), 2);
    assert!(sde.request(&app, &x(1)).run().unwrap().source.is_hit());
}

#[test]
fn a_body_goes_on_for_those_who_wait() {
    let _dog = Watchdog::new("a body that is cancelled and wanted", LIMIT);
    let (sde, watch) = watched();
    let gate = Gate::new();
    let app = number("wanted", move |sde, x| {
        gate.pass();
        // Its caller has given up by now, and another waits.
        match sde.is_cancelled() {
            true => Err(AppError::message("nobody wants it")),
            false => Ok(x + 1),
        }
    });
    let token = CancelToken::new();
    thread::scope(|scope| {
        let runner = scope.spawn(|| ask(&sde, &app, &token));
        gate.arrived(1);
        let waiter = scope.spawn(|| y(&sde.run(&app, &x(1)).unwrap()).unwrap());
        watch.waiting("wanted", 1);
        token.cancel();
        gate.open();
        assert_eq!(waiter.join().unwrap(), 2);
        assert_eq!(runner.join().unwrap().unwrap(), 2);
    });
    assert_eq!(sde.stats().total.computed, 1);
}

/// A caller that comes while a body is ending because nobody wanted it gets a result, not that error.
#[test]
fn a_latecomer_does_not_get_the_error_of_a_cancelled_run() {
    let _dog = Watchdog::new("a latecomer", LIMIT);
    let (sde, watch) = watched();
    let started = Counter::new();
    let leaving = Gate::new();
    let app = number("patient", move |sde, x| {
        if started.add() == 0 {
            until("nobody wants it", || sde.is_cancelled());
            leaving.pass();
            return Err(AppError::message("nobody wants it"));
        }
        Ok(x + 1)
    });
    let token = CancelToken::new();
    thread::scope(|scope| {
        let runner = scope.spawn(|| ask(&sde, &app, &token));
        started.reach(1);
        token.cancel();
        leaving.arrived(1);
        let late = scope.spawn(|| y(&sde.run(&app, &x(1)).unwrap()).unwrap());
        watch.waiting("patient", 1);
        leaving.open();
        assert_eq!(late.join().unwrap(), 2);
        assert!(runner.join().unwrap().is_err());
    });
}

#[test]
fn what_a_cancelled_run_waits_for_is_given_up_too() {
    let _dog = Watchdog::new("a nested wait", LIMIT);
    let (sde, watch) = watched();
    let gate = Gate::new();
    let inner = held(gate);
    let outer = {
        let inner = inner.clone();
        number("outer", move |sde, n| Ok(y(&sde.run(&inner, &x(n))?)?))
    };
    let token = CancelToken::new();
    thread::scope(|scope| {
        let running = scope.spawn(|| y(&sde.run(&inner, &x(1)).unwrap()).unwrap());
        gate.arrived(1);
        let nested = scope.spawn(|| ask(&sde, &outer, &token));
        watch.waiting("held", 1);
        token.cancel();
        assert!(nested.join().unwrap().unwrap_err().is_cancelled());
        gate.open();
        assert_eq!(running.join().unwrap(), 2);
    });
    assert_eq!(y(&sde.run(&outer, &x(1)).unwrap()).unwrap(), 2);
}

#[test]
fn a_cancelled_request_starts_nothing() {
    let sde = Sde::new();
    let started = Counter::new();
    let app = patient(started);
    let token = CancelToken::new();
    token.cancel();
    assert!(ask(&sde, &app, &token).unwrap_err().is_cancelled());
    assert_eq!(started.get(), 0);
    // A hit costs nothing, so it is given all the same.
    started.add();
    sde.run(&app, &x(1)).unwrap();
    assert_eq!(ask(&sde, &app, &token).unwrap(), 2);
}

/// Found by reading: when the last one who waited for a run gave up, nobody told the waits nested in that run, which then
/// went on for a result that nobody wanted.
#[test]
fn the_last_to_give_up_ends_the_waits_beneath() {
    let _dog = Watchdog::new("the last to give up", LIMIT);
    let (sde, watch) = watched();
    let gate = Gate::new();
    let held = held(gate);
    let outer = {
        let held = held.clone();
        number("outer", move |sde, n| Ok(y(&sde.run(&held, &x(n))?)?))
    };
    let (first, second) = (CancelToken::new(), CancelToken::new());
    thread::scope(|scope| {
        let below = scope.spawn(|| ask(&sde, &held, &CancelToken::new()));
        gate.arrived(1);
        let runner = scope.spawn(|| ask(&sde, &outer, &first));
        watch.waiting("held", 1);
        let waiter = scope.spawn(|| ask(&sde, &outer, &second));
        watch.waiting("outer", 1);
        first.cancel();
        second.cancel();
        assert!(waiter.join().unwrap().unwrap_err().is_cancelled());
        // It ends although the gate is closed.
        assert!(runner.join().unwrap().unwrap_err().is_cancelled());
        gate.open();
        assert_eq!(below.join().unwrap().unwrap(), 2);
    });
}

#[sde::app]
fn plus_one(x: u64) -> u64 {
    x + 1
}

/// A body that is cancelled from within, and then calls another.
#[sde::app]
fn caller(sde: &Handle, x: u64) -> Result<u64, Error> {
    NESTED.with_borrow(CancelToken::cancel);
    Ok(*plus_one.call(sde, x)?)
}

thread_local! {
    static NESTED: std::cell::RefCell<CancelToken> = std::cell::RefCell::default();
}

/// Only a request could be cancelled: typed calls and sweeps could not.
#[test]
fn a_handle_cancels_every_call_beneath() {
    let sde = Sde::builder().threads(1).build().unwrap();
    let [first, second] = [CancelToken::new(), CancelToken::new()];
    let cancellable = sde.with_cancel(&first).with_cancel(&second);
    plus_one.call(&cancellable, 1).unwrap();
    NESTED.set(first.clone());
    let error = caller.call(&cancellable, 5).unwrap_err();
    assert!(error.is_cancelled() && cancellable.is_cancelled());
    // A hit is given; what is to be computed is not.
    assert_eq!(*plus_one.call(&cancellable, 1).unwrap(), 2);
    let mut each = plus_one.try_par_call(&cancellable, [1, 2]).into_iter();
    assert!(each.next().unwrap().is_ok());
    assert!(each.next().unwrap().unwrap_err().is_cancelled());
    assert!(
        plus_one
            .par_call_each(&cancellable, 1.., |_, _| ())
            .unwrap_err()
            .is_cancelled()
    );
    // Each token counts, and the engine's own handle has none.
    let other = sde.with_cancel(&second);
    plus_one.call(&other, 3).unwrap();
    second.cancel();
    assert!(plus_one.call(&other, 4).unwrap_err().is_cancelled());
    assert_eq!(*plus_one.call(&sde, 4).unwrap(), 5);
}

/// Found by attack: a body that ends early when its own token tells it had what it had made so far remembered.
#[test]
fn what_a_body_returns_after_it_was_told_is_not_remembered() {
    let token = CancelToken::new();
    let of_body = token.clone();
    let app = made(
        AppInfo::new("cancelling.partial", "1").result(ResultSpec::new::<u32>("terms")),
        move |sde, _| {
            let limited = sde.with_cancel(&of_body);
            let terms = (0..9).take_while(|_| !limited.is_cancelled()).count() as u32;
            Ok(ResultMap::new().with("terms", terms))
        },
    );
    let sde = Sde::new();
    let terms = || {
        *sde.run(&app, &inputs! {})
            .unwrap()
            .get::<u32>("terms")
            .unwrap()
    };
    token.cancel();
    assert_eq!((terms(), terms()), (0, 0));
    assert_eq!(sde.stats().total.computed, 2);
}
