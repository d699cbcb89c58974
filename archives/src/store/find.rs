//! Looks up entries, states and contents, by the index and the files.

use std::sync::Arc;

use sde::Key;
use sde::archiver::{ArchiveError, Batch, Payload, SavedEntry, SavedResult, StoredEntry};
use sde::key::Digest;
use sde::record::Record;

use crate::catalog::contents::content_key;
use crate::catalog::{Catalog, LOOKS};
use crate::read::error::ReadError;
use crate::read::frame::{self, EntryFrame};
use crate::resolve::resolve;
use crate::store::DirStore;

/// The number of records searched for the nearest to a person's query.
const RECORDS: usize = 10_000;

impl DirStore {
    /// The entry of a key that counts in this store, whatever others have.
    pub(crate) fn look_here(&self, key: &Key) -> Result<Option<StoredEntry>, ArchiveError> {
        let catalog = &self.0.catalog;
        let mut found = resolve(catalog, key)?;
        // Compactions may follow one another during the look-up.
        for _ in 0..LOOKS {
            let enough = found.entry.is_some() && !found.gone;
            if enough || !self.look_again(found.gone) {
                break;
            }
            found = resolve(catalog, key)?;
        }
        Ok(found.entry.map(|entry| self.relocatable(entry)))
    }

    /// Asks this store for a content. `ask` gives whether it is there, and whether the file of a copy was gone: then it asks
    /// once more.
    pub(crate) fn give_content_here(
        &self,
        digest: &Digest,
        ask: &mut impl FnMut(&Catalog, &Key) -> Result<(bool, bool), ArchiveError>,
    ) -> Result<bool, ArchiveError> {
        let (catalog, key) = (&self.0.catalog, content_key(digest));
        for _ in 0..LOOKS {
            let (is_there, gone) = ask(catalog, &key)?;
            if is_there || !self.look_again(gone) {
                return Ok(is_there);
            }
        }
        Ok(false)
    }

    /// Passes records of this store to `each`. The latest ten thousand entries of all apps are searched: each takes
    /// some microseconds to read.
    pub(crate) fn records_here(
        &self,
        app: &str,
        each: &mut dyn FnMut(&Record),
    ) -> Result<(), ArchiveError> {
        let mut failed = None;
        for place in self.0.catalog.known(|index| index.latest(RECORDS)) {
            match EntryFrame::read(&self.0.catalog, &place) {
                Ok(entry) if &*entry.provenance.app == app => each(&entry.record()),
                Ok(_) | Err(ReadError::Damaged(_)) => {}
                Err(error) => failed = Some(error.into()).or(failed),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// The latest readable scratch state, or the one `before` places earlier.
    pub(crate) fn find_state(
        &self,
        key: &Key,
        before: usize,
    ) -> Result<Option<Arc<dyn Payload>>, ArchiveError> {
        let (mut found, mut gone) = self.scratch(key, before)?;
        // A look costs less than an iteration that restarts from nothing.
        for _ in 0..LOOKS {
            if !gone || !self.look_again(true) {
                break;
            }
            (found, gone) = self.scratch(key, before)?;
        }
        Ok(found.map(|payload| self.relocatable_state(payload, *key)))
    }

    /// As `find_state`, by the index in memory only; also whether the file of a state was gone.
    pub(crate) fn scratch(
        &self,
        key: &Key,
        before: usize,
    ) -> Result<(Option<Arc<dyn Payload>>, bool), ArchiveError> {
        let states = self.0.catalog.known(|index| index.scratch(key));
        let mut failed = None;
        let mut gone = false;
        // The times of the later states, since a state may have been written twice.
        let mut later: Vec<u64> = Vec::new();
        for state in states {
            match frame::scratch(&self.0.catalog, &state.place, key) {
                Ok(Some(_)) if later.contains(&state.saved_at) => {}
                Ok(Some(payload)) if later.len() == before => return Ok((Some(payload), gone)),
                Ok(Some(_)) => later.push(state.saved_at),
                Ok(None) => {}
                Err(ReadError::Gone) => gone = true,
                Err(error) => failed = error.warned(key, "a scratch state").or(failed),
            }
        }
        match failed {
            Some(error) if !gone => Err(error),
            _ => Ok((None, gone)),
        }
    }

    /// Whether the store has all of a batch, as when its entries were loaded from there.
    pub(crate) fn has_all(&self, batch: &Batch) -> Result<bool, ArchiveError> {
        if !(batch.scratch.is_empty() && batch.marks.is_empty()) {
            return Ok(false);
        }
        for entry in &batch.entries {
            let key = &entry.record().key;
            let found = resolve(&self.0.catalog, key)?.entry;
            if !found.is_some_and(|found| is_stored(&found, entry)) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Whether a stored entry is this computation, with all its values.
fn is_stored(found: &StoredEntry, entry: &SavedEntry) -> bool {
    let has = |result: SavedResult<'_>| {
        let mut there = found.results.iter();
        result.value.is_none() || there.any(|one| one.name == result.name && one.payload.is_some())
    };
    found.record.run == entry.record().run && entry.results().all(has)
}
