//! Handing over a rank's journals, and removing them.

use std::collections::{HashMap, HashSet};

use super::Team;
use super::journal::Journal;
use crate::catalog::segments::KnownSegment;
use crate::compact::MANY;
use crate::format::class::Part;
use crate::format::id::UniqueId;
use crate::locks::lock;
use crate::store::DirStore;

impl DirStore {
    /// Seals this rank's journals and gives those that were not taken before. The lowest rank of a node also gives
    /// those that ranks of earlier jobs left on its disk.
    pub(super) fn hand_over(&self, team: &Team) -> Vec<Journal> {
        let inner = &*self.0;
        inner.seal();
        let own = inner.writer.config().writer();
        let read: Vec<KnownSegment> = lock(&inner.catalog.segments).known().collect();
        let is_heir = team.is_local && team.parts.leader(team.rank) == team.rank;
        let sealed = read.into_iter().filter(|known| {
            (known.segment.writer == own && known.sealed && !self.stays(known))
                || (is_heir && self.is_left_behind(team, known))
        });
        let sealed = sealed.map(|known| Journal::of(&known));
        // Journals left after an error, up to their durable end. The next commit takes frames that another thread
        // is writing now.
        let left = inner.writer.ended().into_iter();
        let left = left.map(|(segment, length)| Journal {
            part: segment.part,
            id: segment.id,
            writer: own,
            length,
        });
        sealed
            .chain(left)
            .filter(|journal| journal.length > 0)
            .collect()
    }

    /// Whether one of this rank's segments stays in the store as it is: copying a long one would cost as much as
    /// writing it did, and leave as many files.
    pub(crate) fn stays(&self, known: &KnownSegment) -> bool {
        let config = self.0.writer.config();
        let is_own = known.segment.writer == config.writer() && known.sealed;
        let is_long = known.segment.part == Part::Entries && known.end >= config.short();
        is_own && is_long && known.segment.path.starts_with(&self.0.dir)
    }

    /// The staying segments that the other ranks were not told of.
    pub(super) fn staying(&self, team: &Team) -> Vec<KnownSegment> {
        let mut told = lock(&team.told);
        let segments = lock(&self.0.catalog.segments);
        let stays = segments.known().filter(|known| self.stays(known));
        stays
            .filter(|known| told.insert(known.segment.id))
            .collect()
    }

    /// The short segments at rest that ranks of earlier jobs left in the store, if they are many. They are
    /// rewritten with the journals, so that successive jobs leave no more files than one. Only the first rank gives
    /// them, since it has looked at the directory.
    pub(super) fn left_over(&self, team: &Team) -> Vec<Journal> {
        if team.rank != 0 {
            return Vec::new();
        }
        let inner = &*self.0;
        let short = inner.writer.config().short();
        let known: Vec<KnownSegment> = lock(&inner.catalog.segments).known().collect();
        let at_rest = self.at_rest(&known);
        let left = known.iter().filter(|known| {
            known.end < short
                && !team.writers.contains(&known.segment.writer)
                && known.segment.path.starts_with(&inner.dir)
                && (known.sealed || at_rest.contains(&known.segment.id))
        });
        let mut left: Vec<_> = left.map(Journal::of).collect();
        if left.len() <= MANY {
            return Vec::new();
        }
        left.sort_unstable_by_key(|journal| journal.id.0);
        left
    }

    /// Whether a segment on the node's disk has no writer any more.
    fn is_left_behind(&self, team: &Team, known: &KnownSegment) -> bool {
        Journal::of(known).path(&team.dir) == known.segment.path
            && !team.writers.contains(&known.segment.writer)
            && self.is_left(&known.segment.path)
    }

    /// Forgets the frames of journals that were taken, and removes this rank's journals. Segments left over from
    /// earlier jobs are removed after the time of grace.
    pub(super) fn let_go(
        &self,
        team: &Team,
        mine: &[Journal],
        left_over: &[Journal],
        taken: &HashSet<UniqueId>,
    ) {
        if taken.is_empty() {
            return;
        }
        let inner = &*self.0;
        let goes = |id: &UniqueId| taken.contains(id);
        let replaced: HashMap<UniqueId, u64> = left_over
            .iter()
            .filter(|journal| goes(&journal.id))
            .map(|journal| (journal.id, journal.length))
            .collect();
        {
            let mut segments = lock(&inner.catalog.segments);
            segments.forget(|id| goes(id) && !replaced.contains_key(id));
            segments.replace(replaced);
        }
        inner.writer.let_go(goes);
        inner.catalog.forget(goes);
        let own = inner.writer.config().writer();
        for journal in mine.iter().filter(|journal| goes(&journal.id)) {
            let path = journal.path(&team.dir);
            // A journal that can't be removed holds copies, and does no harm.
            let removed = match journal.writer == own {
                true => inner.vfs().remove(&path),
                false => crate::compact::replaced::remove(&**inner.vfs(), &path, journal.length)
                    .map(drop),
            };
            if let Err(error) = removed {
                let path = path.display();
                sde::warning!("{path} was written elsewhere and can't be removed: {error}");
            }
        }
    }
}
