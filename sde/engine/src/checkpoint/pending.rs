//! The entries and marks that are new since the last save.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use super::batch::{Mark, Selection};
use crate::entry::Entry;
use crate::error::ArchiveError;
use crate::event::RunId;
use crate::key::{BuildKeyHasher, Key};
use crate::result_map::Named;
use crate::sync::{lock, wait_until};

/// The entries and marks that a save has yet to write.
#[derive(Default)]
pub(crate) struct Pending {
    entries: Mutex<Unsaved>,
    /// The latest mark of each computation.
    marks: Mutex<HashMap<(Key, RunId), Mark>>,
    pub(crate) saver: Saver,
}

/// The newest entry of each key, for each selection that lacks it, in the order in which they came. Most come to both
/// selections at once, and leave both at once if the store archives checkpoints: hence one list.
#[derive(Default)]
struct Unsaved {
    in_order: VecDeque<Lacked>,
    /// The place of the first in order.
    begin: u64,
    /// The place of a key by its prefix; of keys with one prefix, that of the last. An older entry is then not found
    /// here, and is saved in its turn. The place of an entry that has left the list is dropped some time later.
    places: HashMap<u64, u64, BuildKeyHasher>,
    /// The place of the first entry that a selection may lack.
    first: [u64; 2],
    /// How often entries were put back that a save could not save.
    put_back: u64,
}

/// The entries of one key that the selections lack, by the selections' numbers.
type Lacked = [Option<Arc<Entry>>; 2];

/// The entries that the lists held before of a key, to be dropped when nobody waits for it.
#[must_use]
pub(crate) struct Replaced(
    #[expect(dead_code, reason = "it is held until it may be dropped")] Lacked,
);

/// How many places of entries that have left the list may stay, besides as many as the list has.
const ROOM: usize = 1024;

impl Unsaved {
    /// Puts an entry in the place of its key, or last, for each selection that it is given for. Gives the entries that
    /// it replaces.
    fn put(&mut self, key: &Key, new: Lacked) -> Lacked {
        let place = match self.find(key) {
            Some((place, _)) => place,
            None => {
                let place = self.end();
                self.places.insert(prefix(key), place);
                self.in_order.push_back(Lacked::default());
                place
            }
        };
        let mut before = Lacked::default();
        for (of, new) in new.into_iter().enumerate().filter(|(_, new)| new.is_some()) {
            self.first[of] = self.first[of].min(place);
            if let Some(lacked) = self.lacked_at(place) {
                before[of] = std::mem::replace(&mut lacked[of], new);
            }
        }
        before
    }

    fn end(&self) -> u64 {
        self.begin + self.in_order.len() as u64
    }

    fn lacked_at(&mut self, place: u64) -> Option<&mut Lacked> {
        let index = place.checked_sub(self.begin)?;
        self.in_order.get_mut(index as usize)
    }

    /// The place of a key, and its entries that selections lack.
    fn find(&self, key: &Key) -> Option<(u64, &Lacked)> {
        let place = *self.places.get(&prefix(key))?;
        let lacked = self.in_order.get(place.checked_sub(self.begin)? as usize)?;
        let is_of_key = |entry: &Arc<Entry>| entry.record.key == *key;
        let is_here = lacked.iter().flatten().any(is_of_key);
        is_here.then_some((place, lacked))
    }

    fn number(&self, of: Selection) -> usize {
        let from = self.first[of as usize].saturating_sub(self.begin);
        let all = self.in_order.iter().skip(from as usize);
        all.filter(|lacked| lacked[of as usize].is_some()).count()
    }

    /// Takes the first that a selection lacks.
    fn take(&mut self, of: Selection) -> Option<Arc<Entry>> {
        let from = self.first[of as usize].max(self.begin);
        let all = self.in_order.iter_mut().skip((from - self.begin) as usize);
        let mut taken = all
            .zip(from..)
            .filter_map(|(lacked, place)| Some((place, lacked[of as usize].take()?)));
        let taken = taken.next();
        self.first[of as usize] = taken.as_ref().map_or(self.end(), |(place, _)| place + 1);
        taken.map(|(_, entry)| entry)
    }

    /// Takes the entry of one computation off lists. It is looked for at this place first; gives the place to look at
    /// next.
    fn remove(&mut self, of: &[Selection], entry: &Entry, place: u64) -> (Lacked, u64) {
        // A run may have an entry under more than one key: of a distributed result, a part and the list of parts.
        let id = |entry: &Entry| (entry.record.run, entry.record.key);
        let is_same = |one: &Arc<Entry>| id(one) == id(entry);
        let is_here = |lacked: &mut Lacked| lacked.iter().flatten().any(is_same);
        let place = match self.lacked_at(place).is_some_and(is_here) {
            true => place,
            false => match self.find(&entry.record.key) {
                Some((place, _)) => place,
                None => return (Lacked::default(), place),
            },
        };
        let mut taken = Lacked::default();
        for of in of {
            let lacked = self
                .lacked_at(place)
                .map(|lacked| &mut lacked[*of as usize]);
            taken[*of as usize] = lacked.and_then(|lacked| lacked.take_if(|one| is_same(one)));
        }
        (taken, place + 1)
    }

