//! The error of a failure that is given in place of a run.

use std::fmt;
use std::time::{Duration, SystemTime};

use indicatif::HumanDuration;

use super::AppError;
use crate::entry::{FailureRecord, RecordHead};

/// A failure that was kept. Its text tells what failed, when and where, and how to have the run made.
#[derive(Debug)]
struct Given(String);

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Given {}

impl AppError {
    /// The error of a kept failure.
    pub(crate) fn given(failure: &FailureRecord, run: &RecordHead) -> Self {
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
            "{message} (it failed {ago}{host}, and was not run again; `Policy::Refresh` runs it)"
        );
        Self::from(Given(text)).lasting(failure.lasts)
    }
}
