//! One call of an app, as the engine sees it: inputs to encode, a body to run.
//!
//! The arguments of an `#[sde::app]` function are borrowed from the caller's
//! stack, so a hit on them allocates nothing; [`Inputs`] own theirs. Both are
//! calls.

use super::Inputs;
use crate::app::{App, Handle};
use crate::error::AppError;
use crate::key::{Encoder, Fingerprint, FingerprintError, commit, describe};
use crate::result_map::{ErasedValue, ResultMap};

/// The inputs and the body of one call. Implemented by the macros for functions.
pub trait Call {
    /// Writes each input's name and value.
    ///
    /// # Errors
    /// If one can't be fingerprinted; the error names it.
    fn encode(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError>;

    /// The encoding, if the call keeps one.
    fn encoded(&self) -> Option<Result<&[u8], FingerprintError>> {
        None
    }

    /// A readable line for each input, made when the run misses.
    fn summaries(&self) -> Vec<InputSummary>;

    /// Takes the one result of a hit, if that is all the caller gets; `false` if the
    /// caller gets the whole map. It is called with the map's guard held, so it may do
    /// no more than share the value.
    fn take(&self, value: &ErasedValue) -> bool {
        let _ = value;
        false
    }

    /// Runs the app's body. Called once at most.
    ///
    /// # Errors
    /// What the body returns.
    fn compute(&mut self, app: &dyn App, sde: &Handle) -> Result<ResultMap, AppError>;
}

/// A call with [`Inputs`].
pub(crate) struct ErasedCall<'a>(pub(crate) &'a Inputs);

impl Call for ErasedCall<'_> {
    fn encode(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        self.0.write(to)
    }

    fn encoded(&self) -> Option<Result<&[u8], FingerprintError>> {
        Some(self.0.encoded())
    }

    fn summaries(&self) -> Vec<InputSummary> {
        self.0.summaries()
    }

    fn compute(&mut self, app: &dyn App, sde: &Handle) -> Result<ResultMap, AppError> {
        app.run(sde, self.0)
    }
}

/// What the record of a run keeps of one input, so that a miss can be explained.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct InputSummary {
    /// The input's name.
    pub name: String,
    /// The value in at most some eighty characters.
    pub short: String,
    /// The digest of its encoding.
    pub digest: [u8; 32],
}

/// The readable line of one argument. Used by the macros.
#[doc(hidden)]
pub fn summary(name: &str, value: &impl Fingerprint) -> InputSummary {
    InputSummary {
        name: name.to_owned(),
        short: describe(value),
        digest: digest(value),
    }
}

/// The digest of one input's encoding. The inputs were encoded before, so it can't
/// fail for anything but a file that changes; such a digest matches nothing.
pub(super) fn digest(value: &(impl Fingerprint + ?Sized)) -> [u8; 32] {
    commit(value).map_or([0; 32], |commitment| *commitment.digest().as_bytes())
}
