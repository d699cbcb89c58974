//! What can be known without running: peeks with their reasons, events, counts.

use std::thread;
use std::time::Duration;

use sde::archiver::MemoryArchiver;
use sde::{
    App, AppError, AppInfo, Cost, Error, Event, Fingerprint, Handle, Inputs, Peek, Policy,
    ResultMap, Sde, Source, Tag,
};
use sde_tests::{Gate, LIMIT, Made, Watch, Watchdog, assert_kind, number, number_info, says, x};

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
    let builder = Sde::builder()
        .store(store.clone())
        .save(sde::SavePolicy::OnRequest);
    let sde = builder.build().expect("a store");
    let app = double();
    assert_eq!(why(&sde, &app), "it was not run before");
    let outcome = sde.request(&app, &x(1)).run().expect("no error");
    let Peek::Hit { key, made_by, .. } = sde.peek(&app, &x(1)).expect("a key") else {
        panic!("no hit");
    };
    assert_eq!((key, made_by), (outcome.key, outcome.made_by));
    sde.finish().expect("saved");

    let later = Sde::builder()
        .store(store)
        .save(sde::SavePolicy::OnRequest)
        .build()
        .expect("a store");
    let Peek::Load { key, made_by, .. } = later.peek(&app, &x(1)).expect("a key") else {
        panic!("no load");
    };
    assert_eq!((key, made_by), (outcome.key, outcome.made_by));
    assert_eq!(later.stats().total.loads, 0, "it was looked at only");

    sde.invalidate(&key, "bad memory").expect("an entry");
    let reason = why(&sde, &app);
    says(&reason, "it was invalidated: bad memory");

    let sde = Sde::new();
    sde.run(&app, &x(1)).expect("no error");
    sde.clear_app("double").unwrap();
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
    let app = number("fails", move |_, _| {
        gate.pass();
        Err(AppError::message("no such basis").permanent())
    });
    thread::scope(|scope| {
        let runner = scope.spawn(|| sde.run(&app, &x(1)).expect_err("it fails"));
        gate.arrived(1);
        assert!(matches!(sde.peek(&app, &x(1)), Ok(Peek::Wait { .. })));
        gate.open();
        runner.join().expect("no panic");
    });
    let Peek::Failed { why, .. } = sde.peek(&app, &x(1)).expect("a key") else {
        panic!("it is not run again")
    };
    says(&why, "no such basis");
}

#[test]
fn only_what_is_remembered() {
    let store = MemoryArchiver::new();
    let builder = Sde::builder()
        .store(store.clone())
        .save(sde::SavePolicy::OnRequest);
    let sde = builder.build().expect("a store");
    let app = double();
    let ask = |sde: &Sde| {
        sde.request(&app, &x(1))
            .policy(Policy::OnlyIfRemembered)
            .run()
    };
    let refusal = |result: Result<sde::Outcome, Error>| {
        let error = result.expect_err("nothing there");
        assert_kind!(error, NotRemembered);
        format!("{error:#}")
    };
    assert!(refusal(ask(&sde)).contains("never computed"));
    sde.run(&app, &x(1)).expect("no error");
    assert!(ask(&sde).expect("a hit").source.is_hit());
    sde.finish().expect("saved");
    sde.clear_app("double").unwrap();
    // What is gone from memory is in the store.
    assert_eq!(ask(&sde).expect("a load").source, Source::Loaded);
    let sde = Sde::new();
    sde.run(&app, &x(1)).expect("no error");
    sde.clear_tagged("double", [Tag::Expendable]).unwrap();
    assert!(ask(&sde).is_ok(), "nothing was cleaned");
    sde.clear_app("double").unwrap();
    assert!(refusal(ask(&sde)).contains("result \"y\" is gone"));
    assert_eq!(sde.stats().total.computed, 1);
}

