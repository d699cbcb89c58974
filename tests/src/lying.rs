//! A store that fails or lies when it is told to.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sde::Key;
use sde::archiver::{
    ArchiveError, Archiver, Batch, Mark, MemoryArchiver, Payload, Saved, StoredEntry,
};
use sde::record::Record;

use crate::Counter;

/// What the store does wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lie {
    /// Nothing.
    #[default]
    None,
    /// It can't be asked for entries.
    FindFails,
    /// It can't be asked for marks.
    MarksFail,
    /// It can't be written to.
    SaveFails,
    /// It says that what it has was made an hour later.
    Ahead,
    /// It panics when it is looked into, and when it is asked of its archive.
    Panics,
    /// It answers with the entry of another key.
    OtherKey(Key),
    /// It answers with what another app made, under the key that was asked for.
    OtherApp(Key),
}

/// A store in memory that lies.
#[derive(Clone, Default)]
pub struct Lying {
    truth: MemoryArchiver,
    lie: Arc<Mutex<Lie>>,
    searched: Counter,
}

impl Lying {
    /// Empty, and honest so far.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Another way to the same store, which lies for itself.
    #[must_use]
    pub fn another(&self) -> Self {
        Self {
            truth: self.truth.clone(),
            ..Self::default()
        }
    }

    /// Has it lie like this from here on.
    pub fn tell(&self, lie: Lie) {
        *self.lie() = lie;
    }

    /// What it really has.
    #[must_use]
    pub fn truth(&self) -> &MemoryArchiver {
        &self.truth
    }

    /// How often all records of an app were asked for.
    #[must_use]
    pub fn searched(&self) -> usize {
        self.searched.get()
    }

    fn lie(&self) -> MutexGuard<'_, Lie> {
        self.lie.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn fails() -> ArchiveError {
    ArchiveError::Other("the disk is on fire".to_owned())
}

impl Archiver for Lying {
    fn save(&self, batch: &Batch) -> Result<Saved, ArchiveError> {
        match *self.lie() {
            Lie::SaveFails => Err(fails()),
            _ => self.truth.save(batch),
        }
    }

    fn is_one_store(&self) -> bool {
        assert_ne!(*self.lie(), Lie::Panics, "a test");
        self.truth.is_one_store()
    }

    fn look(&self, key: &Key) -> Result<Option<StoredEntry>, ArchiveError> {
        assert_ne!(*self.lie(), Lie::Panics, "a test");
        self.find(key)
    }

    fn find(&self, key: &Key) -> Result<Option<StoredEntry>, ArchiveError> {
        match *self.lie() {
            Lie::FindFails => Err(fails()),
            Lie::OtherKey(other) => self.truth.find(&other),
            Lie::OtherApp(other) => Ok(self.truth.find(&other)?.map(|mut entry| {
                entry.record.key = *key;
                entry
            })),
            Lie::Ahead => Ok(self.truth.find(key)?.map(|mut entry| {
                entry.record.made_at += Duration::from_secs(3600);
                entry
            })),
            Lie::None | Lie::MarksFail | Lie::SaveFails | Lie::Panics => self.truth.find(key),
        }
    }

    fn find_scratch(&self, key: &Key) -> Result<Option<Arc<dyn Payload>>, ArchiveError> {
        self.truth.find_scratch(key)
    }

    fn marks(&self) -> Result<Vec<Mark>, ArchiveError> {
        match *self.lie() {
            Lie::MarksFail => Err(fails()),
            _ => self.truth.marks(),
        }
    }

    fn records(&self, app: &str, each: &mut dyn FnMut(&Record)) -> Result<(), ArchiveError> {
        self.searched.add();
        match *self.lie() {
            Lie::FindFails => Err(fails()),
            _ => self.truth.records(app, each),
        }
    }

    fn describe(&self) -> String {
        "a store that lies".to_owned()
    }
}
