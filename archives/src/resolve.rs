//! Which computation of a key counts.

use std::cmp::Reverse;

use sde::Key;
use sde::archiver::{ArchiveError, StoredEntry, StoredResult};

use crate::catalog::Catalog;
use crate::format::precedence::Precedence;
use crate::read::error::ReadError;
use crate::read::frame;

/// A computation of a key, with all its frames.
pub(crate) struct Computation<T> {
    pub(crate) precedence: Precedence,
    /// The frames, in the order given.
    pub(crate) frames: Vec<T>,
}

/// The computations of one key: the one that counts, which has the highest [`Precedence`], comes first. The engine, compactions
/// and inspections all ask this.
pub(crate) fn computations<T>(
    frames: impl IntoIterator<Item = (Precedence, T)>,
) -> Vec<Computation<T>> {
    let mut all: Vec<Computation<T>> = Vec::new();
    for (precedence, frame) in frames {
        match all
            .iter_mut()
            .find(|one| one.precedence.run == precedence.run)
        {
            Some(one) => {
                one.precedence = one.precedence.max(precedence);
                one.frames.push(frame);
            }
            None => all.push(Computation {
                precedence,
                frames: vec![frame],
            }),
        }
    }
    all.sort_by_key(|one| Reverse(one.precedence));
    all
}

/// The result of looking at the frames of a key.
pub(crate) struct Resolved {
    pub(crate) entry: Option<StoredEntry>,
    /// Whether the file of a frame was gone.
    pub(crate) gone: bool,
}

/// The entry of a key that counts, by the index in memory. Results that its frame lacks, or has damaged, are taken
/// from other frames of its computation.
pub(crate) fn resolve(catalog: &Catalog, key: &Key) -> Result<Resolved, ArchiveError> {
    let mut found = Vec::new();
    let mut failed = None;
    let mut gone = false;
    for at in catalog.known(|index| index.entries(key)) {
        match frame::entry(catalog, &at.place, key) {
            Ok(entry) => found.push(entry),
            Err(ReadError::Gone) => gone = true,
            Err(error) => failed = error.warned(key, "an entry").or(failed),
        }
    }
    let mut entries = computations(found).into_iter().filter_map(|one| {
        one.frames.into_iter().reduce(|mut entry, copy| {
            fill(&mut entry, copy);
            entry
        })
    });
    let entry = entries.next().map(|mut best| {
        best.others = entries.collect();
        best
    });
    match (entry, failed) {
        (None, Some(error)) => Err(error),
        (entry, _) => Ok(Resolved { entry, gone }),
    }
}

fn fill(entry: &mut StoredEntry, copy: StoredEntry) {
    entry.archived |= copy.archived;
    if entry.record.inputs.is_empty() {
        entry.record.inputs = copy.record.inputs;
    }
    for other in copy.results {
        let same = |result: &&mut StoredResult| result.name == other.name;
        if let Some(result) = entry.results.iter_mut().find(same)
            && result.payload.is_none()
        {
            result.payload = other.payload;
        }
    }
}
