//! The trait of an app.

use super::Handle;
use super::info::{AppInfo, Cost};
use crate::error::AppError;
use crate::inputs::Inputs;
use crate::key::Fingerprint;
use crate::result_map::ResultMap;

/// A unit of computation whose results are remembered.
///
/// Most apps are written as functions with [`#[sde::app]`](macro@crate::app), those with parameters or sub-apps as a
/// [`ConfiguredApp`](crate::ConfiguredApp). This trait is for values whose fields make the app.
///
/// The fields of the implementing type are part of the identity (that is why
/// `Fingerprint` is required): two values that differ in a field never share
/// a result. Settings that a user changes by name belong into the
/// [`AppInfo`]'s parameters instead.
///
/// `run` must depend on nothing but `self`, the parameters, the inputs and the runs it makes through the handle.
/// Anything else that it reads (the environment, a file by its path, a global) is not in the key, and a change of that
/// goes unnoticed.
///
/// ```
/// use sde::{App, AppError, AppInfo, Fingerprint, Handle, Inputs, ResultMap, ResultSpec, Sde, inputs};
///
/// #[derive(Fingerprint)]
/// struct Mean;
///
/// #[sde::app]
/// impl App for Mean {
///     fn info(&self) -> AppInfo {
///         let info = AppInfo::named("Mean").input::<Vec<f64>>("samples");
///         info.result(ResultSpec::new::<f64>("mean"))
///     }
///
///     fn run(&self, _: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
///         let samples = inputs.get::<Vec<f64>>("samples")?;
///         let mean = samples.iter().sum::<f64>() / samples.len() as f64;
///         Ok(ResultMap::new().with("mean", mean))
///     }
/// }
///
/// let sde = Sde::new();
/// let results = sde.run(&Mean, &inputs! { samples: vec![1.0, 2.0, 6.0] })?;
/// assert_eq!(*results.get::<f64>("mean")?, 3.0);
/// # Ok::<(), sde::Error>(())
/// ```
pub trait App: Fingerprint + Send + Sync + 'static {
    /// The description of the app. It must be the same on every call.
    fn info(&self) -> AppInfo;

    /// Computes the results: all those that `info` declares, no others.
    ///
    /// # Errors
    /// Whatever goes wrong. An ordinary error reaches every caller that waits for
    /// this run and is not remembered; see [`Failure`](crate::Failure) for the
    /// others.
    ///
    /// # Panics
    /// A panic reaches the caller on whose thread it happened. A waiter takes over; no key is ever poisoned.
    fn run(&self, sde: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError>;

    /// The expected cost of a run with these inputs, if the app can tell. Where work is [shared](crate::SharedWork), a
    /// run expected to take 20 ms or more is announced before it begins. Others then wait for it as for one that was
    /// seen to take as long.
    fn cost(&self, inputs: &Inputs) -> Option<Cost> {
        let _ = inputs;
        None
    }

    /// Lists what the app still lacks before it can run (a device, a program, a licence), a sentence each. Missing
    /// parameters and sub-apps need not be named: the engine finds them.
    fn not_ready(&self) -> Vec<String> {
        Vec::new()
    }
}
