//! What a call of an app's function gives.

use super::map::ResultMap;
use super::spec::ResultSpec;
use super::value::{ErasedValue, Value};
use crate::error::Error;

/// A struct of which each field is a result; for its [derive](derive@crate::Results).
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no results: it does not derive `sde::Results`",
    note = "write `#[derive(sde::Results)]` on the struct"
)]
pub trait Results: Send + Sync + Sized + 'static {
    /// The struct of [`Value`]s that a call gives.
    type Values: FromResults;

    /// The declared results.
    fn specs() -> Vec<ResultSpec>;

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
