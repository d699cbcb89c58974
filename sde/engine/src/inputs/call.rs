//! The engine's view of one call of an app: inputs to encode, a body to run.
//!
//! An `#[sde::app]` function borrows its arguments from the caller's stack, so a hit allocates nothing;
//! [`Inputs`](super::Inputs) own theirs. Both are calls.

use std::borrow::Cow;

use super::DeclaredInputs;
use crate::app::{App, Cost, Handle};
use crate::error::{AppError, Error};
pub use crate::key::short::ValueSummary;
use crate::key::{EncodedCursor, Encoder, FingerprintError, Scalar, field};
use crate::result_map::{ErasedValue, ResultMap};

/// The inputs and the body of one call. The macros implement it for functions.
#[allow(
    unused_variables,
    reason = "what a call need not do has its names for the documentation"
)]
pub trait Call {
    /// Writes each input's name and value.
    ///
    /// # Errors
    /// If an input can't be fingerprinted; the error names it.
    fn encode(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError>;

    /// The encoding, if the call keeps one.
    fn encoded(&self) -> Option<&[u8]> {
        None
    }

    /// A readable line for each input, made when the run misses. `cursor` reads the output of [`encode`](Self::encode).
    fn summaries(&self, cursor: &mut EncodedCursor<'_>) -> Vec<ValueSummary>;

    /// Takes the result of a hit, if the caller wants just one, and says whether it did. As in
    /// [`take_all`](Self::take_all), the map's guard is held, so it may only share the value.
    ///
    /// A hit is not returned by value, as a computed result is: moving it up through the layers of encoding, lookup and
    /// locks took 17 of 58 ns, and 36 of 77 ns for a map.
    fn take_one(&self, value: ErasedValue) -> bool {
        false
    }

    /// Takes all results of a hit, if the caller gets the map, and says whether it did.
    fn take_all(&self, results: ResultMap) -> bool {
        false
    }

    /// Checks the inputs, before a run is computed, and puts them in the declared order. Says whether they had another:
    /// then they have to be looked up anew.
    ///
    /// A hit needs no check: its run had inputs of this key, which were checked.
    ///
    /// # Errors
    /// If they are not those that the app declares.
    fn declare(&mut self, app: &str, declared: &DeclaredInputs) -> Result<bool, Error> {
        Ok(false)
    }

    /// The app's estimate of the run's cost, if it has one.
    fn cost(&self, app: &dyn App) -> Option<Cost> {
        None
    }

    /// Runs the app's body. Called at most once.
    ///
    /// # Errors
    /// The error that the body returns.
    fn compute(&mut self, app: &dyn App, sde: &Handle) -> Result<ResultMap, AppError>;
}

/// The approximate overhead of an allocation.
pub(crate) const BLOCK: usize = 24;

impl ValueSummary {
    /// The approximate number of bytes it owns.
    pub(crate) fn owned(&self) -> usize {
        let fields = self.fields.iter();
        let fields = fields.map(|field| size_of_val(field) + field.owned());
        self.name.len() + self.short.len() + 2 * BLOCK + fields.sum::<usize>()
    }
}

impl Scalar {
    /// The summary that a record has of an input with this name and value: its short text and digest are those that a
    /// run makes.
    ///
    /// ```
    /// use sde::key::Scalar;
    /// let summary = Scalar::Text("6-31G*".into()).summary("basis");
    /// assert_eq!(summary.short, "\"6-31G*\"");
    /// ```
    #[must_use]
    pub fn summary(&self, name: impl Into<Cow<'static, str>>) -> ValueSummary {
        field(name, self)
    }
}
