//! What a writer does with the segments of others: it checks them, and writes what counts of them to segments of its own.
//!
//! These stay open from one time to the next, so that they are as few after many commits as after one. What was read is
//! removed only after all ranks know of the new segments, so a writer may stop anywhere: until then both count, and they say
//! the same.

use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::sync::{Arc, Mutex};

use sde::ArchiveError;
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
    /// Up to where others have been told of each.
    told: Mutex<HashMap<UniqueId, u64>>,
}

/// A segment to be written with others.
pub(super) struct Journaled {
    pub(super) segment: Arc<Segment>,
    /// How long its file is at least.
    pub(super) length: u64,
    /// Whether it is of an earlier job. Then another may have taken it in and removed it; and a power
    /// failure may have damaged what was not acknowledged.
    pub(super) is_left_behind: bool,
}

/// What a writer tells all ranks of what it has written.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Report {
    /// The first thing that went wrong.
    pub(super) error: Option<String>,
    /// The ids of the segments of which all that counts is in the new ones, durable: one after the other.
    #[serde(with = "bytes")]
    taken: Vec<u8>,
    pub(super) listing: Listing,
}

impl Report {
    /// Nothing, of a rank that is no writer and has nothing to say.
    pub(super) fn bytes(&self) -> Vec<u8> {
        match self.error.is_none() && self.taken.is_empty() && self.listing.is_empty() {
            true => Vec::new(),
            // One that has no bytes is read as an error.
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

    /// Writes what counts of some segments.
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

    /// Gives what others are to know of what was written.
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

/// Reads a segment of another rank; `None` if it is left where it is.
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
    // On a network file system that may be a late view of what its rank has written.
    sde::warning!("{path} is not what its rank has written; it stays where it is");
    Ok(None)
}
