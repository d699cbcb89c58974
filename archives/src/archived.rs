//! What this process has put where archives are, so that no result is written there twice.
//!
//! A checkpoint writes results to the folder of the archive already; the archive that follows, or
//! the checkpoint that follows an archive, is given the same entries again. Once both have brought
//! an entry, and that is committed, it does not come again and is forgotten here.

use std::collections::HashMap;
use std::sync::Mutex;

use sde::key::BuildKeyHasher;
use sde::{Batch, Key, RunId, SavedEntry, SavedResult, Selection, StoredEntry};

use crate::class::Class;
use crate::save::classes;
use crate::store::lock;

/// The entries that may be given once more.
#[derive(Default)]
pub(crate) struct Archived(Mutex<HashMap<Key, Row, BuildKeyHasher>>);

/// The results of one computation.
struct Row {
    run: RunId,
    /// Whether each selection has brought them.
    checkpointed: bool,
    archived: bool,
}

impl Row {
    fn new(run: RunId) -> Self {
        Self {
            run,
            checkpointed: false,
            archived: false,
        }
    }
}

impl Archived {
    /// Whether all that an archive takes of this entry is there.
    pub(crate) fn has(&self, entry: &SavedEntry) -> bool {
        let rows = lock(&self.0);
        let row = rows.get(&entry.record.key);
        row.is_some_and(|row| row.run == entry.record.run)
    }

    /// Takes note of what an archive has all of.
    pub(crate) fn note(&self, batch: &Batch) {
        let mut rows = lock(&self.0);
        for entry in &batch.entries {
            let whole = |result: &SavedResult| !result.tags.is_archived() || result.value.is_some();
            // A checkpoint of intermediates alone leaves nothing in an archive's folder, not even the record.
            let is_there = classes(entry, batch.selection).any(|class| class == Class::Result);
            if !is_there || !entry.results.iter().all(whole) {
                continue;
            }
            let (key, run) = (entry.record.key, entry.record.run);
            let row = rows.entry(key).or_insert_with(|| Row::new(run));
            if row.run != run {
                *row = Row::new(run);
            }
            match batch.selection {
                Selection::Checkpoint => row.checkpointed = true,
                Selection::Archive => row.archived = true,
            }
        }
    }

    /// Forgets what does not come again. Not before it is committed: if that fails, all of it
    /// comes again.
    pub(crate) fn committed(&self) {
        lock(&self.0).retain(|_, row| !(row.checkpointed && row.archived));
    }

    /// Forgets everything: it is not there any more.
    pub(crate) fn clear(&self) {
        lock(&self.0).clear();
    }

    #[cfg(test)]
    fn rows(&self) -> usize {
        lock(&self.0).len()
    }
}

/// Whether a stored entry is this computation, with all its values.
pub(crate) fn is_stored(found: &StoredEntry, entry: &SavedEntry) -> bool {
    let has = |result: &SavedResult| {
        let mut there = found.results.iter();
        result.value.is_none() || there.any(|one| one.name == result.name && one.payload.is_some())
    };
    found.record.run == entry.record.run && entry.results.iter().all(has)
}

#[cfg(test)]
mod tests {
    use sde::{MemoryArchiver, Record, Sde};

    use super::*;

    #[sde::app]
    fn two(x: u64) -> u64 {
        x + 2
    }

    fn record() -> Record {
        let sde = Sde::builder().store(MemoryArchiver::new()).build();
        let sde = sde.unwrap();
        two.call(&sde, 1).unwrap();
        sde.records().remove(0)
    }

    fn batch(record: &Record, selection: Selection) -> Batch {
        Batch {
            selection,
            entries: vec![SavedEntry {
                record: record.clone().into(),
                results: Vec::new(),
            }],
            scratch: Vec::new(),
            marks: Vec::new(),
        }
    }

    #[test]
    fn it_is_forgotten_when_both_have_come_and_not_before() {
        let (archived, record) = (Archived::default(), record());
        let checkpoint = batch(&record, Selection::Checkpoint);
        archived.note(&checkpoint);
        archived.committed();
        assert!(archived.has(&checkpoint.entries[0]));
        archived.note(&batch(&record, Selection::Archive));
        assert!(archived.has(&checkpoint.entries[0]));
        archived.committed();
        assert_eq!(archived.rows(), 0);
    }
}
