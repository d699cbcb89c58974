//! What has changed since the last save.

use std::borrow::Borrow;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex};

use super::archiver::{Mark, SavedEntry, SavedResult, Selection};
use crate::cache::{Entry, Record};
use crate::key::{BuildKeyHasher, Key};
use crate::result_map::{Content, Named};
use crate::sync::lock;

/// The entries and marks that a save has yet to write.
#[derive(Default)]
pub(crate) struct Pending {
    entries: Mutex<Unsaved>,
    marks: Mutex<Vec<Mark>>,
}

/// The newest entry of each key, for each selection that lacks it, in the order in which they came. Most come to both
/// selections at once, and leave both at once if the store archives checkpoints: hence one list.
#[derive(Default)]
struct Unsaved {
    in_order: VecDeque<Slot>,
    /// The place of the first of them.
    begin: u64,
    places: HashMap<ByKey, u64, BuildKeyHasher>,
    /// The place of the first that a selection may lack.
    first: [u64; 2],
}

/// What the selections lack of one key, by their numbers.
type Slot = [Option<Arc<Entry>>; 2];

/// A record that is found by its key, and takes a quarter of that.
struct ByKey(Arc<Record>);

impl Borrow<Key> for ByKey {
    fn borrow(&self) -> &Key {
        &self.0.key
    }
}

impl Hash for ByKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.key.hash(state);
    }
}

impl PartialEq for ByKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.key == other.0.key
    }
}

impl Eq for ByKey {}

/// A list that is empty keeps room for so many entries at most.
const ROOM: usize = 1024;

impl Unsaved {
    /// Puts an entry in the place of its key, or last, for each selection that it is given for. Gives those in whose place
    /// it comes.
    fn put(&mut self, record: &Arc<Record>, new: Slot) -> Slot {
        let place = match self.places.get(&record.key) {
            Some(place) => *place,
            None => {
                let place = self.end();
                self.places.insert(ByKey(Arc::clone(record)), place);
                self.in_order.push_back(Slot::default());
                place
            }
        };
        let mut before = Slot::default();
        for (of, new) in new.into_iter().enumerate().filter(|(_, new)| new.is_some()) {
            self.first[of] = self.first[of].min(place);
            if let Some(slot) = self.slot(place) {
                before[of] = std::mem::replace(&mut slot[of], new);
            }
        }
        before
    }

    fn end(&self) -> u64 {
        self.begin + self.in_order.len() as u64
    }

    fn index(&self, place: u64) -> usize {
        place.saturating_sub(self.begin) as usize
    }

    fn slot(&mut self, place: u64) -> Option<&mut Slot> {
        let index = self.index(place);
        self.in_order.get_mut(index)
    }

    fn get(&self, of: Selection, key: &Key) -> Option<&Arc<Entry>> {
        let index = self.index(*self.places.get(key)?);
        self.in_order.get(index)?[of as usize].as_ref()
    }

    fn number(&self, of: Selection) -> usize {
        let slots = self
            .in_order
            .iter()
            .skip(self.index(self.first[of as usize]));
        slots.filter(|slot| slot[of as usize].is_some()).count()
    }

    /// Takes the first that a selection lacks.
    fn take(&mut self, of: Selection) -> Option<Arc<Entry>> {
        let from = self.first[of as usize].max(self.begin);
        let slots = self.in_order.iter_mut().skip((from - self.begin) as usize);
        let mut taken = slots
            .zip(from..)
            .filter_map(|(slot, place)| Some((place, slot[of as usize].take()?)));
        let taken = taken.next();
        self.first[of as usize] = taken.as_ref().map_or(self.end(), |(place, _)| place + 1);
        let (place, entry) = taken?;
        self.tidy(place, &entry.record.key);
        Some(entry)
    }

