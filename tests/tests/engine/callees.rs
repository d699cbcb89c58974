//! Apps that are called without a slot: if one changes, what its callers remembered is not used.

use sde::{Instance, MemoryArchiver, Parameter, Sde, Slot, Source};
use sde_tests::{Made, Watch, number, number_info, x, y};

/// The app at the bottom, in some version.
fn inner(version: &'static str) -> Made {
    number("inner", |_, n| Ok(n + 1)).described(|_| number_info("inner", version))
}

/// Calls another app by value; the call is not in its own key.
fn calls(name: &'static str, callee: Made) -> Made {
    number(name, move |sde, n| Ok(y(&sde.run(&callee, &x(n))?)? * 10))
}

/// A program: an engine over the store, and what it tells.
fn program(store: &MemoryArchiver) -> (Sde, Watch) {
    let watch = Watch::new();
    let sde = Sde::builder().store(store.clone()).observer(watch.clone());
    (sde.build().expect("a store"), watch)
}

fn source(sde: &Sde, app: &Made) -> Source {
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
fn show(sde: &Sde, app: &Made) {
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
    assert_eq!(source(&sde, &outer("2")), Source::LastValue);
}

#[test]
fn a_callee_that_nobody_knows_is_a_miss() {
    let store = first_program("1");
    let (sde, watch) = program(&store);
    assert_eq!(source(&sde, &outer("1")), Source::Computed);
    let stale = watch.stale("outer");
    assert!(
        stale[0].contains("which this program has not shown yet"),
        "{stale:?}"
    );
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
    let store = MemoryArchiver::new();
    let run = |instance: Option<Instance>| {
        let (sde, watch) = program(&store);
        // The app itself is as it was, whatever the name leads to.
        sde.peek(&named(0), &x(0)).expect("a key");
        if let Some(instance) = instance {
            sde.apps().register("mesh", instance).expect("a new name");
        }
        let outcome = sde.request(&asks, &x(1)).run();
        let result =
            outcome.map(|outcome| (outcome.source, y(&outcome.results).expect("a result")));
        sde.finish().expect("saved");
        (result, watch.stale("asks"))
    };
    assert_eq!(
        run(Some(named(10))).0.expect("no error"),
        (Source::Computed, 11)
    );
    assert_eq!(
        run(Some(named(10))).0.expect("no error"),
        (Source::Loaded, 11)
    );
    let (result, stale) = run(Some(named(20)));
    assert_eq!(result.expect("no error"), (Source::Computed, 21));
    let expected = "it ran the app registered as \"mesh\", which is set up otherwise now";
    assert_eq!(stale, [expected]);
    let (result, stale) = run(None);
    assert!(result.is_err(), "there is no such app any more");
    assert!(
        stale[0].contains("no app is registered as \"mesh\""),
        "{stale:?}"
    );
}

/// What is in the slots of a callee counts as well.
#[test]
fn an_edited_app_in_the_slot_of_a_callee() {
    let holder = |version| {
        let info = number_info("holder", "1").slot(Slot::new("inner", inner(version)));
        number("holder", |sde, n| {
            Ok(y(&sde.run(&sde.sub_app("inner")?, &x(n))?)?)
        })
        .described(|_| info)
    };
    let app = |version| calls("outer", holder(version));
    let store = MemoryArchiver::new();
    let (sde, _) = program(&store);
    assert_eq!(source(&sde, &app("1")), Source::Computed);
    sde.finish().expect("saved");
    let (sde, watch) = program(&store);
    show(&sde, &holder("2"));
    assert_eq!(source(&sde, &app("2")), Source::Computed);
    assert_eq!(
        watch.stale("outer"),
        ["it ran inner (version 1), which is now version 2"]
    );
}
