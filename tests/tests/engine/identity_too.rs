//! What makes two apps the same app: names, settings, slots.

use std::collections::HashMap;

use sde::{
    App, AppError, AppInfo, Error, ErrorKind, Fingerprint, Handle, Inputs, Instance, Key,
    Parameter, ResultMap, ResultSpec, Sde, Slot, inputs,
};

/// Its one result is what its slot, its field and its parameters make of `x`.
#[derive(Clone, Fingerprint)]
struct Outer {
    field: u32,
}

impl App for Outer {
    fn info(&self) -> AppInfo {
        AppInfo::new("identity.Outer", "1")
            .parameter(Parameter::new("low", 0_i64))
            .parameter(
                Parameter::new("high", 10_i64).check_with(|high: &i64, all| match all.get("low") {
                    Some(low) if high > low => Ok(()),
                    _ => Err("it must be above \"low\"".to_owned()),
                }),
            )
            .parameter(Parameter::new("verbose", false).transparent())
            .slot(Slot::new("inner", Inner { add: 1 }))
            .result(ResultSpec::new::<i64>("y"))
    }

    fn run(&self, sde: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let inner = sde.run(&sde.sub_app("inner")?, inputs)?;
        let y = *inner.get::<i64>("y")? + i64::from(self.field) + sde.parameter::<i64>("low")?;
        Ok(ResultMap::new().with("y", y))
    }
}

#[derive(Clone, Fingerprint)]
struct Inner {
    add: i64,
}

impl App for Inner {
    fn info(&self) -> AppInfo {
        AppInfo::new("identity.Inner", "1")
            .parameter(Parameter::new("factor", 1_i64))
            .result(ResultSpec::new::<i64>("y"))
    }

    fn run(&self, sde: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let y = inputs.get::<i64>("x")? * sde.parameter::<i64>("factor")? + self.add;
        Ok(ResultMap::new().with("y", y))
    }
}

/// Cannot run before a user has done something.
#[derive(Fingerprint)]
struct Needy;

impl App for Needy {
    fn info(&self) -> AppInfo {
        AppInfo::new("identity.Needy", "1")
            .parameter(Parameter::required::<String>("basis"))
            .slot(Slot::required("method"))
            .result(ResultSpec::new::<i64>("y"))
    }
    fn run(&self, _: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        Ok(ResultMap::new().with("y", 0_i64))
    }
    fn not_ready(&self) -> Vec<String> {
        vec!["no licence".to_owned()]
    }
}

fn outer() -> Instance {
    Instance::new(Outer { field: 0 })
}

fn key(sde: &Sde, instance: &Instance, inputs: &Inputs) -> Key {
    sde.peek(instance, inputs).unwrap().key()
}

fn x() -> Inputs {
    inputs! { x: 3_i64 }
}

#[test]
fn by_name_by_value_by_instance_and_prepared_are_the_same_run() {
    let sde = Sde::new();
    sde.apps().register("outer", Outer { field: 0 }).unwrap();
    let prepared = sde.prepare(&outer()).unwrap();
    let by_value = sde.run(&Outer { field: 0 }, &x()).unwrap();
    for results in [
        sde.run("outer", &x()).unwrap(),
        sde.run(&outer(), &x()).unwrap(),
        sde.run(&prepared, &x()).unwrap(),
    ] {
        assert_eq!(*results.get::<i64>("y").unwrap(), 4);
        assert_eq!(
            results.origin().unwrap().run,
            by_value.origin().unwrap().run
        );
    }
    assert_eq!(sde.stats().apps["identity.Outer"].computed, 1);
}

#[test]
fn whatever_can_change_a_result_changes_the_key() {
    let sde = Sde::new();
    sde.apps().register("threes", Inner { add: 3 }).unwrap();
    let inner = |factor: i64| {
        Instance::new(Inner { add: 1 })
            .set("factor", factor)
            .unwrap()
    };
    let different = [
        outer(),
        Instance::new(Outer { field: 1 }),
        outer().set("low", 1_i64).unwrap(),
        outer().set("high", 11_i64).unwrap(),
        outer().with_sub_app("inner", Inner { add: 2 }).unwrap(),
        outer().with_sub_app("inner", inner(2)).unwrap(),
        outer().with_sub_app("inner", "threes").unwrap(),
    ];
    let keys: Vec<Key> = different
        .iter()
        .map(|instance| key(&sde, instance, &x()))
        .collect();
    for (i, a) in keys.iter().enumerate() {
        assert!(
            keys[i + 1..].iter().all(|b| a != b),
            "number {i} is not alone"
        );
    }
    let same = [
        outer().set("verbose", true).unwrap(),
        outer().set("low", 0_i64).unwrap(),
        outer().with_sub_app("inner", inner(1)).unwrap(),
    ];
    for instance in &same {
        assert_eq!(key(&sde, instance, &x()), keys[0]);
    }
}

#[test]
fn a_name_in_a_slot_stands_for_the_app_it_leads_to() {
    let by_value = outer().with_sub_app("inner", Inner { add: 3 }).unwrap();
    let by_name = outer().with_sub_app("inner", "chosen").unwrap();
    let sde = Sde::new();
    sde.apps().register("chosen", Inner { add: 3 }).unwrap();
    assert_eq!(key(&sde, &by_name, &x()), key(&sde, &by_value, &x()));
    let other = Sde::new();
    other.apps().register("chosen", Inner { add: 4 }).unwrap();
    assert_ne!(key(&other, &by_name, &x()), key(&sde, &by_value, &x()));
}

