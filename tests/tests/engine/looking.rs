//! What can be known without running: peeks with their reasons, events, counts; and what a handle
//! may be used for.

use std::sync::{Arc, Mutex};
use std::thread;

use sde::{
    AppError, Error, ErrorKind, Event, Handle, MemoryArchiver, Parameter, Peek, Policy, ResultMap,
    Sde, Source, Tag, inputs,
};
use sde_tests::{Gate, LIMIT, Made, Watch, Watchdog, made, number, number_info, x, y};

use super::watched;

fn double() -> Made {
    number("double", |_, n| Ok(2 * n))
}

fn why(sde: &Sde, app: &Made) -> String {
    match sde.peek(app, &x(1)).expect("a key") {
        Peek::Miss { why, .. } => why,
        other => panic!("{other:?} is no miss"),
    }
}

#[test]
fn a_peek_says_why() {
    let store = MemoryArchiver::new();
    let sde = Sde::builder()
        .store(store.clone())
        .build()
        .expect("a store");
    let app = double();
    assert_eq!(why(&sde, &app), "it was not run before");
    let outcome = sde.request(&app, &x(1)).run().expect("no error");
    let Peek::Hit { key, made_by } = sde.peek(&app, &x(1)).expect("a key") else {
        panic!("no hit");
    };
    assert_eq!((key, made_by), (outcome.key, outcome.made_by));
    sde.finish().expect("saved");

    let later = Sde::builder().store(store).build().expect("a store");
    let Peek::Load { key, made_by } = later.peek(&app, &x(1)).expect("a key") else {
        panic!("no load");
    };
    assert_eq!((key, made_by), (outcome.key, outcome.made_by));
    assert_eq!(later.stats().total.loads, 0, "it was looked at only");

    sde.invalidate(&key, "bad memory").expect("an entry");
    let reason = why(&sde, &app);
    assert!(
        reason.contains("it was invalidated: bad memory"),
        "{reason}"
    );

    let sde = Sde::new();
    sde.run(&app, &x(1)).expect("no error");
    sde.clean_cache("double", []).unwrap();
    assert_eq!(why(&sde, &app), "result \"y\" is gone");
    let random = double().described(sde::AppInfo::nondeterministic);
    assert!(why(&sde, &random).contains("non-deterministic"));
    let lacking = double().lacking("a licence");
    assert!(why(&sde, &lacking).contains("not ready: a licence"));
}

#[test]
fn a_peek_sees_who_is_running_and_what_failed_for_good() {
    let _dog = Watchdog::new("a peek at a run", LIMIT);
    let (sde, _) = watched();
    let gate = Gate::new();
    let app = {
        let gate = gate.clone();
        number("fails", move |_, _| {
            gate.pass();
            Err(AppError::message("no such basis").permanent())
        })
    };
    thread::scope(|scope| {
        let runner = scope.spawn(|| sde.run(&app, &x(1)).expect_err("it fails"));
        gate.arrived(1);
        assert!(matches!(sde.peek(&app, &x(1)), Ok(Peek::Wait { .. })));
        gate.open();
        runner.join().expect("no panic");
    });
    let reason = why(&sde, &app);
    assert!(reason.contains("no such basis"), "{reason}");
}

#[test]
fn only_what_is_remembered() {
    let store = MemoryArchiver::new();
    let sde = Sde::builder()
        .store(store.clone())
        .build()
        .expect("a store");
    let app = double();
    let ask = |sde: &Sde| {
        sde.request(&app, &x(1))
            .policy(Policy::OnlyIfRemembered)
            .run()
    };
    let refusal = |result: Result<sde::Outcome, Error>| {
        let error = result.expect_err("nothing there");
        assert!(
            matches!(error.kind(), ErrorKind::NotRemembered { .. }),
            "{error}"
        );
        error.to_string()
    };
    assert!(refusal(ask(&sde)).contains("never computed"));
    sde.run(&app, &x(1)).expect("no error");
    assert!(ask(&sde).expect("a hit").source.is_hit());
    sde.finish().expect("saved");
    sde.clean_cache("double", []).unwrap();
    // What is gone from memory is in the store.
    assert_eq!(ask(&sde).expect("a load").source, Source::Loaded);
    let sde = Sde::new();
    sde.run(&app, &x(1)).expect("no error");
    sde.clean_cache("double", [Tag::Expendable]).unwrap();
    assert!(ask(&sde).is_ok(), "nothing was cleaned");
    sde.clean_cache("double", []).unwrap();
    assert!(refusal(ask(&sde)).contains("result \"y\" is gone"));
    assert_eq!(sde.stats().total.computed, 1);
}

