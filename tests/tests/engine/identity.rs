//! What makes two runs the same, and what keeps them apart.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};

use sde::key::commit;
use sde::key::{Encoder, FingerprintError};
use sde::{
    App, AppError, AppInfo, Fingerprint, Handle, Inputs, Instance, Key, Parameter, ResultMap,
    ResultSpec, Sde, Source, Value, inputs,
};
use sde_tests::{Made, assert_kind, made, says};

/// An app whose result says how it is set up.
fn solver() -> Made {
    let positive = |value: &f64| match *value > 0.0 {
        true => Ok(()),
        false => Err("must be positive".to_owned()),
    };
    let info = AppInfo::new("solver", "1")
        .parameter(Parameter::new("low", 0.5_f64).check(positive))
        .parameter(
            Parameter::new("high", 1.0_f64).check_with(|high: &f64, others| {
                match others.get::<f64>("low") {
                    Some(low) if low > high => Err(format!("must not be below low, {low}")),
                    _ => Ok(()),
                }
            }),
        )
        .parameter(Parameter::new("threads", 1_usize).transparent())
        .result(ResultSpec::new::<f64>("sum"));
    made(info, |sde, _| {
        let sum = sde.parameter::<f64>("low")? + sde.parameter::<f64>("high")?;
        Ok(ResultMap::new().with("sum", sum))
    })
}

fn key(sde: &Sde, instance: &Instance) -> Key {
    sde.peek(instance, &inputs! {}).unwrap().key()
}

#[test]
fn four_ways_to_name_an_app() {
    let sde = Sde::new();
    sde.apps().register("my solver", solver()).unwrap();
    let prepared = sde.prepare(&Instance::new(solver())).unwrap();
    let keys = [
        sde.peek(&solver(), &inputs! {}).unwrap().key(),
        sde.peek(&Instance::new(solver()), &inputs! {})
            .unwrap()
            .key(),
        sde.peek(&prepared, &inputs! {}).unwrap().key(),
        sde.peek("my solver", &inputs! {}).unwrap().key(),
    ];
    assert!(keys.iter().all(|key| *key == keys[0]));
    sde.run("my solver", &inputs! {}).unwrap();
    sde.run(&solver(), &inputs! {}).unwrap();
    sde.run(&Instance::new(solver()), &inputs! {}).unwrap();
    sde.run(&prepared, &inputs! {}).unwrap();
    assert_eq!(sde.stats().total.computed, 1);
}

#[test]
fn parameters() {
    let sde = Sde::new();
    let default = key(&sde, &Instance::new(solver()));
    let set = |name: &str, value: f64| Instance::new(solver()).set(name, value);
    // A default that is said aloud is the same.
    assert_eq!(key(&sde, &set("low", 0.5).unwrap()), default);
    assert_ne!(key(&sde, &set("low", 0.25).unwrap()), default);
    let got = key(&sde, &set("high", 0.75).unwrap());
    assert_ne!(got, key(&sde, &set("low", 0.75).unwrap()));
    let threads = Instance::new(solver()).set("threads", 8_usize).unwrap();
    assert_eq!(key(&sde, &threads), default);

    for (name, value, why) in [
        ("low", -1.0, "must be positive"),
        ("high", 0.1, "must not be below low, 0.5"),
    ] {
        let error = set(name, value).unwrap_err();
        assert_kind!(error, Refused);
        says(&error, why);
    }
    let error = set("medium", 0.1).unwrap_err();
    assert_kind!(error, UnknownName);
    says(&error, "has: low, high, threads");
    let error = Instance::new(solver()).set("low", 1_f32).unwrap_err();
    assert_kind!(error, TypeMismatch);
    says(&error, "is a f64, not a f32");
    // A check that looks at another parameter is made again when that one changes.
    let both = set("low", 0.9).unwrap().set("high", 2.0).unwrap();
    let error = sde
        .run(&both.set("low", 3.0).unwrap(), &inputs! {})
        .unwrap_err();
    says(&error, "must not be below low");
}

