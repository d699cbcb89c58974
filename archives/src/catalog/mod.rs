//! A process's knowledge of a store: segments, places of frames, and manifests.

pub(crate) mod contents;
pub(crate) mod filter;
pub(crate) mod index;
pub(crate) mod look;
pub(crate) mod manifests;
mod reading;
pub(crate) mod scan;
pub(crate) mod segments;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, RwLock, RwLockWriteGuard};

use sde::archiver::Mark;

use index::Index;
use look::Looking;
pub(crate) use look::segments;
use manifests::ManifestSet;
use reading::CatalogChanges;
use segments::SegmentCatalog;

use crate::format::id::{Clock, UniqueId};
use crate::format::index_block::{IndexBlock, Row};
use crate::format::metadata::{Provenance, ProvenanceId};
use crate::format::segment::Segment;
use crate::format::trust::Trust;
use crate::locks::{Guard, lock, read, write};
use crate::vfs::Vfs;

/// How often a look is repeated because listed files were gone: each time a compaction may have moved their frames.
pub(crate) const LOOKS: usize = 8;

/// Held by the thread that makes a generation.
#[derive(Default)]
pub(crate) struct Committing;

/// A process's knowledge of a store.
pub(crate) struct Catalog {
    pub(crate) vfs: Arc<dyn Vfs>,
    pub(crate) dir: PathBuf,
    trust: Trust,
    /// The folder that this process appends to, if it is not the store's own.
    local: Option<PathBuf>,
    pub(crate) clock: Clock,
    /// Held by the thread that looks at the directory, while it reads files.
    looking: Mutex<Looking>,
    /// The known segments. The lock is held only to copy from them.
    pub(crate) segments: Mutex<SegmentCatalog>,
    manifests: Mutex<ManifestSet>,
    /// Held by the thread that makes a generation, across its syncs.
    pub(crate) committing: Mutex<Committing>,
    index: RwLock<Index>,
    /// A cache of provenances.
    pub(crate) provenances: Mutex<HashMap<ProvenanceId, Arc<Provenance>>>,
    /// Segments already read from end to end for provenances without a whole frame of their own.
    pub(crate) read_for_provenances: Mutex<HashSet<UniqueId>>,
}

impl Catalog {
    /// A catalog that knows nothing yet of the store in this directory.
    pub(crate) fn new(
        vfs: &Arc<dyn Vfs>,
        dir: PathBuf,
        trust: Trust,
        local: Option<PathBuf>,
    ) -> Self {
        Self {
            vfs: Arc::clone(vfs),
            dir,
            clock: Clock::new(vfs),
            trust,
            local,
            looking: Mutex::new(Looking),
            segments: Mutex::default(),
            manifests: Mutex::new(ManifestSet::new(trust)),
            committing: Mutex::default(),
            index: RwLock::default(),
            provenances: Mutex::default(),
            read_for_provenances: Mutex::default(),
        }
    }

    /// Asks the index for a copy, so that no lock is held while files are read.
    pub(crate) fn known<T>(&self, what: impl FnOnce(&Index) -> T) -> T {
        what(&read(&self.index))
    }

    pub(crate) fn index(&self) -> Guard<RwLockWriteGuard<'_, Index>> {
        write(&self.index)
    }

    /// Adds what a look has read.
    pub(crate) fn apply(&self, changes: CatalogChanges) {
        let mut index = self.index();
        if !changes.gone.is_empty() {
            index.remove(|id| changes.gone.contains(id));
        }
        for (segment, block) in changes.sealed {
            self.clock.saw(block.latest);
            index.add_sealed(&segment, block);
        }
        for (segment, rows) in changes.frames {
            let latest = rows.iter().map(|row| row.saved_at).max();
            latest.into_iter().for_each(|at| self.clock.saw(at));
            index.add(&segment, rows);
        }
        for mark in changes.marks {
            index.add_mark(mark);
        }
    }

    /// Adds what this process has written.
    pub(crate) fn note_written(&self, written: Written) {
        // The segment is marked as its own before the index has the rows, so that no look reads it again. A look
        // that has read it earlier found the same frames, which are removed.
        let mut segments = lock(&self.segments);
        let mut index = self.index();
        if segments.own(&written.segment) {
            index.remove(|id| *id == written.segment.id);
        }
        index.add(&written.segment, written.rows);
        written
            .marks
            .into_iter()
            .for_each(|mark| index.add_mark(mark));
    }

    /// Adds a segment of saves that this process has sealed. Its frames are known already; for a large segment a
    /// table takes their place.
    pub(crate) fn note_sealed(&self, segment: &Arc<Segment>, block: IndexBlock) {
        lock(&self.segments).note_sealed(segment, &block);
        if block.rows.len() >= index::LARGE {
            let mut index = self.index();
            index.remove(|id| *id == segment.id);
            index.add_sealed(segment, block);
        }
    }

    /// Adds a sealed segment that a rewrite of this process has made, of which no frame is known.
    pub(crate) fn note_new(&self, segment: &Arc<Segment>, block: IndexBlock) {
        let mut segments = lock(&self.segments);
        segments.note_sealed(segment, &block);
        let mut index = self.index();
        // Another thread's look may have found it before it was sealed.
        index.remove(|id| *id == segment.id);
        index.add_sealed(segment, block);
    }

    /// Forgets the frames of segments.
    pub(crate) fn forget(&self, goes: impl Fn(&UniqueId) -> bool) {
        self.index().remove(goes);
    }
}

/// Frames that others can read, and the marks in them. They may not be durable yet: `SegmentWriter::durable` tells.
pub(crate) struct Written {
    pub(crate) segment: Arc<Segment>,
    pub(crate) rows: Vec<Row>,
    pub(crate) marks: Vec<Mark>,
}