#[test]
fn a_cycle_of_slots_is_an_error_with_its_path() {
    let sde = Sde::new();
    let looking_at = |name: &'static str| outer().with_sub_app("inner", name).unwrap();
    sde.apps().register("a", looking_at("b")).unwrap();
    sde.apps().register("b", looking_at("a")).unwrap();
    let error = sde.run("a", &x()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Slot { .. }), "{error}");
    assert!(error.to_string().contains("a -> b -> a"), "{error}");
}

#[test]
fn what_has_run_is_frozen_with_all_that_was_in_it() {
    let sde = Sde::new();
    let frozen =
        |result: Result<(), Error>| matches!(result.unwrap_err().kind(), ErrorKind::Frozen { .. });
    sde.apps().register("inner", Inner { add: 1 }).unwrap();
    let instance = outer().with_sub_app("inner", "inner").unwrap();
    sde.apps().register("outer", instance).unwrap();
    sde.apps().set("outer", "low", 2_i64).unwrap();
    sde.apps().set("inner", "factor", 2_i64).unwrap();
    assert_eq!(*sde.run("outer", &x()).unwrap().get::<i64>("y").unwrap(), 9);
    assert!(frozen(sde.apps().set("outer", "low", 3_i64)));
    assert!(frozen(sde.apps().set("inner", "factor", 3_i64)));
    assert!(frozen(sde.apps().set_sub_app(
        "outer",
        "inner",
        Inner { add: 2 }
    )));
    sde.apps().copy("outer", "other").unwrap();
    sde.apps().set("other", "low", 3_i64).unwrap();
    assert_eq!(
        *sde.run("other", &x()).unwrap().get::<i64>("y").unwrap(),
        10
    );
    assert_eq!(*sde.run("outer", &x()).unwrap().get::<i64>("y").unwrap(), 9);
}

#[test]
fn parameters_are_checked_alone_and_together() {
    let sde = Sde::new();
    // One after the other may be wrong for a while; what is run may not.
    let halfway = outer().set("low", 20_i64).unwrap();
    let error = sde.run(&halfway, &x()).unwrap_err();
    assert!(error.to_string().contains("above"), "{error}");
    sde.run(&halfway.set("high", 30_i64).unwrap(), &x())
        .unwrap();
    let error = outer().set("low", 2_u8).unwrap_err();
    assert!(
        error.to_string().contains("i64") && error.to_string().contains("u8"),
        "{error}"
    );
    let error = outer().set("middle", 2_i64).unwrap_err();
    assert!(error.to_string().contains("low, high, verbose"), "{error}");
    let error = outer().with_sub_app("iner", Inner { add: 1 }).unwrap_err();
    assert!(error.to_string().contains("has: inner"), "{error}");
}

#[test]
fn everything_missing_is_named_through_all_sub_apps() {
    let sde = Sde::new();
    let holds_needy = outer().with_sub_app("inner", Needy).unwrap();
    let missing = sde.not_ready(&holds_needy).unwrap().join("; ");
    for part in ["no licence", "\"basis\"", "\"method\"", "in slot \"inner\""] {
        assert!(missing.contains(part), "{part}: {missing}");
    }
    let error = sde.run(&holds_needy, &x()).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::NotReady { .. }),
        "{error}"
    );
    assert!(sde.not_ready(&outer()).unwrap().is_empty());
}

#[test]
fn names_types_and_order_of_inputs_count() {
    let sde = Sde::new();
    let keys: Vec<Key> = [
        inputs! { x: 3_i64 },
        inputs! { y: 3_i64 },
        inputs! { x: 3_i32 },
        inputs! { x: 3_u64 },
        inputs! { x: 3_i64, y: 4_i64 },
        inputs! { y: 4_i64, x: 3_i64 },
        inputs! { x: Some(3_i64) },
        inputs! { x: [3_i64] },
    ]
    .iter()
    .map(|inputs| key(&sde, &outer(), inputs))
    .collect();
    for (i, a) in keys.iter().enumerate() {
        assert!(
            keys[i + 1..].iter().all(|b| a != b),
            "number {i} is not alone"
        );
    }
}

#[test]
fn a_thousand_rebuilt_maps_make_one_key() {
    let sde = Sde::new();
    let rebuilt =
        || -> HashMap<String, u64> { (0..50).map(|i| (format!("site {i}"), i * i)).collect() };
    let first = key(&sde, &outer(), &inputs! { map: rebuilt() });
    for _ in 0..1000 {
        assert_eq!(key(&sde, &outer(), &inputs! { map: rebuilt() }), first);
    }
}

#[test]
fn unknown_names_are_told_with_those_there_are() {
    let sde = Sde::new();
    sde.apps().register("RHF", Inner { add: 1 }).unwrap();
    let error = sde.run("rhf", &x()).unwrap_err();
    assert!(error.to_string().contains("registered are: RHF"), "{error}");
    let error = sde.apps().register("RHF", Inner { add: 2 }).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::NameTaken { .. }),
        "{error}"
    );
}
