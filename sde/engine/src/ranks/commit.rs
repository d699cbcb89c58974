//! Commits of a store by all ranks together, at places that all of them reach.
//!
//! Each rank saves for itself. If all ranks opened a store together, they also commit it together: at the end, when the
//! program asks for it, and, if results are saved automatically, where process sets are split and released.

use std::path::Path;

use crate::checkpoint::{SavePolicy, Selection};
use crate::engine::Engine;
use crate::error::{Error, ErrorKind};
use crate::ranks::collective::{Body, CollectiveOp, Header, Ranks};

impl Engine {
    /// Agrees on the outcome of a save, and commits what all ranks saved. The result is the same on all ranks.
    pub(crate) fn commit_saved(
        &self,
        ranks: &Ranks,
        doing: &str,
        selection: Selection,
        saved: Result<(), Error>,
    ) -> Result<(), Error> {
        let is_shared = self.commits_together();
        let header = Header::about(CollectiveOp::Agree, doing, selection.name())
            .with_body(Body::Store(is_shared));
        let met = ranks.meet(header.with_failure(saved.as_ref().err()))?;
        let is_shared = |header: &&Header| header.body == Body::Store(true);
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

    /// Writes an archive to a directory that all ranks name: the first of them writes it.
    pub(crate) fn archive_for_all(&self, ranks: &Ranks, dir: &Path) -> Result<(), Error> {
        let what = format!("an archive in {}", dir.display());
        let header = Header::about(CollectiveOp::Save, &what, "");
        ranks.meet(header)?;
        let written = match ranks.rank() {
            0 => self.archive_to(dir),
            _ => Ok(()),
        };
        ranks.agree(&what, written)
    }

    /// Commits at a split or a release of all ranks, if all said that they [do so](Self::commits_by_the_way).
    pub(crate) fn commit_by_the_way(&self, ranks: &Ranks, met: &[Header]) {
        let commits = |header: &Header| matches!(header.body, Body::Subset { commits: true, .. });
        if !ranks.is_world() || !met.iter().all(commits) {
            return;
        }
        if let Err(error) = self.commit_with(ranks, Selection::Checkpoint) {
            // The program did not ask for this commit, and the next one tries again.
            self.warn(|| format!("what the ranks saved was not committed: {error:#}"));
        }
    }

    /// Whether all ranks commit the store together and results are saved automatically.
    pub(crate) fn commits_by_the_way(&self) -> bool {
        let saves = matches!(
            self.policy,
            SavePolicy::EveryResult | SavePolicy::InBackground | SavePolicy::Interval(_)
        );
        saves && self.commits_together()
    }

    /// Whether all ranks commit the store together.
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
