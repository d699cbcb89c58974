//! Apps that are not thread-safe: one run at a time, and no false alarm.

use std::thread;

use sde::{AppInfo, ErrorKind, Handle, Policy, Sde, inputs};
use sde_tests::{Counter, Gate, LIMIT, Made, Watchdog, assert_kind, number, says, until, x, y};

use super::{one_worker, watched};

/// An app that is not thread-safe.
fn alone(
    name: &'static str,
    body: impl Fn(&Handle, u64) -> Result<u64, sde::AppError> + Send + Sync + 'static,
) -> Made {
    number(name, body).described(AppInfo::not_thread_safe)
}

fn ask(sde: &Sde, app: &Made, n: u64) -> Result<u64, sde::Error> {
    y(&sde.run(app, &x(n))?)
}

/// The first is inside, held at the gate; a second one asks, and comes in only when it has left.
#[test]
fn one_at_a_time() {
    let _dog = Watchdog::new("two that take turns", LIMIT);
    let (sde, watch) = watched();
    let (gate, inside) = (Gate::new(), Counter::new());
    let app = alone("alone", move |_, n| {
        let before = inside.add();
        if n == 0 {
            gate.pass();
            // Nobody has come in meanwhile.
            assert_eq!(inside.get(), before + 1);
        }
        Ok(n)
    });
    thread::scope(|scope| {
        let first = scope.spawn(|| ask(&sde, &app, 0));
        gate.arrived(1);
        let others = [1, 2, 3].map(|n| {
            let (sde, app) = (&sde, &app);
            scope.spawn(move || ask(sde, app, n))
        });
        watch.waiting("alone", 3);
        gate.open();
        first.join().unwrap().unwrap();
        for other in others {
            other.join().unwrap().unwrap();
        }
    });
    assert_eq!(inside.get(), 4);
}

/// Those nested in one run are exclusive among themselves.
#[test]
fn those_beneath_one_run_take_turns_too() {
    let _dog = Watchdog::new("siblings that take turns", LIMIT);
    let (sde, watch) = watched();
    let (gate, inside) = (Gate::new(), Counter::new());
    let app = alone("alone", move |sde, n| {
        if n == 0 {
            let parts = thread::scope(|scope| {
                let part = |n| {
                    let sde = sde.clone();
                    scope.spawn(move || y(&sde.run("alone", &x(n))?))
                };
                [part(1), part(2)].map(|part| part.join().unwrap())
            });
            return parts.into_iter().try_fold(0, |sum, part| Ok(sum + part?));
        }
        let before = inside.add();
        if before == 0 {
            gate.pass();
            assert_eq!(inside.get(), 1);
        }
        Ok(n)
    });
    sde.apps().register("alone", app).unwrap();
    thread::scope(|scope| {
        let all = scope.spawn(|| y(&sde.run("alone", &x(0)).unwrap()));
        gate.arrived(1);
        watch.waiting("alone", 1);
        gate.open();
        assert_eq!(all.join().unwrap().unwrap(), 3);
    });
}

/// It took its turn before the policy was looked at: asking for what is remembered took as long as
/// the run that was going on.
#[test]
fn who_asks_for_what_is_remembered_does_not_wait() {
    let _dog = Watchdog::new("a look at what is remembered", LIMIT);
    let (sde, _) = watched();
    let gate = Gate::new();
    let app = alone("alone", move |_, n| {
        gate.pass();
        Ok(n)
    });
    thread::scope(|scope| {
        let runner = scope.spawn(|| ask(&sde, &app, 1));
        gate.arrived(1);
        for n in [1, 2] {
            let inputs = x(n);
            let look = sde.request(&app, &inputs).policy(Policy::OnlyIfRemembered);
            let error = look.run().unwrap_err();
            assert_kind!(error, NotRemembered);
        }
        gate.open();
        runner.join().unwrap().unwrap();
    });
}

/// `alone(1)` needs `between(5)`, which needs `alone(15)`: no run needs its own result. Another
/// thread is in `between(5)` when `alone(1)` asks for it.
struct Crossing {
    alone_in: Gate,
    between_in: Gate,
    sde: Sde,
    watch: sde_tests::Watch,
}

impl Crossing {
    fn new() -> Self {
        let (sde, watch) = watched();
        let crossing = Self {
            alone_in: Gate::new(),
            between_in: Gate::new(),
            sde,
            watch,
        };
        let gate = crossing.alone_in;
        let lone = alone("alone", move |sde, n| match n {
            1 => {
                gate.pass();
                Ok(y(&sde.run("between", &x(5))?)?)
            }
            _ => Ok(n),
        });
        let gate = crossing.between_in;
        let between = number("between", move |sde, n| {
            gate.pass();
            Ok(y(&sde.run("alone", &x(n + 10))?)?)
        });
        crossing.sde.apps().register("alone", lone).unwrap();
        crossing.sde.apps().register("between", between).unwrap();
        crossing
    }