    /// Drops those in front that no selection lacks, and places of entries that have long left the list.
    fn tidy(&mut self) {
        let is_empty = |lacked: &Lacked| lacked.iter().all(Option::is_none);
        while self.in_order.front().is_some_and(is_empty) {
            self.in_order.pop_front();
            self.begin += 1;
        }
        if self.places.len() > 2 * self.in_order.len() + ROOM {
            let begin = self.begin;
            let all = &self.in_order;
            let is_lacked = |place: u64| {
                let index = place.checked_sub(begin)? as usize;
                all.get(index).filter(|lacked| !is_empty(lacked))
            };
            self.places.retain(|_, place| is_lacked(*place).is_some());
            self.places.shrink_to(ROOM);
        }
    }
}

/// The first bytes of a key.
fn prefix(key: &Key) -> u64 {
    BuildKeyHasher::default().hash_one(key)
}

impl Pending {
    /// Notes a new entry for both selections; gives the replaced entries, whose destructors may use the engine.
    pub(crate) fn add(&self, entry: &Arc<Entry>) -> Replaced {
        let both = Selection::BOTH.map(|of| Some(only_taken(entry, of)));
        Replaced(lock(&self.entries).put(&entry.record.key, both))
    }

    /// Notes an entry that one selection lacks; gives the replaced entry.
    pub(crate) fn add_to(&self, selection: Selection, entry: &Arc<Entry>) -> Replaced {
        let lacked = lacked_by(selection, only_taken(entry, selection));
        Replaced(lock(&self.entries).put(&entry.record.key, lacked))
    }

    pub(crate) fn add_mark(&self, mark: Mark) {
        lock(&self.marks).insert((mark.key, mark.run), mark);
    }

    pub(crate) fn number(&self, selection: Selection) -> usize {
        lock(&self.entries).number(selection)
    }

    /// How often entries were put back: an earlier count lacks them.
    pub(crate) fn put_back_so_far(&self) -> u64 {
        lock(&self.entries).put_back
    }

    /// Takes so many of the entries that are to be saved, and all marks.
    pub(crate) fn take(&self, selection: Selection, most: usize) -> (Vec<Arc<Entry>>, Vec<Mark>) {
        let mut list = lock(&self.entries);
        let mut taken = Vec::with_capacity(most.min(list.in_order.len()));
        while taken.len() < most
            && let Some(entry) = list.take(selection)
        {
            taken.push(entry);
        }
        list.tidy();
        let marks = std::mem::take(&mut *lock(&self.marks));
        (taken, marks.into_values().collect())
    }

    /// Whether a selection lacks the entry of a key.
    pub(crate) fn has(&self, key: &Key) -> bool {
        lock(&self.entries).find(key).is_some()
    }

    /// The entries of these keys that a selection lacks.
    pub(crate) fn of(&self, selection: Selection, keys: &[Key]) -> Vec<Arc<Entry>> {
        let list = lock(&self.entries);
        let all = keys.iter().filter_map(|key| list.find(key));
        let found = all.filter_map(|(_, lacked)| lacked[selection as usize].clone());
        found.collect()
    }

    /// Takes entries off lists, because they are saved or never to be.
    pub(crate) fn forget<'a>(
        &self,
        entries: impl IntoIterator<Item = (&'a [Selection], &'a Arc<Entry>)>,
    ) {
        let mut before = Vec::new();
        let mut list = lock(&self.entries);
        // Entries that are saved together lie there together.
        let mut place = list.begin;
        for (of, entry) in entries {
            let (taken, next) = list.remove(of, entry, place);
            before.push(taken);
            place = next;
        }
        list.tidy();
        // Before the taken entries are dropped: destructors may use the cache.
        drop(list);
    }

    /// Puts back entries and marks that could not be saved, unless there are newer ones since.
    pub(crate) fn put_back(
        &self,
        selection: Selection,
        entries: Vec<Arc<Entry>>,
        marks: Vec<Mark>,
    ) {
        let mut since = lock(&self.marks);
        for mark in marks {
            since.entry((mark.key, mark.run)).or_insert(mark);
        }
        drop(since);
        let mut list = lock(&self.entries);
        list.put_back += 1;
        // An entry with a newer one is dropped with the vector, when the list is free again.
        for entry in &entries {
            let key = &entry.record.key;
            let newer = list
                .find(key)
                .and_then(|(_, lacked)| lacked[selection as usize].as_ref());
            if newer.is_none() {
                list.put(key, lacked_by(selection, Arc::clone(entry)));
            }
        }
    }
}

fn lacked_by(selection: Selection, entry: Arc<Entry>) -> Lacked {
    let mut lacked = Lacked::default();
    lacked[selection as usize] = Some(entry);
    lacked
}

