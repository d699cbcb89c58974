//! Apps that are called without a slot: if one changes, what its callers remembered is not used.

use sde::archiver::MemoryArchiver;
use sde::{Instance, Parameter, Sde, Slot, Source};
use sde_tests::{Made, Watch, number, number_info, says, x, y};

/// The app at the bottom, in some version.
fn inner(version: &'static str) -> Made {
    number("inner", |_, n| Ok(n + 1)).described(|_| number_info("inner", version))
}

/// Calls another app by value; the call is not in its own key.
pub(super) fn calls(name: &'static str, callee: Made) -> Made {
    number(name, move |sde, n| Ok(y(&sde.run(&callee, &x(n))?)? * 10))
}

/// A program: an engine over the store, and what it tells.
pub(super) fn program(store: &MemoryArchiver) -> (Sde, Watch) {
    let watch = Watch::new();
    let sde = Sde::builder()
        .store(store.clone())
        .save(sde::SavePolicy::OnRequest)
        .observer(watch.clone());
    (sde.build().expect("a store"), watch)
}

pub(super) fn source(sde: &Sde, app: &Made) -> Source {
    sde.request(app, &x(1)).run().expect("no error").source
}

/// A store with what a first program made: `outer` calls `middle`, which calls `inner`.
fn first_program(version: &'static str) -> MemoryArchiver {
    let store = MemoryArchiver::new();
    let (sde, _) = program(&store);
    assert_eq!(source(&sde, &outer(version)), Source::Computed);
    sde.finish().expect("saved");
    store
}

fn outer(version: &'static str) -> Made {
    calls("outer", calls("middle", inner(version)))
}

/// Shows an app to a program, as running or linking it would.
pub(super) fn show(sde: &Sde, app: &Made) {
    sde.peek(app, &x(0)).expect("a key");
}

#[test]
fn callees_that_are_as_they_were() {
    let store = first_program("1");
    let (sde, watch) = program(&store);
    show(&sde, &inner("1"));
    show(&sde, &calls("middle", inner("1")));
    assert_eq!(source(&sde, &outer("1")), Source::Loaded);
    assert_eq!(watch.stale("outer"), Vec::<String>::new());
}

#[test]
fn an_edited_callee_has_its_callers_miss_at_every_depth() {
    let store = first_program("1");
    let (sde, watch) = program(&store);
    show(&sde, &inner("2"));
    show(&sde, &calls("middle", inner("2")));
    assert_eq!(source(&sde, &outer("2")), Source::Computed);
    for app in ["outer", "middle"] {
        let stale = watch.stale(app);
        assert_eq!(
            stale,
            ["it ran inner (version 1), which is now version 2"],
            "{app}"
        );
    }
    assert_eq!(watch.sources("inner"), [Source::Computed]);
    // What was computed in their place is current.
    assert_eq!(source(&sde, &outer("2")), Source::Memory);
}

#[test]
fn a_callee_that_nobody_knows_is_a_miss() {
    let store = first_program("1");
    let (sde, watch) = program(&store);
    assert_eq!(source(&sde, &outer("1")), Source::Computed);
    let stale = watch.stale("outer");
    says(&stale[0], "which this program has not shown yet");
    // Its own callee was found, though: only the caller could not be trusted.
    assert_eq!(watch.sources("inner"), [Source::Loaded]);
}

/// An app that is called by its registered name, set up like this.
fn named(points: u64) -> Instance {
    let app = number("grid", |sde, n| Ok(n + sde.parameter::<u64>("points")?))
        .described(|info| info.parameter(Parameter::new("points", 10_u64)));
    Instance::new(app)
        .set("points", points)
        .expect("a parameter")
}

#[test]
fn a_name_that_leads_elsewhere() {
    let asks = number("asks", |sde, n| Ok(y(&sde.run("mesh", &x(n))?)?));
    let above = calls("above", asks.clone());
    let store = MemoryArchiver::new();
    let run = |instance: Option<Instance>| {
        let (sde, watch) = program(&store);
        // The app itself is as it was, whatever the name leads to.
        sde.peek(&named(0), &x(0)).expect("a key");
        show(&sde, &asks);
        if let Some(instance) = instance {
            sde.apps().register("mesh", instance).expect("a new name");
        }
        let outcome = sde.request(&above, &x(1)).run();
        let result =
            outcome.map(|outcome| (outcome.source, y(&outcome.results).expect("a result")));
        sde.finish().expect("saved");
        (result, watch.stale("above"))
    };
    let got = run(Some(named(10))).0.expect("no error");
    assert_eq!(got, (Source::Computed, 110));
    let got = run(Some(named(10))).0.expect("no error");
    assert_eq!(got, (Source::Loaded, 110));
    let (result, stale) = run(Some(named(20)));
    assert_eq!(result.expect("no error"), (Source::Computed, 210));
    let expected = "it ran the app registered as \"mesh\", which is set up otherwise now";
    assert_eq!(stale, [expected]);
    let (result, stale) = run(None);
    assert!(result.is_err(), "there is no such app any more");
    says(&stale[0], "no app is registered as \"mesh\"");
}

