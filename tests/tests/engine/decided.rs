//! Whose results stand where several calls compute one key, and that nobody has them before they are saved where each is to be.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use sde::archiver::{ArchiveError, Batch, MemoryArchiver};
use sde::{AppError, Event, Policy, SavePolicy, Sde};
use sde_tests::{Before, Counter, Gate, LIMIT, Lie, Lying, Watch, Watchdog, number, says, x, y};

use super::{Captured, one_worker};

/// An engine that saves each result before anybody gets it, to a store that does something first.
fn each_saved(
    store: &MemoryArchiver,
    first: impl Fn(&Batch) -> Result<(), ArchiveError> + Send + Sync + 'static,
) -> Sde {
    Sde::builder()
        .store(Before(store.clone(), first))
        .save(SavePolicy::EveryResult)
        .build()
        .expect("a store")
}

/// A hostile program was given 701 from memory and 700 from the store: of two that computed one key at once, the holder of the
/// claim had its own value saved before it asked who was first.
#[test]
fn only_what_stands_is_saved() {
    let _dog = Watchdog::new("a run beside another", LIMIT);
    let pool = one_worker();
    for first in [0, 1] {
        let store = MemoryArchiver::new();
        let builder = Sde::builder()
            .store(store.clone())
            .save(SavePolicy::OnRequest);
        let sde = builder
            .rayon_patience(Duration::ZERO)
            .build()
            .expect("a store");
        let (calls, gates) = (Counter::new(), [Gate::new(), Gate::new()]);
        let app = number("varies", move |_, _| {
            let call = calls.add();
            gates[call].pass();
            Ok(700 + call as u64)
        });
        let run = || y(&sde.run(&app, &x(1)).unwrap()).unwrap();
        let stands = 700 + first as u64;
        thread::scope(|scope| {
            let holder = scope.spawn(run);
            gates[0].arrived(1);
            let beside = scope.spawn(|| pool.install(run));
            gates[1].arrived(1);
            let mut both = [holder, beside];
            both.rotate_left(first);
            for (call, run) in [first, 1 - first].into_iter().zip(both) {
                gates[call].open();
                assert_eq!(run.join().unwrap(), stands);
            }
        });
        sde.finish().expect("a store");
        let later = Sde::builder()
            .store(store)
            .save(SavePolicy::OnRequest)
            .build()
            .expect("a store");
        assert_eq!(y(&later.run(&app, &x(1)).unwrap()).unwrap(), stands);
        assert_eq!(later.stats().total.computed, 0);
    }
}

/// What a store does while it writes a result that others wait for can't be a run.
#[test]
fn a_store_that_calls_the_engine_while_it_writes_gets_an_error() {
    let _dog = Watchdog::new("a store that calls the engine", LIMIT);
    let captured = Captured::default();
    let app = number("written", |_, n| Ok(n));
    let (asked, refused) = (app.clone(), Counter::new());
    let sde = each_saved(&MemoryArchiver::new(), move |_| {
        let sde = captured.get().expect("set below");
        let error = sde.run(&asked, &x(1)).expect_err("it is being written");
        says(&error, "a call of the engine by its store");
        refused.add();
        Ok(())
    });
    captured.set(sde.clone()).expect("set once");
    assert_eq!(y(&sde.run(&app, &x(1)).unwrap()).unwrap(), 1);
    refused.reach(1);
}

/// With each result saved, whoever waits for a run gets it when it is on the disk and not before; a worker of rayon's, which
/// waits for other runs only so long, too.
#[test]
fn nobody_is_given_what_is_not_saved() {
    let _dog = Watchdog::new("waiters of a save", LIMIT);
    let (gate, watch) = (Gate::new(), Watch::new());
    let sde = Sde::builder()
        .store(Before(MemoryArchiver::new(), move |_: &Batch| {
            gate.pass();
            Ok(())
        }))
        .save(SavePolicy::EveryResult)
        .observer(watch.clone())
        .rayon_patience(Duration::ZERO)
        .build()
        .expect("a store");
    let app = number("awaited", |_, n| Ok(n));
    let is_open = AtomicBool::new(false);
    let pool = one_worker();
    let get = || {
        y(&sde.run(&app, &x(1)).unwrap()).unwrap();
        assert!(is_open.load(Ordering::Acquire), "it is not saved yet");
    };
    thread::scope(|scope| {
        scope.spawn(get);
        gate.arrived(1);
        scope.spawn(get);
        scope.spawn(|| pool.install(get));
        watch.waiting("awaited", 2);
        is_open.store(true, Ordering::Release);
        gate.open();
    });
    assert_eq!(sde.stats().total.computed, 1);
}

