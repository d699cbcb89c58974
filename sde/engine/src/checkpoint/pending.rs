//! What has changed since the last save.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use super::archiver::{Mark, SavedEntry, SavedResult, Selection};
use crate::cache::Entry;
use crate::key::{BuildKeyHasher, Key};
use crate::result_map::{Content, Named};
use crate::sync::lock;

/// The entries and marks that a save has yet to write, for each selection.
#[derive(Default)]
pub(crate) struct Pending {
    checkpoint: Mutex<Unsaved>,
    archive: Mutex<Unsaved>,
    marks: Mutex<Vec<Mark>>,
}

/// The newest entry of each key, in the order in which they came.
#[derive(Default)]
struct Unsaved {
    in_order: BTreeMap<u64, Arc<Entry>>,
    places: HashMap<Key, u64, BuildKeyHasher>,
    next: u64,
}

impl Unsaved {
    /// Gives the entry in whose place it comes.
    fn put(&mut self, entry: Arc<Entry>) -> Option<Arc<Entry>> {
        let before = self.remove(&entry.record.key);
        self.places.insert(entry.record.key, self.next);
        self.in_order.insert(self.next, entry);
        self.next += 1;
        before
    }

    fn get(&self, key: &Key) -> Option<&Arc<Entry>> {
        self.in_order.get(self.places.get(key)?)
    }

    fn remove(&mut self, key: &Key) -> Option<Arc<Entry>> {
        self.in_order.remove(&self.places.remove(key)?)
    }
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
        let unsaved = only_taken(entry, selection);
        // Dropped when the list is free again: destructors may use the cache.
        let _before = lock(self.list(selection)).put(unsaved);
    }

    pub(crate) fn add_mark(&self, mark: Mark) {
        lock(&self.marks).push(mark);
    }

    /// How many entries are to be saved.
    pub(crate) fn number(&self, selection: Selection) -> usize {
        lock(self.list(selection)).in_order.len()
    }

    /// Takes some of the entries that are to be saved, so many or of so many bytes, and all marks.
    pub(crate) fn take(
        &self,
        selection: Selection,
        most: usize,
        most_bytes: usize,
    ) -> (Vec<Arc<Entry>>, Vec<Mark>) {
        let mut list = lock(self.list(selection));
        let mut taken = Vec::new();
        let mut bytes = 0_usize;
        while taken.len() < most
            && bytes < most_bytes
            && let Some((_, entry)) = list.in_order.pop_first()
        {
            list.places.remove(&entry.record.key);
            bytes = bytes.saturating_add(entry.known_bytes());
            taken.push(entry);
        }
        (taken, std::mem::take(&mut *lock(&self.marks)))
    }

    /// The entries of these keys that a selection lacks.
    pub(crate) fn of(&self, selection: Selection, keys: &[Key]) -> Vec<Arc<Entry>> {
        let list = lock(self.list(selection));
        let found = keys.iter().filter_map(|key| list.get(key));
        found.cloned().collect()
    }

    /// Takes an entry off a list, because it is saved or never to be.
    pub(crate) fn forget(&self, selection: Selection, entry: &Entry) {
        let mut list = lock(self.list(selection));
        let (key, run) = (&entry.record.key, entry.record.run);
        let is_listed = list.get(key).is_some_and(|one| one.record.run == run);
        let before = is_listed.then(|| list.remove(key));
        drop(list);
        drop(before);
    }

    /// Puts back what could not be saved, but for what has a newer entry since.
    pub(crate) fn put_back(
        &self,
        selection: Selection,
        entries: Vec<Arc<Entry>>,
        marks: Vec<Mark>,
    ) {
        lock(&self.marks).splice(0..0, marks);
        let mut list = lock(self.list(selection));
        for entry in entries {
            if list.get(&entry.record.key).is_none() {
                list.put(entry);
            }
        }
    }

    fn list(&self, selection: Selection) -> &Mutex<Unsaved> {
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

/// Entries as a batch has them.
pub(crate) fn saved(entries: &[Arc<Entry>], selection: Selection) -> Vec<SavedEntry> {
    let entries = entries.iter();
    entries.map(|entry| saved_entry(entry, selection)).collect()
}

/// An entry with the values that the selection takes.
fn saved_entry(entry: &Entry, selection: Selection) -> SavedEntry {
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
                name: named.name.clone(),
                tags,
                value: selection.takes(tags).then(|| value(named)).flatten(),
            }
        })
        .collect();
    SavedEntry {
        record: Arc::clone(&entry.record),
        results,
    }
}
