//! What is known of a store: its segments, what lies where in them, its manifests.

pub(crate) mod contents;
pub(crate) mod filter;
pub(crate) mod index;
mod look;
pub(crate) mod manifests;
mod reading;
pub(crate) mod scan;
pub(crate) mod segments;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, RwLock, RwLockWriteGuard};

use sde::Mark;

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

/// How often files are looked for again that were there and are gone: a compaction has put what was in them elsewhere, and another
/// may follow it.
pub(crate) const LOOKS: usize = 8;

/// Held by the thread that makes a generation.
#[derive(Default)]
pub(crate) struct Committing;

/// What a process knows of a store.
pub(crate) struct Catalog {
    pub(crate) vfs: Arc<dyn Vfs>,
    pub(crate) dir: PathBuf,
    trust: Trust,
    /// Another folder with segments: that which this process appends to, if not the store's.
    local: Option<PathBuf>,
    pub(crate) clock: Clock,
    /// Held by the thread that looks at the directory, while it reads files.
    looking: Mutex<Looking>,
    /// The segments that are known, locked no longer than it takes to copy from them.
    pub(crate) segments: Mutex<SegmentCatalog>,
    manifests: Mutex<ManifestSet>,
    /// Held by who makes a generation, across its syncs.
    pub(crate) committing: Mutex<Committing>,
    index: RwLock<Index>,
    /// The provenances that were read last.
    pub(crate) provenances: Mutex<HashMap<ProvenanceId, Arc<Provenance>>>,
    /// Segments that were read from end to end for provenances that have no frame that is whole.
    pub(crate) read_for_provenances: Mutex<HashSet<UniqueId>>,
}

impl Catalog {
    /// Nothing of the store in this directory yet.
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

    /// What the index says, copied: no lock is held while files are read.
    pub(crate) fn known<T>(&self, what: impl FnOnce(&Index) -> T) -> T {
        what(&read(&self.index))
    }

    pub(crate) fn index(&self) -> Guard<RwLockWriteGuard<'_, Index>> {
        write(&self.index)
    }

    /// Takes note of what was read.
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

    /// Takes note of what this process has written.
    pub(crate) fn note_written(&self, written: Written) {
        // Before the index knows of it: nobody is to read it a second time. A look that read it before it was noted has the same
        // frames.
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

    /// Takes note of a segment of saves that this process has sealed. Its frames were noted as they were written; of a large
    /// segment the index takes their place.
    pub(crate) fn note_sealed(&self, segment: &Arc<Segment>, block: IndexBlock) {
        lock(&self.segments).note_sealed(segment, &block);
        if block.rows.len() >= index::LARGE {
            let mut index = self.index();
            index.remove(|id| *id == segment.id);
            index.add_sealed(segment, block);
        }
    }

    /// Takes note of a sealed segment that a rewrite of this process has made: none of its frames was noted before.
    pub(crate) fn note_new(&self, segment: &Arc<Segment>, block: IndexBlock) {
        let mut segments = lock(&self.segments);
        segments.note_sealed(segment, &block);
        let mut index = self.index();
        // Another thread may have found it before it was sealed.
        index.remove(|id| *id == segment.id);
        index.add_sealed(segment, block);
    }

    /// Forgets what was in segments.
    pub(crate) fn forget(&self, goes: impl Fn(&UniqueId) -> bool) {
        self.index().remove(goes);
    }
}

/// Frames that others can read, and the marks in them. They may not be durable yet: what is durable
/// `SegmentWriter::durable` says.
pub(crate) struct Written {
    pub(crate) segment: Arc<Segment>,
    pub(crate) rows: Vec<Row>,
    pub(crate) marks: Vec<Mark>,
}