/// The entry without the values that the selection leaves out, so that the list of entries to archive keeps no
/// intermediate alive.
fn only_taken(entry: &Arc<Entry>, selection: Selection) -> Arc<Entry> {
    let left_out = |named: &Named| !selection.takes(named.tags);
    if entry.results.iter().any(left_out) {
        Arc::new(entry.without(left_out, "it is not saved here"))
    } else {
        Arc::clone(entry)
    }
}

/// The thread that saves, from taking entries off the list until they are saved, or put back. It calls users' code
/// meanwhile, so it holds no lock.
#[derive(Default)]
pub(crate) struct Saver {
    /// The thread whose turn it is, and its process: a forked process has the note and not the thread.
    thread: Mutex<Option<(u32, ThreadId)>>,
    changed: Condvar,
}

/// A thread's turn to save.
pub(crate) struct Turn<'a>(&'a Saver);

impl Saver {
    /// Waits for a turn, no longer than `patience`; an error if this thread has it, or it did not come.
    pub(crate) fn turn(&self, patience: Option<Duration>) -> Result<Turn<'_>, ArchiveError> {
        let this = (std::process::id(), std::thread::current().id());
        let end = patience.and_then(|patience| Instant::now().checked_add(patience));
        let refused = |why: &str| Err(ArchiveError::Other(why.to_owned()));
        let mut thread = lock(&self.thread);
        while let Some(other) = thread.filter(|(process, _)| *process == this.0) {
            if other == this {
                return refused(
                    "a value's own code asks for a save while the value is being saved",
                );
            }
            if end.is_some_and(|end| Instant::now() >= end) {
                return refused(
                    "another thread saves, and may be waiting for this one; save outside of runs and of jobs of rayon",
                );
            }
            thread = wait_until(&self.changed, thread, end);
        }
        *thread = Some(this);
        Ok(Turn(self))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *lock(&self.0.thread) = None;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::tests::entry;

    /// The entry of this number under a key that begins and ends so.
    fn with_key(number: u64, begin: u64, end: u8) -> Arc<Entry> {
        let entry = entry(number);
        let mut key = [end; 32];
        key[..8].copy_from_slice(&begin.to_le_bytes());
        let mut record = entry.full_record();
        record.key = Key::from_bytes(key);
        Arc::new(entry.with_record(record))
    }

    fn numbers(taken: (Vec<Arc<Entry>>, Vec<Mark>)) -> Vec<u64> {
        taken
            .0
            .iter()
            .map(|entry| entry.record.run.number)
            .collect()
    }

    fn take(pending: &Pending, of: Selection, most: usize) -> Vec<u64> {
        numbers(pending.take(of, most))
    }

    #[test]
    fn what_has_left_the_list_takes_no_memory_for_long() {
        let pending = Pending::default();
        for number in 1..10_000 {
            let entry = with_key(number, number, 0);
            drop(pending.add(&entry));
            assert!(pending.has(&entry.record.key));
            pending.forget([(&Selection::BOTH[..], &entry)]);
            assert!(!pending.has(&entry.record.key));
        }
        let list = lock(&pending.entries);
        assert!(list.in_order.is_empty());
        assert!(list.places.len() <= ROOM, "{}", list.places.len());
    }

    #[test]
    fn the_newer_entry_of_a_key_takes_the_place_of_the_older_and_no_other_does() {
        let pending = Pending::default();
        // These begin alike.
        let (one, other) = (with_key(1, 7, 1), with_key(2, 7, 2));
        drop(pending.add(&one));
        drop(pending.add(&other));
        drop(pending.add(&with_key(3, 7, 2)));
        assert_eq!(take(&pending, Selection::Checkpoint, 9), [1, 3]);
        // Only the newer is found by its key; entries taken together are found where they lie.
        pending.forget([(&Selection::BOTH[..], &one), (&Selection::BOTH[..], &other)]);
        assert_eq!(take(&pending, Selection::Archive, 9), [3]);
    }

    #[test]
    fn of_two_entries_of_one_run_only_the_one_that_is_saved_goes() {
        let pending = Pending::default();
        let (part, list) = (with_key(1, 1, 0), with_key(1, 2, 0));
        drop(pending.add(&part));
        drop(pending.add(&list));
        pending.forget([(&Selection::BOTH[..], &list)]);
        assert!(pending.has(&part.record.key));
        assert!(!pending.has(&list.record.key));
    }

    #[test]
    fn what_was_taken_and_not_saved_comes_back_unless_there_is_a_newer_one() {
        let pending = Pending::default();
        let entries = [1, 2, 3].map(|number| with_key(number, number, 0));
        entries.iter().for_each(|entry| drop(pending.add(entry)));
        let (taken, marks) = pending.take(Selection::Checkpoint, 2);
        drop(pending.add(&with_key(4, 2, 0)));
        pending.put_back(Selection::Checkpoint, taken, marks);
        assert_eq!(pending.number(Selection::Checkpoint), 3);
        assert_eq!(take(&pending, Selection::Checkpoint, 9), [1, 4, 3]);
        assert_eq!(take(&pending, Selection::Archive, 9), [1, 4, 3]);
        assert_eq!(pending.number(Selection::Archive), 0);
        assert!(lock(&pending.entries).in_order.is_empty());
    }
}
