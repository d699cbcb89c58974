//! Which of several frames of a key is given out, and what it takes from the others.

use std::sync::Arc;

use sde::{ArchiveError, Key, StoredEntry, StoredResult};

use crate::index::At;
use crate::medium::Medium;
use crate::read;

/// The best entry that can be read: the latest computation. What that frame lacks (the
/// results of another class), or has damaged, is taken from other frames of the same
/// computation.
pub(crate) fn best(
    medium: &Arc<dyn Medium>,
    places: &[At],
    key: &Key,
) -> Result<Option<StoredEntry>, ArchiveError> {
    let mut best: Option<StoredEntry> = None;
    let mut failed = None;
    for at in places {
        match read::entry(medium, &at.place, key) {
            Ok(copy) => match &mut best {
                Some(found) if found.record.run == copy.record.run => fill(found, copy),
                Some(found) if found.record.made_at >= copy.record.made_at => {}
                _ => best = Some(copy),
            },
            Err(trouble) => failed = trouble.warned(key, "an entry").or(failed),
        }
    }
    match (best, failed) {
        (None, Some(error)) => Err(error),
        (best, _) => Ok(best),
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
