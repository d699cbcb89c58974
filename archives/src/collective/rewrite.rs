//! A writer's work on the journals of other ranks: it checks them, and copies the frames that count to its own
//! segments.
//!
//! A writer's segments stay open between commits, so that many commits leave as few as one. Journals are removed
//! only after all ranks know of the new segments, so a writer may stop anywhere: until then both hold the same
//! frames.

use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::sync::{Arc, Mutex};

use sde::archiver::ArchiveError;
use serde::{Deserialize, Serialize};

use super::listing::Listing;
use crate::catalog::Catalog;
use crate::cbor::metadata::{bytes, from_bytes, to_bytes};
use crate::format::id::UniqueId;
use crate::format::segment::{SEGMENT_HEADER, Segment};
use crate::locks::lock;
use crate::rewrite::select::{EVERYTHING, Selection};
use crate::rewrite::source::Source;
use crate::rewrite::write::Output;
use crate::store::warn_unsealed;
use crate::writer::segment_writer::WriterConfig;

/// The segments of a writer.
pub(super) struct Writer {
    output: Output,
    /// The place in each segment up to which other ranks know it.
    told: Mutex<HashMap<UniqueId, u64>>,
}

/// A segment to be written with others.
pub(super) struct Journaled {
    pub(super) segment: Arc<Segment>,
    /// The least length that its file must have.
    pub(super) length: u64,
    /// Whether it is of an earlier job. Then another job may have taken and removed it; and a power failure may
    /// have damaged frames that were never acknowledged.
    pub(super) is_left_behind: bool,
}

/// A writer's report to all ranks.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Report {
    /// The first error.
    pub(super) error: Option<String>,
    /// The ids, concatenated, of the segments whose frames are now durable in the new ones.
    #[serde(with = "bytes")]
    taken: Vec<u8>,
    pub(super) listing: Listing,
}

impl Report {
    /// Empty for a rank that is no writer and has nothing to report.
    pub(super) fn bytes(&self) -> Vec<u8> {
        match self.error.is_none() && self.taken.is_empty() && self.listing.is_empty() {
            true => Vec::new(),
            // A single invalid byte is read as an error.
            false => to_bytes(self).unwrap_or_else(|_| vec![0]),
        }
    }

    pub(super) fn read(bytes: &[u8]) -> Self {
        if bytes.is_empty() {
            return Self::default();
        }
        let report = from_bytes(bytes).map(|(report, _)| report);
        report.unwrap_or_else(|why| Self {
            error: Some(format!(
                "a rank's report of what it wrote can't be read: {why}"
            )),
            ..Self::default()
        })
    }

    pub(super) fn taken(&self) -> impl Iterator<Item = UniqueId> + '_ {
        self.taken.as_chunks().0.iter().map(|id| UniqueId(*id))
    }

    fn fail(&mut self, error: &ArchiveError) {
        self.error.get_or_insert_with(|| error.to_string());
    }
}

impl Writer {
    pub(super) fn new(config: WriterConfig) -> Self {
        Self {
            output: Output::new(config, true),
            told: Mutex::default(),
        }
    }

    /// Seals all segments.
    pub(super) fn end(&self) {
        warn_unsealed(self.output.seal(0, &mut Vec::new()));
    }

    /// Copies the frames that count of some segments.
    pub(super) fn write(&self, catalog: &Catalog, journaled: &[Journaled]) -> Report {
        let mut report = Report::default();
        let mut sources = Vec::new();
        for one in journaled {
            match open(catalog, one) {
                Ok(source) => sources.extend(source),
                Err(error) => report.fail(&error),
            }
        }
        if !sources.is_empty() {
            match self.rewrite(catalog, &sources) {
                Ok(listing) => {
                    report.listing = listing;
                    report.taken = sources.iter().flat_map(|one| one.segment.id.0).collect();
                }
                Err(error) => report.fail(&error),
            }
        }
        report
    }

    /// Gives the listing of the frames written, for other ranks.
    fn rewrite(&self, catalog: &Catalog, sources: &[Source]) -> Result<Listing, ArchiveError> {
        let selected = Selection::new(catalog, sources, EVERYTHING).run()?;
        let (written, sealed) = self.output.write(catalog, sources, &selected)?;
        let sealed = sealed
            .into_iter()
            .map(|(segment, block)| (segment.id, (block.end, block.length)));
        let open = self.output.open().into_iter();
        let open = open.map(|(segment, length)| (segment.id, (length, length)));
        let ends: HashMap<UniqueId, (u64, u64)> = sealed.chain(open).collect();
        let mut told = lock(&self.told);
        let from = |id: &UniqueId| told.get(id).copied().unwrap_or(SEGMENT_HEADER as u64);
        let listing = Listing::written(&written, from, |id| ends.get(id).copied());
        told.extend(listing.ends());
        let there: HashSet<&UniqueId> = ends.keys().collect();
        told.retain(|id, _| there.contains(id));
        Ok(listing)
    }
}

/// Opens a journal; `None` if it can't be taken and stays where it is.
fn open(catalog: &Catalog, of: &Journaled) -> Result<Option<Source>, ArchiveError> {
    let path = &of.segment.path;
    let source = Source::open(&*catalog.vfs, Arc::clone(&of.segment), 0, true);
    let source = match source {
        Err(error) if of.is_left_behind && error.kind() == ErrorKind::NotFound => return Ok(None),
        source => source.map_err(|error| ArchiveError::io("reading", path, error))?,
    };
    if !source.damaged && source.length >= of.length {
        return Ok(Some(source));
    }
    let path = path.display();
    if of.is_left_behind {
        sde::warning!("{path} was left by another job and is damaged; what is whole in it is used");
        return Ok(Some(source));
    }
    // A network file system may show an outdated view of the rank's file.
    sde::warning!("{path} is not what its rank has written; it stays where it is");
    Ok(None)
}
