//! Apps in slots: they are part of their parent's identity, recursively.

use sde::{AppInfo, ErrorKind, Instance, Key, Parameter, ResultMap, ResultSpec, Sde, Slot, inputs};
use sde_tests::{Made, assert_kind, made, says, x, y};

/// The innermost app.
fn grid() -> Made {
    let info = AppInfo::new("grid", "1")
        .parameter(Parameter::new("points", 10_u64))
        .parameter(Parameter::new("verbose", false).transparent())
        .result(ResultSpec::new::<u64>("n"));
    made(info, |sde, _| {
        Ok(ResultMap::new().with("n", *sde.parameter::<u64>("points")?))
    })
}

/// Runs what is in its slot and adds one.
fn over(name: &'static str, slot: Slot) -> Made {
    let info = AppInfo::new(name, "1")
        .slot(slot)
        .result(ResultSpec::new::<u64>("n"));
    made(info, |sde, inputs| {
        let inner = sde.run(&sde.sub_app("inner")?, inputs)?;
        Ok(ResultMap::new().with("n", *inner.get::<u64>("n")? + 1))
    })
}

/// Three levels, with this at the bottom.
fn tower(bottom: Instance) -> Instance {
    let middle = Instance::new(over("middle", Slot::new("inner", grid())));
    let middle = middle.fill("inner", bottom).unwrap();
    let top = Instance::new(over("top", Slot::new("inner", grid())));
    top.fill("inner", middle).unwrap()
}

fn key(sde: &Sde, instance: &Instance) -> Key {
    sde.peek(instance, &inputs! {}).unwrap().key()
}

fn n(sde: &Sde, instance: &Instance) -> u64 {
    *sde.run(instance, &inputs! {})
        .unwrap()
        .get::<u64>("n")
        .unwrap()
}

#[test]
fn what_is_in_a_slot_is_in_the_key_at_every_depth() {
    let sde = Sde::new();
    let points = |points: u64| tower(Instance::new(grid()).set("points", points).unwrap());
    let got = key(&sde, &points(10));
    assert_eq!(got, key(&sde, &tower(Instance::new(grid()))));
    assert_ne!(key(&sde, &points(10)), key(&sde, &points(11)));
    let verbose = Instance::new(grid()).set("verbose", true).unwrap();
    assert_eq!(key(&sde, &tower(verbose)), key(&sde, &points(10)));
    let newer = grid().described(|info| {
        AppInfo::new("grid", "2")
            .parameter(info.parameters()[0].clone())
            .result(info.results()[0].clone())
    });
    let got = key(&sde, &tower(Instance::new(newer)));
    assert_ne!(got, key(&sde, &points(10)));
    for _ in 0..10 {
        assert_eq!((n(&sde, &points(10)), n(&sde, &points(20))), (12, 22));
    }
    assert_eq!(sde.stats().apps["top"].computed, 2);
}

#[test]
fn a_name_in_a_slot_stands_for_the_app_it_leads_to() {
    let sde = Sde::new();
    sde.apps().register("mesh", grid()).unwrap();
    let by_name = Instance::new(over("top", Slot::new("inner", "mesh")));
    let by_value = Instance::new(over("top", Slot::new("inner", grid())));
    let key_before = key(&sde, &by_name);
    assert_eq!(key_before, key(&sde, &by_value));
    sde.apps().set("mesh", "points", 20_u64).unwrap();
    assert_ne!(key(&sde, &by_name), key_before);
    assert_eq!((n(&sde, &by_name), n(&sde, &by_value)), (21, 11));
    // It has run now, if only in a slot.
    let error = sde.apps().set("mesh", "points", 30_u64).unwrap_err();
    assert_kind!(error, Frozen);
}

/// An engine where `top` has `middle` in its slot, and `middle` has `mesh`, each by name.
fn three_by_name() -> Sde {
    let sde = Sde::new();
    let apps = sde.apps();
    apps.register("mesh", grid()).unwrap();
    for (name, inner) in [("middle", "mesh"), ("top", "middle")] {
        apps.register(name, over(name, Slot::new("inner", inner)))
            .unwrap();
    }
    sde
}

/// What a name leads to is looked up once an epoch, so what is set has to begin another.
#[test]
fn what_is_set_after_a_look_reaches_the_apps_above() {
    let sde = three_by_name();
    let apps = sde.apps();
    let key = || sde.peek("top", &inputs! {}).unwrap().key();
    let first = key();
    apps.set("mesh", "points", 20_u64).unwrap();
    let second = key();
    let finer = Instance::new(grid()).set("points", 30_u64).unwrap();
    apps.fill("middle", "inner", finer).unwrap();
    assert!(first != second && second != key() && first != key());
}

