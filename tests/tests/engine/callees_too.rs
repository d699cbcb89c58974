//! A remembered result stands only while what ran beneath it is what it was.

use sde::{
    App, AppError, AppInfo, Event, EventLog, Fingerprint, Handle, Inputs, Instance, MemoryArchiver,
    Parameter, Peek, ResultMap, ResultSpec, Sde, Source, inputs,
};

/// Calls an app it has no slot for, of the version that this "program" has.
#[derive(Fingerprint)]
struct Caller {
    /// Stands for the source of the callee, which is no part of the caller.
    #[fingerprint(skip)]
    callee_version: &'static str,
}

#[derive(Fingerprint)]
struct Callee {
    #[fingerprint(skip)]
    version: &'static str,
}

impl App for Caller {
    fn info(&self) -> AppInfo {
        AppInfo::new("callees.Caller", "1").result(ResultSpec::new::<String>("of"))
    }
    fn run(&self, sde: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let callee = Callee {
            version: self.callee_version,
        };
        let of = sde.run(&callee, inputs)?.get::<String>("version")?;
        Ok(ResultMap::new().with("of", of.to_string()))
    }
}

impl App for Callee {
    fn info(&self) -> AppInfo {
        AppInfo::new("callees.Callee", self.version).result(ResultSpec::new::<String>("version"))
    }
    fn run(&self, _: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        Ok(ResultMap::new().with("version", self.version.to_owned()))
    }
}

/// Calls whatever is registered as "method".
#[sde::app(name = "callees.by_name")]
fn by_name(sde: &Handle) -> Result<i64, sde::Error> {
    Ok(*sde.run("method", &inputs! {})?.get::<i64>("level")?)
}

/// One further up.
#[sde::app(name = "callees.further_up")]
fn further_up(sde: &Handle) -> Result<i64, sde::Error> {
    Ok(10 * *by_name.call(sde)?)
}

#[derive(Fingerprint)]
struct Method;

impl App for Method {
    fn info(&self) -> AppInfo {
        AppInfo::new("callees.Method", "1")
            .parameter(Parameter::new("level", 1_i64))
            .result(ResultSpec::new::<i64>("level"))
    }
    fn run(&self, sde: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        Ok(ResultMap::new().with("level", *sde.parameter::<i64>("level")?))
    }
}

fn program(store: &MemoryArchiver) -> (Sde, EventLog) {
    let log = EventLog::new();
    let sde = Sde::builder()
        .store(store.clone())
        .observer(log.clone())
        .build()
        .unwrap();
    (sde, log)
}

fn run(sde: &Sde, version: &'static str) -> (String, Source) {
    let outcome = sde
        .request(
            &Caller {
                callee_version: version,
            },
            &inputs! { x: 1_i32 },
        )
        .run()
        .unwrap();
    (
        outcome.results.get::<String>("of").unwrap().to_string(),
        outcome.source,
    )
}

#[test]
fn an_edited_callee_without_a_slot_makes_its_callers_miss() {
    let store = MemoryArchiver::new();
    let (sde, _) = program(&store);
    assert_eq!(run(&sde, "1"), ("1".to_owned(), Source::Computed));
    sde.finish().unwrap();

    // The next program has another version of the callee.
    let (sde, log) = program(&store);
    sde.run(&Callee { version: "2" }, &inputs! { other: 1 })
        .unwrap();
    assert_eq!(run(&sde, "2"), ("2".to_owned(), Source::Computed));
    let told = log.events().into_iter().any(|event| {
        matches!(event, Event::Stale { why, .. }
            if why.contains("callees.Callee") && why.contains("version 1") && why.contains("version 2"))
    });
    assert!(told, "{:?}", log.events());
    sde.finish().unwrap();

    // And one that has it still.
    let (sde, _) = program(&store);
    sde.run(&Callee { version: "2" }, &inputs! { other: 2 })
        .unwrap();
    assert_eq!(run(&sde, "2"), ("2".to_owned(), Source::Loaded));
}

