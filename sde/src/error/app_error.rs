//! What an app returns when it fails, and what that means for others who wait.

use std::fmt;
use std::sync::Arc;

/// How long a failure lasts, which decides what the engine does with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// Every waiter gets the error; it is not remembered, so the next run tries
    /// again. The default.
    #[default]
    Ordinary,
    /// It would fail in the same way again (a source that does not compile): the
    /// error is remembered in memory until the app's cache is cleaned, and never
    /// saved.
    Permanent,
    /// It may go away (a busy server): one waiter takes over, once per flight;
    /// after that the rest get the error.
    Transient,
}

/// The error of an app's body: any error, and how long it lasts.
///
/// It does not implement [`std::error::Error`] itself, so that `?` turns any
/// error into one:
///
/// ```
/// use sde::AppError;
///
/// fn body(text: &str) -> Result<i64, AppError> {
///     let number: i64 = text.parse()?;
///     if number < 0 {
///         return Err(AppError::message("a count can't be negative"));
///     }
///     Ok(number)
/// }
/// assert_eq!(body("-3").unwrap_err().to_string(), "a count can't be negative");
/// ```
#[derive(Clone)]
pub struct AppError {
    source: Arc<dyn std::error::Error + Send + Sync + 'static>,
    failure: Option<Failure>,
}

impl AppError {
    /// An error that is just a message.
    pub fn message(text: impl Into<String>) -> Self {
        Self::from(Message(text.into()))
    }

    /// Says that this failure may go away by itself.
    #[must_use]
    pub fn transient(self) -> Self {
        self.lasting(Failure::Transient)
    }

    /// Says that this failure would come again.
    #[must_use]
    pub fn permanent(self) -> Self {
        self.lasting(Failure::Permanent)
    }

    /// Says how long this failure lasts; it takes the place of what the app's
    /// [`AppInfo`](crate::AppInfo) says of its failures in general.
    #[must_use]
    pub fn lasting(mut self, failure: Failure) -> Self {
        self.failure = Some(failure);
        self
    }

    /// How long this failure lasts, if it says.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        self.failure
    }

    /// The error as the type it was.
    #[must_use]
    pub fn downcast_ref<T: std::error::Error + 'static>(&self) -> Option<&T> {
        self.source.downcast_ref()
    }

    /// The error it was made from.
    #[must_use]
    pub fn get_ref(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
        &*self.source
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for AppError {
    fn from(source: E) -> Self {
        Self {
            source: Arc::new(source),
            failure: None,
        }
    }
}

impl fmt::Display for AppError {
    /// The whole chain of messages, each said once.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = self.source.to_string();
        f.write_str(&said)?;
        let mut next = self.source.source();
        while let Some(source) = next {
            let text = source.to_string();
            if !said.contains(&text) {
                write!(f, ": {text}")?;
                said = text;
            }
            next = source.source();
        }
        Ok(())
    }
}

impl fmt::Debug for AppError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppError")
            .field("source", &self.source)
            .field("failure", &self.failure)
            .finish()
    }
}

#[derive(Debug)]
struct Message(String);

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Message {}