    /// Both are inside, and go on in this order.
    fn go(&self, then: impl FnOnce()) {
        let run = |name, n| y(&self.sde.run(name, &x(n))?);
        let got = thread::scope(|scope| {
            let between = scope.spawn(move || run("between", 5));
            self.between_in.arrived(1);
            let alone = scope.spawn(move || run("alone", 1));
            self.alone_in.arrived(1);
            then();
            [between, alone].map(|run| run.join().unwrap())
        });
        for got in got {
            assert_eq!(got.expect("nobody needs his own result"), 15);
        }
    }
}

/// A turn is no dependence: the one that would close the circle was told that it needs itself.
#[test]
fn a_turn_closes_no_cycle_for_those_who_need_the_result() {
    let _dog = Watchdog::new("a result behind a turn", LIMIT);
    let crossing = Crossing::new();
    crossing.go(|| {
        crossing.between_in.open();
        crossing.watch.waiting("alone", 1);
        crossing.alone_in.open();
    });
}

/// The same, where the turn is asked for last: the run that has it waits for the one that asks.
#[test]
fn a_turn_closes_no_cycle_for_those_who_need_the_turn() {
    let _dog = Watchdog::new("a turn behind a result", LIMIT);
    let crossing = Crossing::new();
    crossing.go(|| {
        crossing.alone_in.open();
        crossing.watch.waiting("between", 1);
        crossing.between_in.open();
    });
}

/// Two apps of which each has its turn and wants the other's: that one can't be helped.
#[test]
fn two_turns_that_wait_for_each_other() {
    let _dog = Watchdog::new("two turns", LIMIT);
    let (sde, _) = watched();
    let both = Counter::new();
    for (name, other) in [("left", "right"), ("right", "left")] {
        let app = alone(name, move |sde, n| {
            if n == 0 {
                both.add();
                both.reach(2);
                return Ok(y(&sde.run(other, &x(1))?)?);
            }
            Ok(n)
        });
        sde.apps().register(name, app).unwrap();
    }
    let got = thread::scope(|scope| {
        let run = |name| {
            let sde = &sde;
            scope.spawn(move || sde.run(name, &x(0)).map(|map| y(&map).unwrap()))
        };
        [run("left"), run("right")].map(|run| run.join().unwrap())
    });
    let errors: Vec<_> = got.iter().filter_map(|got| got.as_ref().err()).collect();
    assert!(!errors.is_empty(), "{got:?}");
    for error in errors {
        let kind = error.root().kind();
        assert!(matches!(kind, ErrorKind::NotThreadSafe { .. }), "{error}");
    }
}

/// A rayon worker may be holding up the very run that has the turn, and can't compute beside it.
#[test]
fn a_rayon_worker_does_not_wait_for_a_turn_without_bound() {
    let _dog = Watchdog::new("a turn on a rayon worker", LIMIT);
    let patience = std::time::Duration::from_millis(1);
    let sde = Sde::builder().rayon_patience(patience).build().unwrap();
    let gate = Gate::new();
    let app = alone("alone", move |_, n| {
        gate.pass();
        Ok(n)
    });
    thread::scope(|scope| {
        let holder = scope.spawn(|| ask(&sde, &app, 1));
        gate.arrived(1);
        let error = one_worker().install(|| ask(&sde, &app, 2)).unwrap_err();
        assert_kind!(error, NotThreadSafe);
        says(&error, "alone [");
        gate.open();
        holder.join().unwrap().unwrap();
    });
    // The turn was given back.
    until("the turn is free", || ask(&sde, &app, 3).is_ok());
}

#[sde::app(name = "turns.nested", not_thread_safe)]
fn nested(sde: &Handle, depth: u64) -> Result<u64, sde::Error> {
    match depth {
        0 => Ok(0),
        _ => Ok(1 + *nested.call(sde, depth - 1)?),
    }
}

/// Claims came before turns: a run that waited for its turn with a claim in hand held
/// up the run that had the turn, by timing alone.
#[test]
fn runs_that_need_each_others_results_do_not_fail_by_timing() {
    for _ in 0..200 {
        let sde = Sde::builder().threads(3).build().unwrap();
        let list = [3_u64, 2, 1, 0].map(|depth| inputs! { depth: depth });
        let results = sde.par_map(&nested, &list);
        assert!(results.iter().all(Result::is_ok), "{results:?}");
    }
}
