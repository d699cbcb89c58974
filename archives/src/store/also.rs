//! Other stores that a store looks in: they are read, and nothing in them is changed.
//!
//! The own store comes first. What another gives is short enough to be copied, or it stays there. All that is wrong
//! with another store is a warning and a miss: a program must not end because a colleague has moved a directory.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

use sde::Key;
use sde::archiver::{ArchiveError, Mark, StoredEntry};
use sde::key::Digest;
use sde::record::RunId;

use crate::catalog::Catalog;
use crate::catalog::index::Index;
use crate::format::directory;
use crate::format::trust::no_permission;
use crate::locks::lock;
use crate::store::take_over::MOST;
use crate::store::{DirStore, absolute};
use crate::vfs::{Vfs, real_path};
use crate::writer::encode::IN_BODY;

/// The other stores, in the order in which they are asked.
pub(crate) struct OtherStores {
    pub(super) stores: Vec<DirStore>,
    /// The computations to copy, by key, each with its store's number.
    pub(super) to_copy: Mutex<HashMap<Key, (usize, RunId)>>,
    /// The failures that were told.
    told: Mutex<HashSet<String>>,
}

impl OtherStores {
    /// Opens stores by `open`. One that can't be opened is left out with a warning, and so is one named twice.
    pub(super) fn open(
        vfs: &dyn Vfs,
        own: &Path,
        dirs: &[PathBuf],
        open: impl Fn(&Path) -> Result<DirStore, ArchiveError>,
    ) -> Self {
        let mut seen = HashSet::from([real_path(vfs, own)]);
        let mut stores = Vec::new();
        for dir in dirs {
            let (name, place) = (dir.display(), absolute(dir));
            if !seen.insert(real_path(vfs, &place.unwrap_or_else(|_| dir.clone()))) {
                sde::warning!(
                    "{name} is named more than once among the stores to look in, or is the one saved to; it is looked in once"
                );
                continue;
            }
            match open(dir) {
                Ok(store) => stores.push(store),
                Err(error) => {
                    let advice = advice(vfs, &error);
                    let why = match directory::look_for_format(vfs, dir) {
                        Ok(false) => "there is no store".to_owned(),
                        _ => error.to_string(),
                    };
                    sde::warning!(
                        "nothing is looked up in {name}, and what only it has is computed: {why}{advice}"
                    );
                }
            }
        }
        Self {
            stores,
            to_copy: Mutex::default(),
            told: Mutex::default(),
        }
    }

    /// Tells of a failure once; what was looked for counts as missing.
    fn warn(&self, store: &DirStore, error: &ArchiveError) {
        if lock(&self.told).insert(error.to_string()) {
            let advice = advice(&**store.0.vfs(), error);
            sde::warning!(
                "what the other store {} has is not found: {error}{advice}",
                store.path().display()
            );
        }
    }

    /// Tells once that a store is not there any more: its index would only say that it has nothing.
    fn warn_if_gone(&self, store: &DirStore) {
        let path = store.path();
        let gone = format!("{} is gone", path.display());
        let is_told = lock(&self.told).contains(&gone);
        let is_there = || matches!(directory::look_for_format(&**store.0.vfs(), path), Ok(true));
        if !is_told && !is_there() && lock(&self.told).insert(gone) {
            sde::warning!(
                "what the other store {} has is not found any more, and is computed: there is no store now; mend it, or take it \
                 out of `StoreOptions::also` or SDE_ALSO",
                path.display()
            );
        }
    }
}

/// How to mend what keeps another store from being read, for the end of a message.
fn advice(vfs: &dyn Vfs, error: &ArchiveError) -> String {
    let how = permission(vfs, error);
    match how.is_empty() {
        true => "; mend it, or take it out of `StoreOptions::also` or SDE_ALSO".to_owned(),
        false => how,
    }
}

/// How to mend a missing permission, for the end of a message; nothing for other errors.
pub(super) fn permission(vfs: &dyn Vfs, error: &ArchiveError) -> String {
    let why = match error {
        ArchiveError::Io { path, cause, .. } | ArchiveError::Open { path, cause, .. } => {
            no_permission(vfs, path, cause)
        }
        _ => None,
    };
    why.map_or_else(String::new, |why| format!("; {why}"))
}

impl DirStore {
    fn others(&self) -> &[DirStore] {
        self.0.also.get().map_or(&[], |also| &also.stores)
    }

    /// Finds an entry without counting it as used: a program that only inspects entries gives no reason to keep them
    /// longer. The stores to [look in too](crate::StoreOptions::also) are asked where this one has no whole entry that counts.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// let store = sde_archives::DirStore::open(folder.path().join("store"))?;
    /// assert!(store.look(&sde::Key::from_bytes([0; 32]))?.is_none());
    /// # Ok::<(), sde::archiver::ArchiveError>(())
    /// ```
    ///
    /// # Errors
    /// As `find`.
    pub fn look(&self, key: &Key) -> Result<Option<StoredEntry>, ArchiveError> {
        Ok(self.look_in_all(key)?.map(|(entry, _)| entry))
    }

    /// The directory of the store from which an entry is given: this one, or one to [look in
    /// too](crate::StoreOptions::also).
    ///
    /// # Errors
    /// As `find`.
    pub fn found_in(&self, key: &Key) -> Result<Option<&Path>, ArchiveError> {
        let found = self.look_in_all(key)?;
        Ok(found.map(|(_, number)| number.map_or(self, |number| &self.others()[number]).path()))
    }

