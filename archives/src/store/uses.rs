//! Which entries were asked for, and when: what "least recently used" needs.
//!
//! Reading must not cost a write, so uses are counted in memory and written as one frame when
//! a generation is committed, once a minute at most before the end. Those of a process that is killed are lost with it, which costs
//! nothing but a worse choice when room is made.

use std::collections::HashMap;
use std::sync::Mutex;

use sde::key::BuildKeyHasher;
use sde::{ArchiveError, Key, Selection};

use crate::cbor::metadata::{from_bytes, to_bytes};
use crate::format::class::Part;
use crate::format::frame::{FrameHeader, FrameKind};
use crate::format::index_block::prefix;
use crate::locks::{MutexGuard, lock};
use crate::store::DirStore;
use crate::writer::frame::{Body, NewFrame};

/// How often an entry was given out, and when last, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) count: u64,
    pub(crate) last: u64,
}

impl Use {
    /// Both together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_add(other.count),
            last: self.last.max(other.last),
        }
    }
}

/// The uses of many entries, by how their keys begin.
pub(crate) type UsesOf = HashMap<u64, Use, BuildKeyHasher>;

/// Adds up what was counted in several places.
pub(crate) fn add(to: &mut UsesOf, prefix: u64, one: Use) {
    let known = to.entry(prefix).or_default();
    *known = known.and(one);
}

/// How many uses a frame has at most.
const MOST: usize = 1 << 16;

/// The length of a row: the first 8 bytes of the key; when last, in nanoseconds (8 bytes); how often (4 bytes).
const ROW: usize = 20;

fn row(prefix: u64, one: Use) -> impl Iterator<Item = u8> {
    let count = u32::try_from(one.count).unwrap_or(u32::MAX).to_le_bytes();
    let (key, last) = (prefix.to_be_bytes(), one.last.to_le_bytes());
    key.into_iter().chain(last).chain(count)
}

/// What the body of a frame says: the number of rows, and the rows.
pub(crate) fn read(content: &[u8]) -> Result<Vec<(u64, Use)>, String> {
    let (count, rows) = from_bytes::<u64>(content)?;
    let (rows, rest) = rows.as_chunks::<ROW>();
    if count != rows.len() as u64 || !rest.is_empty() {
        return Err("it has other rows than it says".to_owned());
    }
    let one = |row: &[u8; ROW]| {
        let (numbers, _) = row.as_chunks::<8>();
        let (counts, _) = row[16..].as_chunks::<4>();
        let last = u64::from_le_bytes(numbers[1]);
        let count = u64::from(u32::from_le_bytes(counts[0]));
        (u64::from_be_bytes(numbers[0]), Use { count, last })
    };
    Ok(rows.iter().map(one).collect())
}

/// The frames of these uses, in the order of the keys.
pub(crate) fn frames(uses: &UsesOf) -> Result<Vec<NewFrame>, ArchiveError> {
    let mut uses: Vec<_> = uses.iter().map(|(prefix, one)| (*prefix, *one)).collect();
    uses.sort_unstable_by_key(|(prefix, _)| *prefix);
    let frame = |uses: &[(u64, Use)]| {
        to_bytes(&(uses.len() as u64)).and_then(|mut body| {
            body.extend(uses.iter().flat_map(|(prefix, one)| row(*prefix, *one)));
            NewFrame::new(
                Part::Entries,
                FrameHeader::of_no_key(FrameKind::Uses),
                Body::Bytes(body),
            )
        })
    };
    let frames = uses.chunks(MOST).map(frame).collect::<Result<_, _>>();
    frames.map_err(ArchiveError::Other)
}

/// The latest uses that are not written yet, in parts: threads that find different entries hardly wait for each other.
#[derive(Default)]
pub(crate) struct Uses([Mutex<UsesOf>; 32]);

/// So many entries a part has at most: a million all parts together.
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
            let mut times: Vec<u64> = part.values().map(|one| one.last).collect();
            let (_, middle, _) = times.select_nth_unstable(MOST_OF_PART / 2);
            let since = *middle;
            part.retain(|_, one| one.last > since);
        }
    }

    fn part(&self, prefix: u64) -> MutexGuard<'_, UsesOf> {
        // Keys are digests.
        lock(&self.0[prefix as usize % self.0.len()])
    }

    /// All of them; they are counted from nothing again.
    pub(crate) fn take(&self) -> UsesOf {
        let parts = self.0.iter().map(|part| std::mem::take(&mut *lock(part)));
        parts.flatten().collect()
    }

    /// What was taken and could not be written.
    pub(crate) fn put_back(&self, uses: UsesOf) {
        for (prefix, one) in uses {
            self.add(prefix, one);
        }
    }
}

impl DirStore {
    /// Writes which entries were used since the last time, and what else this process did, if it is time for it.
    pub(crate) fn write_uses(&self, selection: Selection) -> Result<(), ArchiveError> {
        let now = self.0.vfs().now();
        if selection == Selection::Checkpoint && !self.0.journal.is_old(now) {
            return Ok(());
        }
        let uses = self.0.uses.as_ref();
        let taken = uses.map(Uses::take).unwrap_or_default();
        let mut frames = frames(&taken)?;
        frames.extend(self.journal_frame(now));
        if frames.is_empty() {
            return Ok(());
        }
        let written = self.0.writer.begin().finish(frames);
        if written.is_err() {
            self.0.journal.put_back();
            uses.iter().for_each(|uses| uses.put_back(taken.clone()));
        }
        written
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
            // All in one part.
            key[..8].copy_from_slice(&(number << 5).to_be_bytes());
            Key::from_bytes(key)
        };
        let most = MOST_OF_PART as u64;
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

    /// Found by reading: nobody wrote them.
    #[test]
    fn nothing_is_noted_in_a_store_opened_for_reading_only() {
        let dir = tempfile::tempdir().unwrap();
        let store = DirStore::open(dir.path()).unwrap();
        assert!(store.0.uses.is_some());
        let store = DirStore::open_read_only(dir.path()).unwrap();
        assert!(store.0.uses.is_none());
    }
}