/// What is decided may be invalidated while it is being written; who waits for it then computes it anew.
#[test]
fn what_is_being_saved_can_be_invalidated() {
    let _dog = Watchdog::new("a result that is invalidated while it is saved", LIMIT);
    let (gate, calls) = (Gate::new(), Counter::new());
    let sde = each_saved(&MemoryArchiver::new(), move |_| {
        gate.pass();
        Ok(())
    });
    let app = number("marked", move |_, _| Ok(calls.add() as u64));
    let key = sde.peek(&app, &x(1)).expect("a key").key();
    thread::scope(|scope| {
        let first = scope.spawn(|| y(&sde.run(&app, &x(1)).unwrap()).unwrap());
        gate.arrived(1);
        sde.invalidate(&key, "a test").expect("it is decided");
        gate.open();
        assert_eq!(first.join().unwrap(), 0);
    });
    assert_eq!(y(&sde.run(&app, &x(1)).unwrap()).unwrap(), 1);
}

/// A store that panicked took twenty results with it: the batch was not put back, the thread that saves in the background
/// was gone, and the next checkpoint and the end said that all was well.
#[test]
fn what_a_store_panicked_at_is_saved_by_the_next() {
    let _dog = Watchdog::new("a store that panicked", LIMIT);
    for policy in [
        SavePolicy::OnRequest,
        SavePolicy::EveryResult,
        SavePolicy::Interval(Duration::from_millis(1)),
    ] {
        let store = MemoryArchiver::new();
        let panics = Arc::new(AtomicBool::new(true));
        let (still, watch) = (panics.clone(), Watch::new());
        let sde = Sde::builder()
            .store(Before(store.clone(), move |_: &Batch| {
                assert!(!still.load(Ordering::Acquire), "a test");
                Ok(())
            }))
            .save(policy)
            .observer(watch.clone())
            .build()
            .expect("a store");
        let app = number("panicked at", |_, n| Ok(n));
        for n in 0..20 {
            sde.run(&app, &x(n)).expect("no error");
        }
        match policy {
            SavePolicy::OnRequest => {
                let error = sde.checkpoint().expect_err("it panicked");
                says(&error, "panicked: a test");
            }
            _ => watch.reach(
                1,
                |event| matches!(event, Event::Warning { message, .. } if message.contains("panicked")),
            ),
        }
        panics.store(false, Ordering::Release);
        if let SavePolicy::Interval(_) = policy {
            watch.reach(1, |event| matches!(event, Event::Saved { .. }));
        }
        sde.finish().expect("a store");
        let later = Sde::builder()
            .store(store.clone())
            .save(SavePolicy::OnRequest)
            .build()
            .unwrap();
        for n in 0..20 {
            let policy = Policy::OnlyIfRemembered;
            later
                .request(&app, &x(n))
                .policy(policy)
                .run()
                .expect("saved");
        }
    }
}