#[test]
fn the_share_of_each_level() {
    let store = MemoryArchiver::new();
    let watch = Watch::new();
    let engine = || {
        let engine = Sde::builder().store(store.clone()).observer(watch.clone());
        engine.build().expect("a store")
    };
    let (sde, app) = (engine(), double());
    for n in [1, 1, 2, 1, 1, 2] {
        sde.run(&app, &x(n)).expect("no error");
    }
    use Source::{Computed, Loaded, Map, Recent};
    let expected = [Computed, Map, Computed, Recent, Recent, Map];
    assert_eq!(watch.sources("double"), expected);
    let stats = sde.stats();
    let double = stats.apps["double"];
    assert_eq!(
        (double.recent_hits, double.map_hits, double.computed),
        (2, 2, 2)
    );
    assert_eq!(
        (double.hits(), double.loads, double.waits, double.failures),
        (4, 0, 0, 0)
    );
    assert_eq!(stats.total, double);
    sde.finish().expect("saved");
    watch.clear();
    let later = engine();
    // What is loaded is read when asked for, and then found as fast as what was computed.
    for _ in 0..3 {
        let results = later.run(&app, &x(1)).expect("no error");
        assert_eq!(y(&results).unwrap(), 2);
    }
    assert_eq!(watch.sources("double"), [Loaded, Map, Recent]);
    assert_eq!(later.stats().total.loads, 1);
}

#[test]
fn a_hit_tells_who_computed_and_what_that_saved() {
    let (sde, watch) = watched();
    // An app that takes a time that can be measured.
    let app = number("slow", |_, n| {
        let start = std::time::Instant::now();
        while start.elapsed() < std::time::Duration::from_micros(200) {
            std::hint::spin_loop();
        }
        Ok(n)
    });
    let computed = sde.request(&app, &x(1)).run().expect("no error");
    let spent = sde.stats().total.time_spent;
    assert!(spent.as_micros() >= 200);
    let mut saved = sde.stats().total.time_saved;
    assert!(saved.is_zero());
    for _ in 0..5 {
        let hit = sde.request(&app, &x(1)).run().expect("no error");
        assert_eq!(hit.made_by, computed.made_by);
        let now = sde.stats().total.time_saved;
        assert_eq!(
            now - saved,
            spent,
            "each hit saves what the computation took"
        );
        saved = now;
    }
    assert_eq!(sde.stats().total.time_spent, spent);
    let made_by = |event: &Event| matches!(event, Event::Finished { made_by, .. } if *made_by == computed.made_by);
    assert_eq!(watch.count(made_by), 6);
    let elsewhere = Sde::new().request(&app, &x(1)).run().expect("no error");
    assert_ne!(
        elsewhere.made_by, computed.made_by,
        "no two engines share a run"
    );
}

