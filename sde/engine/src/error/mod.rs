//! The engine's error type, which is cheap to share.
//!
//! Hundreds of callers may wait for one run that fails, and all get *the same* error. So [`Error`] is a shared pointer
//! to an [`ErrorKind`]; a clone costs one reference count. Each kind says what was being done, to which app and key,
//! why it failed, and what to do next.

mod app_error;
mod archive_error;
pub(crate) mod ended;
mod kind;
pub(crate) mod returned;
mod text;

pub use app_error::{AppError, Failure};
pub use archive_error::ArchiveError;
pub use kind::ErrorKind;
pub use text::said;
pub(crate) use text::{
    advise, debug_as_said, join_names, panic_message, panic_text, printable, told,
};

use std::error::Error as _;
use std::fmt;
use std::iter::successors;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::key::Key;
use crate::ranks::group::GroupError;
use crate::sync::user_code;

/// The result type of [`Sde`](crate::Sde) and its handles.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A shared, typed error of the engine.
///
/// Match on [`Error::kind`]; the text names the app, the short key and the path to the trouble. `{error}` is what
/// failed, `{error:#}` and `{error:?}` add its causes, which [`source`](std::error::Error::source) gives one by one.
///
/// ```
/// use sde::{ErrorKind, Sde, inputs};
///
/// let sde = Sde::new();
/// let error = sde.run("Rfh", &inputs! {}).unwrap_err();
/// assert!(matches!(error.kind(), ErrorKind::UnknownApp { .. }));
/// ```
#[derive(Clone)]
pub struct Error(Arc<ErrorKind>);

impl Error {
    /// The kind of error, with its details.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.0
    }

    /// Whether two errors are one shared failure, as all waiters of a failed flight get it.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The error's approximate size in bytes. An app's error counts as the length of its text, which user code makes.
    pub(crate) fn memory(&self) -> usize {
        user_code("the text of an error");
        let text = || said(self).len();
        size_of::<ErrorKind>() + catch_unwind(AssertUnwindSafe(text)).unwrap_or(0)
    }

    /// The error of a value or call that is refused: what it is, then why and what to do instead.
    pub fn refused(what: impl Into<String>, why: impl Into<String>) -> Self {
        let (what, why) = (what.into(), why.into());
        ErrorKind::Refused { what, why }.into()
    }

    /// The error of a collective operation: what this rank was about to begin, and the error of the process group.
    #[must_use]
    pub fn ranks(doing: impl Into<String>, source: GroupError) -> Self {
        let doing = doing.into();
        ErrorKind::Ranks { doing, source }.into()
    }

    /// The error of a name that an app, run or call does not have; `what` is such as "input".
    pub(crate) fn unknown_name<N: ToString>(
        of: &str,
        what: &'static str,
        name: &str,
        known: impl IntoIterator<Item = N>,
    ) -> Self {
        let (of, name) = (of.to_owned(), name.to_owned());
        let known = known.into_iter().map(|name| name.to_string()).collect();
        ErrorKind::UnknownName {
            of,
            what,
            name,
            known,
        }
        .into()
    }

    /// The error of a value whose type is not the wanted one.
    pub(crate) fn type_mismatch(what: String, is: &str, wanted: &str) -> Self {
        let (is, wanted) = (is.to_owned(), wanted.to_owned());
        ErrorKind::TypeMismatch { what, is, wanted }.into()
    }

    /// How long the failure of an app lasts that returns this error of another run.
    fn lasts(&self) -> Failure {
        match self.kind() {
            ErrorKind::App { cause, .. } => cause.lasts(Failure::Ordinary),
            ErrorKind::Item { source, .. } => source.lasts(),
            ErrorKind::Panicked { .. }
            | ErrorKind::Cancelled { .. }
            | ErrorKind::OutOfTime { .. }
            | ErrorKind::NotStarted { .. }
            | ErrorKind::Planned { .. }
            | ErrorKind::TooDeep { .. } => Failure::Transient,
            _ => Failure::Ordinary,
        }
    }

    /// The error of a nested run that exceeded the depth limit. Hundreds of runs pass it on, so none adds its own name.
    pub(crate) fn too_deep(cause: &AppError) -> Option<&Self> {
        let error: &Self = cause.downcast_ref()?;
        matches!(error.kind(), ErrorKind::TooDeep { .. }).then_some(error)
    }

    /// The error of the item, or of the nested run, that failed with this.
    fn beneath(&self) -> Option<&Self> {
        match self.kind() {
            ErrorKind::Item { source, .. } => Some(source),
            ErrorKind::App { cause, .. } => cause.of_engine(),
            _ => None,
        }
    }

    /// The first error beneath this one: that of the item, and of the nested run, that failed.
    #[must_use]
    pub fn root(&self) -> &Self {
        self.beneath().map_or(self, Self::root)
    }

    /// Whether it says that an item of a sweep was not begun.
    pub(crate) fn is_not_started(&self) -> bool {
        matches!(self.kind(), ErrorKind::NotStarted { .. })
    }

    /// Whether it stands for a value that a [plan](crate::Sde::plan) does not compute: this one, or one beneath it.
    #[must_use]
    pub fn is_planned(&self) -> bool {
        matches!(self.root().kind(), ErrorKind::Planned { .. })
    }

    /// Whether it comes of a call that was cancelled: this one, or one beneath it.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        matches!(self.root().kind(), ErrorKind::Cancelled { .. })
    }

    /// Whether the job's time was too short: this error says so, or one beneath it.
    #[must_use]
    pub fn is_out_of_time(&self) -> bool {
        is_out_of_time(self)
    }

    /// The status with which a program ends that fails with this: 75 if the job's time was too short, which tells a batch script to queue
    /// the job again, else 1. [`#[sde::main]`](macro@crate::main) ends a program with it.
    ///
    /// ```
    /// use sde::{ErrorKind, Sde};
    ///
    /// #[sde::app]
    /// fn square(x: f64) -> f64 {
    ///     x * x
    /// }
    ///
    /// let sde = Sde::builder().time_limit(std::time::Duration::ZERO).build()?;
    /// let error = square.par_call(&sde, [1.0, 2.0]).unwrap_err();
    /// assert!(matches!(error.kind(), ErrorKind::OutOfTime { done: 0, left: Some(2), .. }));
    /// assert_eq!(error.exit_code(), 75);
    /// # Ok::<(), sde::Error>(())
    /// ```
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        exit_code(self)
    }

    /// The key of the innermost run that failed, if it was a run.
    #[must_use]
    pub fn key(&self) -> Option<&Key> {
        let beneath = self.beneath().and_then(Self::key);
        beneath.or_else(|| match self.kind() {
            ErrorKind::App { key, .. }
            | ErrorKind::Panicked { key, .. }
            | ErrorKind::TooDeep { key, .. }
            | ErrorKind::Cancelled { key, .. }
            | ErrorKind::NotRemembered { key, .. }
            | ErrorKind::Planned { key, .. }
            | ErrorKind::NotThreadSafe { key, .. }
            | ErrorKind::NotDistributed { key, .. }
            | ErrorKind::LeftBehind { key, .. }
            | ErrorKind::StaleHandle { key, .. }
            | ErrorKind::Replicas { key, .. }
            | ErrorKind::NoEntry { key } => Some(key),
            _ => None,
        })
    }

    /// The error that the app returned, if it has this type: also the app of an item, or of a nested run. A failure that
    /// is [given](crate::Failure) in place of a run is a text only, and has no such error.
    ///
    /// ```
    /// # use sde::{Sde, inputs};
    /// #[sde::app]
    /// fn parse(text: &str) -> Result<i64, std::num::ParseIntError> {
    ///     text.parse()
    /// }
    /// let error = parse.call(&Sde::new(), "seven").unwrap_err();
    /// assert!(error.app_error::<std::num::ParseIntError>().is_some());
    /// ```
    #[must_use]
    pub fn app_error<T: std::error::Error + 'static>(&self) -> Option<&T> {
        first_of(self.source()?)
    }
}

