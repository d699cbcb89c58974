//! Saving the results of many ranks in few files.
//!
//! Each rank appends its saves to segments of its own, its *journals*, without talking to other ranks: nobody
//! waits, and a rank that is killed stops no other. With ten thousand ranks that would be tens of thousands of
//! files, which all ranks would have to open at the next start. So all ranks commit together where they meet. A few
//! of them copy the journals to segments of theirs, one writes a manifest for all, and the journals are removed.
//!
//! The journals may be on the nodes' own disks, which is fast and spares a shared file system. They last as long as
//! the node: if it is lost, so are saves since the last commit. Otherwise, ranks started again on that node find
//! them.
//!
//! A commit has four steps; between them all ranks tell all others something:
//!
//! 1. each seals its journals and [names](hand_over) them, except long ones in the store: these stay as they are;
//! 2. each writer [copies](rewrite) the frames that count, durably. Where journals are on the nodes' own disks one
//!    rank of each node is a writer, else a few ranks share the work. Writers list the frames they wrote, and ranks
//!    those of long segments that stay, so that nobody has to read them;
//! 3. the first rank commits a manifest, and tells whether that succeeded;
//! 4. now all ranks agree on the outcome; each removes those of its journals that were taken.
//!
//! Short segments that earlier jobs left in the store are rewritten with the journals, as by a
//! [compaction](crate::compact), once they are many.
//!
//! A commit may stop at any step without a loss, for all ranks or for one: journals that were not removed are
//! found, even if copies exist.

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

use sde::archiver::{ArchiveError, Archiver, Selection};
use sde::ranks::ProcessGroup;

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
    /// The ids of these ranks as writers, both of journals and of segments for others.
    writers: Arc<HashSet<UniqueId>>,
    /// The folder that this rank appends to.
    dir: PathBuf,
    /// Whether that folder is on the node's own disk.
    is_local: bool,
    /// This rank's segments with others' frames.
    writer: Writer,
    /// Whether something was saved since the last commit. All ranks agree on it.
    unvouched: Mutex<bool>,
    /// The staying segments of this rank that the others were told of.
    told: Mutex<HashSet<UniqueId>>,
}

impl Team {
    /// Seals the segments that this rank has written for others.
    pub(crate) fn end(&self) {
        self.writer.end();
    }
}

impl DirStore {
    /// Commits the saves of all ranks.
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
        // Journals that were handed over must stay until they are let go.
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

    /// Step 2: copies the journals assigned to this rank, if it is a writer; gives its report.
    fn write_for_others(&self, team: &Team, handed: &[Handed]) -> Report {
        let Some(writer) = team.parts.own(team.rank) else {
            return Report::default();
        };
        let mut journaled = team.journaled(writer, handed);
        journaled.extend(self.left_over_of(team, writer, &handed[0].left_over));
        team.writer.write(&self.0.catalog, &journaled)
    }

    /// Step 3: adds the reported frames to the catalog; the first rank commits them. Gives the commit's error, or
    /// nothing.
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

    /// The left-over segments that a writer copies: its share of those that nobody writes to any more.
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

    /// Step 4: the outcome, which is the same on all ranks.
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
    /// Records whether any rank hands over frames for the next manifest.
    fn note_handed(&self, handed: &[Handed]) {
        let all = handed.iter();
        let mut all = all.flat_map(|one| one.own.iter().chain(&one.left_over));
        if all.next().is_some() {
            *lock(&self.unvouched) = true;
        }
    }

    /// Records whether any report lists frames for the next manifest.
    fn note_reported(&self, reports: &[Report]) {
        if reports.iter().any(|report| !report.listing.is_empty()) {
            *lock(&self.unvouched) = true;
        }
    }

    /// The journals that a writer copies: those of its ranks.
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