#[test]
fn two_instances_never_get_each_others_result() {
    let sde = Sde::new();
    let low = Instance::new(solver()).set("low", 0.125).unwrap();
    let high = Instance::new(solver()).set("high", 8.0).unwrap();
    let prepared = [&low, &high].map(|instance| sde.prepare(instance).unwrap());
    let sum = |map: ResultMap| *map.get::<f64>("sum").unwrap();
    for _ in 0..100 {
        assert_eq!(sum(sde.run(&low, &inputs! {}).unwrap()), 1.125);
        assert_eq!(sum(sde.run(&high, &inputs! {}).unwrap()), 8.5);
        assert_eq!(sum(sde.run(&prepared[0], &inputs! {}).unwrap()), 1.125);
        assert_eq!(sum(sde.run(&prepared[1], &inputs! {}).unwrap()), 8.5);
    }
    assert_eq!(sde.stats().total.computed, 2);
}

#[derive(Fingerprint)]
struct Scale {
    by: f64,
    #[fingerprint(skip)]
    verbose: bool,
}

impl App for Scale {
    fn info(&self) -> AppInfo {
        AppInfo::new("Scale", "1").result(ResultSpec::new::<f64>("result"))
    }

    fn run(&self, _: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let result = self.by * inputs.get::<f64>("x")?;
        assert!(!self.verbose || result > 0.0, "what it would say: {result}");
        Ok(ResultMap::new().with("result", result))
    }
}

#[test]
fn the_fields_of_an_app() {
    let sde = Sde::new();
    let scale = |by, verbose| {
        let results = sde.run(&Scale { by, verbose }, &inputs! { x: 3.0_f64 });
        *results.unwrap().get::<f64>("result").unwrap()
    };
    for _ in 0..10 {
        assert_eq!(scale(2.0, true), 6.0);
        assert_eq!(scale(5.0, false), 15.0);
        assert_eq!(scale(2.0, false), 6.0);
    }
    assert_eq!(sde.stats().total.computed, 2);
}

/// The key of running one app on these inputs.
fn key_of(inputs: &Inputs) -> Key {
    let app = made(AppInfo::new("any", "1"), |_, _| Ok(ResultMap::new()));
    Sde::new().peek(&app, inputs).unwrap().key()
}

#[test]
fn name_and_version_of_an_app() {
    let sde = Sde::new();
    let key = |name, version| {
        let app = made(AppInfo::new(name, version), |_, _| Ok(ResultMap::new()));
        sde.peek(&app, &inputs! {}).unwrap().key()
    };
    let keys = [
        key("a", "1"),
        key("a", "2"),
        key("b", "1"),
        key("a1", "1"),
        key("a", "11"),
    ];
    for (i, key) in keys.iter().enumerate() {
        assert!(!keys[..i].contains(key));
    }
    // What is only said about it changes nothing.
    let talkative = made(
        AppInfo::new("a", "1")
            .about("new")
            .author("B")
            .citation("C"),
        |_, _| Ok(ResultMap::new()),
    );
    assert_eq!(sde.peek(&talkative, &inputs! {}).unwrap().key(), keys[0]);
}

#[test]
fn inputs_that_differ_in_type_name_or_order_only() {
    let keys = [
        key_of(&inputs! { a: 1_u32 }),
        key_of(&inputs! { a: 1_i32 }),
        key_of(&inputs! { a: 1_u64 }),
        key_of(&inputs! { b: 1_u32 }),
        key_of(&inputs! { a: 1_u32, b: 1_u32 }),
        key_of(&inputs! { b: 1_u32, a: 1_u32 }),
        key_of(&inputs! { a: Vec::<u32>::new() }),
        key_of(&inputs! { a: Vec::<i32>::new() }),
        key_of(&inputs! { a: None::<u32> }),
        key_of(&inputs! {}),
    ];
    for (i, key) in keys.iter().enumerate() {
        assert!(!keys[..i].contains(key), "{i}");
    }
}

