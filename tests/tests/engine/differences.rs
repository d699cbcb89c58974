//! In what a run is another than an earlier one: each kind of thing is named, with both values.

use sde::archiver::{Archiver, MemoryArchiver};
use sde::{
    App, AppError, AppInfo, Fingerprint, Handle, Inputs, Instance, Parameter, Peek, Policy,
    ResultMap, ResultSpec, Sde, Slot, inputs,
};

#[derive(Fingerprint, Clone)]
struct Solver {
    order: u32,
    label: String,
    #[fingerprint(skip)]
    version: &'static str,
}

impl App for Solver {
    fn info(&self) -> AppInfo {
        AppInfo::new("differences.Solver", self.version)
            .parameter(Parameter::new("tolerance", 1e-6_f64))
            .parameter(Parameter::new("threads", 1_usize).transparent())
            .slot(Slot::new("inner", Inner { grid: 50 }))
            .result(ResultSpec::new::<u32>("order"))
            .author("A. Nonymous")
            .citation("J. Irreproducible Results 1 (1955)")
    }
    fn run(&self, _: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        Ok(ResultMap::new().with("order", self.order))
    }
}

#[derive(Fingerprint)]
struct Inner {
    grid: u32,
}

impl App for Inner {
    fn info(&self) -> AppInfo {
        AppInfo::new("differences.Inner", "1").parameter(Parameter::new("damping", 0.5_f64))
    }
    fn run(&self, _: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        Ok(ResultMap::new())
    }
}

/// Another app for the slot.
#[derive(Fingerprint)]
struct Other;

impl App for Other {
    fn info(&self) -> AppInfo {
        AppInfo::new("differences.Other", "1")
    }
    fn run(&self, _: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        Ok(ResultMap::new())
    }
}

fn solver() -> Solver {
    Solver {
        order: 4,
        label: "main".to_owned(),
        version: "1",
    }
}

fn values() -> Inputs {
    inputs! { basis: "STO-3G".to_owned(), charge: 0_i32 }
}

/// In what a run of the one differs from a remembered run of the other, as `peek` tells.
fn told(first: (Instance, Inputs), then: (Instance, Inputs)) -> Vec<String> {
    let sde = Sde::new();
    sde.run(&first.0, &first.1).unwrap();
    match sde.peek(&then.0, &then.1).unwrap() {
        Peek::Miss { nearest, .. } => {
            let found = nearest.unwrap().differences;
            found.iter().map(ToString::to_string).collect()
        }
        other => unreachable!("{other:?} is no miss"),
    }
}

fn told_of_app(then: Instance) -> Vec<String> {
    told((Instance::new(solver()), values()), (then, values()))
}

fn told_of_inputs(then: Inputs) -> Vec<String> {
    let app = || Instance::new(solver());
    told((app(), values()), (app(), then))
}

