//! Apps made of a description and a closure.

use std::sync::Arc;
use std::time::Duration;

use sde::key::TypeWriter;
use sde::key::{Encoder, FingerprintError};
use sde::{
    App, AppError, AppInfo, Cost, Fingerprint, Handle, Inputs, ResultMap, ResultSpec, inputs,
};

type Body = dyn Fn(&Handle, &Inputs) -> Result<ResultMap, AppError> + Send + Sync;

/// An app whose body is a closure. The closure is not in the key: what tells two of them apart is
/// the description.
#[derive(Clone)]
pub struct Made {
    info: AppInfo,
    not_ready: Vec<String>,
    cost: Option<Cost>,
    body: Arc<Body>,
}

/// An app with this description and body.
pub fn made(
    info: AppInfo,
    body: impl Fn(&Handle, &Inputs) -> Result<ResultMap, AppError> + Send + Sync + 'static,
) -> Made {
    Made {
        info,
        not_ready: Vec::new(),
        cost: None,
        body: Arc::new(body),
    }
}

/// An app that makes a number of its input `x`; the result is called `y`.
pub fn number(
    name: &'static str,
    body: impl Fn(&Handle, u64) -> Result<u64, AppError> + Send + Sync + 'static,
) -> Made {
    made(number_info(name, "1"), move |sde, inputs| {
        let y = body(sde, *inputs.get::<u64>("x")?)?;
        Ok(ResultMap::new().with("y", y))
    })
}

/// The description of such an app.
#[must_use]
pub fn number_info(name: &'static str, version: &'static str) -> AppInfo {
    AppInfo::new(name, version).result(ResultSpec::new::<u64>("y"))
}

/// Its inputs.
#[must_use]
pub fn x(x: u64) -> Inputs {
    inputs! { x: x }
}

/// Its result.
///
/// # Errors
/// If the map has none.
pub fn y(results: &ResultMap) -> Result<u64, sde::Error> {
    Ok(*results.get::<u64>("y")?)
}

impl Made {
    /// The same body under another description.
    #[must_use]
    pub fn described(mut self, change: impl FnOnce(AppInfo) -> AppInfo) -> Self {
        self.info = change(self.info);
        self
    }

    /// The same app, which lacks something.
    #[must_use]
    pub fn lacking(mut self, what: &str) -> Self {
        self.not_ready.push(what.to_owned());
        self
    }

    /// The app, whose `cost` is this time.
    #[must_use]
    pub fn taking(mut self, time: Duration) -> Self {
        self.cost = Some(Cost::new(time));
        self
    }
}

impl Fingerprint for Made {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.structure("Made", |_| Ok(()))
    }

    fn shape(to: &mut TypeWriter<'_, '_>) {
        to.declared("Made", 0);
    }
}

impl App for Made {
    fn info(&self) -> AppInfo {
        self.info.clone()
    }

    fn run(&self, sde: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        (self.body)(sde, inputs)
    }

    fn not_ready(&self) -> Vec<String> {
        self.not_ready.clone()
    }

    fn cost(&self, _: &Inputs) -> Option<Cost> {
        self.cost
    }
}

/// A helper of another crate than the apps that name it.
#[sde::helper]
#[must_use]
pub fn a_linked_helper(x: f64) -> f64 {
    2.0 * x
}
