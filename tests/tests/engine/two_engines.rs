//! Two engines in one program see nothing of each other's results, but a circle of waits over both
//! would never end.

use std::thread;

use sde::{Error, Sde};
use sde_tests::{Counter, LIMIT, Made, Watchdog, number, x, y};

use super::{Captured, cycle};

/// An app that needs one of the other engine.
fn crosses(
    name: &'static str,
    to: &'static str,
    other: Captured,
    both: Counter,
    together: usize,
) -> Made {
    number(name, move |_, n| {
        both.add();
        both.reach(together);
        let other = other.get().expect("set by the test");
        Ok(y(&other.run(to, &x(n))?)?)
    })
}

/// `ping` of one engine needs `pong` of the other, which needs `ping`.
fn engines(together: usize) -> [Sde; 2] {
    let both = Counter::new();
    let captured = [Captured::default(), Captured::default()];
    let engines = [Sde::new(), Sde::new()];
    let ping = crosses("ping", "pong", captured[1], both, together);
    let pong = crosses("pong", "ping", captured[0], both, together);
    engines[0].apps().register("ping", ping).unwrap();
    engines[1].apps().register("pong", pong).unwrap();
    captured[0].set(engines[0].clone()).unwrap();
    captured[1].set(engines[1].clone()).unwrap();
    engines
}

fn path(error: &Error) -> String {
    cycle(error).expect("a cycle").join(" ")
}

#[test]
fn a_cycle_on_one_thread() {
    let _dog = Watchdog::new("a cycle over two engines", LIMIT);
    let [first, _second] = engines(1);
    let error = first.run("ping", &x(1)).unwrap_err();
    assert_eq!(path(&error), "ping pong ping");
}

#[test]
fn a_cycle_over_two_threads() {
    let _dog = Watchdog::new("a cycle over two engines and two threads", LIMIT);
    let [first, second] = engines(2);
    let errors = thread::scope(|scope| {
        let ping = scope.spawn(|| first.run("ping", &x(1)).unwrap_err());
        let pong = scope.spawn(|| second.run("pong", &x(1)).unwrap_err());
        [ping, pong].map(|run| run.join().unwrap())
    });
    for error in errors {
        assert!(["ping pong ping", "pong ping pong"].contains(&&*path(&error)));
    }
}

/// The same key in two engines is two runs.
#[test]
fn the_same_run_in_the_other_engine_is_no_cycle() {
    let other = Sde::new();
    let app = number("app", |_, n| Ok(n + 1));
    let inner = app.clone();
    let asks = number("app", move |_, n| Ok(y(&other.run(&inner, &x(n))?)?));
    assert_eq!(y(&Sde::new().run(&asks, &x(1)).unwrap()).unwrap(), 2);
}
