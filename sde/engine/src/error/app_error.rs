//! Errors of apps, and what they mean for callers that wait.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use super::said;

/// Tells how long a failure lasts, which decides whether the engine remembers or retries it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Failure {
    /// Every waiter gets the error. Without a store it is not remembered, so the next run tries again. With one, the
    /// failure is saved, and given in place of a run to this process, to others that use the store meanwhile, and to
    /// those of the same array of jobs; a later process tries again, unless it
    /// [keeps failures](crate::Builder::keep_failures). The default.
    #[default]
    Ordinary,
    /// The app would fail again (a source that does not compile). The error is remembered in memory until the app's
    /// cache is cleared or a [budget](crate::MemoryBudget) evicts it, and given by a store for as long as the code that
    /// the run rests on is the same. The result of a caller that goes on without it is remembered too. Not for the
    /// failure of a child process, which a Ctrl-C kills too.
    Permanent,
    /// The cause may go away (a busy server): one waiter takes over, once per flight; after that the other waiters get
    /// the error. A store has the failure to be seen, and never gives it.
    Transient,
}

/// The error of an app's body: any error, and how long it lasts.
///
/// It does not implement [`std::error::Error`] itself. So `?` converts into it all that it converts into a
/// `Box<dyn Error + Send + Sync>`: errors, such boxes, texts, `anyhow::Error`. For other errors, such as a
/// `Box<dyn Error>`, there is [`message`](Self::message). An `anyhow::Error` hides its source from
/// [`downcast_ref`](Self::downcast_ref), and so how long an error of the engine lasts.
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
    output: Option<Arc<str>>,
}

impl AppError {
    /// An error that is just a message.
    pub fn message(text: impl Into<String>) -> Self {
        let text: String = text.into();
        Self::from(text)
    }

    /// Marks the failure as one that may go away by itself.
    #[must_use]
    pub fn transient(self) -> Self {
        self.lasting(Failure::Transient)
    }

    /// Marks the failure as one that would occur again.
    #[must_use]
    pub fn permanent(self) -> Self {
        self.lasting(Failure::Permanent)
    }

    /// Sets how long this failure lasts, in place of the [`AppInfo`](crate::AppInfo)'s default for the app's failures.
    #[must_use]
    pub fn lasting(mut self, failure: Failure) -> Self {
        self.failure = Some(failure);
        self
    }

    /// Adds what the body printed, as programs do. A store keeps the last 4 KiB with the failure, and `sde show` shows
    /// them.
    ///
    /// ```
    /// use sde::AppError;
    ///
    /// let error = AppError::message("exit status 3").with_output("step 7: no convergence");
    /// assert_eq!(error.output(), Some("step 7: no convergence"));
    /// ```
    #[must_use]
    pub fn with_output(mut self, printed: impl Into<Arc<str>>) -> Self {
        self.output = Some(printed.into());
        self
    }

    /// What the body printed, if that was said.
    #[must_use]
    pub fn output(&self) -> Option<&str> {
        self.output.as_deref()
    }

    /// How long the failure lasts. An error of another run lasts as long as that run's failure does, not as this app's
    /// own.
    pub(crate) fn lasts(&self, of_app: Failure) -> Failure {
        if let Some(failure) = self.failure() {
            return failure;
        }
        self.of_engine().map_or(of_app, super::Error::lasts)
    }

    /// How long this failure lasts, if that was set.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        self.failure
    }

    /// The original error, if it has this type.
    #[must_use]
    pub fn downcast_ref<T: Error + 'static>(&self) -> Option<&T> {
        self.source.downcast_ref()
    }

    /// The error of another run that it is, or that it came of.
    pub(crate) fn of_engine(&self) -> Option<&super::Error> {
        super::first_of(&*self.source)
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
            output: None,
        }
    }
}

impl fmt::Display for AppError {
    /// The whole chain of messages, each once.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&said(&*self.source))
    }
}

/// As `Display`: `main` prints its error with `Debug`.
impl fmt::Debug for AppError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
