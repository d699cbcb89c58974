//! A store in memory, for tests and for trying things out.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::archiver::{Archiver, StoredEntry, StoredResult};
use super::batch::{Batch, Mark, Saved, SavedEntry, SavedResult, Selection};
use crate::entry::Record;
use crate::error::ArchiveError;
use crate::key::Key;
use crate::output_file::in_value;
use crate::result_map::{Codec, ErasedValue, Payload};
use crate::sync::{MutexGuard, lock};

/// A store that keeps entries for as long as it, or a clone of it, lives.
///
/// It holds the values themselves, not bytes: it shows *what* is saved and found again, not how.
///
/// ```
/// use sde::{Sde, Source, inputs};
/// use sde::archiver::{MemoryArchiver, Selection};
///
/// #[sde::app]
/// fn cube(x: f64) -> f64 {
///     x * x * x
/// }
///
/// let store = MemoryArchiver::new();
/// let sde = Sde::builder().store(store.clone()).build()?;
/// cube.call(&sde, 2.0)?;
/// sde.finish()?;
/// assert_eq!(store.saved(Selection::Archive), [("cube".to_owned(), "result".to_owned())]);
///
/// let later = Sde::builder().store(store).build()?;
/// let outcome = later.request(&cube, &inputs! { x: 2.0_f64 }).run()?;
/// assert_eq!(outcome.source, Source::Loaded);
/// # Ok::<(), sde::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct MemoryArchiver(Arc<Mutex<Contents>>);

#[derive(Default)]
struct Contents {
    entries: HashMap<(Selection, Key), SavedEntry>,
    /// The last two states of each run, the latest first.
    scratch: HashMap<Key, (Arc<str>, Vec<InMemory>)>,
    marks: Vec<Mark>,
    batches: usize,
    fail_next: bool,
}

impl fmt::Debug for MemoryArchiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let contents = self.lock();
        let (entries, states) = (contents.entries.len(), contents.scratch.len());
        drop(contents);
        write!(f, "MemoryArchiver({entries} entries, {states} states)")
    }
}

impl MemoryArchiver {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The values that are saved in one selection, as app and result names,
    /// sorted.
    #[must_use]
    pub fn saved(&self, selection: Selection) -> Vec<(String, String)> {
        let contents = self.lock();
        let mut names = Vec::new();
        for ((saved_in, _), entry) in &contents.entries {
            let results = entry.results();
            for result in results.filter(|one| *saved_in == selection && one.value.is_some()) {
                names.push((entry.record().app.to_string(), result.name.to_owned()));
            }
        }
        names.sort();
        names
    }

    /// The apps whose scratch is saved, sorted.
    #[must_use]
    pub fn saved_scratch(&self) -> Vec<String> {
        let contents = self.lock();
        let apps = contents.scratch.values();
        let mut apps: Vec<_> = apps.map(|(app, _)| app.to_string()).collect();
        apps.sort();
        apps
    }

    /// The number of batches that were saved.
    #[must_use]
    pub fn batches(&self) -> usize {
        self.lock().batches
    }

    /// Makes the next save fail, once.
    pub fn fail_next_save(&self) {
        self.lock().fail_next = true;
    }

    /// The store as a process finds it that starts after this one was killed, and
    /// that was given the archive alone.
    #[must_use]
    pub fn archive_only(&self) -> Self {
        let mut entries = self.lock().entries.clone();
        entries.retain(|(selection, _), _| *selection == Selection::Archive);
        Self(Arc::new(Mutex::new(Contents {
            entries,
            ..Contents::default()
        })))
    }