#[test]
fn a_thousand_rebuilt_hash_maps_make_one_key() {
    let charges = || -> HashMap<String, u32> {
        (0..40)
            .map(|i| (format!("atom {}", (i * 7) % 40), (i * 7) % 40))
            .collect()
    };
    let first = charges();
    let other_order = (0..1000).any(|_| !charges().iter().eq(first.iter()));
    assert!(
        other_order,
        "the maps are of different order, or this shows nothing"
    );
    let key = key_of(&inputs! { charges: first });
    for _ in 0..1000 {
        assert_eq!(key_of(&inputs! { charges: charges() }), key);
    }
}

#[test]
fn a_value_held_already_is_the_same_input() {
    for samples in [vec![1.0_f64; 3], vec![1.0_f64; 3000]] {
        let bare = key_of(&inputs! { samples: samples.clone() });
        let shared = key_of(&inputs! { samples: Value::new(samples) });
        assert_eq!(bare, shared);
    }
}

#[test]
fn registered_apps_freeze_when_they_have_run() {
    let sde = Sde::new();
    let apps = sde.apps();
    apps.register("s", solver()).unwrap();
    // Looking is not running.
    sde.peek("s", &inputs! {}).unwrap();
    assert!(sde.not_ready("s").unwrap().is_empty());
    apps.set("s", "low", 0.25).unwrap();
    let sum = |name: &str| {
        *sde.run(name, &inputs! {})
            .unwrap()
            .get::<f64>("sum")
            .unwrap()
    };
    assert_eq!(sum("s"), 1.25);
    let error = apps.set("s", "low", 0.125).unwrap_err();
    assert_kind!(error, Frozen);
    says(&error, "copy it");
    apps.copy("s", "t").unwrap();
    apps.set("t", "low", 0.125).unwrap();
    assert_eq!((sum("s"), sum("t")), (1.25, 1.125));
    let error = apps.copy("s", "t").unwrap_err();
    says(&error, "an app is registered by it");
    let error = sde.run("u", &inputs! {}).unwrap_err();
    says(&error, "registered are: s, t");
}

#[test]
fn the_same_run_in_another_engine_has_the_same_key() {
    let keys = [Sde::new(), Sde::new()].map(|sde| key(&sde, &Instance::new(solver())));
    assert_eq!(keys[0], keys[1]);
    let source = |sde: &Sde| sde.request(&solver(), &inputs! {}).run().unwrap().source;
    assert_eq!(source(&Sde::new()), Source::Computed);
}

/// A gigabyte given bare was hashed for the key, and once more for the record.
#[derive(Clone)]
struct Bulk(Vec<f64>);

static BULK_ENCODED: AtomicU32 = AtomicU32::new(0);

impl Fingerprint for Bulk {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        BULK_ENCODED.fetch_add(1, Ordering::SeqCst);
        self.0.fingerprint(to)
    }
}

#[sde::app(name = "identity.bulk")]
fn bulk(values: &Bulk, label: &str) -> usize {
    values.0.len() + label.len()
}

#[test]
fn what_is_long_is_hashed_once_for_a_miss() {
    let (values, sde) = (Bulk(vec![1.0; 1000]), Sde::new());
    let digest = *commit(&values).unwrap().digest().as_bytes();
    BULK_ENCODED.store(0, Ordering::SeqCst);
    bulk.call(&sde, &values, "typed").unwrap();
    assert_eq!(BULK_ENCODED.load(Ordering::SeqCst), 1);
    let given = inputs! { values: values, label: "erased" };
    sde.run(&bulk, &given).unwrap();
    assert_eq!(BULK_ENCODED.load(Ordering::SeqCst), 2);
    for record in sde_tests::records(&sde) {
        assert_eq!(record.inputs[0].digest, digest.into());
    }
}
