//! Conversion of the error that an app's function returns, whatever its type.
//!
//! A `Box<dyn Error>` can't become an [`AppError`] by `From`: its content can't be shared between threads, and the
//! standard library may add a conversion that would conflict. The macro knows the declared type, and selects the
//! conversion by the order of method lookup: first [`ByFrom`], then, one reference further, [`ByItself`].

use std::error::Error as StdError;
use std::marker::PhantomData;

use super::{AppError, Error, said};

/// The type of an error, from which its conversion is selected.
#[derive(Debug)]
pub struct ErrorType<E>(PhantomData<E>);

impl<E> ErrorType<E> {
    /// The type of this error.
    pub const fn of(_: &E) -> Self {
        Self(PhantomData)
    }
}

/// Selects the conversion of types that `?` takes.
pub trait ByFrom {
    /// The conversion.
    fn way(&self) -> ViaFrom {
        ViaFrom
    }
}

impl<E: Into<AppError>> ByFrom for ErrorType<E> {}

/// Selects the conversion of all other types.
pub trait ByItself {
    /// The conversion.
    fn way(&self) -> ViaItself {
        ViaItself
    }
}

impl<E> ByItself for &ErrorType<E> {}

/// Conversion to an [`AppError`] by `Into`.
#[derive(Debug)]
pub struct ViaFrom;

impl ViaFrom {
    /// Converts the error as `?` does.
    pub fn convert<E: Into<AppError>>(self, error: E) -> AppError {
        error.into()
    }
}

/// Conversion to an [`AppError`] by [`ErrorOfApp`].
#[derive(Debug)]
pub struct ViaItself;

impl ViaItself {
    /// Converts the error as its [`ErrorOfApp`] says.
    pub fn convert<E: ErrorOfApp>(self, error: E) -> AppError {
        error.into_app_error()
    }
}

/// An error of an app's function that `?` does not take.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be the error of an app",
    label = "the function fails with `{Self}`",
    note = "return `Result<_, sde::AppError>`, into which `?` turns errors and texts, and write \
            `.map_err(|error| sde::AppError::message(..))?` where it doesn't"
)]
pub trait ErrorOfApp {
    /// Converts to the error of an app.
    fn into_app_error(self) -> AppError;
}

/// Keeps an error of the engine as it is; of any other error keeps the text.
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
