//! What was read so far of which segment.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sde::ArchiveError;

use crate::format::id::UniqueId;
use crate::format::index_block::IndexBlock;
use crate::format::segment::{SEGMENT_HEADER, SPARE, Segment};
use crate::format::trust::Distrusted;

/// The segments of a store as far as they were read.
#[derive(Default)]
pub(crate) struct SegmentCatalog {
    /// Those that are not to be trusted.
    pub(crate) distrusted: Distrusted,
    pub(super) files: HashMap<PathBuf, Progress>,
    /// Changes when segments are forgotten, or another rank tells of some.
    pub(super) edition: u64,
    /// The segments that this process has sealed, so that all in them is durable.
    pub(crate) sealed: HashSet<UniqueId>,
    /// Replaced by a compaction up to a length, and only still there for those who read them.
    replaced: HashMap<UniqueId, u64>,
    /// Those of which that was not known when the directory was looked at last.
    pub(super) newly_replaced: HashSet<UniqueId>,
    /// Those that no manifest may vouch for: a sync has failed, and nobody knows which of their bytes are on the medium.
    pub(crate) doubted: HashSet<UniqueId>,
    /// Why files could not be read when the directory was looked at last. They may be readable again at the next look.
    pub(crate) unread: Vec<ArchiveError>,
    /// Up to where this process, or another rank of its program, has made files durable, with their names.
    durable: HashMap<PathBuf, u64>,
    /// Whether the directory was looked at before.
    pub(super) has_looked: bool,
}

/// How far a file was read.
#[derive(Clone)]
pub(super) enum Progress {
    /// This process writes it, and knows what is in it.
    Own(Arc<Segment>),
    /// It is not a segment that can be read; its length then.
    Refused(u64),
    /// Another process writes it, or wrote it.
    Read(KnownSegment),
}

impl Progress {
    pub(super) fn segment(&self) -> Option<&Arc<Segment>> {
        match self {
            Self::Own(segment) => Some(segment),
            Self::Read(known) => Some(&known.segment),
            Self::Refused(_) => None,
        }
    }
}

/// A segment as far as it is known.
#[derive(Clone)]
pub(crate) struct KnownSegment {
    pub(crate) segment: Arc<Segment>,
    /// Up to where its frames were read, without its index.
    pub(crate) end: u64,
    /// How long its file was.
    pub(crate) length: u64,
    /// Whether it has an index: it does not grow.
    pub(crate) sealed: bool,
}

impl KnownSegment {
    /// Whether it may end with zeros that its writer has to spare: there may be frames by now.
    pub(super) fn may_have_spare(&self) -> bool {
        (1..=SPARE).contains(&self.length.saturating_sub(self.end))
    }
}

impl SegmentCatalog {
    /// Takes note that a file is durable as far as it is known, with its name.
    pub(crate) fn note_durable(&mut self, known: &KnownSegment) {
        let path = known.segment.path.clone();
        self.durable.insert(path, known.end);
    }

    /// Whether this process, or another rank of its program, has made a file durable as far as it is known. What others say
    /// of it does not count: it may be a copy that somebody has made.
    pub(crate) fn is_durable(&self, known: &KnownSegment) -> bool {
        let to = self.durable.get(&known.segment.path);
        to.is_some_and(|to| *to >= known.end)
    }

