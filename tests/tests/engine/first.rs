//! The engine in a few lines.

use sde::{
    App, AppError, AppInfo, EventLog, Fingerprint, Handle, Inputs, Instance, Parameter, ResultMap,
    ResultSpec, Sde, Source, inputs,
};

#[derive(Fingerprint)]
struct Add;

impl App for Add {
    fn info(&self) -> AppInfo {
        AppInfo::new("Add", "1")
            .parameter(Parameter::new("offset", 0.0_f64))
            .result(ResultSpec::new::<f64>("sum"))
    }
    fn run(&self, sde: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let sum = inputs.get::<f64>("a")? + inputs.get::<f64>("b")?;
        Ok(ResultMap::new().with("sum", sum + sde.parameter::<f64>("offset")?))
    }
}

#[test]
fn two_instances_alternately_never_get_each_others_result() {
    let log = EventLog::new();
    let sde = Sde::builder().observer(log.clone()).build().unwrap();
    let inputs = inputs! { a: 1.0_f64, b: 2.0_f64 };
    let other = Instance::new(Add).set("offset", 1.0).unwrap();
    for _ in 0..20 {
        assert_eq!(
            *sde.run(&Add, &inputs).unwrap().get::<f64>("sum").unwrap(),
            3.0
        );
        assert_eq!(
            *sde.run(&other, &inputs).unwrap().get::<f64>("sum").unwrap(),
            4.0
        );
    }
    assert_eq!(log.started("Add"), 2);
}

#[test]
fn the_levels_of_the_cache_are_told_apart() {
    let log = EventLog::new();
    let sde = Sde::builder().observer(log.clone()).build().unwrap();
    let one = inputs! { a: 1.0_f64, b: 2.0_f64 };
    let two = inputs! { a: 2.0_f64, b: 2.0_f64 };
    for inputs in [&one, &one, &two, &one, &one, &one] {
        sde.run(&Add, inputs).unwrap();
    }
    assert_eq!(
        log.sources("Add"),
        [
            Source::Computed,
            Source::LastValue,
            Source::Computed,
            Source::Map,
            Source::Map,
            Source::LastValue,
        ]
    );
}
