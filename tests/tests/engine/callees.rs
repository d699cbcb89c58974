//! Apps that are called without a slot: if one changes, what its callers remembered is not used.

use sde::{AppInfo, InputFile, Instance, MemoryArchiver, Parameter, Sde, Slot, Source};
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
    assert_eq!(source(&sde, &outer("2")), Source::Map);
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

/// An app with settings, as the first program has it and as it was edited, and one of its callers.
fn edited(changed: impl Fn(AppInfo, bool) -> AppInfo) -> [(Made, Made); 2] {
    [false, true].map(|edited| {
        let method = number("method", |sde, n| {
            let add = *sde.parameter::<u64>("add")?;
            Ok(y(&sde.run(&sde.sub_app("term")?, &x(n))?)? + add)
        });
        let method = method.described(|info| changed(info, edited));
        (method.clone(), calls("outer", method))
    })
}

fn term(name: &'static str, factor: u64) -> Made {
    number(name, move |_, n| Ok(n * factor))
}

/// What the caller of the edited app gives, and why what the first program left was not used.
fn after_the_edit([before, after]: [(Made, Made); 2]) -> (u64, Vec<String>) {
    let store = MemoryArchiver::new();
    let (sde, _) = program(&store);
    assert_eq!(source(&sde, &before.1), Source::Computed);
    sde.finish().expect("saved");
    // As it was, it is used.
    let (sde, _) = program(&store);
    show(&sde, &before.0);
    assert_eq!(source(&sde, &before.1), Source::Loaded);
    let (sde, watch) = program(&store);
    show(&sde, &after.0);
    // In the program all the same, but not in the slot.
    show(&sde, &term("square", 3));
    let result = sde.run(&after.1, &x(3)).expect("no error");
    let first = sde.run(&after.1, &x(1)).expect("no error");
    assert_eq!(y(&result).unwrap(), 3 * y(&first).unwrap());
    (y(&first).unwrap(), watch.stale("outer"))
}

/// An app was called with its defaults, and one of them was edited: the caller's result stood.
#[test]
fn an_edited_default_of_a_callee() {
    let (result, stale) = after_the_edit(edited(|info, edited| {
        info.parameter(Parameter::new("add", 0_u64))
            .parameter(Parameter::new("unit", if edited { 2.0 } else { 1.0_f64 }))
            .slot(Slot::new("term", term("square", 3)))
    }));
    assert_eq!(result, 30);
    let expected = "it ran method (version 1), which has other defaults now";
    assert_eq!(stale, [expected]);
}

#[test]
fn another_app_in_the_slot_of_a_callee() {
    let (result, stale) = after_the_edit(edited(|info, edited| {
        let term = if edited {
            term("cube", 4)
        } else {
            term("square", 3)
        };
        info.parameter(Parameter::new("add", 0_u64))
            .slot(Slot::new("term", term))
    }));
    assert_eq!(result, 40);
    let expected = "it ran method (version 1), which has other defaults now";
    assert_eq!(stale, [expected]);
}

/// The app in the slot of a callee has other settings there.
#[test]
fn another_setting_in_the_slot_of_a_callee() {
    let (result, stale) = after_the_edit(edited(|info, edited| {
        let term = number("term", |sde, n| Ok(n * *sde.parameter::<u64>("by")?))
            .described(|info| info.parameter(Parameter::new("by", 1_u64)));
        let term = Instance::new(term).set("by", if edited { 5_u64 } else { 3 });
        info.parameter(Parameter::new("add", 0_u64))
            .slot(Slot::new("term", term.expect("a parameter")))
    }));
    assert_eq!(result, 50);
    assert_eq!(stale.len(), 1, "{stale:?}");
}

/// What can't change a result is no reason to make it again.
#[test]
fn an_edited_transparent_default_of_a_callee() {
    let (_, stale) = after_the_edit(edited(|info, edited| {
        info.parameter(Parameter::new("add", 0_u64))
            .parameter(Parameter::new("threads", if edited { 8_u64 } else { 1 }).transparent())
            .slot(Slot::new("term", term("square", 3)))
    }));
    assert_eq!(stale, Vec::<String>::new());
}

/// The file that a callee reads by default is edited while the program runs.
#[test]
fn an_edited_file_that_is_a_default_of_a_callee() {
    let path = std::env::temp_dir().join(format!("sde-callees-{}", std::process::id()));
    let write = |text: &str| std::fs::write(&path, text).expect("a place for files");
    let reads = number("reads", |sde, n| {
        let file = sde.parameter::<InputFile>("file")?;
        Ok(n + std::fs::read_to_string(file.path())?.len() as u64)
    });
    let default = Parameter::new("file", InputFile::new(&path));
    let app = calls("outer", reads.described(|info| info.parameter(default)));
    let sde = Sde::new();
    for text in ["1", "22", "1", "333"] {
        write(text);
        for _ in 0..3 {
            let result = sde.run(&app, &x(1)).expect("no error");
            assert_eq!(y(&result).unwrap(), 10 * (1 + text.len() as u64));
        }
    }
    std::fs::remove_file(&path).expect("it is there");
}
