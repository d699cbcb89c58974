//! Looking for what is in a store, with no more than its index and files.

use std::sync::Arc;

use sde::{ArchiveError, Batch, Key, Payload, StoredEntry};

use crate::read::frame::{self, Trouble};
use crate::resolve::best;
use crate::store::archived::is_stored;
use crate::store::{DirStore, LOOKS};

impl DirStore {
    /// What `find` gives, for who only looks: it is not counted as a use.
    ///
    /// # Errors
    /// As `find`.
    pub fn look(&self, key: &Key) -> Result<Option<StoredEntry>, ArchiveError> {
        let medium = &self.0.medium;
        let places = self.candidates(key);
        let mut found = best(medium, &places, key)?;
        // One compaction may follow another while this looks.
        for _ in 0..LOOKS {
            let enough = found.entry.is_some() && !found.gone;
            if enough || !self.look_again(found.gone) {
                break;
            }
            found = best(medium, &self.candidates(key), key)?;
        }
        Ok(found.entry.map(|entry| self.followed(entry)))
    }

    /// A scratch state that can be read: the latest, or one `before` it.
    pub(crate) fn find_state(
        &self,
        key: &Key,
        before: usize,
    ) -> Result<Option<Arc<dyn Payload>>, ArchiveError> {
        let (mut found, mut gone) = self.scratch(key, before)?;
        // An iteration that begins again from nothing for want of a look costs the most.
        for _ in 0..LOOKS {
            if !gone || !self.look_again(true) {
                break;
            }
            (found, gone) = self.scratch(key, before)?;
        }
        Ok(found.map(|payload| self.followed_state(payload, *key)))
    }

    /// The same, and whether the file of a later one is gone.
    pub(crate) fn scratch(
        &self,
        key: &Key,
        before: usize,
    ) -> Result<(Option<Arc<dyn Payload>>, bool), ArchiveError> {
        let states = self.known(|index| index.scratch(key));
        let mut failed = None;
        let mut gone = false;
        // By when they were saved: one may have been written twice.
        let mut later: Vec<u64> = Vec::new();
        for state in states {
            match frame::scratch(&self.0.medium, &state.place, key) {
                Ok(Some(_)) if later.contains(&state.saved_at) => {}
                Ok(Some(payload)) if later.len() == before => return Ok((Some(payload), gone)),
                Ok(Some(_)) => later.push(state.saved_at),
                Ok(None) => {}
                Err(Trouble::Gone) => gone = true,
                Err(trouble) => failed = trouble.warned(key, "a scratch state").or(failed),
            }
        }
        match failed {
            Some(error) if !gone => Err(error),
            _ => Ok((None, gone)),
        }
    }

    /// Whether all of a batch is in the store, as it is when all of it was loaded from there.
    pub(crate) fn has_all(&self, batch: &Batch) -> Result<bool, ArchiveError> {
        if !(batch.scratch.is_empty() && batch.marks.is_empty()) {
            return Ok(false);
        }
        for entry in &batch.entries {
            let key = &entry.record.key;
            let found = best(&self.0.medium, &self.candidates(key), key)?.entry;
            if !found.is_some_and(|found| is_stored(&found, entry)) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
