//! Records which entries were used, and when, for "least recently used".
//!
//! Reading must not cost a write, so uses are counted in memory and written as one frame on a commit, at most once
//! a minute before the end. A killed process loses its counts, which only makes the choice of entries to give up
//! worse.

use std::cmp::Reverse;
use std::sync::Mutex;

use sde::Key;
use sde::archiver::{ArchiveError, Selection};

use crate::format::index_block::prefix;
use crate::format::uses::{Use, UsesOf, add};
use crate::locks::{MutexGuard, lock};
use crate::store::DirStore;
use crate::writer::frame::NewFrame;

/// The latest uses not yet written, in parts, so that threads with different entries rarely wait for each other.
#[derive(Default)]
pub(crate) struct Uses([Mutex<UsesOf>; 32]);

/// The most entries in a part: a million in all parts.
const MOST_OF_PART: usize = 1 << 15;

impl Uses {
    pub(crate) fn note(&self, key: &Key, last: u64) {
        let prefix = prefix(key);
        self.add(prefix, Use { count: 1, last });
    }

    fn add(&self, prefix: u64, one: Use) {
        let mut part = self.part(prefix);
        add(&mut part, prefix, one);
        if part.len() > MOST_OF_PART {
            let mut all: Vec<(u64, Use)> = part.drain().collect();
            all.select_nth_unstable_by_key(MOST_OF_PART / 2, |(_, one)| Reverse(one.last));
            part.extend(all.into_iter().take(MOST_OF_PART / 2));
        }
    }

    fn part(&self, prefix: u64) -> MutexGuard<'_, UsesOf> {
        // Keys are digests, evenly spread.
        lock(&self.0[prefix as usize % self.0.len()])
    }

    /// Takes all uses; counting starts again from zero.
    pub(crate) fn take(&self) -> UsesOf {
        let parts = self.0.iter().map(|part| std::mem::take(&mut *lock(part)));
        parts.flatten().collect()
    }

    /// Puts back uses that could not be written.
    pub(crate) fn put_back(&self, uses: UsesOf) {
        for (prefix, one) in uses {
            self.add(prefix, one);
        }
    }
}

impl DirStore {
    /// Writes the uses and the journal of this process, if they are due.
    pub(crate) fn write_uses(&self, selection: Selection) -> Result<(), ArchiveError> {
        let now = self.0.vfs().now();
        if selection == Selection::Checkpoint && !self.0.journal.is_old(now) {
            return Ok(());
        }
        let uses = self.0.uses.as_ref();
        let taken = uses.map(Uses::take).unwrap_or_default();
        let mut frames = NewFrame::of_uses(&taken)?;
        frames.extend(self.journal_frame(now));
        if frames.is_empty() {
            return Ok(());
        }
        let written = self.0.writer.begin().finish(frames);
        if written.is_err() {
            self.0.journal.put_back();
            uses.iter().for_each(|uses| uses.put_back(taken.clone()));
        }
        match written {
            // On a full disk uses are written later, or lost; saves are not affected.
            Err(error) if error.is_full() => Ok(()),
            written => written,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Found by reading: a process that commits nothing noted uses without bound.
    #[test]
    fn the_latest_uses_are_noted_and_not_all() {
        let uses = Uses::default();
        let key = |number: u64| {
            let mut key = [0; 32];
            // All keys are in one part.
            key[..8].copy_from_slice(&(number << 5).to_be_bytes());
            Key::from_bytes(key)
        };
        let most = MOST_OF_PART as u64;
        // Found by an attack: with equal times none was kept.
        (0..=most).for_each(|number| uses.note(&key(number), 0));
        assert_eq!(uses.take().len(), MOST_OF_PART / 2);
        for number in 0..3 * most {
            uses.note(&key(number), number);
        }
        let noted = uses.take();
        assert!(noted.len() <= MOST_OF_PART, "{}", noted.len());
        let latest = 3 * most - most / 2..3 * most;
        assert!(
            latest
                .clone()
                .all(|number| noted[&(number << 5)].last == number)
        );
    }

    /// Found by reading: uses were counted although they were never written.
    #[test]
    fn nothing_is_noted_in_a_store_opened_for_reading_only() {
        let dir = tempfile::tempdir().unwrap();
        let store = DirStore::open(dir.path()).unwrap();
        assert!(store.0.uses.is_some());
        let store = DirStore::open_read_only(dir.path()).unwrap();
        assert!(store.0.uses.is_none());
    }
}
