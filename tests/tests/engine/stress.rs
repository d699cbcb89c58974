//! Everything at once: whatever happens beside it, a value is always the one that belongs to the
//! input, and every call ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use sde::archiver::MemoryArchiver;
use sde::{AppError, CancelToken, ErrorKind, Policy, Sde, Tag};
use sde_tests::{LIMIT, Made, Watchdog, number, x, y};

const THREADS: u64 = 16;
const KEYS: u64 = 6;

/// A small random number generator, the same on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }
}

fn inner_of(n: u64) -> u64 {
    n * n + 1
}

fn outer_of(n: u64) -> u64 {
    inner_of(n) + inner_of((n + 1) % KEYS)
}

/// Apps that fail and panic now and then.
fn apps() -> [Made; 2] {
    let calls = Arc::new(AtomicU64::new(0));
    let inner = number("inner", move |_, n| {
        match calls.fetch_add(1, Ordering::Relaxed) % 97 {
            13 => Err(AppError::message("now and then")),
            31 => Err(AppError::message("now and then").transient()),
            71 => panic!("now and then"),
            _ => Ok(inner_of(n)),
        }
    });
    let outer = {
        let inner = inner.clone();
        number("outer", move |sde, n| {
            let of = |sde: &sde::Handle, n| y(&sde.run(&inner, &x(n))?);
            let (a, b) = match n % 2 {
                0 => sde.join(|sde| of(sde, n), |sde| of(sde, (n + 1) % KEYS)),
                _ => (of(sde, n), of(sde, (n + 1) % KEYS)),
            };
            Ok(a? + b?)
        })
    };
    [inner, outer]
}

/// Whether a call failed as it may.
fn is_expected(error: &sde::Error) -> bool {
    match error.root().kind() {
        ErrorKind::App { cause, .. } => cause.to_string().contains("now and then"),
        ErrorKind::Panicked { message, .. } => message == "now and then",
        ErrorKind::NotRemembered { .. } | ErrorKind::Cancelled { .. } => true,
        _ => false,
    }
}

fn one_call(sde: &Sde, apps: &[Made; 2], dice: &mut Dice) {
    let n = dice.roll(KEYS);
    let which = dice.roll(2) as usize;
    let expected = [inner_of(n), outer_of(n)][which];
    let token = CancelToken::new();
    let policy = match dice.roll(20) {
        0 => Policy::Refresh,
        1 => Policy::Bypass,
        2 => Policy::OnlyIfRemembered,
        _ => Policy::Use,
    };
    if dice.roll(20) == 0 {
        token.cancel();
    }
    let inputs = x(n);
    let sde = sde.with_cancel(&token);
    let request = sde.request(&apps[which], &inputs).policy(policy);
    let run = std::panic::AssertUnwindSafe(|| request.run());
    match std::panic::catch_unwind(run) {
        Ok(Ok(outcome)) => assert_eq!(y(&outcome.results).expect("a result"), expected),
        Ok(Err(error)) => assert!(is_expected(&error), "{error}"),
        Err(panic) => assert_eq!(panic.downcast_ref::<&str>(), Some(&"now and then")),
    }
}

fn something_else(sde: &Sde, apps: &[Made; 2], store: &MemoryArchiver, dice: &mut Dice) {
    let which = dice.roll(2) as usize;
    let name = ["inner", "outer"][which];
    match dice.roll(8) {
        0 => sde.clear_app(name).unwrap(),
        1 => sde.clear_tagged(name, [Tag::Expendable]).unwrap(),
        2 => {
            let peek = sde.peek(&apps[which], &x(dice.roll(KEYS))).expect("a key");
            // There may be no entry any more, or none yet.
            let _ = sde.invalidate(&peek.key(), "a test");
            if dice.roll(2) == 0 {
                let _ = sde.undo_invalidate(&peek.key());
            }
        }
        3 => sde.checkpoint().expect("saved"),
        4 => sde.archive().expect("saved"),
        5 => drop((sde.stats(), sde_tests::records(sde))),
        6 if dice.roll(10) == 0 => sde.load(store.clone()).expect("a store"),
        _ => drop(sde.peek(&apps[which], &x(dice.roll(KEYS)))),
    }
}

fn stress(rounds: u64, seed: u64) {
    let store = MemoryArchiver::new();
    let builder = Sde::builder()
        .store(store.clone())
        .save(sde::SavePolicy::OnRequest)
        .threads(4);
    let sde = builder.build().expect("a store");
    let apps = apps();
    // The cache of an app that has not run yet is one of no such app.
    sde.run(&apps[1], &x(0)).expect("the first calls succeed");
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (sde, apps, store) = (&sde, &apps, &store);
            scope.spawn(move || {
                let mut dice = Dice(seed + 0x9e37_79b9 * (number + 1));
                for _ in 0..rounds {
                    match dice.roll(5) {
                        0 => something_else(sde, apps, store, &mut dice),
                        _ => one_call(sde, apps, &mut dice),
                    }
                }
            });
        }
    });
    // Afterwards everything still works.
    for n in 0..KEYS {
        let value = (0..200).find_map(|_| {
            // What failed before is given unless it is refreshed.
            let again = |app: &Made, n| {
                let inputs = x(n);
                let request = sde.request(app, &inputs).policy(Policy::Refresh);
                request.run().ok()
            };
            let run = || {
                again(&apps[0], n)?;
                again(&apps[0], (n + 1) % KEYS)?;
                Some(again(&apps[1], n)?.results)
            };
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(run))
                .ok()
                .flatten()
        });
        let got = y(&value.expect("a result at last")).expect("a result");
        assert_eq!(got, outer_of(n));
    }
}

#[test]
fn every_call_ends_with_the_right_value() {
    let _dog = Watchdog::new("sixteen threads", LIMIT);
    stress(300, 1);
}

#[test]
#[ignore = "long: many more rounds and seeds"]
fn every_call_ends_with_the_right_value_for_long() {
    for seed in 0..50 {
        let _dog = Watchdog::new("sixteen threads", 5 * LIMIT);
        stress(3000, 1000 * seed);
    }
}
