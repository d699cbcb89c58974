//! How far each segment was read.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sde::archiver::ArchiveError;

use crate::format::id::UniqueId;
use crate::format::index_block::IndexBlock;
use crate::format::segment::{SEGMENT_HEADER, SPARE, Segment};
use crate::format::trust::Distrusted;

/// The segments of a store, as far as they were read.
#[derive(Default)]
pub(crate) struct SegmentCatalog {
    /// Files that are not trusted.
    pub(crate) distrusted: Distrusted,
    /// Users whose segments were left out, since what is in them would be run.
    pub(crate) untrusted: HashSet<u32>,
    pub(super) files: HashMap<PathBuf, Progress>,
    /// Changes when segments are forgotten, or another rank tells of some.
    pub(super) edition: u64,
    /// Segments that this process has sealed: all their frames are durable.
    pub(crate) sealed: HashSet<UniqueId>,
    /// Segments replaced up to a length; their files stay for those that still read them.
    replaced: HashMap<UniqueId, u64>,
    /// The replaced segments that the last look did not know to be replaced.
    pub(super) newly_replaced: HashSet<UniqueId>,
    /// Segments that no manifest may list: a sync failed, so nobody knows which bytes are on the medium.
    pub(crate) doubted: HashSet<UniqueId>,
    /// The errors of the last look. Such files may be readable at the next.
    pub(crate) unread: Vec<ArchiveError>,
    /// The length of each file that this process, or another rank of its program, has made durable, with its name.
    durable: HashMap<PathBuf, u64>,
    /// Whether the directory was looked at before.
    pub(super) has_looked: bool,
}

/// How far a file was read.
#[derive(Clone)]
pub(super) enum Progress {
    /// This process writes the segment, and knows its frames.
    Own(Arc<Segment>),
    /// Not a segment that can be read; the file's length when it was tried.
    Refused(u64),
    /// Another process writes the segment, or wrote it.
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
    /// The end of the frames read, without the index.
    pub(crate) end: u64,
    /// The file's length.
    pub(crate) length: u64,
    /// Whether it has an index, and so does not grow.
    pub(crate) sealed: bool,
}

impl KnownSegment {
    /// Whether the file may end with its writer's spare zeros, in which there may be frames by now.
    pub(super) fn may_have_spare(&self) -> bool {
        (1..=SPARE).contains(&self.length.saturating_sub(self.end))
    }
}

impl SegmentCatalog {
    /// Records that the file is durable up to the known end, with its name.
    pub(crate) fn note_durable(&mut self, known: &KnownSegment) {
        let path = known.segment.path.clone();
        self.durable.insert(path, known.end);
    }

    /// Whether this process, or another rank of its program, has made the known part durable. Others' manifests do
    /// not count: the file may be a copy that a person has made.
    pub(crate) fn is_durable(&self, known: &KnownSegment) -> bool {
        let to = self.durable.get(&known.segment.path);
        to.is_some_and(|to| *to >= known.end)
    }

    /// Segments of other processes, and those that this process has sealed, except those replaced in full.
    pub(crate) fn known(&self) -> impl Iterator<Item = KnownSegment> + '_ {
        self.read()
            .filter(|known| self.replaced_to(known).is_none_or(|to| known.end > to))
    }

    /// The segments replaced in full whose files are still there.
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

    /// Whether the last look could not read a file.
    pub(crate) fn is_unread(&self, file: &Path) -> bool {
        let of =
            |error: &ArchiveError| matches!(error, ArchiveError::Io { path, .. } if path == file);
        self.unread.iter().any(of)
    }

    /// Adds a segment that another rank calls replaced.
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

    /// Adds the frames of a segment that another rank tells of, from a place on. `false` if they are known, or
    /// frames before them are not: those must be read.
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

    /// Forgets segments whose frames have been copied elsewhere.
    pub(crate) fn forget(&mut self, goes: impl Fn(&UniqueId) -> bool) {
        self.edition += 1;
        self.files
            .retain(|_, progress| !progress.segment().is_some_and(|one| goes(&one.id)));
    }

    /// Has looks leave alone a segment of this process. `true` if one has read it before.
    pub(crate) fn own(&mut self, segment: &Arc<Segment>) -> bool {
        let progress = Progress::Own(Arc::clone(segment));
        let before = self.files.insert(segment.path.clone(), progress);
        matches!(before, Some(Progress::Read(_)))
    }

    /// Adds a segment that this process has sealed.
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

    /// The segments without index that this process has saved to: those it writes, and those it left after an
    /// error.
    pub(crate) fn owned(&self) -> impl Iterator<Item = &Arc<Segment>> {
        self.files.values().filter_map(|progress| match progress {
            Progress::Own(segment) => Some(segment),
            _ => None,
        })
    }

    /// Leaves out segments up to a length from now on. Earlier records of files that are gone are forgotten.
    pub(crate) fn replace(&mut self, segments: impl IntoIterator<Item = (UniqueId, u64)>) {
        let there: HashSet<UniqueId> = self.by_id().into_keys().collect();
        self.replaced.retain(|id, _| there.contains(id));
        for (id, length) in segments {
            let known = self.replaced.get(&id);
            if known.is_none_or(|known| *known < length) {
                self.replaced.insert(id, length);
                // Nothing was read of the others, so nothing must be forgotten.
                if there.contains(&id) {
                    self.newly_replaced.insert(id);
                }
            }
        }
    }

    /// The known segments by id, since closing one gives its file another name.
    pub(crate) fn by_id(&self) -> HashMap<UniqueId, &Arc<Segment>> {
        let segments = self.files.values().filter_map(Progress::segment);
        segments.map(|segment| (segment.id, segment)).collect()
    }

    /// Forgets a file that is gone.
    pub(super) fn forget_file(&mut self, path: &Path) {
        let gone = self.files.remove(path);
        if let Some(gone) = gone.as_ref().and_then(Progress::segment) {
            self.sealed.remove(&gone.id);
        }
        self.durable.remove(path);
    }

    /// The place of a segment's first frame that is not replaced.
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

    /// Found by reading: records of a segment stayed when its file was gone.
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
