//! Which of several frames of a key is given out, and what it takes from the others.

use std::sync::Arc;

use sde::{ArchiveError, Key, StoredEntry, StoredResult};

use crate::catalog::index::KnownFrame;
use crate::precedence::Rank;
use crate::read::frame::{self, Trouble};
use crate::vfs::Vfs;

/// What became of looking at the frames of a key.
pub(crate) struct Best {
    pub(crate) entry: Option<StoredEntry>,
    /// Whether the file of a frame is not there any more.
    pub(crate) gone: bool,
}

/// The best entry that can be read: the computation of the highest [`Rank`]. What that frame lacks (the
/// results of another class), or has damaged, is taken from other frames of the same
/// computation.
pub(crate) fn best(
    medium: &Arc<dyn Vfs>,
    places: &[KnownFrame],
    key: &Key,
) -> Result<Best, ArchiveError> {
    let mut computations: Vec<(Rank, StoredEntry)> = Vec::new();
    let mut failed = None;
    let mut gone = false;
    for at in places {
        match frame::entry(medium, &at.place, key) {
            Ok((rank, copy)) => {
                let mut known = computations.iter_mut();
                match known.find(|(known, _)| known.run == rank.run) {
                    Some((known, found)) => {
                        *known = rank.max(*known);
                        fill(found, copy);
                    }
                    None => computations.push((rank, copy)),
                }
            }
            Err(Trouble::Gone) => gone = true,
            Err(trouble) => failed = trouble.warned(key, "an entry").or(failed),
        }
    }
    let best = computations.into_iter().max_by_key(|(rank, _)| *rank);
    match (best, failed) {
        (None, Some(error)) => Err(error),
        (best, _) => Ok(Best {
            entry: best.map(|(_, entry)| entry),
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
