//! Apps of a crate that names `sde` and none of the crates below it, with each macro.

#![forbid(unsafe_code)]

use sde::{
    App, AppError, AppInfo, ConfiguredApp, DistArray, Distributed, Fingerprint, Handle, Inputs,
    Prepared, ResultMap, ResultSpec, Value,
};

/// What an orbit starts from.
#[derive(Clone, Fingerprint)]
pub struct Start {
    /// Where.
    pub x: f64,
    /// Not part of what is computed.
    #[fingerprint(skip)]
    pub label: String,
}

/// The logistic map.
#[sde::helper]
fn step(r: f64, x: f64) -> f64 {
    r * x * (1.0 - x)
}

/// The mean of an orbit.
#[sde::app]
pub fn orbit_mean(start: Start, r: f64) -> f64 {
    let orbit = std::iter::successors(Some(start.x), |x| Some(step(r, *x)));
    orbit.take(100).sum::<f64>() / 100.0
}

/// The mean of means.
#[sde::app(tags(intermediate))]
pub fn mean_of_means(sde: &Handle, start: &Start, growths: &[f64]) -> Result<f64, AppError> {
    let runs = growths.iter().map(|r| (start.clone(), *r));
    let means: Vec<Value<f64>> = orbit_mean.par_call(sde, runs)?;
    Ok(means.iter().map(|mean| **mean).sum::<f64>() / growths.len() as f64)
}

/// A field on all ranks.
#[derive(serde::Serialize, serde::Deserialize, Distributed)]
pub struct Field {
    /// Each rank has a part.
    pub values: DistArray<f64>,
    /// The same on all ranks.
    #[distributed(same)]
    pub spacing: f64,
}

/// Squares, each on the rank that has it.
#[sde::app(distributed)]
pub fn squares(sde: &Handle, length: usize) -> Result<Field, AppError> {
    Ok(Field {
        values: DistArray::from_fn(sde, &[length], |at| (at[0] * at[0]) as f64)?,
        spacing: 1.0,
    })
}

/// The app as a type.
#[derive(Fingerprint)]
pub struct Answer;

impl App for Answer {
    fn info(&self) -> AppInfo {
        AppInfo::new("program.Answer", "1").result(ResultSpec::new::<i32>("answer"))
    }

    fn run(&self, _: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        Ok(ResultMap::new().with("answer", *inputs.get::<i32>("asked")? + 1))
    }
}

sde::link_app!(Answer);

/// The app as a struct of its settings.
#[derive(sde::Settings)]
pub struct Scaled {
    /// Multiplies the mean.
    #[setting(default = 1.0)]
    by: f64,
    /// start, r -> result
    #[slot(default = orbit_mean)]
    mean: Prepared,
}

#[sde::app]
impl ConfiguredApp for Scaled {
    fn info() -> AppInfo {
        AppInfo::named("program.Scaled").result(ResultSpec::new::<f64>("result"))
    }

    fn run(&self, sde: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let mean = sde.run(&self.mean, inputs)?;
        Ok(ResultMap::new().with("result", self.by * *mean.get::<f64>("result")?))
    }
}
