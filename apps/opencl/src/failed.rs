//! Errors of builds, as the engine carries them.

use sde::Failure;

use crate::error::Error;
use crate::identity::Descriptor;

impl Error {
    /// As the error of an app. After a failure that may be the driver's alone, a waiting caller may try again.
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

    /// As [`for_app`](Self::for_app), for a directory's engine, which must not remember a failure: the outer one does.
    pub(crate) fn for_store(self, program: &Descriptor) -> sde::AppError {
        let error = self.for_app(program);
        match error.failure() {
            Some(Failure::Permanent) => error.lasting(Failure::Ordinary),
            _ => error,
        }
    }
}

/// The error of an app of this crate, with its program: a caller may have asked for another program of the same digest.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{error}")]
struct Failed {
    program: Descriptor,
    error: Error,
}

impl From<sde::Error> for Error {
    /// This crate's error, if an app of it failed, however deep in nested runs.
    fn from(error: sde::Error) -> Self {
        match error.app_error::<Failed>() {
            Some(failed) => failed.error.clone(),
            None => Self::Engine(error),
        }
    }
}

/// The outcome of an app of this crate, if it is of this program; `None` if of another of the same digest.
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
