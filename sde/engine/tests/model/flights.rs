//! A flight under a model checker: it completes once, everybody who waits is told, and a failed runner
//! is replaced by exactly one of those who wait.
//!
//! A thread that is left waiting is found too: loom reports when no thread can go on.
//!
//! These tests can fail. Each change below was tried alone, and was found:
//!
//! | in `flight.rs` | change | found by |
//! |---|---|---|
//! | `complete` | no look at what stands | `of_two_publishers_one_stands` |
//! | | `notify_one` | `all_who_wait_get_the_outcome` |
//! | `fail` | no look at `taken_over` | `it_is_taken_over_once` |
//! | | it is never abandoned | `one_takes_over`, `two_wait_and_one_takes_over` |
//! | | no look at `waiting` | `it_does_not_stay_vacant_when_the_last_one_leaves` |
//! | | it is abandoned with waiters | `it_is_taken_over_once` |
//! | `wait` | the phase stays vacant on taking over | `one_takes_over` and 3 others |
//! | | no `complete_if_vacant` | `it_does_not_stay_vacant_when_the_last_one_leaves` |
//! | | what `complete_if_vacant` completes is not abandoned | the same |
//! | | no look at what is decided | `nobody_gives_up_what_is_decided` |
//! | `wake` | without the lock | `giving_up_is_noticed` |
//! | `decide` | the last one stands | `all_get_what_was_decided_first` |
//! | `fail` | no look at what is decided | `all_get_what_was_decided_first` |

use super::flight::{Flight, Patience, Waited};
use super::{beside, explore};
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread::JoinHandle;
use std::sync::Arc;

type Model = Flight<u32, &'static str>;

struct Forever;

impl Patience for Forever {
    fn is_over(&self) -> bool {
        false
    }
}

#[derive(Clone, Default)]
struct Until(Arc<AtomicBool>);

impl Patience for Until {
    fn is_over(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A thread that waits, and does the runner's work if it has to take over.
fn waiter(flight: &Arc<Model>, takes_over: fn(&Model)) -> JoinHandle<Waited<u32, &'static str>> {
    beside(flight, move |flight| {
        let waited = flight.wait(&Forever);
        if waited == Waited::TakeOver {
            takes_over(&flight);
        }
        waited
    })
}

fn completes(flight: &Model) {
    assert_eq!(flight.complete(Ok(2)), Ok(2));
}

fn fails_too(flight: &Model) {
    assert!(!flight.fail("again", true), "handed over twice");
}

#[test]
fn all_who_wait_get_the_outcome() {
    explore(3, || {
        let flight = Arc::new(Model::new());
        let waiters = [waiter(&flight, completes), waiter(&flight, completes)];
        assert_eq!(flight.complete(Ok(1)), Ok(1));
        for waiter in waiters {
            assert_eq!(waiter.join().unwrap(), Waited::Complete(Ok(1)));
        }
        assert_eq!(flight.waiting(), 0);
        assert!(flight.is_complete());
    });
}

#[test]
fn one_takes_over() {
    explore(3, || {
        let flight = Arc::new(Model::new());
        let waiter = waiter(&flight, completes);
        let handed_over = flight.fail("first", true);
        let expected = match handed_over {
            true => Waited::TakeOver,
            // Nobody waited, so it is nobody's error but the runner's.
            false => Waited::TooLate,
        };
        assert_eq!(waiter.join().unwrap(), expected);
        assert!(flight.is_complete());
    });
}

#[test]
fn two_wait_and_one_takes_over() {
    explore(2, || {
        let flight = Arc::new(Model::new());
        let waiters = [waiter(&flight, completes), waiter(&flight, completes)];
        let handed_over = flight.fail("first", true);
        let ends = waiters.map(|waiter| waiter.join().unwrap());
        let takers = ends.iter().filter(|end| **end == Waited::TakeOver).count();
        assert_eq!(takers, usize::from(handed_over));
        let others = match handed_over {
            true => Waited::Complete(Ok(2)),
            false => Waited::TooLate,
        };
        let mut rest = ends.into_iter().filter(|end| *end != Waited::TakeOver);
        assert!(rest.all(|end| end == others));
    });
}

#[test]
fn it_is_taken_over_once() {
    // In how many of the ways it can go the second waiter got the second error.
    let rest = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&rest);
    explore(2, move || {
        let flight = Arc::new(Model::new());
        let waiters = [waiter(&flight, fails_too), waiter(&flight, fails_too)];
        flight.fail("first", true);
        let ends = waiters.map(|waiter| waiter.join().unwrap());
        let takers = ends.iter().filter(|end| **end == Waited::TakeOver).count();
        assert!(takers <= 1, "{takers} took over");
        assert!(flight.is_complete());
        let got = ends.contains(&Waited::Complete(Err("again")));
        counted.fetch_add(usize::from(got), std::sync::atomic::Ordering::Relaxed);
    });
    assert!(rest.load(std::sync::atomic::Ordering::Relaxed) > 0);
}

