//! What the function of an app returned as its error, whatever that is.
//!
//! A `Box<dyn Error>` can't become an [`AppError`] by `From`: threads can't share what is in it, and the standard library may
//! say tomorrow how it turns into one that they can. The macro knows the type that the function declares, and finds the
//! way by the order in which methods are looked up: first those of [`ByFrom`], then, one reference further, those of
//! [`ByItself`].

use std::error::Error as StdError;
use std::marker::PhantomData;

use super::{AppError, Error, said};

/// The type of an error, to ask which way it takes.
pub struct ErrorType<E>(PhantomData<E>);

impl<E> ErrorType<E> {
    /// Of this error.
    pub const fn of(_: &E) -> Self {
        Self(PhantomData)
    }
}

/// What `?` takes.
pub trait ByFrom {
    /// The way.
    fn way(&self) -> ViaFrom {
        ViaFrom
    }
}

impl<E: Into<AppError>> ByFrom for ErrorType<E> {}

/// All else.
pub trait ByItself {
    /// The way.
    fn way(&self) -> ViaItself {
        ViaItself
    }
}

impl<E> ByItself for &ErrorType<E> {}

/// One way to an [`AppError`].
pub struct ViaFrom;

impl ViaFrom {
    /// Converts the error as `?` does.
    pub fn convert<E: Into<AppError>>(self, error: E) -> AppError {
        error.into()
    }
}

/// The other.
pub struct ViaItself;

impl ViaItself {
    /// Converts the error as its [`ErrorOfApp`] says.
    pub fn convert<E: ErrorOfApp>(self, error: E) -> AppError {
        error.into_app_error()
    }
}

/// What a function may fail with that `?` does not take.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be the error of an app",
    label = "the function fails with `{Self}`",
    note = "return `Result<_, sde::AppError>`, into which `?` turns errors and texts, and write \
            `.map_err(|error| sde::AppError::message(..))?` where it doesn't"
)]
pub trait ErrorOfApp {
    /// As the error of an app.
    fn into_app_error(self) -> AppError;
}

/// An error of the engine stays one; of others the text does.
impl ErrorOfApp for Box<dyn StdError> {
    fn into_app_error(self) -> AppError {
        match self.downcast::<Error>() {
            Ok(error) => (*error).into(),
            Err(error) => AppError::message(said(&*error)),
        }
    }
}

impl ErrorOfApp for Box<dyn StdError + Send> {
    fn into_app_error(self) -> AppError {
        let error: Box<dyn StdError> = self;
        error.into_app_error()
    }
}
