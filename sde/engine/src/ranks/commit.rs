//! Committing what all ranks have saved, where all of them come by.
//!
//! Each rank saves for itself. A store that was opened by all of them together is committed by all
//! of them too: at the end, when the program asks for it, and, if results are saved
//! without being asked for, where its ranks are split and released.

use crate::checkpoint::{SavePolicy, Selection};
use crate::engine::Engine;
use crate::error::{Error, ErrorKind};
use crate::ranks::collective::{Body, CollectiveOp, Header, Ranks};

impl Engine {
    /// Compares how a save went on each rank, and commits what all have saved. The same on all ranks.
    pub(crate) fn commit_saved(
        &self,
        ranks: &Ranks,
        doing: &str,
        selection: Selection,
        saved: Result<(), Error>,
    ) -> Result<(), Error> {
        let is_shared = self.commits_together();
        let header = Header::about(CollectiveOp::Agree, doing, selection.name())
            .with_body(Body::Store { is_shared });
        let met = ranks.meet(header.with_failure(saved.as_ref().err()))?;
        let is_shared = |header: &&Header| header.body == Body::Store { is_shared: true };
        match met.iter().filter(is_shared).count() {
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
    pub(crate) fn commit_by_the_way(&self, ranks: &Ranks, met: &[Header]) {
        let commits = |header: &Header| matches!(header.body, Body::Part { commits: true, .. });
        if !ranks.is_world() || !met.iter().all(commits) {
            return;
        }
        if let Err(error) = self.commit_with(ranks, Selection::Checkpoint) {
            // Nobody asked for it: the next one tries again.
            self.warn(|| format!("what the ranks saved was not committed: {error}"));
        }
    }

    /// Whether the store is committed by all ranks and results are saved without being asked for.
    pub(crate) fn commits_by_the_way(&self) -> bool {
        let saves = matches!(
            self.policy,
            SavePolicy::EveryResult | SavePolicy::InBackground | SavePolicy::Interval(_)
        );
        saves && self.commits_together()
    }

    /// Whether the store is committed by all ranks.
    pub(crate) fn commits_together(&self) -> bool {
        let archiver = self.archiver();
        archiver.is_some_and(|archiver| archiver.commits_together())
    }

    fn commit_with(&self, ranks: &Ranks, selection: Selection) -> Result<(), Error> {
        let name = selection.name();
        let archiver = self.archiver().ok_or(ErrorKind::NoStore { doing: name })?;
        let doing = format!("commits the {name} with all");
        let stretch = crate::stretch!("commit", kind = name, ranks = ranks.size());
        let committed =
            ranks.with_group(&doing, |group| archiver.commit_together(selection, group));
        committed.map_err(|source| {
            let doing = format!("committing the {name} to {}", archiver.describe());
            ErrorKind::Archive { doing, source }
        })?;
        stretch.end("committed");
        Ok(())
    }
}
