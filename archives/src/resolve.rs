//! Which computation of a key counts.

use sde::{ArchiveError, Key, StoredEntry, StoredResult};

use crate::catalog::Catalog;
use crate::catalog::index::KnownFrame;
use crate::format::precedence::Precedence;
use crate::read::frame::{self};
use crate::read::trouble::Trouble;

/// What became of looking at the frames of a key.
pub(crate) struct Resolved {
    pub(crate) entry: Option<StoredEntry>,
    /// Whether the file of a frame is not there any more.
    pub(crate) gone: bool,
}

/// The entry of the highest [`Precedence`] that can be read. What its frame lacks (the results of another class), or has
/// damaged, is taken from other frames of the same computation.
pub(crate) fn resolve(
    catalog: &Catalog,
    frames: &[KnownFrame],
    key: &Key,
) -> Result<Resolved, ArchiveError> {
    let mut computations: Vec<(Precedence, Option<StoredEntry>)> = Vec::new();
    let mut failed = None;
    let mut gone = false;
    for at in frames {
        match frame::entry(catalog, &at.place, key) {
            Ok((precedence, copy)) => {
                let at = precedence.merge(&mut computations, || None);
                match &mut computations[at].1 {
                    Some(found) => fill(found, copy),
                    none => *none = Some(copy),
                }
            }
            Err(Trouble::Gone) => gone = true,
            Err(trouble) => failed = trouble.warned(key, "an entry").or(failed),
        }
    }
    let best = computations.into_iter().max_by_key(|(rank, _)| *rank);
    match (best, failed) {
        (None, Some(error)) => Err(error),
        (best, _) => Ok(Resolved {
            entry: best.and_then(|(_, entry)| entry),
            gone,
        }),
    }
}

fn fill(entry: &mut StoredEntry, copy: StoredEntry) {
    entry.archived |= copy.archived;
    for other in copy.results {
        let same = |result: &&mut StoredResult| result.name == other.name;
        if let Some(result) = entry.results.iter_mut().find(same)
            && result.payload.is_none()
        {
            result.payload = other.payload;
        }
    }
}