/// On a worker of rayon's a refresh computed beside a run that had begun before it, and was given what that made.
#[test]
fn a_refresh_gives_way_to_no_earlier_run() {
    let _dog = Watchdog::new("a refresh beside a run", LIMIT);
    let builder = Sde::builder().rayon_patience(Duration::ZERO);
    let sde = builder.build().expect("no store");
    let (calls, earlier, later) = (Counter::new(), Gate::new(), Gate::new());
    let gates = [earlier, later];
    let app = number("refreshed", move |_, _| {
        let call = calls.add();
        gates[call].pass();
        Ok(call as u64)
    });
    let pool = one_worker();
    let inputs = x(1);
    let refresh = || sde.request(&app, &inputs).policy(Policy::Refresh).run();
    thread::scope(|scope| {
        let first = scope.spawn(|| y(&sde.run(&app, &x(1)).unwrap()).unwrap());
        earlier.arrived(1);
        let second = scope.spawn(|| pool.install(|| y(&refresh().unwrap().results).unwrap()));
        later.arrived(1);
        earlier.open();
        assert_eq!(first.join().unwrap(), 0);
        later.open();
        assert_eq!(second.join().unwrap(), 1);
    });
    assert_eq!(y(&sde.run(&app, &x(1)).unwrap()).unwrap(), 1);
}

/// Found by attacking: a run beside a holder that failed gave the result that had been invalidated before both began, and lost
/// its own.
#[test]
fn what_was_invalidated_does_not_stand_after_a_failure() {
    let _dog = Watchdog::new("a run beside one that fails", LIMIT);
    let patience = Duration::ZERO;
    let sde = Sde::builder().rayon_patience(patience).build().unwrap();
    let (calls, gates) = (Counter::new(), [Gate::new(), Gate::new(), Gate::new()]);
    gates[0].open();
    let app = number("varies", move |_, _| {
        let call = calls.add();
        gates[call].pass();
        match call {
            1 => Err(AppError::message("no")),
            _ => Ok(call as u64),
        }
    });
    let run = || sde.run(&app, &x(1)).and_then(|got| y(&got));
    assert_eq!(run().unwrap(), 0);
    let key = sde.peek(&app, &x(1)).unwrap().key();
    sde.invalidate(&key, "a test").unwrap();
    let pool = one_worker();
    thread::scope(|scope| {
        let holder = scope.spawn(run);
        gates[1].arrived(1);
        let beside = scope.spawn(|| pool.install(run));
        gates[2].arrived(1);
        gates[1].open();
        assert!(holder.join().unwrap().is_err());
        gates[2].open();
        assert_eq!(beside.join().unwrap().unwrap(), 2);
    });
    assert_eq!(run().unwrap(), 2);
}

/// A store that panics after it has written: the caller hears of it, and nobody waits for ever.
#[test]
fn who_waits_for_what_a_store_panics_at_has_it() {
    let _dog = Watchdog::new("a store that panics after a write", LIMIT);
    let (store, watch, gate) = (Lying::new(), Watch::new(), Gate::new());
    let builder = Sde::builder()
        .store(store.clone())
        .save(SavePolicy::OnRequest)
        .observer(watch.clone());
    let sde = builder.save(SavePolicy::EveryResult).build().unwrap();
    let app = number("slow", move |_, n| {
        gate.pass();
        Ok(n)
    });
    thread::scope(|scope| {
        let runner = scope.spawn(|| sde.run(&app, &x(1)));
        gate.arrived(1);
        let waiter = scope.spawn(|| y(&sde.run(&app, &x(1)).unwrap()).unwrap());
        watch.waiting("slow", 1);
        store.tell(Lie::Panics);
        gate.open();
        assert!(runner.join().is_err());
        store.tell(Lie::None);
        assert_eq!(waiter.join().unwrap(), 1);
    });
}

/// A caller whose store panics gives its claim back; without that, the next caller waits for ever.
#[test]
fn who_asks_a_store_that_panics_holds_up_nobody() {
    let _dog = Watchdog::new("a store that panics when it is asked", LIMIT);
    let store = Lying::new();
    let builder = Sde::builder()
        .store(store.clone())
        .save(SavePolicy::OnRequest);
    let sde = builder.build().expect("a store");
    let (app, inputs) = (number("asked for", |_, n| Ok(n)), x(1));
    let refresh = || sde.request(&app, &inputs).policy(Policy::Refresh).run();
    store.tell(Lie::Panics);
    assert!(catch_unwind(AssertUnwindSafe(refresh)).is_err());
    store.tell(Lie::None);
    assert_eq!(y(&sde.run(&app, &inputs).unwrap()).unwrap(), 1);
}
