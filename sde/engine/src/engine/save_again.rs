//! Saving what was saved before, when it is not there any more.
//!
//! A store may be removed while a program is saving to it. What the program still has in memory is
//! then saved again, as if it were new. The rest is lost, so the save that finds it
//! out is an error all the same.

use super::Engine;
use crate::checkpoint::Selection;
use crate::error::{ArchiveError, Error, ErrorKind};

impl Engine {
    /// Saves what is new in one selection, for a caller that waits for it or not; if the store was removed, all that there is.
    pub(super) fn save(&self, selection: Selection, is_awaited: bool) -> Result<(), Error> {
        let saved = self.save_new_ones(selection, is_awaited);
        let is_removed = |error: &Error| match error.kind() {
            ErrorKind::Archive { source, .. } => matches!(source, ArchiveError::Removed { .. }),
            _ => false,
        };
        if saved.as_ref().is_err_and(is_removed) {
            self.save_new_ones(selection, is_awaited)?;
        }
        saved
    }

    /// If a save failed because the store was removed, what it had is to be saved again.
    pub(super) fn look_whether_removed(&self, error: &ArchiveError) {
        if matches!(error, ArchiveError::Removed { .. }) {
            self.all_is_new();
        }
    }

    /// Takes everything in memory for not saved yet. Parts of distributed results are left out: all
    /// ranks would have to save theirs.
    fn all_is_new(&self) {
        for cache in self.caches.all() {
            cache.entries().iter().for_each(|entry| {
                self.pending.add(entry);
            });
            cache.scratches.none_is_saved();
        }
        self.invalidations.all().into_iter().for_each(|mark| {
            self.pending.add_mark(mark);
        });
    }
}
