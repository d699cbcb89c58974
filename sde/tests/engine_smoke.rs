//! The engine in a few lines; the themes are in the `tests` package.

use sde::key::{Encoder, Shape};
use sde::*;

struct Add;

impl Fingerprint for Add {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> std::result::Result<(), FingerprintError> {
        to.structure("Add", |_| Ok(()))
    }
    fn shape(to: &mut Shape<'_, '_>) {
        to.declared("Add", 0);
    }
}

impl App for Add {
    fn info(&self) -> AppInfo {
        AppInfo::new("Add", "1")
            .parameter(Parameter::new("offset", 0.0_f64))
            .result(ResultSpec::new::<f64>("sum"))
    }
    fn run(&self, sde: &Handle, inputs: &Inputs) -> std::result::Result<ResultMap, AppError> {
        let sum = inputs.get::<f64>("a")? + inputs.get::<f64>("b")?;
        Ok(ResultMap::new().with("sum", sum + sde.parameter::<f64>("offset")?))
    }
}

#[test]
fn computes_once_and_remembers() {
    let log = EventLog::new();
    let sde = Sde::builder().observer(log.clone()).build().unwrap();
    let inputs = inputs! { a: 1.0_f64, b: 2.0_f64 };
    for _ in 0..3 {
        assert_eq!(
            *sde.run(&Add, &inputs).unwrap().get::<f64>("sum").unwrap(),
            3.0
        );
    }
    let other = Instance::new(Add).set("offset", 1.0).unwrap();
    assert_eq!(
        *sde.run(&other, &inputs).unwrap().get::<f64>("sum").unwrap(),
        4.0
    );
    assert_eq!(
        *sde.run(&Add, &inputs).unwrap().get::<f64>("sum").unwrap(),
        3.0
    );
    assert_eq!(
        log.sources("Add"),
        [
            Source::Computed,
            Source::LastValue,
            Source::LastValue,
            Source::Computed,
            Source::Map
        ]
    );
}
