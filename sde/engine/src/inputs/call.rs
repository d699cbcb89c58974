//! One call of an app, as the engine sees it: inputs to encode, a body to run.
//!
//! The arguments of an `#[sde::app]` function are borrowed from the caller's
//! stack, so a hit on them allocates nothing; [`Inputs`](super::Inputs) own theirs. Both are
//! calls.

use std::borrow::Cow;

use crate::app::{App, Cost, Handle};
use crate::error::AppError;
use crate::event::Source;
use crate::key::{
    Digest, EncodedCursor, Encoder, Field, Fingerprint, FingerprintError, Scalar, describe, field,
};
use crate::result_map::{ErasedValue, ResultMap};

/// The inputs and the body of one call. Implemented by the macros for functions.
pub trait Call {
    /// Writes each input's name and value.
    ///
    /// # Errors
    /// If one can't be fingerprinted; the error names it.
    fn encode(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError>;

    /// The encoding, if the call has kept one.
    fn encoded(&self) -> Option<&[u8]> {
        None
    }

    /// A readable line for each input, made when the run misses. `cursor` is what
    /// [`encode`](Self::encode) wrote.
    fn summaries(&self, cursor: &mut EncodedCursor<'_>) -> Vec<ValueSummary>;

    /// Takes the one result of a hit, if that is all the caller gets, and says whether
    /// it did. Like [`take_all`](Self::take_all) it is called with the map's guard held
    /// and may do no more than share what it is shown.
    ///
    /// A hit is not returned as a value, as what is computed is: to move that up through what
    /// encodes, looks and locks took 17 of 58 ns, and 36 of 77 ns for a map.
    fn take_one(&self, value: ErasedValue) -> bool {
        let _ = value;
        false
    }

    /// Takes all results of a hit, if the caller gets the map, and says whether it did.
    fn take_all(&self, results: ResultMap, source: Source) -> bool {
        let _ = (results, source);
        false
    }

    /// What the app expects the run to take, if it can tell.
    fn cost(&self, app: &dyn App) -> Option<Cost> {
        let _ = app;
        None
    }

    /// Runs the app's body. Called once at most.
    ///
    /// # Errors
    /// What the body returns.
    fn compute(&mut self, app: &dyn App, sde: &Handle) -> Result<ResultMap, AppError>;
}

/// What the record of a run keeps of one input, or of one field or parameter of its app, so
/// that a miss can be explained.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ValueSummary {
    /// Its name.
    pub name: Cow<'static, str>,
    /// The value in at most some eighty characters.
    pub short: String,
    /// The digest of its encoding; zeros if it could not be encoded any more.
    pub digest: Digest,
    /// The value itself, if it is a number, a truth value, a character or a short text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scalar: Option<Scalar>,
}

/// What an allocation takes besides what is in it, about.
pub(crate) const BLOCK: usize = 24;

impl ValueSummary {
    /// About how many bytes it owns.
    pub(crate) fn owned(&self) -> usize {
        self.name.len() + self.short.len() + 2 * BLOCK
    }
}

impl From<Field> for ValueSummary {
    fn from((name, short, digest, scalar): Field) -> Self {
        Self {
            name: name.into(),
            short,
            digest,
            scalar,
        }
    }
}

impl Scalar {
    /// What a record keeps of an input with this name and value: the same short text and the same digest as those that
    /// the run made.
    ///
    /// ```
    /// use sde::Scalar;
    /// let summary = Scalar::Text("6-31G*".into()).summary("basis");
    /// assert_eq!(summary.short, "\"6-31G*\"");
    /// ```
    #[must_use]
    pub fn summary(&self, name: impl Into<Cow<'static, str>>) -> ValueSummary {
        let name = name.into();
        let (_, short, digest, scalar) = field(&name, self);
        ValueSummary {
            name,
            short,
            digest,
            scalar,
        }
    }
}

/// The readable line of one argument. Used by the macros.
#[doc(hidden)]
pub fn summary(
    name: impl Into<Cow<'static, str>>,
    value: &impl Fingerprint,
    cursor: &mut EncodedCursor<'_>,
) -> ValueSummary {
    let name = name.into();
    ValueSummary {
        short: describe(value),
        digest: Digest::from_bytes(cursor.digest(&name, value)),
        name,
        scalar: value.to_scalar(),
    }
}
