//! Saving what many ranks have computed, with few files.
//!
//! Each rank appends what it saves to segments of its own, its *journals*, without a word to the
//! others: nobody waits, and a rank that is killed takes nobody along. With ten thousand ranks that
//! would be tens of thousands of files, each to be opened by all when they start again. So where
//! all ranks come by they commit together: a few of them write what the
//! journals hold to segments of theirs, one writes one manifest for all, and the journals go.
//!
//! The journals may be on the disks of the nodes, which is fast and spares a shared file
//! system, and lasts as long as the node does: what was saved there since the last commit is lost
//! with it, and found again by ranks that are started on the same node.
//!
//! It is done in steps, between which all ranks tell all others something:
//!
//! 1. each seals its journals and [names](hand_over) them, but for long ones in the store: these stay as they are;
//! 2. each writer [writes](rewrite) what counts of them, durable: one rank of each node where journals are on the node's own
//!    disk, else a few ranks that share the work. It says what is where, as a rank does of its long ones, so that nobody has to read it;
//! 3. the first rank commits a manifest, and says whether that went well;
//! 4. all know the same then; each removes those of its journals that were taken.
//!
//! Short segments that earlier jobs have left in the store are written anew with the journals, as by a
//! [compaction](crate::compact), once they are many.
//!
//! It may end at any of these without a loss, for all ranks or for one: what was not removed is
//! found, be it twice.

mod hand_over;
mod journal;
mod listing;
mod open;
mod parts;
mod rewrite;
mod share;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use sde::{ArchiveError, Archiver, ProcessGroup, Selection};

use crate::format::id::UniqueId;
use crate::format::manifest::ReplacedSegment;
use crate::locks::lock;
use crate::store::DirStore;

use journal::{Handed, Journal};
pub(crate) use open::open;
use parts::Parts;
use rewrite::{Journaled, Report, Writer};
use share::share;

/// The ranks that have opened a store together, as one of them knows them.
pub(crate) struct Team {
    rank: usize,
    parts: Arc<Parts>,
    /// Who these ranks are in the headers of their segments, journals and others.
    writers: Arc<HashSet<UniqueId>>,
    /// Where this rank appends.
    dir: PathBuf,
    /// Whether that is a disk of the node's own.
    is_local: bool,
    /// What it writes for others.
    writer: Writer,
    /// Whether something was saved since the last commit. All ranks agree.
    unvouched: Mutex<bool>,
    /// Which of its segments that stay this rank has told the others of.
    told: Mutex<HashSet<UniqueId>>,
}

impl Team {
    /// Seals what this rank has written for others.
    pub(crate) fn end(&self) {
        self.writer.end();
    }
}

impl DirStore {
    /// Commits what all ranks have saved.
    pub(crate) fn commit_all(&self, group: &dyn ProcessGroup) -> Result<(), ArchiveError> {
        let Some(team) = self.0.team.get() else {
            return self.commit(Selection::Checkpoint);
        };
        let ranks = team.parts.ranks();
        if group.size() != ranks {
            return Err(ArchiveError::Other(format!(
                "{} ranks were to commit a store that {ranks} have opened together; open it with the program's own process group",
                group.size()
            )));
        }
        // What is handed over stays until it is let go.
        let _alone = lock(&self.0.trimming);
        let mine = Handed {
            own: self.hand_over(team),
            left_over: self.left_over(team),
        };
        let handed = share(group, &mine.to_bytes())?;
        let handed: Vec<_> = handed.iter().map(|one| Handed::read(one)).collect();
        team.note_handed(&handed);
        let mut report = self.write_for_others(team, &handed);
        report.listing.add(&self.0.catalog, &self.staying(team));
        let reports = share(group, &report.bytes())?;
        let reports: Vec<_> = reports.iter().map(|one| Report::read(one)).collect();
        team.note_reported(&reports);
        let taken: HashSet<UniqueId> = reports.iter().flat_map(Report::taken).collect();
        let error = reports.iter().find_map(|report| report.error.clone());
        let verdict = self.take_in(team, &handed[0].left_over, reports, &taken);
        let verdicts = share(group, verdict.as_bytes())?;
        self.let_go(team, &mine.own, &handed[0].left_over, &taken);
        Self::conclude(team, error, &verdicts[0])
    }

