//! What has changed since the last save.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::archiver::{Mark, SavedEntry, SavedResult, Selection};
use crate::cache::Entry;
use crate::result_map::{Content, Named};

/// The entries and marks that a save has yet to write, for each selection.
#[derive(Default)]
pub(crate) struct Pending {
    checkpoint: Mutex<Vec<Arc<Entry>>>,
    archive: Mutex<Vec<Arc<Entry>>>,
    marks: Mutex<Vec<Mark>>,
}

impl Pending {
    /// Notes a new entry for both selections.
    pub(crate) fn add(&self, entry: &Arc<Entry>) {
        for selection in [Selection::Checkpoint, Selection::Archive] {
            self.add_to(selection, entry);
        }
    }

    /// Notes an entry that one selection lacks.
    pub(crate) fn add_to(&self, selection: Selection, entry: &Arc<Entry>) {
        lock(self.list(selection)).push(only_taken(entry, selection));
    }

    pub(crate) fn add_mark(&self, mark: Mark) {
        lock(&self.marks).push(mark);
    }

    /// Takes what is to be saved, the newest entry of each key.
    pub(crate) fn take(&self, selection: Selection) -> (Vec<Arc<Entry>>, Vec<Mark>) {
        let all = std::mem::take(&mut *lock(self.list(selection)));
        let mut seen = HashSet::with_capacity(all.len());
        let mut newest: Vec<_> = all
            .into_iter()
            .rev()
            .filter(|entry| seen.insert(entry.record.key))
            .collect();
        newest.reverse();
        (newest, std::mem::take(&mut *lock(&self.marks)))
    }

    /// Takes one entry off the list because it is being saved on its own.
    pub(crate) fn forget(&self, selection: Selection, entry: &Arc<Entry>) {
        let mut list = lock(self.list(selection));
        let same = |other: &Arc<Entry>| {
            other.record.key == entry.record.key && other.record.run == entry.record.run
        };
        if let Some(at) = list.iter().rposition(same) {
            list.swap_remove(at);
        }
    }

    /// Puts back what could not be saved, before what came since.
    pub(crate) fn put_back(
        &self,
        selection: Selection,
        entries: Vec<Arc<Entry>>,
        marks: Vec<Mark>,
    ) {
        lock(self.list(selection)).splice(0..0, entries);
        lock(&self.marks).splice(0..0, marks);
    }

    /// Forgets everything: another store takes this one's place.
    pub(crate) fn clear(&self) {
        lock(&self.checkpoint).clear();
        lock(&self.archive).clear();
        lock(&self.marks).clear();
    }

    fn list(&self, selection: Selection) -> &Mutex<Vec<Arc<Entry>>> {
        match selection {
            Selection::Checkpoint => &self.checkpoint,
            Selection::Archive => &self.archive,
        }
    }
}

/// The entry without the values that the selection leaves out, so that a list of
/// what is to be archived keeps no intermediate alive.
fn only_taken(entry: &Arc<Entry>, selection: Selection) -> Arc<Entry> {
    let left_out = |named: &Named| !selection.takes(named.tags.unwrap_or_default());
    match entry.results.results().iter().any(left_out) {
        true => Arc::new(entry.without(left_out, "it is not saved here")),
        false => Arc::clone(entry),
    }
}

fn lock<T>(list: &Mutex<T>) -> MutexGuard<'_, T> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An entry as a batch has it: the values that the selection takes.
pub(crate) fn saved(entry: &Entry, selection: Selection) -> SavedEntry {
    let value = |named: &Named| {
        let value = match &named.content {
            Content::Held(value) => value.clone(),
            Content::Stored(stored) => stored.get().ok()?.clone(),
            Content::Elsewhere(_) | Content::Gone(_) => return None,
        };
        Some((value, named.codec?))
    };
    let results = entry
        .results
        .results()
        .iter()
        .map(|named| {
            let tags = named.tags.unwrap_or_default();
            SavedResult {
                name: named.name.to_string(),
                tags,
                value: selection.takes(tags).then(|| value(named)).flatten(),
            }
        })
        .collect();
    SavedEntry {
        record: entry.record.clone(),
        results,
    }
}
