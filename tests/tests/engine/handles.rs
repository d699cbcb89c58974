//! What a handle may be used for, and when it has outlived that.

use std::sync::{Arc, Mutex};
use std::thread;

use sde::archiver::{MemoryArchiver, Selection};
use sde::{Error, ErrorKind, Event, Handle, Instance, Sde};
use sde_tests::{Gate, LIMIT, Made, Watchdog, assert_kind, number, says, until, x, y};

use super::watched;

type Leaked = Arc<Mutex<Option<Handle>>>;

fn double() -> Made {
    number("double", |_, n| Ok(2 * n))
}

/// An app that keeps its handle.
fn leaks(leaked: &Leaked) -> Made {
    let leaked = Arc::clone(leaked);
    number("leaks", move |sde, n| {
        *leaked.lock().expect("no panic") = Some(sde.clone());
        Ok(n)
    })
}

fn leaked_handle(sde: &Sde) -> Handle {
    let leaked = Leaked::default();
    sde.run(&leaks(&leaked), &x(1)).expect("no error");
    let handle = leaked.lock().expect("no panic").take();
    handle.expect("it leaked")
}

/// The handle kept the engine alive, and nothing was archived.
#[test]
fn dropping_the_last_sde_archives_whoever_has_a_handle() {
    let store = MemoryArchiver::new();
    let sde = Sde::builder()
        .store(store.clone())
        .save(sde::SavePolicy::OnRequest)
        .build()
        .unwrap();
    let clone = sde.clone();
    let handle = leaked_handle(&sde);
    drop(sde);
    assert_eq!(store.saved(Selection::Archive), [], "there is another");
    drop(clone);
    assert_eq!(store.saved(Selection::Archive).len(), 1);
    let batches = store.batches();
    drop(handle);
    assert_eq!(store.batches(), batches, "nothing was new");
}

/// A run that ends after the last `Sde` was dropped.
#[test]
fn what_ends_later_is_archived_too() {
    let _dog = Watchdog::new("a run without an Sde", LIMIT);
    let store = MemoryArchiver::new();
    let sde = Sde::builder()
        .store(store.clone())
        .save(sde::SavePolicy::OnRequest)
        .build()
        .unwrap();
    let gate = Gate::new();
    let app = number("held", move |_, n| {
        gate.pass();
        Ok(n)
    });
    let handle: Handle = Handle::clone(&sde);
    let runner = thread::spawn(move || y(&handle.run(&app, &x(1)).unwrap()).unwrap());
    gate.arrived(1);
    drop(sde);
    assert_eq!(store.saved(Selection::Archive), []);
    gate.open();
    assert_eq!(runner.join().unwrap(), 1);
    until("it is archived", || {
        store.saved(Selection::Archive).len() == 1
    });
}

#[test]
fn a_handle_of_a_run_that_has_ended() {
    let (sde, watch) = watched();
    let handle = leaked_handle(&sde);
    let stale = |result: Result<(), Error>| {
        let error = result.expect_err("its run has ended");
        let kind = error.kind();
        assert!(matches!(kind, ErrorKind::StaleHandle { .. }), "{error}");
        says(&error, "the handle of leaks [");
    };
    stale(handle.run(&double(), &x(1)).map(drop));
    stale(
        handle
            .request(&double(), &x(1))
            .names(&["y"])
            .run()
            .map(drop),
    );
    stale(handle.peek(&double(), &x(1)).map(drop));
    stale(handle.prepare(&Instance::new(double())).map(drop));
    stale(handle.parameter::<u64>("p").map(drop));
    stale(handle.sub_app("s").map(drop));
    stale(handle.scratch::<u64>().save(1));
    stale(handle.scratch::<u64>().load().map(drop));
    stale(handle.cost(&double(), &x(1)).map(drop));
    // What it calls gets the same handle.
    let (a, b) = handle.join(
        |sde| sde.run(&double(), &x(1)),
        |sde| sde.run(&double(), &x(2)),
    );
    stale(a.map(drop));
    stale(b.map(drop));
    for result in handle.par_each(&[1, 2], |sde, n| sde.run(&double(), &x(*n))) {
        stale(result.map(drop));
    }
    for result in handle.par_map(&double(), &[x(1), x(2)]) {
        stale(result.map(drop));
    }
    assert_eq!(sde.stats().total.computed, 1);
    watch.clear();
    handle.progress("too late", 1, 2);
    let got = watch.count(|event| matches!(event, Event::Progress { .. }));
    assert_eq!(got, 0);
    sde.progress("in time", 1, 2);
    let got = watch.count(|event| matches!(event, Event::Progress { .. }));
    assert_eq!(got, 1);
}

#[test]
fn what_only_a_running_app_has() {
    let sde = Sde::new();
    let outside = |result: Result<(), Error>, what: &str| {
        let error = result.expect_err("no app runs");
        assert_kind!(error, Refused);
        says(&error, what);
    };
    outside(sde.parameter::<u64>("p").map(drop), "parameter");
    outside(sde.sub_app("s").map(drop), "sub-app");
    outside(sde.scratch::<u64>().load().map(drop), "scratch");
    assert!(!sde.is_cancelled());
}
