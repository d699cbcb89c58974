//! The records of failures.

use std::sync::Arc;

use super::Entry;
use crate::error::Failure;
use crate::key::Key;
use crate::result_map::{EntryResults, Failed};

/// The longest message, and the longest output, in bytes.
const LONGEST: usize = 4 << 10;

/// Tells how a run failed.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct FailureRecord {
    /// The key of the run that failed. Its failure is stored under [another](failure_key).
    pub of: Key,
    /// The error with all its causes, cut to 4 KiB.
    pub message: String,
    /// The end of what the run printed, cut to 4 KiB: of a program. Empty if that was not said.
    #[serde(default)]
    pub output: String,
    /// How long the failure lasts. A transient one is there to be seen, and is never given in place of a run.
    pub lasts: Failure,
}

/// The key under which a store has the failure of the run of this key. No look-up of a run's result meets it.
#[must_use]
pub fn failure_key(of: &Key) -> Key {
    let mut hasher = blake3::Hasher::new_derive_key("SDE 1, the failure of a run");
    hasher.update(of.as_bytes());
    Key::from_bytes(*hasher.finalize().as_bytes())
}

impl Entry {
    /// The failure that memory knows.
    pub(crate) fn failure(&self) -> Option<&Failed> {
        match &self.results {
            EntryResults::Failed(failed) => Some(failed),
            _ => None,
        }
    }

    /// The failure that a store keeps.
    pub(crate) fn kept_failure(&self) -> Option<&Arc<FailureRecord>> {
        match &self.results {
            EntryResults::Failure(failure) => Some(failure),
            _ => None,
        }
    }
}

/// The beginning of a long text.
pub(super) fn beginning(text: &str) -> &str {
    let longest = text.len().min(LONGEST);
    let end = (0..=longest).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

/// The end of a long text.
pub(super) fn end(text: &str) -> &str {
    let shortest = text.len().saturating_sub(LONGEST);
    let begin = (shortest..text.len()).find(|at| text.is_char_boundary(*at));
    &text[begin.unwrap_or(text.len())..]
}
