//! What steps of a run tell one another of failures that are kept; see [`failures`](super::failures).

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use indicatif::HumanDuration;

use crate::entry::{Entry, FailureRecord, Record, RecordHead};
use crate::error::{AppError, Error, ErrorKind, Failure};
use crate::event::RunId;

/// A body that failed by itself.
pub(crate) struct FailedBody {
    pub(super) record: Record,
    pub(super) output: Option<Arc<str>>,
    /// How long its failure lasts for later calls; transient if they are never given it.
    pub(super) lasts: Failure,
}

/// A kept failure that is given in place of a run.
pub(super) struct GivenFailure {
    pub(super) error: Error,
    /// What memory knows it by, if it lasts.
    pub(super) in_memory: Option<Arc<Entry>>,
}

/// A kept failure that a call has found.
#[derive(Clone, Copy)]
pub(crate) struct SeenFailure {
    pub(super) run: RunId,
    pub(super) made_at: SystemTime,
    pub(super) took: Duration,
    /// Whether the call is given it.
    pub(super) is_given: bool,
    pub(super) is_transient: bool,
}

/// Whether a failure tells of a run, and not of how it was called.
fn is_worth_keeping(error: &Error) -> bool {
    !matches!(
        error.root().kind(),
        ErrorKind::Cancelled { .. }
            | ErrorKind::TooDeep { .. }
            | ErrorKind::OutOfTime { .. }
            | ErrorKind::NotStarted { .. }
    )
}

impl FailedBody {
    /// The failure of a body with this record, if it tells of the run and the run was wanted to its end.
    pub(super) fn of(
        (record, unwanted): (Record, bool),
        error: &Error,
        output: Option<Arc<str>>,
        lasts: Failure,
    ) -> Option<Box<Self>> {
        // Other errors of the engine tell of the program and its machine: the next may do better.
        let is_of_app = matches!(error.root().kind(), ErrorKind::App { .. });
        let lasts = if is_of_app { lasts } else { Failure::Transient };
        let body = Self {
            record,
            output,
            lasts,
        };
        (!unwanted && is_worth_keeping(error)).then(|| Box::new(body))
    }
}

/// A failure that was kept. Its text tells what failed, when and where, and how to have the run made.
#[derive(Debug)]
struct Given(String);

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Given {}

/// The error of a kept failure, for who is given it.
pub(super) fn error_of(failure: &FailureRecord, run: &RecordHead) -> AppError {
    let ended = run.made_at + run.took;
    let ago = SystemTime::now().duration_since(ended).unwrap_or_default();
    let ago = match ago < Duration::from_secs(1) {
        true => "just now".to_owned(),
        false => format!("{} ago", HumanDuration(ago)),
    };
    let host = match &*run.host {
        "" => String::new(),
        host => format!(" on {host}"),
    };
    let message = &failure.message;
    let text = format!(
        "{message} (it failed {ago}{host}, and was not run again; `Policy::Refresh`, or `--again`, runs it)"
    );
    AppError::from(Given(text)).lasting(failure.lasts)
}