/// The exit status of a program that ends with an error: see [`Error::exit_code`].
fn exit_code(error: &(dyn std::error::Error + 'static)) -> u8 {
    // `EX_TEMPFAIL`: the user is invited to try again later.
    if is_out_of_time(error) { 75 } else { 1 }
}

fn is_out_of_time(error: &(dyn std::error::Error + 'static)) -> bool {
    let is_it = |error: &Error| {
        let kind = error.kind();
        matches!(
            kind,
            ErrorKind::OutOfTime { .. } | ErrorKind::NotStarted { .. }
        )
    };
    let mut chain = successors(Some(error), |&error| error.source());
    chain.any(|error| error.downcast_ref().is_some_and(is_it))
}

/// The first error of this type in a chain of causes.
fn first_of<'e, T: std::error::Error + 'static>(
    error: &'e (dyn std::error::Error + 'static),
) -> Option<&'e T> {
    let mut chain = successors(Some(error), |&error| error.source());
    chain.find_map(|error| error.downcast_ref())
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self(Arc::new(kind))
    }
}

/// Makes `Sde::builder().store(SomeStore::open(dir)?)` possible in one line.
impl From<ArchiveError> for Error {
    fn from(source: ArchiveError) -> Self {
        let doing = "a store can't be used".to_owned();
        ErrorKind::Archive { doing, source }.into()
    }
}

/// `{error}` is what failed; `{error:#}` adds its causes, each once, as `{error:?}` does.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            f.write_str(&said(self))
        } else {
            fmt::Display::fmt(&*self.0, f)
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self.kind() {
            ErrorKind::App { cause, .. } => Some(cause.get_ref()),
            other => other.source(),
        }
    }
}

debug_as_said!(Error, ErrorKind);