#[test]
fn an_input() {
    let other = inputs! { basis: "6-31G*".to_owned(), charge: 0_i32 };
    let got = told_of_inputs(other);
    assert_eq!(got, [r#"input "basis": "STO-3G" -> "6-31G*""#]);
    let fewer = inputs! { basis: "STO-3G".to_owned() };
    assert_eq!(told_of_inputs(fewer), [r#"input "charge": 0 -> (nothing)"#]);
}

/// The text does not show it.
#[test]
fn the_type_of_an_input() {
    let wider = inputs! { basis: "STO-3G".to_owned(), charge: 0_i64 };
    let found = told_of_inputs(wider);
    assert_eq!(found.len(), 1);
    let said = r#"input "charge": 0 changed, digest "#;
    let digests = found[0].strip_prefix(said);
    let (then, now) = digests.unwrap().split_once(" -> digest ").unwrap();
    assert_ne!(then, now);
}

#[test]
fn the_order_of_the_inputs() {
    let turned = inputs! { charge: 0_i32, basis: "STO-3G".to_owned() };
    let found = told_of_inputs(turned);
    assert_eq!(
        found,
        ["order of the inputs: basis, charge -> charge, basis"]
    );
}

#[test]
fn a_field() {
    let found = told_of_app(Instance::new(Solver {
        order: 5,
        ..solver()
    }));
    assert_eq!(found, [r#"field "order": 4 -> 5"#]);
}

#[test]
fn a_parameter_but_no_transparent_one() {
    let set = Instance::new(solver()).set("tolerance", 1e-9).unwrap();
    let set = set.set("threads", 7_usize).unwrap();
    assert_eq!(told_of_app(set), [r#"parameter "tolerance": 1e-6 -> 1e-9"#]);
}

#[test]
fn the_version() {
    let found = told_of_app(Instance::new(Solver {
        version: "2",
        ..solver()
    }));
    assert_eq!(found, [r#"version: "1" -> "2""#]);
}

#[test]
fn what_is_in_a_slot() {
    let in_slot = |app: Instance| told_of_app(Instance::new(solver()).fill("inner", app).unwrap());
    let inner = Instance::new(Inner { grid: 50 });
    let damped = inner.clone().set("damping", 0.25).unwrap();
    let found = in_slot(damped);
    assert_eq!(
        found,
        [r#"in slot "inner": parameter "damping": 0.5 -> 0.25"#]
    );
    let found = in_slot(Instance::new(Inner { grid: 75 }));
    assert_eq!(found, [r#"in slot "inner": field "grid": 50 -> 75"#]);
    let found = in_slot(Instance::new(Other));
    let other = r#"in slot "inner": app: differences.Inner -> differences.Other"#;
    assert_eq!(found[0], other);
}

/// A value that writes itself to the key by hand has no fields that could be named.
#[test]
fn the_app_itself() {
    struct ByHand(u32);
    impl Fingerprint for ByHand {
        fn fingerprint(
            &self,
            to: &mut sde::key::Encoder<'_>,
        ) -> Result<(), sde::key::FingerprintError> {
            to.structure("ByHand", |fields| fields.field("secret", &self.0))
        }
    }
    impl App for ByHand {
        fn info(&self) -> AppInfo {
            AppInfo::new("differences.ByHand", "1")
        }
        fn run(&self, _: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
            Ok(ResultMap::new())
        }
    }
    let [one, two] = [1, 2].map(|n| (Instance::new(ByHand(n)), inputs! {}));
    let found = told(one, two);
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with("the app itself: ByHand (digest "),
        "{found:?}"
    );
}

#[test]
fn the_nearest_is_the_one_with_the_fewest_differences() {
    let sde = Sde::new();
    let app = Instance::new(solver());
    let run = |basis: &str, charge: i32| {
        let inputs = inputs! { basis: basis.to_owned(), charge: charge };
        sde.request(&app, &inputs).run().unwrap().key
    };
    let near = run("STO-3G", 1);
    run("6-31G*", 2);
    let wanted = inputs! { basis: "STO-3G".to_owned(), charge: 0_i32 };
    match sde.peek(&app, &wanted).unwrap() {
        Peek::Miss {
            nearest: Some(nearest),
            ..
        } => {
            assert_eq!(nearest.key, near);
            assert_eq!(nearest.differences.len(), 1);
        }
        other => unreachable!("{other:?}"),
    }
}

/// Its caller has the same key as before; only its record tells.
#[test]
fn what_ran_beneath() {
    let records = ["1", "2"].map(|version| {
        let store = MemoryArchiver::new();
        let sde = Sde::builder()
            .store(store.clone())
            .save(sde::SavePolicy::OnRequest)
            .build()
            .unwrap();
        let caller = Caller { version };
        let key = sde.request(&caller, &inputs! {}).run().unwrap().key;
        sde.finish().unwrap();
        store.find(&key).unwrap().unwrap().record
    });
    assert_eq!(records[0].key, records[1].key);
    let found = records[1].differences(&records[0]);
    let found: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert_eq!(found, [r#"callee "differences.Callee": "1" -> "2""#]);
    assert_eq!(records[0].differences(&records[0]), []);
}

#[derive(Fingerprint)]
struct Caller {
    #[fingerprint(skip)]
    version: &'static str,
}

impl App for Caller {
    fn info(&self) -> AppInfo {
        AppInfo::new("differences.Caller", "1").result(ResultSpec::new::<u32>("x"))
    }
    fn run(&self, sde: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        let version = self.version;
        sde.run(&Beneath { version }, &inputs! {})?;
        Ok(ResultMap::new().with("x", 1_u32))
    }
}

#[derive(Fingerprint)]
struct Beneath {
    #[fingerprint(skip)]
    version: &'static str,
}

impl App for Beneath {
    fn info(&self) -> AppInfo {
        AppInfo::new("differences.Callee", self.version)
    }
    fn run(&self, _: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        Ok(ResultMap::new())
    }
}

#[test]
fn the_record_has_all_that_was_set() {
    let store = MemoryArchiver::new();
    let sde = Sde::builder()
        .store(store.clone())
        .save(sde::SavePolicy::OnRequest)
        .build()
        .unwrap();
    let key = sde.request(&solver(), &values()).run().unwrap().key;
    sde.finish().unwrap();
    let record = store.find(&key).unwrap().unwrap().record;
    let named = |values: &[sde::record::ValueSummary]| -> Vec<_> {
        let one = |value: &sde::record::ValueSummary| format!("{}={}", value.name, value.short);
        values.iter().map(one).collect()
    };
    let setup = &record.setup;
    assert_eq!(named(&record.inputs), [r#"basis="STO-3G""#, "charge=0"]);
    assert_eq!(named(&setup.fields), ["order=4", r#"label="main""#]);
    assert_eq!(named(&setup.parameters), ["tolerance=1e-6"]);
    assert_eq!(named(&setup.transparent), ["threads=1"]);
    assert_eq!(setup.slots[0].slot, "inner");
    assert_eq!(&*setup.slots[0].app, "differences.Inner");
    assert_eq!(named(&setup.slots[0].setup.parameters), ["damping=0.5"]);
    assert_eq!(setup.authors, ["A. Nonymous"]);
    assert_eq!(setup.citations.len(), 1);
    assert!(!record.host.is_empty() && record.target.contains('-'));
}

/// Runs of one app share what their records have in common; transparent parameters are in no identity.
#[test]
fn the_record_has_the_transparent_parameters_of_its_own_run() {
    let sde = Sde::new();
    for threads in [1_usize, 8, 8] {
        let app = Instance::new(solver()).set("threads", threads).unwrap();
        let inputs = values();
        let request = sde.request(&app, &inputs);
        request.policy(Policy::Refresh).run().unwrap();
        let record = &sde_tests::records(&sde)[0];
        assert_eq!(record.setup.transparent[0].short, threads.to_string());
    }
}