/// Runs what is in its slot.
fn holder(inner: Slot) -> Made {
    let app = number("holder", |sde, n| {
        Ok(y(&sde.run(&sde.sub_app("inner")?, &x(n))?)?)
    });
    app.described(|info| info.slot(inner))
}

/// What is in the slots of a callee counts as well.
#[test]
fn an_edited_app_in_the_slot_of_a_callee() {
    let holder = |version| holder(Slot::new("inner", inner(version)));
    let app = |version| calls("outer", holder(version));
    let store = MemoryArchiver::new();
    let (sde, _) = program(&store);
    assert_eq!(source(&sde, &app("1")), Source::Computed);
    sde.finish().expect("saved");
    let (sde, watch) = program(&store);
    show(&sde, &holder("2"));
    assert_eq!(source(&sde, &app("2")), Source::Computed);
    let got = watch.stale("outer");
    assert_eq!(got, ["it ran inner (version 1), which is now version 2"]);
}

/// It was not among what the caller depends on: another app under that name left its result standing.
#[test]
fn a_name_in_the_slot_of_a_callee() {
    let holder = || holder(Slot::new("inner", named(10)));
    let by_slot = number("by_slot", move |sde, n| {
        let holder = Instance::new(holder()).fill("inner", "mesh")?;
        Ok(y(&sde.run(&holder, &x(n))?)?)
    });
    let store = MemoryArchiver::new();
    for (points, expected) in [
        (10, Source::Computed),
        (20, Source::Computed),
        (20, Source::Loaded),
    ] {
        let (sde, _) = program(&store);
        sde.apps()
            .register("mesh", named(points))
            .expect("a new name");
        show(&sde, &holder());
        let outcome = sde.request(&by_slot, &x(1)).run().expect("no error");
        assert_eq!(y(&outcome.results).expect("a result"), points + 1);
        assert_eq!(outcome.source, expected);
        sde.finish().expect("saved");
    }
}

/// The version that was seen last was the only current one: in a program with two, the callers of either missed each time
/// that the other had run.
#[test]
fn two_versions_in_one_program_are_both_current() {
    let versions = |n| inner(if n == 1 { "1" } else { "2" });
    let chooser = number("chooser", move |sde, n| {
        Ok(y(&sde.run(&versions(n), &x(0))?)? + n)
    });
    let store = MemoryArchiver::new();
    for (computed, loads) in [(2, 0), (0, 2)] {
        let (sde, watch) = program(&store);
        for n in [1, 2, 1, 2] {
            show(&sde, &versions(n));
        }
        for n in [1, 2, 1, 2, 1, 2] {
            let result = sde.run(&chooser, &x(n)).expect("no error");
            assert_eq!(y(&result).expect("a result"), 1 + n);
            show(&sde, &versions(n));
        }
        let stats = sde.stats().apps["chooser"];
        assert_eq!((stats.computed, stats.loads), (computed, loads));
        assert_eq!(watch.stale("chooser"), Vec::<String>::new());
        sde.finish().expect("saved");
    }
}

#[test]
fn records_name_what_was_called() {
    let (sde, _) = program(&MemoryArchiver::new());
    let middle = calls("middle", inner("1"));
    sde.run(&middle, &x(1)).expect("no error");
    let records = sde_tests::records(&sde);
    let of = |app: &str| records.iter().find(|record| &*record.app == app);
    let (caller, callee) = (of("middle").expect("it ran"), of("inner").expect("it ran"));
    assert_eq!(*caller.calls, [(callee.app.clone(), callee.key)]);
    assert_eq!(caller.inputs[0].name, "x");
    let invalidated = sde.invalidate(&callee.key, "a test").expect("an entry");
    assert_eq!(invalidated.dependents, [(caller.app.clone(), caller.key)]);
}
