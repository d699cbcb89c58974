//! Errors of builds, as the engine carries them.

use sde::Failure;

use crate::error::Error;
use crate::identity::Descriptor;

impl Error {
    /// As the error of an app: what a driver refused for reasons of its own, one of those who wait may try again.
    pub(crate) fn for_app(self, program: &Descriptor) -> sde::AppError {
        let lasts = match &self {
            error if error.is_permanent() => Failure::Permanent,
            Self::Driver { .. } | Self::OutOfResources { .. } | Self::Build { .. } => {
                Failure::Transient
            }
            _ => Failure::Ordinary,
        };
        let program = program.clone();
        let failed = Failed {
            program,
            error: self,
        };
        sde::AppError::from(failed).lasting(lasts)
    }

    /// The same for an engine that is asked again when it failed: what is remembered of failures, the other one remembers.
    pub(crate) fn for_store(self, program: &Descriptor) -> sde::AppError {
        let error = self.for_app(program);
        match error.failure() {
            Some(Failure::Permanent) => error.lasting(Failure::Ordinary),
            _ => error,
        }
    }
}

/// What an app of this crate failed with, and for which program: whoever gets it may have asked for
/// another one of the same digest.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{error}")]
struct Failed {
    program: Descriptor,
    error: Error,
}

impl From<sde::Error> for Error {
    /// What an app of this crate failed with, if that is it: through all runs beneath one another.
    fn from(error: sde::Error) -> Self {
        match error.app_error::<Failed>() {
            Some(failed) => failed.error.clone(),
            None => Self::Engine(error),
        }
    }
}

/// What an app of this crate gave, result or error, if it gave it for this program; nothing if for another
/// of the same digest.
pub(crate) fn given<T>(
    outcome: Result<T, sde::Error>,
    program: &Descriptor,
    of: impl FnOnce(&T) -> &Descriptor,
) -> Option<Result<T, Error>> {
    let is_of_it = match &outcome {
        Ok(found) => of(found).is_same(program),
        Err(error) => match error.app_error::<Failed>() {
            Some(failed) => failed.program.is_same(program),
            None => true,
        },
    };
    is_of_it.then(|| outcome.map_err(Error::from))
}