#[test]
fn a_failure_for_good_reaches_all() {
    explore(3, || {
        let flight = Arc::new(Model::new());
        let waiters = [waiter(&flight, completes), waiter(&flight, completes)];
        assert!(!flight.fail("for good", false));
        for waiter in waiters {
            assert_eq!(waiter.join().unwrap(), Waited::Complete(Err("for good")));
        }
    });
}

#[test]
fn of_two_publishers_one_stands() {
    explore(3, || {
        let flight = Arc::new(Model::new());
        let waiter = waiter(&flight, completes);
        let other = beside(&flight, |flight| flight.complete(Ok(1)));
        let mine = flight.complete(Ok(3));
        let theirs = other.join().unwrap();
        assert_eq!(mine, theirs);
        assert_eq!(waiter.join().unwrap(), Waited::Complete(mine));
    });
}

/// A waiter gives up while nobody runs: the flight must not wait for it.
#[test]
fn it_does_not_stay_vacant_when_the_last_one_leaves() {
    explore(3, || {
        let (flight, over) = (Arc::new(Model::new()), Until::default());
        let waiter = beside(&(flight.clone(), over.clone()), |(flight, over)| {
            if flight.wait(&over) == Waited::TakeOver {
                completes(&flight);
            }
        });
        let runner = beside(&flight, |flight| flight.fail("first", true));
        over.0.store(true, Ordering::Release);
        flight.wake();
        waiter.join().unwrap();
        runner.join().unwrap();
        assert!(
            flight.is_complete(),
            "whoever comes now would wait for ever"
        );
        let late = flight.wait(&Forever);
        assert!(
            [Waited::TooLate, Waited::Complete(Ok(2))].contains(&late),
            "{late:?}"
        );
    });
}

/// Giving up while the runner goes on and on.
#[test]
fn giving_up_is_noticed() {
    explore(3, || {
        let (flight, over) = (Arc::new(Model::new()), Until::default());
        let waiter = beside(&(flight.clone(), over.clone()), |(flight, over)| {
            flight.wait(&over)
        });
        over.0.store(true, Ordering::Release);
        flight.wake();
        assert_eq!(waiter.join().unwrap(), Waited::Stopped);
        assert!(!flight.is_complete());
    });
}

/// Computes the flight as the engine does: decides, and then completes or waits for who was first.
fn settles(flight: &Model, value: u32) -> u32 {
    match flight.decide(value) {
        Ok(()) => {
            assert_eq!(flight.complete(Ok(value)), Ok(value));
            value
        }
        Err(winner) => {
            assert_eq!(flight.wait(&Forever), Waited::Complete(Ok(winner)));
            winner
        }
    }
}

/// One computes beside the runner, which fails; a third waits and may take over.
#[test]
fn all_get_what_was_decided_first() {
    explore(2, || {
        let flight = Arc::new(Model::new());
        let waiter = beside(&flight, |flight| match flight.wait(&Forever) {
            Waited::TakeOver => Some(settles(&flight, 2)),
            Waited::Complete(Ok(value)) => Some(value),
            // The runner failed before anybody waited, or decided.
            Waited::TooLate => None,
            other => panic!("{other:?}"),
        });
        let runner = beside(&flight, |flight| flight.fail("for now", true));
        let decided = flight.decide(1);
        let goes_on = runner.join().unwrap();
        match decided {
            // Else it is the engine that takes on another flight.
            Ok(()) if goes_on || !flight.is_complete() => {
                assert_eq!(flight.complete(Ok(1)), Ok(1));
                assert_eq!(waiter.join().unwrap(), Some(1));
            }
            Ok(()) => assert_eq!(waiter.join().unwrap(), None),
            Err(winner) => assert_eq!(waiter.join().unwrap(), Some(winner)),
        }
    });
}

/// What is decided may be on its way to a disk; nobody is to compute it once more meanwhile.
#[test]
fn nobody_gives_up_what_is_decided() {
    explore(3, || {
        let (flight, over) = (Arc::new(Model::new()), Until::default());
        let waiter = beside(&(flight.clone(), over.clone()), |(flight, over)| {
            flight.wait(&over)
        });
        assert_eq!(flight.decide(1), Ok(()));
        over.0.store(true, Ordering::Release);
        flight.wake();
        assert_eq!(flight.complete(Ok(1)), Ok(1));
        assert_eq!(waiter.join().unwrap(), Waited::Complete(Ok(1)));
    });
}
