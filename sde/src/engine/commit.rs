//! Committing what all ranks have saved, where all of them come by.
//!
//! Each rank saves for itself. A store that was opened by all of them together is committed by all
//! of them too: at the end, when the program asks for it, and, if results are saved
//! without being asked for, where its ranks are split and released.

use super::Engine;
use crate::checkpoint::{SavePolicy, Selection};
use crate::error::{Error, ErrorKind};
use crate::process_group::{Act, Notice, Ranks, chain};

/// The word of a rank whose store is committed by all ranks.
pub(super) const TOGETHER: u8 = 1;

impl Engine {
    /// Compares how a save went on each rank, and commits what all have saved. The same on all ranks.
    pub(super) fn commit_saved(
        &self,
        ranks: &Ranks,
        doing: &str,
        selection: Selection,
        saved: Result<(), Error>,
    ) -> Result<(), Error> {
        let mut notice = Notice::about(Act::Agree, doing, selection.name());
        notice.word = self.commits_together();
        let met = ranks.meet_all_well(notice.with_failure(saved.err().as_ref().map(chain)))?;
        let together = met.iter().filter(|notice| notice.word == TOGETHER).count();
        match together {
            0 => Ok(()),
            all if all == met.len() => ranks.agree(doing, self.commit_with(ranks, selection)),
            some => {
                let why = format!(
                    "{some} of {} ranks have opened their store together; all of them must, or none",
                    met.len()
                );
                let source = crate::error::ArchiveError::Other(why);
                let doing = format!("committing the {}", selection.name());
                Err(ErrorKind::Archive { doing, source }.into())
            }
        }
    }

    /// Commits at a place where all ranks of the program come by anyway, if all said that they
    /// [do](Self::commits_by_the_way).
    pub(super) fn commit_by_the_way(&self, ranks: &Ranks, met: &[Notice]) {
        if !ranks.is_world() || met.iter().any(|notice| notice.word != TOGETHER) {
            return;
        }
        if let Err(error) = self.commit_with(ranks, Selection::Checkpoint) {
            // Nobody asked for it: the next one tries again.
            self.warn(|| format!("what the ranks saved was not committed: {error}"));
        }
    }

    /// [`TOGETHER`], if the store is committed so and results are saved without being asked for.
    pub(super) fn commits_by_the_way(&self) -> u8 {
        match self.policy {
            SavePolicy::EveryResult | SavePolicy::Interval(_) => self.commits_together(),
            _ => 0,
        }
    }

    /// [`TOGETHER`], if that is so.
    pub(super) fn commits_together(&self) -> u8 {
        let archiver = self.archiver();
        let together = archiver.is_some_and(|archiver| archiver.commits_together());
        if together { TOGETHER } else { 0 }
    }

    fn commit_with(&self, ranks: &Ranks, selection: Selection) -> Result<(), Error> {
        let name = selection.name();
        let archiver = self.archiver().ok_or(ErrorKind::NoStore { doing: name })?;
        let doing = format!("commits the {name} with all");
        let committed =
            ranks.with_group(&doing, |group| archiver.commit_together(selection, group));
        committed.map_err(|source| {
            let doing = format!("committing the {name} to {}", archiver.describe());
            ErrorKind::Archive { doing, source }.into()
        })
    }
}
