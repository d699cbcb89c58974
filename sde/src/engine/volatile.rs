//! Whether the files that a run was keyed by are what they were.
//!
//! Between keying a run and reading its files others may write to them. What the body then makes is
//! the result of the new content, under the key of the old. So the files are read once more when
//! the body has ended; a run whose files have changed has an error and no result.

use std::sync::Arc;

use super::Engine;
use super::run::Run;
use crate::app::Callee;
use crate::error::{Error, ErrorKind};

impl Run<'_> {
    /// That the files among the inputs and the settings are as they were keyed. Reads them.
    pub(super) fn files_unchanged(&self) -> Result<(), Error> {
        let facts = self.subject.facts;
        let of_app = facts.volatile.as_deref().map(|volatile| &volatile.seen);
        let mut all = of_app.into_iter().chain(self.volatile.as_deref());
        all.try_for_each(|seen| seen.verify()).map_err(|source| {
            ErrorKind::Fingerprint {
                app: Arc::clone(&facts.name),
                source,
            }
            .into()
        })
    }
}

impl Engine {
    /// Whether an app was called whose identity or defaults change with what a file
    /// holds: then no epoch says that it is still current.
    pub(super) fn rest_on_files<'c>(&self, beneath: impl IntoIterator<Item = &'c Callee>) -> bool {
        beneath.into_iter().any(|callee| match callee {
            Callee::Code { defaults: None, .. } | Callee::Absent { .. } => false,
            Callee::Code { app, .. } => self.known.is_volatile(app),
            Callee::Named { name, .. } => self.apps.is_volatile(name),
        })
    }
}