    /// The segments that others wrote, or that this process has sealed, but for those of which
    /// nothing counts any more.
    pub(crate) fn known(&self) -> impl Iterator<Item = KnownSegment> + '_ {
        self.read()
            .filter(|known| self.replaced_to(known).is_none_or(|to| known.end > to))
    }

    /// The segments of which nothing counts any more and whose files are still there.
    pub(crate) fn replaced(&self) -> impl Iterator<Item = KnownSegment> + '_ {
        self.read().filter_map(|known| {
            let end = self.replaced_to(&known).filter(|to| known.end <= *to)?;
            Some(KnownSegment { end, ..known })
        })
    }

    fn replaced_to(&self, known: &KnownSegment) -> Option<u64> {
        self.replaced.get(&known.segment.id).copied()
    }

    fn read(&self) -> impl Iterator<Item = KnownSegment> + '_ {
        self.files.values().filter_map(|progress| match progress {
            Progress::Read(known) => Some(known.clone()),
            Progress::Own(_) | Progress::Refused(_) => None,
        })
    }

    /// Takes note of a segment that another rank tells of as replaced.
    pub(crate) fn apply_replaced(&mut self, known: KnownSegment) {
        self.edition += 1;
        self.replaced.insert(known.segment.id, known.end);
        self.files
            .entry(known.segment.path.clone())
            .or_insert(Progress::Read(KnownSegment {
                length: known.end,
                ..known
            }));
    }

    /// Takes note of what another rank tells of a segment, from a place on. Gives whether that is
    /// new; what is told of a place that comes later is left to be read.
    pub(crate) fn apply(&mut self, known: KnownSegment, from: u64) -> bool {
        let end = match self.files.get(&known.segment.path) {
            Some(Progress::Read(known)) => known.end,
            Some(Progress::Own(_) | Progress::Refused(_)) => return false,
            None => self.first(&known.segment.id),
        };
        if end != from || known.end < end {
            return false;
        }
        self.edition += 1;
        self.note_read(known);
        true
    }

    fn note_read(&mut self, known: KnownSegment) {
        let path = known.segment.path.clone();
        self.files.insert(path, Progress::Read(known));
    }

    /// Forgets segments whose frames are elsewhere by now.
    pub(crate) fn forget(&mut self, goes: impl Fn(&UniqueId) -> bool) {
        self.edition += 1;
        self.files
            .retain(|_, progress| !progress.segment().is_some_and(|one| goes(&one.id)));
    }

    /// Has a segment left alone that this process writes. Gives whether a look has read it before.
    pub(crate) fn own(&mut self, segment: &Arc<Segment>) -> bool {
        let progress = Progress::Own(Arc::clone(segment));
        let before = self.files.insert(segment.path.clone(), progress);
        matches!(before, Some(Progress::Read(_)))
    }

    /// Takes note of a segment that this process has sealed.
    pub(crate) fn note_sealed(&mut self, segment: &Arc<Segment>, block: &IndexBlock) {
        self.sealed.insert(segment.id);
        let known = KnownSegment {
            segment: Arc::clone(segment),
            end: block.end,
            length: block.length,
            sealed: true,
        };
        self.note_durable(&known);
        self.note_read(known);
    }

    /// The segments that this process has saved to and that have no index: those that it writes, and
    /// those that it left after an error.
    pub(crate) fn owned(&self) -> impl Iterator<Item = &Arc<Segment>> {
        self.files.values().filter_map(|progress| match progress {
            Progress::Own(segment) => Some(segment),
            _ => None,
        })
    }

    /// Has segments left out from now on, up to a length. What was said before of files that are gone is forgotten.
    pub(crate) fn replace(&mut self, segments: impl IntoIterator<Item = (UniqueId, u64)>) {
        let there: HashSet<UniqueId> = self.by_id().into_keys().collect();
        self.replaced.retain(|id, _| there.contains(id));
        for (id, length) in segments {
            let known = self.replaced.get(&id);
            if known.is_none_or(|known| *known < length) {
                self.replaced.insert(id, length);
                // Of others nothing was read that would have to be forgotten.
                if there.contains(&id) {
                    self.newly_replaced.insert(id);
                }
            }
        }
    }

    /// Where segments are now, whatever their names: closing one gives it another.
    pub(crate) fn by_id(&self) -> HashMap<UniqueId, &Arc<Segment>> {
        let segments = self.files.values().filter_map(Progress::segment);
        segments.map(|segment| (segment.id, segment)).collect()
    }

    /// Forgets a file that is gone, and what was known of it.
    pub(super) fn forget_file(&mut self, path: &Path) {
        let gone = self.files.remove(path);
        if let Some(gone) = gone.as_ref().and_then(Progress::segment) {
            self.sealed.remove(&gone.id);
        }
        self.durable.remove(path);
    }

    /// Where the frames of a segment begin that count.
    pub(crate) fn first(&self, id: &UniqueId) -> u64 {
        let header = SEGMENT_HEADER as u64;
        let replaced = self.replaced.get(id);
        replaced.map_or(header, |length| header.max(*length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::format::class::Part;
    use crate::format::trust::Trust;
    use crate::locks::lock;
    use crate::vfs::Disk;

    /// Found by reading: what was noted of a segment stayed when its file was gone.
    #[test]
    fn what_is_gone_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let vfs = Arc::new(Disk) as _;
        let catalog = Catalog::new(&vfs, dir.path().to_owned(), Trust::Others, None);
        let path = dir.path().join("gone.sde");
        let (id, writer) = (UniqueId::new(), UniqueId::new());
        let known = KnownSegment {
            segment: Arc::new(Segment::new(path, id, Part::Entries, writer)),
            end: 7,
            length: 7,
            sealed: true,
        };
        {
            let mut segments = lock(&catalog.segments);
            segments.sealed.insert(id);
            segments.note_durable(&known);
            segments.apply_replaced(known);
        }
        catalog.look().unwrap();
        let mut segments = lock(&catalog.segments);
        segments.replace([]);
        let left = (
            segments.sealed.len(),
            segments.durable.len(),
            segments.replaced.len(),
        );
        assert_eq!(left, (0, 0, 0));
    }
}