    /// The directories in which entries are looked for, in this order: that of the store, then those to [look in
    /// too](crate::StoreOptions::also) that could be opened.
    pub fn looks_in(&self) -> impl Iterator<Item = &Path> {
        let others = self.others().iter();
        std::iter::once(self.path()).chain(others.map(Self::path))
    }

    /// The entry that is given for a key, and the number of the other store that it is from.
    fn look_in_all(&self, key: &Key) -> Result<Option<(StoredEntry, Option<usize>)>, ArchiveError> {
        let own = self.look_here(key)?.map(|entry| (entry, None));
        let Some(also) = self.0.also.get() else {
            return Ok(own);
        };
        let counts = |entry: &StoredEntry| is_whole(entry) && !self.is_marked(entry);
        if own.as_ref().is_some_and(|(entry, _)| counts(entry)) {
            return Ok(own);
        }
        let (mut part, mut marked) = (None, None);
        for (number, store) in also.stores.iter().enumerate() {
            let mut entry = match store.look_here(key) {
                Ok(Some(entry)) => entry,
                Ok(None) => {
                    also.warn_if_gone(store);
                    continue;
                }
                Err(error) => {
                    also.warn(store, &error);
                    continue;
                }
            };
            // An archive of this store need not have it.
            entry.archived = true;
            if counts(&entry) {
                return Ok(Some((entry, Some(number))));
            }
            match self.is_marked(&entry) {
                true => marked = marked.or_else(|| Some((without_values(entry), Some(number)))),
                false => part = part.or(Some((entry, Some(number)))),
            }
        }
        Ok(own.or(part).or(marked))
    }

    /// Finds an entry to be used. A short one of another store is copied with the next save.
    pub(crate) fn find_in_all(&self, key: &Key) -> Result<Option<StoredEntry>, ArchiveError> {
        let Some((entry, number)) = self.look_in_all(key)? else {
            return Ok(None);
        };
        if let (Some(also), Some(number)) = (self.0.also.get(), number)
            && entry.record.failure.is_none()
            && is_whole(&entry)
            && bytes(&entry) <= IN_BODY
            && !(entry.is_of_others && has_files(&entry))
        {
            let mut to_copy = lock(&also.to_copy);
            if to_copy.len() < MOST {
                to_copy.insert(*key, (number, entry.record.run));
            }
        }
        Ok(Some(entry))
    }

    /// Whether a computation must not be used. In each store the latest mark counts; an own one takes back what others
    /// said before, and others take back nothing of this store's.
    fn is_marked(&self, entry: &StoredEntry) -> bool {
        let of = (entry.record.key, entry.record.run);
        let rank = |store: &Self| {
            let catalog = &store.0.catalog;
            catalog.known(|index| index.mark(&of).map(Mark::rank))
        };
        let own = rank(self);
        let forbids = |mark: &(SystemTime, bool)| mark.1 && own < Some(*mark);
        let mut others = self.others().iter().filter_map(rank);
        own.is_some_and(|(_, forbids)| forbids) || others.any(|mark| forbids(&mark))
    }

    /// The marks in all stores that count, the oldest first.
    pub(crate) fn marks_in_all(&self) -> Vec<Mark> {
        let mut marks = self.0.catalog.known(Index::marks);
        for other in self.others() {
            let mut of_other = other.0.catalog.known(Index::marks);
            of_other.retain(|mark| {
                let of = (mark.key, mark.run);
                let own = |index: &Index| index.mark(&of).map(Mark::rank);
                !mark.undone && self.0.catalog.known(own) < Some(mark.rank())
            });
            marks.extend(of_other);
        }
        marks.sort_by_key(Mark::rank);
        marks
    }

    /// Asks each store for a content, until one has it; see [`give_content_here`](Self::give_content_here).
    pub(crate) fn give_content(
        &self,
        digest: &Digest,
        mut ask: impl FnMut(&Catalog, &Key) -> Result<(bool, bool), ArchiveError>,
    ) -> Result<bool, ArchiveError> {
        let mut given = self.give_content_here(digest, &mut ask)?;
        if let Some(also) = self.0.also.get() {
            for store in &also.stores {
                if given {
                    break;
                }
                let there = store.give_content_here(digest, &mut ask);
                given = there
                    .inspect_err(|error| also.warn(store, error))
                    .unwrap_or(false);
            }
        }
        Ok(given)
    }

    /// Does something with this store and the others; a failure of another is warned of.
    pub(crate) fn each_store(
        &self,
        mut each: impl FnMut(&Self) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        let done = each(self);
        if let Some(also) = self.0.also.get() {
            for store in &also.stores {
                let _ = each(store).inspect_err(|error| also.warn(store, error));
            }
        }
        done
    }
}

/// Whether all results that a checkpoint has are there.
fn is_whole(entry: &StoredEntry) -> bool {
    let mut saved = entry
        .results
        .iter()
        .filter(|one| one.tags.is_checkpointed());
    saved.all(|one| one.payload.is_some())
}

fn bytes(entry: &StoredEntry) -> u64 {
    let values = entry.results.iter().filter_map(|one| one.payload.as_ref());
    values.map(|value| value.stored_bytes()).sum()
}

/// Whether a result has output files: those of another user are never taken for this user's own.
fn has_files(entry: &StoredEntry) -> bool {
    let mut values = entry.results.iter().filter_map(|one| one.payload.as_ref());
    values.any(|value| value.has_files())
}

/// The record of an entry that must not be used: it says why, and serves nobody, whatever marks the engine knows.
fn without_values(mut entry: StoredEntry) -> StoredEntry {
    entry.results.iter_mut().for_each(|one| one.payload = None);
    entry.record.failure = None;
    entry.others = Vec::new();
    entry
}
