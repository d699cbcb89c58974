//! Apps for the golden list: what their identities and the keys of their runs are made of.

use sde::key::Digest;
use sde::record::AppId;
use sde::{
    App, AppError, AppInfo, Fingerprint, Handle, Inputs, Instance, Key, Parameter, ResultMap,
    ResultSpec, Sde, Slot, inputs,
};

/// A name and a version.
#[derive(Fingerprint)]
struct Plain;

impl App for Plain {
    fn info(&self) -> AppInfo {
        AppInfo::new("golden.Plain", "1.2").result(ResultSpec::new::<f64>("y"))
    }

    fn run(&self, _: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        Ok(ResultMap::new().with("y", 1.0))
    }
}

/// All that an identity can be made of.
#[derive(Fingerprint)]
struct Full {
    order: u32,
    label: &'static str,
}

impl App for Full {
    fn info(&self) -> AppInfo {
        AppInfo::new("golden.Full", "3")
            .parameter(Parameter::new("tolerance", 1e-6_f64))
            .parameter(Parameter::new("basis", "6-31G*".to_owned()))
            .parameter(Parameter::new("threads", 1_usize).transparent())
            .slot(Slot::new("plain", Plain))
            .slot(Slot::required("deeper"))
            .result(ResultSpec::new::<f64>("y"))
    }

    fn run(&self, _: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        Ok(ResultMap::new().with("y", 2.0))
    }
}

/// Its code is its text.
#[sde::app(name = "golden.named")]
fn named(x: f64, label: &str) -> f64 {
    x * label.len() as f64
}

/// Its module counts too, since it was given no name.
#[sde::app]
fn golden_unnamed(x: f64) -> f64 {
    x + 1.0
}

#[sde::app(name = "golden.versioned", version = "7")]
fn versioned(x: f64) -> f64 {
    x - 1.0
}

fn of_id(id: AppId) -> Digest {
    Digest::from_bytes(*id.as_bytes())
}

fn of_key(key: Key) -> Digest {
    Digest::from_bytes(*key.as_bytes())
}

fn full(threads: usize) -> Instance {
    let app = |order| {
        Instance::new(Full {
            order,
            label: "golden",
        })
    };
    let inner = app(2)
        .set("tolerance", 0.5_f64)
        .and_then(|inner| inner.fill("deeper", named))
        .expect("the parameter and the slot are declared");
    app(1)
        .set("threads", threads)
        .and_then(|outer| outer.fill("deeper", inner))
        .expect("the parameter and the slot are declared")
}

/// A name and a digest of each kind of identity, and of keys made with them.
pub fn apps() -> Vec<(&'static str, Digest)> {
    let sde = Sde::new();
    let id = |app: &Instance| of_id(sde.prepare(app).expect("it can be identified").id());
    let inputs = inputs! { x: 2.5_f64, label: "a".to_owned() };
    let full = full(8);
    let key = sde.peek(&full, &inputs).expect("it can be keyed").key();
    let of_function = sde.peek(&named, &inputs).expect("it can be keyed").key();
    vec![
        ("app with a version", id(&Instance::new(Plain))),
        ("app with all there is", id(&full)),
        ("app by its text", id(&Instance::new(named))),
        (
            "app by its text and module",
            id(&Instance::new(golden_unnamed)),
        ),
        (
            "app by a function with a version",
            id(&Instance::new(versioned)),
        ),
        ("key of an app with all there is", of_key(key)),
        ("key of a function", of_key(of_function)),
    ]
}

/// The call of a function and the same by inputs make one key, and what is transparent none.
#[test]
fn ways_to_one_key() {
    let sde = Sde::new();
    let id = |threads| {
        sde.prepare(&full(threads))
            .expect("it can be identified")
            .id()
    };
    assert_eq!(id(1), id(8));
    let inputs = inputs! { x: 2.5_f64, label: "a".to_owned() };
    named.call(&sde, 2.5, "a").expect("it computes");
    let mut key = None;
    sde.records(|record| key = Some(record.key));
    assert_eq!(key, sde.peek(&named, &inputs).ok().map(|peek| peek.key()));
}
