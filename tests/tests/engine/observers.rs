//! Observers that use the engine they observe.

use std::sync::mpsc::channel;
use std::sync::{Barrier, Mutex};

use sde::archiver::MemoryArchiver;
use sde::{Event, Sde, Source};
use sde_tests::{LIMIT, Made, Watchdog, number, x, y};

use super::{Captured, cycle};

fn double() -> Made {
    number("double", |_, n| Ok(2 * n))
}

/// An engine whose observer asks for the run that an event is about, each time that it is told one that is `such`.
fn nosy(app: &Made, such: fn(&Event) -> bool) -> Sde {
    let captured = Captured::default();
    let asked = app.clone();
    let observer = move |event: &Event| {
        if such(event) {
            let sde = captured.get().expect("set below");
            let error = sde.run(&asked, &x(1)).expect_err("it is going on");
            assert_eq!(cycle(&error).expect("a cycle"), ["asked", "asked"]);
        }
    };
    let sde = Sde::builder().observer(observer).build().expect("no store");
    captured.set(sde.clone()).expect("set once");
    sde
}

/// Found by a hostile program: `Started` and `Stale` were told with the claim won and nobody knowing that this thread has it, so that
/// an observer that asked for that run waited for itself.
#[test]
fn an_observer_may_ask_for_what_it_is_told_of() {
    let _dog = Watchdog::new("an observer that asks", LIMIT);
    let app = number("asked", |_, n| Ok(n));
    let sde = nosy(&app, |event| matches!(event, Event::Started { .. }));
    assert_eq!(
        y(&sde.run(&app, &x(1)).expect("no error")).expect("a result"),
        1
    );

    let sde = nosy(&app, |event| matches!(event, Event::Stale { .. }));
    let made = sde.request(&app, &x(1)).run().expect("no error");
    sde.invalidate(&made.key, "a test").expect("an entry");
    assert_eq!(
        y(&sde.run(&app, &x(1)).expect("no error")).expect("a result"),
        1
    );
}

/// Found by a hostile program: the progress of a save was told with a lock held that saving takes.
#[test]
fn an_observer_of_a_save_may_save() {
    let _dog = Watchdog::new("an observer that saves", LIMIT);
    let captured = Captured::default();
    let sde = Sde::builder()
        .store(MemoryArchiver::new())
        .save(sde::SavePolicy::OnRequest)
        .observer(move |event: &Event| {
            if let (Event::Progress { .. }, Some(sde)) = (event, captured.get()) {
                sde.checkpoint().expect("a store");
            }
        })
        .build()
        .expect("a store");
    captured.set(sde.clone()).expect("set once");
    let app = number("kept", |_, n| Ok(n));
    for n in 0..200 {
        sde.run(&app, &x(n)).expect("no error");
    }
    sde.checkpoint().expect("a store");
}

/// An observer is told with no lock held: it may use the engine, and save.
#[test]
fn observers_may_use_the_engine() {
    let _dog = Watchdog::new("an observer that saves", LIMIT);
    let captured = Captured::default();
    let store = MemoryArchiver::new();
    let observer = move |event: &Event| {
        let Some(sde) = captured.get() else { return };
        drop(sde.stats());
        if matches!(event, Event::Finished { .. } | Event::Saved { .. }) {
            sde.checkpoint().expect("saved");
            sde.peek(&double(), &x(9)).expect("a key");
        }
    };
    let builder = Sde::builder()
        .store(store.clone())
        .save(sde::SavePolicy::OnRequest)
        .observer(observer);
    let sde = builder.build().expect("a store");
    captured.set(sde.clone()).expect("set once");
    assert_eq!(
        y(&sde.run(&double(), &x(1)).expect("no error")).expect("a result"),
        2
    );
    sde.archive().expect("saved");
    sde.clear_app("double").unwrap();
    assert!(sde.run(&double(), &x(1)).is_ok());
}

/// Found by reading: the progress of a list was told in the turn of its results. All threads waited for a slow observer.
#[test]
fn an_observer_that_is_slow_holds_up_no_other_item() {
    let _dog = Watchdog::new("an observer that waits for another item", LIMIT);
    let (say, begun) = channel();
    let begun = Mutex::new(begun);
    let observer = move |event: &Event| {
        if matches!(event, Event::Progress { done: 1, .. }) {
            begun.lock().unwrap().recv().expect("the third item");
        }
    };
    let builder = Sde::builder().threads(2).observer(observer);
    let sde = builder.build().expect("no store");
    let both = Barrier::new(2);
    sde.par_each(&[1, 2, 3], |_, item| match item {
        3 => say.send(()).expect("it is waited for"),
        _ => drop(both.wait()),
    });
}

/// An observer that panicked between claiming and computing left the key claimed for ever: who asked next waited
/// without end.
#[test]
fn an_observer_that_panics_holds_up_nobody() {
    let observer = |event: &Event| {
        assert!(!matches!(
            event,
            Event::Stale { .. } | Event::Started { .. }
        ));
    };
    let sde = Sde::builder().observer(observer).build().expect("no store");
    let app = number("asked", |_, n| Ok(n));
    let made = sde.request(&app, &x(1)).run().expect("no error");
    sde.invalidate(&made.key, "a test").expect("an entry");
    let again = sde.request(&app, &x(1)).run().expect("no error");
    assert_eq!(again.source, Source::Computed);
}