#[test]
fn a_handle_used_after_its_run() {
    let sde = Sde::new();
    let leaked: Arc<Mutex<Option<Handle>>> = Arc::default();
    let app = {
        let leaked = Arc::clone(&leaked);
        made(
            number_info("leaks", "1").parameter(Parameter::new("p", 1_u64)),
            move |sde, _| {
                *leaked.lock().expect("no panic") = Some(sde.clone());
                Ok(ResultMap::new().with("y", *sde.parameter::<u64>("p")?))
            },
        )
    };
    sde.run(&app, &inputs! {}).expect("no error");
    let handle = leaked.lock().expect("no panic").take().expect("it leaked");
    let stale = |result: Result<(), Error>| {
        let error = result.expect_err("its run has ended");
        assert!(
            matches!(error.kind(), ErrorKind::StaleHandle { .. }),
            "{error}"
        );
        assert!(
            error.to_string().contains("the handle of leaks ["),
            "{error}"
        );
    };
    stale(handle.run(&double(), &x(1)).map(drop));
    stale(handle.run_for(&double(), &x(1), &["y"]).map(drop));
    stale(handle.peek(&double(), &x(1)).map(drop));
    stale(handle.prepare(&sde::Instance::new(double())).map(drop));
    stale(handle.parameter::<u64>("p").map(drop));
    stale(handle.sub_app("s").map(drop));
    stale(handle.scratch::<u64>().save(1));
    stale(handle.scratch::<u64>().load().map(drop));
    stale(handle.par_map(&double(), &[x(1)]).remove(0).map(drop));
    assert_eq!(sde.stats().total.computed, 1);
}

#[test]
fn what_only_a_running_app_has() {
    let sde = Sde::new();
    let outside = |result: Result<(), Error>, what: &str| {
        let error = result.expect_err("no app runs");
        assert!(
            matches!(error.kind(), ErrorKind::OutsideRun { .. }),
            "{error}"
        );
        assert!(error.to_string().contains(what), "{error}");
    };
    outside(sde.parameter::<u64>("p").map(drop), "parameter");
    outside(sde.sub_app("s").map(drop), "sub-app");
    outside(sde.scratch::<u64>().load().map(drop), "scratch");
    assert!(!sde.is_cancelled());
}

/// An observer is told with no lock held: it may use the engine, and save.
#[test]
fn observers_may_use_the_engine() {
    let _dog = Watchdog::new("an observer that saves", LIMIT);
    let captured: super::Captured = Arc::default();
    let seen = Arc::clone(&captured);
    let store = MemoryArchiver::new();
    let observer = move |event: &Event| {
        let Some(sde) = seen.get() else { return };
        drop(sde.stats());
        if matches!(event, Event::Finished { .. } | Event::Saved { .. }) {
            sde.checkpoint().expect("saved");
            sde.peek(&double(), &x(9)).expect("a key");
        }
    };
    let sde = Sde::builder()
        .store(store.clone())
        .observer(observer)
        .build()
        .expect("a store");
    captured.set(sde.clone()).expect("set once");
    assert_eq!(
        y(&sde.run(&double(), &x(1)).expect("no error")).expect("a result"),
        2
    );
    sde.archive().expect("saved");
    sde.clean_cache("double", []).unwrap();
    assert!(sde.run(&double(), &x(1)).is_ok());
}

/// A value whose destructor uses the cache that it is dropped from.
#[test]
fn destructors_may_use_the_engine() {
    struct Curious(super::Captured);
    impl Drop for Curious {
        fn drop(&mut self) {
            if let Some(sde) = self.0.get() {
                for i in 0..200 {
                    sde.run(&curious(&self.0), &x(i)).expect("no error");
                }
            }
        }
    }
    fn curious(captured: &super::Captured) -> Made {
        let info = sde::AppInfo::new("curious", "1")
            .result(sde::ResultSpec::unsaved::<Option<Curious>>("y"));
        let captured = Arc::clone(captured);
        // One of them only, or there would be no end of it.
        made(info, move |_, inputs| {
            let first = *inputs.get::<u64>("x")? == 1000;
            Ok(ResultMap::new().with("y", first.then(|| Curious(Arc::clone(&captured)))))
        })
    }
    let _dog = Watchdog::new("a destructor that uses the cache", LIMIT);
    let captured: super::Captured = Arc::default();
    let sde = Sde::new();
    captured.set(sde.clone()).expect("set once");
    let app = curious(&captured);
    for policy in [Policy::Use, Policy::Refresh] {
        sde.request(&app, &x(1000))
            .policy(policy)
            .run()
            .expect("no error");
    }
    sde.clean_cache("curious", []).unwrap();
    sde.run(&app, &x(1000)).expect("no error");
    sde.load(MemoryArchiver::new()).expect("a store");
    assert!(sde.stats().total.computed > 200);
}