    fn state(&self, key: &Key, number: usize) -> Option<Arc<dyn Payload>> {
        let contents = self.lock();
        let (_, states) = contents.scratch.get(key)?;
        Some(Arc::new(states.get(number)?.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        lock(&self.0)
    }
}

impl Archiver for MemoryArchiver {
    fn save(&self, batch: &Batch) -> Result<Saved, ArchiveError> {
        // Dropped when the contents are free again.
        let (mut _before, mut _states) = (Vec::new(), Vec::new());
        let mut contents = self.lock();
        if std::mem::take(&mut contents.fail_next) {
            return Err(ArchiveError::Other("told to fail".to_owned()));
        }
        contents.batches += 1;
        for entry in &batch.entries {
            let key = entry.record().key;
            let place = (batch.selection, key);
            let made_at = |entry: &SavedEntry| entry.record().made_at;
            let known = contents.entries.get(&place).map(made_at);
            if known.is_none_or(|known| known <= made_at(entry)) {
                _before.extend(contents.entries.insert(place, entry.clone()));
            }
            let superseded = contents.scratch.remove(&key);
            _states.extend(superseded.into_iter().flat_map(|(_, states)| states));
        }
        for scratch in &batch.scratch {
            let first = || (Arc::clone(&scratch.app), Vec::new());
            let (_, states) = contents.scratch.entry(scratch.key).or_insert_with(first);
            _states.extend(states.drain(states.len().min(1)..));
            let state = InMemory::new(&scratch.value);
            let took = scratch.took;
            states.insert(0, InMemory { took, ..state });
        }
        contents.marks.extend(batch.marks.iter().cloned());
        Ok(Saved::default())
    }

    fn find(&self, key: &Key) -> Result<Option<StoredEntry>, ArchiveError> {
        let of_key = {
            let contents = self.lock();
            Selection::BOTH.map(|selection| contents.entries.get(&(selection, *key)).cloned())
        };
        // Of two saves of one run the checkpoint has more.
        let found = of_key.iter().flatten().max_by_key(|entry| {
            let values = entry.results().filter(|one| one.value.is_some());
            (entry.record().made_at, values.count())
        });
        let archived = |record: &Record| {
            let copy = &of_key[Selection::Archive as usize];
            let is_it = |archived: &SavedEntry| archived.record().run == record.run;
            copy.as_ref().is_some_and(is_it)
        };
        let stored = |result: SavedResult<'_>| StoredResult {
            name: result.name.to_owned(),
            tags: result.tags,
            payload: result.value.map(|(value, codec)| {
                let has_files = !in_value(&codec, value).is_empty();
                let held = InMemory::new(value);
                Arc::new(InMemory { has_files, ..held }) as _
            }),
        };
        Ok(found.map(|entry| StoredEntry {
            archived: archived(entry.record()),
            record: entry.record().clone(),
            results: entry.results().map(stored).collect(),
            others: Vec::new(),
            is_of_others: false,
        }))
    }

    fn find_scratch(&self, key: &Key) -> Result<Option<Arc<dyn Payload>>, ArchiveError> {
        Ok(self.state(key, 0))
    }

    fn find_earlier_scratch(&self, key: &Key) -> Result<Option<Arc<dyn Payload>>, ArchiveError> {
        Ok(self.state(key, 1))
    }

    fn marks(&self) -> Result<Vec<Mark>, ArchiveError> {
        Ok(self.lock().marks.clone())
    }

    fn records(&self, app: &str, each: &mut dyn FnMut(&Record)) -> Result<(), ArchiveError> {
        let contents = self.lock();
        let records = contents.entries.values().map(SavedEntry::record);
        let of_app = records.filter(|record| &*record.app == app).cloned();
        let of_app: Vec<_> = of_app.collect();
        drop(contents);
        of_app.iter().for_each(each);
        Ok(())
    }

    fn describe(&self) -> String {
        "a store in memory".to_owned()
    }
}

#[derive(Clone)]
struct InMemory {
    value: ErasedValue,
    /// Whether it has output files.
    has_files: bool,
    took: Duration,
}

impl InMemory {
    fn new(value: &ErasedValue) -> Self {
        Self {
            value: value.clone(),
            has_files: false,
            took: Duration::ZERO,
        }
    }
}

impl Payload for InMemory {
    fn decode(&self, codec: &Codec) -> Result<ErasedValue, ArchiveError> {
        if self.value.type_name() == codec.type_name() {
            return Ok(self.value.clone());
        }
        let (found, wanted) = (self.value.type_name(), codec.type_name());
        let why = format!("a {found} is stored, not a {wanted}");
        Err(ArchiveError::Damaged { why })
    }

    fn may_be(&self, codec: &Codec) -> bool {
        self.value.type_name() == codec.type_name()
    }

    fn stored_bytes(&self) -> u64 {
        0
    }

    fn has_files(&self) -> bool {
        self.has_files
    }

    fn took(&self) -> Duration {
        self.took
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that fails says where")]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::cache::tests::entry;
    use crate::event::RunId;

    /// Found by saving to a store that fails now and then. An entry that could not be saved comes again; a later result
    /// of its key may have been saved meanwhile.
    #[test]
    fn what_is_saved_late_takes_the_place_of_nothing_newer() {
        let (store, entry) = (MemoryArchiver::new(), entry(1));
        for number in [2, 1] {
            let mut record = entry.full_record();
            record.made_at = UNIX_EPOCH + Duration::from_secs(number);
            record.run = RunId { process: 1, number };
            let made = Arc::new(entry.with_record(record));
            store
                .save(&Batch::of(Selection::Checkpoint, [made]))
                .unwrap();
        }
        let found = store.find(&entry.record.key).unwrap().unwrap();
        assert_eq!(found.record.run.number, 2);
    }
}