    /// Step 2: what this rank writes, if it is a writer; gives what it tells of that.
    fn write_for_others(&self, team: &Team, handed: &[Handed]) -> Report {
        let Some(writer) = team.parts.own(team.rank) else {
            return Report::default();
        };
        let mut journaled = team.journaled(writer, handed);
        journaled.extend(self.left_over_of(team, writer, &handed[0].left_over));
        team.writer.write(&self.0.catalog, &journaled)
    }

    /// Step 3: takes note of what was written, and commits it, if that is for this rank to do.
    /// Gives what is wrong with that.
    fn take_in(
        &self,
        team: &Team,
        left_over: &[Journal],
        reports: Vec<Report>,
        taken: &HashSet<UniqueId>,
    ) -> String {
        for report in reports {
            report.listing.note_durable(&self.0.catalog);
            report.listing.apply(&self.0.catalog);
        }
        if team.rank != 0 || !*lock(&team.unvouched) {
            return String::new();
        }
        let at = self.0.catalog.clock.stamp();
        let replaced = left_over.iter().filter(|one| taken.contains(&one.id));
        let replaced = replaced.map(|one| {
            let segment = one.segment(one.path(&self.0.dir));
            ReplacedSegment::new(&segment, one.length, at)
        });
        let vouched = self.write_manifest_for_all(taken, &replaced.collect::<Vec<_>>());
        self.remove_replaced(self.0.grace);
        let error = vouched.err();
        error.map_or(String::new(), |error| error.to_string())
    }

    /// What a writer writes of what is left over: of segments that nobody writes to any more.
    fn left_over_of(&self, team: &Team, writer: usize, left_over: &[Journal]) -> Vec<Journaled> {
        let own = left_over.iter().skip(writer);
        let own = own.step_by(team.parts.writers());
        let segments = lock(&self.0.catalog.segments);
        let known = segments.by_id();
        let sources = own.filter_map(|journal| {
            Some(Journaled {
                segment: Arc::clone(known.get(&journal.id)?),
                length: journal.length,
                is_left_behind: true,
            })
        });
        sources.collect()
    }

    /// Step 4: what all ranks find.
    fn conclude(team: &Team, error: Option<String>, verdict: &[u8]) -> Result<(), ArchiveError> {
        if verdict.is_empty() {
            *lock(&team.unvouched) = false;
        }
        let verdict = (!verdict.is_empty()).then(|| String::from_utf8_lossy(verdict).into_owned());
        error
            .or(verdict)
            .map_or(Ok(()), |why| Err(ArchiveError::Other(why)))
    }
}

impl Team {
    /// Whether there will be something to vouch for.
    fn note_handed(&self, handed: &[Handed]) {
        let all = handed.iter();
        let mut all = all.flat_map(|one| one.own.iter().chain(&one.left_over));
        if all.next().is_some() {
            *lock(&self.unvouched) = true;
        }
    }

    /// Whether there is something that stays to vouch for.
    fn note_reported(&self, reports: &[Report]) {
        if reports.iter().any(|report| !report.listing.is_empty()) {
            *lock(&self.unvouched) = true;
        }
    }

    /// What a writer writes: the journals of its ranks.
    fn journaled(&self, writer: usize, handed: &[Handed]) -> Vec<Journaled> {
        let of_ranks = handed.iter().enumerate();
        let of_ranks = of_ranks.filter(|(rank, _)| self.parts.writer(*rank) == writer);
        let journals = of_ranks.flat_map(|(_, handed)| &handed.own);
        let journaled = journals.map(|journal| Journaled {
            segment: journal.segment(journal.path(&self.dir)),
            length: journal.length,
            is_left_behind: !self.writers.contains(&journal.writer),
        });
        journaled.collect()
    }
}