#[test]
fn a_name_at_the_bottom_freezes_too() {
    let sde = three_by_name();
    let apps = sde.apps();
    sde.run("top", &inputs! {}).unwrap();
    for (name, slot) in [("top", true), ("middle", true), ("mesh", false)] {
        let error = match slot {
            true => apps.fill(name, "inner", grid()),
            false => apps.set(name, "points", 1_u64),
        };
        let error = error.unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Frozen { .. }),
            "{name}: {error}"
        );
    }
}

#[test]
fn names_that_lead_back_to_themselves() {
    let sde = Sde::new();
    let apps = sde.apps();
    apps.register("A", over("A", Slot::new("inner", "B")))
        .unwrap();
    apps.register("B", over("B", Slot::new("inner", "A")))
        .unwrap();
    let error = sde.run("A", &inputs! {}).unwrap_err();
    assert_kind!(error, Refused);
    says(&error, "A -> B -> A");
    // Nothing has run, so it can be mended.
    apps.fill("B", "inner", grid()).unwrap();
    let results = sde.run("A", &inputs! {}).unwrap();
    assert_eq!(*results.get::<u64>("n").unwrap(), 12);
}

#[test]
fn everything_that_is_missing_is_listed() {
    let sde = Sde::new();
    let bare = AppInfo::new("bare", "1")
        .parameter(Parameter::required::<u64>("size"))
        .slot(Slot::required("helper"));
    let bare = made(bare, |_, _| Ok(ResultMap::new())).lacking("a licence");
    let top = Instance::new(over("top", Slot::new("inner", bare)));
    let missing = sde.not_ready(&top).unwrap();
    assert_eq!(missing.len(), 3, "{missing:?}");
    for what in [
        "a licence",
        "parameter \"size\" (u64)",
        "slot \"helper\" is empty",
    ] {
        let found = missing.iter().find(|line| line.contains(what)).unwrap();
        assert!(found.starts_with("bare in slot \"inner\": "), "{found}");
    }
    let error = sde.run(&top, &inputs! {}).unwrap_err();
    assert_kind!(error, NotReady);
    assert!(
        missing
            .iter()
            .all(|line| format!("{error:#}").contains(line)),
        "{error}"
    );
    assert!(sde.not_ready(&grid()).unwrap().is_empty());
}

#[test]
fn a_slot_that_is_not_there() {
    let error = Instance::new(grid()).fill("inner", grid()).unwrap_err();
    says(&error, "has no slot");
    let misspelt = Instance::new(over("top", Slot::new("inner", grid())));
    let error = misspelt.fill("iner", grid()).unwrap_err();
    says(&error, "did you mean: inner");
    let sde = Sde::new();
    let nowhere = Instance::new(over("top", Slot::new("inner", "nowhere")));
    let error = sde.run(&nowhere, &inputs! {}).unwrap_err();
    assert_kind!(error, UnknownApp);
    let asks = made(AppInfo::new("asks", "1"), |sde, _| {
        sde.sub_app("other")?;
        Ok(ResultMap::new())
    });
    let error = sde.run(&asks, &inputs! {}).unwrap_err();
    says(&error, "has no slot");
}

/// Found by reading: the checks of parameters ran with the registry locked, and one that looked into it waited for itself.
#[test]
fn a_check_may_look_into_the_registry() {
    let _dog = sde_tests::Watchdog::new("a check that looks into the registry", sde_tests::LIMIT);
    let captured = super::Captured::default();
    let check = move |name: &String| match captured
        .get()
        .expect("set below")
        .apps()
        .names()
        .contains(name)
    {
        true => Ok(()),
        false => Err("there is no such app".to_owned()),
    };
    let app = sde_tests::number("checked", |_, n| Ok(n)).described(|info| {
        info.parameter(sde::Parameter::required::<String>("method").check(check))
    });
    let sde = sde::Sde::new();
    captured.set(sde.clone()).expect("set once");
    sde.apps().register("RHF", app).expect("a new name");
    sde.apps()
        .set("RHF", "method", "RHF".to_owned())
        .expect("it is there");
    assert!(sde.apps().set("RHF", "method", "UHF".to_owned()).is_err());
}

/// Found by a hostile program: a copy under a name that a run had found to be none's left that run's result as it was.
#[test]
fn a_copy_is_found_by_runs_that_asked_for_its_name() {
    let sde = Sde::new();
    let nine = sde_tests::number("nine", |_, _| Ok(9));
    sde.apps().register("slow", nine).unwrap();
    let asking = sde_tests::number("asking", |sde, _| {
        let found = sde.run("fast", &x(1));
        Ok(found.map_or(0, |results| y(&results).unwrap_or(1)))
    });
    let ask = || y(&sde.run(&asking, &x(1)).unwrap()).unwrap();
    assert_eq!((ask(), ask()), (0, 0));
    sde.apps().copy("slow", "fast").unwrap();
    assert_eq!(ask(), 9);
}