#[test]
fn the_share_of_each_level() {
    let store = MemoryArchiver::new();
    let watch = Watch::new();
    let engine = || {
        let engine = Sde::builder()
            .store(store.clone())
            .save(sde::SavePolicy::OnRequest)
            .observer(watch.clone());
        engine.build().expect("a store")
    };
    let (sde, app) = (engine(), double());
    for n in [1, 1, 2, 1, 1, 2] {
        sde.run(&app, &x(n)).expect("no error");
    }
    use Source::{Computed, Loaded, Memory};
    let expected = [Computed, Memory, Computed, Memory, Memory, Memory];
    assert_eq!(watch.sources("double"), expected);
    let stats = sde.stats();
    let double = stats.apps["double"];
    let got = (double.recent_hits, double.map_hits, double.computed);
    assert_eq!(got, (2, 2, 2));
    let got = (double.hits(), double.loads, double.waits, double.failures);
    assert_eq!(got, (4, 0, 0, 0));
    assert_eq!(stats.total, double);
    sde.finish().expect("saved");
    watch.clear();
    let later = engine();
    // What is loaded is read when asked for, and then found as fast as what was computed.
    for _ in 0..3 {
        let results = later.run(&app, &x(1)).expect("no error");
        assert_eq!(sde_tests::y(&results).unwrap(), 2);
    }
    assert_eq!(watch.sources("double"), [Loaded, Memory, Memory]);
    let total = later.stats().total;
    assert_eq!((total.loads, total.map_hits, total.recent_hits), (1, 1, 1));
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

/// An app that knows what it takes.
#[derive(Fingerprint)]
struct Estimated;

impl App for Estimated {
    fn info(&self) -> AppInfo {
        number_info("estimated", "1")
    }

    fn run(&self, _: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        Ok(ResultMap::new().with("y", *inputs.get::<u64>("x")?))
    }

    fn cost(&self, inputs: &Inputs) -> Option<Cost> {
        Some(estimate(*inputs.get::<u64>("x").ok()?))
    }
}

fn estimate(number: u64) -> Cost {
    Cost::new(Duration::from_secs(number)).memory(number << 20)
}

#[test]
fn an_estimate_costs_nothing_once_it_is_remembered() {
    let store = MemoryArchiver::new();
    let engine = || {
        Sde::builder()
            .store(store.clone())
            .save(sde::SavePolicy::OnRequest)
            .build()
            .expect("a store")
    };
    let sde = engine();
    let none = sde.cost(&double(), &x(7)).expect("a key");
    assert_eq!(none, None, "it can't tell");
    let cost = |sde: &Sde, n| sde.cost(&Estimated, &x(n)).expect("a key").expect("a cost");
    assert_eq!(cost(&sde, 7), estimate(7));
    sde.run(&Estimated, &x(7)).expect("no error");
    assert_eq!(cost(&sde, 7), Cost::default());
    assert_eq!(cost(&sde, 8), estimate(8));
    sde.finish().expect("saved");
    assert_eq!(cost(&engine(), 7), Cost::default(), "it would be read");
    sde.clear_app("estimated").expect("an app");
    assert_eq!(cost(&sde, 7), Cost::default(), "it would be read");
    assert_eq!(cost(&Sde::new(), 7), estimate(7));
}

#[test]
fn who_is_told_of_records_may_use_the_engine() {
    let _dog = Watchdog::new("a call from what is told of records", LIMIT);
    let (sde, app) = (Sde::new(), double());
    for n in 1..=3 {
        sde.run(&app, &x(n)).expect("no error");
    }
    let mut told = Vec::new();
    sde.records(|record| {
        told.push(record.inputs[0].short.to_string());
        // Another entry of the app's, and none of those that are still to be told.
        sde.run(&app, &x(10 + told.len() as u64)).expect("no error");
        sde.clear_app("double").unwrap();
        sde.records(|inner| assert_eq!(inner.app, record.app));
    });
    assert_eq!(told, ["1", "2", "3"]);
    assert_eq!(sde_tests::records(&sde).len(), 6);
}