    /// Takes the entry of one computation.
    fn remove(&mut self, of: &[Selection], entry: &Entry) -> Option<Slot> {
        let key = &entry.record.key;
        let place = *self.places.get(key)?;
        let slot = self.slot(place)?;
        let mut taken = Slot::default();
        for of in of {
            let one = &mut slot[*of as usize];
            taken[*of as usize] = one.take_if(|one| one.record.run == entry.record.run);
        }
        self.tidy(place, key);
        Some(taken)
    }

    /// Drops a slot if no selection lacks anything of it.
    fn tidy(&mut self, place: u64, key: &Key) {
        let is_empty = |slot: &Slot| slot.iter().all(Option::is_none);
        if !self.slot(place).is_some_and(|slot| is_empty(slot)) {
            return;
        }
        self.places.remove(key);
        while self.in_order.front().is_some_and(is_empty) {
            self.in_order.pop_front();
            self.begin += 1;
        }
        if self.places.is_empty() && self.places.capacity() > ROOM {
            self.places = HashMap::default();
        }
    }
}

impl Pending {
    /// Notes a new entry for both selections.
    pub(crate) fn add(&self, entry: &Arc<Entry>) {
        let both = [Selection::Checkpoint, Selection::Archive];
        self.put(entry, both.map(|of| Some(only_taken(entry, of))));
    }

    /// Notes an entry that one selection lacks.
    pub(crate) fn add_to(&self, selection: Selection, entry: &Arc<Entry>) {
        self.put(entry, slot_of(selection, only_taken(entry, selection)));
    }

    fn put(&self, entry: &Entry, slot: Slot) {
        // Dropped when the list is free again: destructors may use the cache.
        let _before = lock(&self.entries).put(&entry.record, slot);
    }

    pub(crate) fn add_mark(&self, mark: Mark) {
        lock(&self.marks).push(mark);
    }

    /// How many entries are to be saved.
    pub(crate) fn number(&self, selection: Selection) -> usize {
        lock(&self.entries).number(selection)
    }

    /// Takes some of the entries that are to be saved, so many or of so many bytes, and all marks.
    pub(crate) fn take(
        &self,
        selection: Selection,
        most: usize,
        most_bytes: usize,
    ) -> (Vec<Arc<Entry>>, Vec<Mark>) {
        let mut list = lock(&self.entries);
        let mut taken = Vec::new();
        let mut bytes = 0_usize;
        while taken.len() < most
            && bytes < most_bytes
            && let Some(entry) = list.take(selection)
        {
            bytes = bytes.saturating_add(entry.known_memory());
            taken.push(entry);
        }
        (taken, std::mem::take(&mut *lock(&self.marks)))
    }

    /// Whether a selection lacks the entry of a key.
    pub(crate) fn has(&self, key: &Key) -> bool {
        lock(&self.entries).places.contains_key(key)
    }

    /// The entries of these keys that a selection lacks.
    pub(crate) fn of(&self, selection: Selection, keys: &[Key]) -> Vec<Arc<Entry>> {
        let list = lock(&self.entries);
        let found = keys.iter().filter_map(|key| list.get(selection, key));
        found.cloned().collect()
    }

    /// Takes an entry off lists, because it is saved or never to be.
    pub(crate) fn forget(&self, selections: &[Selection], entry: &Entry) {
        // Dropped when the list is free again.
        let _before = lock(&self.entries).remove(selections, entry);
    }

    /// Puts back what could not be saved, but for what has a newer entry since.
    pub(crate) fn put_back(
        &self,
        selection: Selection,
        entries: Vec<Arc<Entry>>,
        marks: Vec<Mark>,
    ) {
        lock(&self.marks).splice(0..0, marks);
        let mut list = lock(&self.entries);
        // What has a newer one is dropped with the vector, when the list is free again.
        for entry in &entries {
            if list.get(selection, &entry.record.key).is_none() {
                list.put(&entry.record, slot_of(selection, Arc::clone(entry)));
            }
        }
    }
}

fn slot_of(selection: Selection, entry: Arc<Entry>) -> Slot {
    let mut slot = Slot::default();
    slot[selection as usize] = Some(entry);
    slot
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
