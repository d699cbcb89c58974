//! What a call of an app's function gives.

use super::map::ResultMap;
use super::spec::ResultSpec;
use super::value::{ErasedValue, Value};
use crate::error::Error;
use crate::key::Digest;

/// A struct whose fields are the results of an app, by `#[derive(sde::Results)]`.
///
/// The app's function returns the struct, and is marked `#[sde::app(results)]`. A field is a result of its name, with
/// its documentation as the description. A call gives a struct of these fields, each a [`Value`](crate::Value):
/// `scf.call(..)?.energy`. Its name is that of the struct, and `Values`. An `expendable` or `no_cache` field is an
/// `Option` there, since a hit may lack it.
///
/// | in `#[result(..)]` | meaning |
/// |---|---|
/// | `name = ".."`, `about = ".."` | in place of the field's name and documentation |
/// | `intermediate`, `expendable`, `no_cache` | the [tags](crate::Tag) |
/// | `sized`, `not_compared` | as [`ResultSpec::sized`](crate::ResultSpec::sized) and [`ResultSpec::not_compared`](crate::ResultSpec::not_compared) |
///
/// ```
/// #[derive(sde::Results)]
/// struct Fit {
///     /// Of the line.
///     slope: f64,
///     offset: f64,
///     /// What is left of each value.
///     #[result(expendable)]
///     rest: Vec<f64>,
/// }
///
/// #[sde::app(results)]
/// fn fit(ys: &[f64]) -> Fit {
///     let n = ys.len() as f64;
///     let (x_mean, y_mean) = ((n - 1.0) / 2.0, ys.iter().sum::<f64>() / n);
///     let from_mean = |i: usize| i as f64 - x_mean;
///     let over: f64 = ys.iter().enumerate().map(|(i, y)| from_mean(i) * (y - y_mean)).sum();
///     let slope = over / (0..ys.len()).map(|i| from_mean(i).powi(2)).sum::<f64>();
///     let offset = y_mean - slope * x_mean;
///     let rest = ys.iter().enumerate().map(|(i, y)| y - offset - slope * i as f64).collect();
///     Fit { slope, offset, rest }
/// }
///
/// let sde = sde::Sde::new();
/// let line = fit.call(&sde, &[1.0, 3.0, 5.0])?;
/// assert_eq!((*line.slope, *line.offset), (2.0, 1.0));
/// assert_eq!(line.rest.map(|rest| rest.len()), Some(3));
/// assert_eq!(*sde.run(&fit, &sde::inputs! { ys: vec![1.0, 3.0, 5.0] })?.get::<f64>("slope")?, 2.0);
/// # Ok::<(), sde::Error>(())
/// ```
///
/// A field whose type is [`Distributed`](trait@crate::Distributed) lies in parts on all ranks, and the app is `distributed`.
///
/// In an `impl App` the struct is declared by [`AppInfo::results_of`](crate::AppInfo::results_of), and `into` makes it a [`ResultMap`](crate::ResultMap).
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no results: it does not derive `sde::Results`",
    note = "write `#[derive(sde::Results)]` on the struct"
)]
pub trait Results: Send + Sync + Sized + 'static {
    /// The struct of [`Value`]s that a call gives.
    type Values: FromResults;

    /// The declared results.
    fn specs() -> Vec<ResultSpec>;

    /// The digest of the struct's text.
    #[doc(hidden)]
    fn code() -> Digest;

    /// The results, by name.
    fn into_map(self) -> ResultMap;
}

/// The values that a typed call gives.
pub trait FromResults: Send + Sized {
    /// The results that must be there.
    const NAMES: &'static [&'static str];

    /// The values in a map.
    ///
    /// # Errors
    /// If one that must be there is not, or has another type.
    fn from_map(map: &ResultMap) -> Result<Self, Error>;

    /// The only value of a hit, if that is all it takes.
    fn from_one(value: ErasedValue) -> Option<Self> {
        let _ = value;
        None
    }
}

/// The result of a function without [`Results`].
impl<T: Send + Sync + 'static> FromResults for Value<T> {
    const NAMES: &'static [&'static str] = &["result"];

    fn from_map(map: &ResultMap) -> Result<Self, Error> {
        map.get("result")
    }

    #[inline]
    fn from_one(value: ErasedValue) -> Option<Self> {
        value.into_value()
    }
}