#[test]
fn a_callee_that_this_program_has_not_shown_is_not_taken_for_current() {
    let store = MemoryArchiver::new();
    let (sde, _) = program(&store);
    run(&sde, "1");
    sde.finish().unwrap();
    let (sde, _) = program(&store);
    let peek = sde
        .peek(
            &Caller {
                callee_version: "1",
            },
            &inputs! { x: 1_i32 },
        )
        .unwrap();
    assert!(
        matches!(&peek, Peek::Miss { why, .. } if why.contains("link_app!")),
        "{peek:?}"
    );
    assert_eq!(run(&sde, "1").1, Source::Computed);
    // The callee's own result was found.
    assert_eq!(sde.stats().apps["callees.Callee"].loads, 1);
}

/// Calls the version of the callee that it is told to.
#[derive(Fingerprint)]
struct Chooser;

impl App for Chooser {
    fn info(&self) -> AppInfo {
        AppInfo::new("callees.Chooser", "1").result(ResultSpec::new::<String>("of"))
    }
    fn run(&self, sde: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let version = match inputs.text("version")? {
            "1" => "1",
            _ => "2",
        };
        let of = sde.run(&Callee { version }, &inputs! {})?;
        Ok(ResultMap::new().with_value("of", of.get::<String>("version")?))
    }
}

/// The version that was seen last was the only current one: in a program with two,
/// the callers of either missed each time that the other had run.
#[test]
fn two_versions_in_one_program_are_both_current() {
    let store = MemoryArchiver::new();
    for (computed, loads) in [(2, 0), (0, 2)] {
        let (sde, log) = program(&store);
        for version in ["1", "2", "1", "2"] {
            sde.peek(&Callee { version }, &inputs! {}).unwrap();
        }
        for version in ["1", "2", "1", "2", "1", "2"] {
            let of = sde.run(&Chooser, &inputs! { version: version }).unwrap();
            assert_eq!(*of.get::<String>("of").unwrap(), version);
            sde.peek(&Callee { version }, &inputs! {}).unwrap();
        }
        let stats = sde.stats().apps["callees.Chooser"];
        assert_eq!((stats.computed, stats.loads), (computed, loads));
        assert!(
            !log.events()
                .iter()
                .any(|e| matches!(e, Event::Stale { .. }))
        );
        sde.finish().unwrap();
    }
}

#[test]
fn another_app_under_the_same_name_makes_callers_miss_at_any_depth() {
    let store = MemoryArchiver::new();
    let level = |level: i64| Instance::new(Method).set("level", level).unwrap();
    let (sde, _) = program(&store);
    sde.apps().register("method", level(1)).unwrap();
    assert_eq!(*further_up.call(&sde).unwrap(), 10);
    sde.finish().unwrap();

    let (sde, log) = program(&store);
    sde.apps().register("method", level(2)).unwrap();
    assert_eq!(*further_up.call(&sde).unwrap(), 20);
    assert_eq!(log.sources("callees.further_up"), [Source::Computed]);
    sde.finish().unwrap();

    let (sde, log) = program(&store);
    sde.apps().register("method", level(2)).unwrap();
    assert_eq!(*further_up.call(&sde).unwrap(), 20);
    assert_eq!(log.sources("callees.further_up"), [Source::Loaded]);
}

#[test]
fn records_name_what_was_called() {
    let (sde, _) = program(&MemoryArchiver::new());
    run(&sde, "1");
    let records = sde.records();
    let caller = records
        .iter()
        .find(|r| &*r.app == "callees.Caller")
        .unwrap();
    let callee = records
        .iter()
        .find(|r| &*r.app == "callees.Callee")
        .unwrap();
    assert_eq!(caller.calls, [(callee.app.clone(), callee.key)]);
    assert_eq!(caller.inputs[0].name, "x");
    let invalidated = sde.invalidate(&callee.key, "a test").unwrap();
    assert_eq!(invalidated.dependents, [(caller.app.clone(), caller.key)]);
}
