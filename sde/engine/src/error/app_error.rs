//! What an app returns when it fails, and what that means for others who wait.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use super::ErrorKind;
use super::said;

/// How long a failure lasts, which decides what the engine does with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// Every waiter gets the error; it is not remembered, so the next run tries
    /// again. The default.
    #[default]
    Ordinary,
    /// It would fail in the same way again (a source that does not compile): the
    /// error is remembered in memory until the app's cache is cleaned or a
    /// [budget](crate::MemoryBudget) has it leave, and never saved; what a caller returns that goes on without it is. So not for the failure of a
    /// child process, which a Ctrl-C kills too.
    Permanent,
    /// It may go away (a busy server): one waiter takes over, once per flight;
    /// after that the rest get the error.
    Transient,
}

/// The error of an app's body: any error, and how long it lasts.
///
/// It does not implement [`std::error::Error`] itself, so that `?` turns into one whatever
/// it turns into a `Box<dyn Error + Send + Sync>`: errors, such boxes, texts, `anyhow::Error`. For what it doesn't,
/// a `Box<dyn Error>` for one, there is [`message`](Self::message). An `anyhow::Error` hides what it was made of
/// from [`downcast_ref`](Self::downcast_ref), and so how long an error of the engine lasts.
///
/// ```
/// use sde::AppError;
///
/// fn body(text: &str) -> Result<i64, AppError> {
///     let number: i64 = text.parse()?;
///     match number {
///         ..0 => Err("a count can't be negative")?,
///         13 => Err(AppError::message("not today").transient()),
///         _ => Ok(number),
///     }
/// }
/// assert_eq!(body("-3").unwrap_err().to_string(), "a count can't be negative");
/// ```
#[derive(Clone)]
pub struct AppError {
    source: Arc<dyn Error + Send + Sync + 'static>,
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

    /// How long it lasts. One that came from another run lasts as long as that
    /// says, not as long as this app's own failures do.
    pub(crate) fn lasts(&self, of_app: Failure) -> Failure {
        if let Some(failure) = self.failure() {
            return failure;
        }
        match self.downcast_ref::<crate::Error>().map(crate::Error::kind) {
            None => of_app,
            Some(ErrorKind::App { cause, .. }) => cause.lasts(Failure::Ordinary),
            Some(ErrorKind::Item { source, .. }) => {
                Self::from(source.clone()).lasts(Failure::Ordinary)
            }
            Some(
                ErrorKind::Panicked { .. }
                | ErrorKind::Cancelled { .. }
                | ErrorKind::TooDeep { .. },
            ) => Failure::Transient,
            Some(_) => Failure::Ordinary,
        }
    }

    /// The error of a run further down that was one too many. Hundreds of runs pass it
    /// on; to say so of each would hide it.
    pub(crate) fn too_deep(&self) -> Option<&crate::Error> {
        let error = self.downcast_ref::<crate::Error>()?;
        matches!(error.kind(), ErrorKind::TooDeep { .. }).then_some(error)
    }

    /// How long this failure lasts, if it says.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        self.failure
    }

    /// The error as the type it was.
    #[must_use]
    pub fn downcast_ref<T: Error + 'static>(&self) -> Option<&T> {
        self.source.downcast_ref()
    }

    /// The error it was made from.
    #[must_use]
    pub fn get_ref(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.source
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for AppError {
    fn from(source: E) -> Self {
        Self {
            source: Arc::from(source.into()),
            failure: None,
        }
    }
}

impl fmt::Display for AppError {
    /// The whole chain of messages, each said once.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&said(&*self.source))
    }
}

/// As `Display`: `main` prints the error that it returns by this.
impl fmt::Debug for AppError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[derive(Debug)]
struct Message(String);

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Message {}
