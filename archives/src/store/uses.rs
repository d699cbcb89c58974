//! Which entries were asked for, and when: what "least recently used" needs.
//!
//! Reading must not cost a write, so uses are counted in memory and written as one frame when
//! a generation is committed. Those of a process that is killed are lost with it, which costs
//! nothing but a worse choice when room is made.

use std::collections::HashMap;
use std::sync::Mutex;

use sde::key::BuildKeyHasher;
use sde::{ArchiveError, Key, Selection};

use crate::cbor::metadata::{from_bytes, to_bytes};
use crate::format::class::Part;
use crate::format::frame::FrameKind;
use crate::format::index_block::prefix;
use crate::locks::{MutexGuard, lock};
use crate::store::DirStore;
use crate::writer::frame::{Body, NewFrame};
use crate::writer::segment_writer::header_of;

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
            NewFrame::new(Part::Entries, header_of(FrameKind::Uses), Body::Bytes(body))
        })
    };
    let frames = uses.chunks(MOST).map(frame).collect::<Result<_, _>>();
    frames.map_err(ArchiveError::Other)
}

/// The uses that are not written yet, in parts: threads that find different entries hardly wait for each other.
#[derive(Default)]
pub(crate) struct Uses([Mutex<UsesOf>; 32]);

impl Uses {
    pub(crate) fn note(&self, key: &Key, last: u64) {
        let prefix = prefix(key);
        add(&mut self.part(prefix), prefix, Use { count: 1, last });
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
            add(&mut self.part(prefix), prefix, one);
        }
    }
}

impl DirStore {
    /// Writes which entries were used since the last time, and what else this process did.
    pub(crate) fn write_uses(&self, selection: Selection) -> Result<(), ArchiveError> {
        let uses = self.0.uses.as_ref();
        let taken = uses.map(Uses::take).unwrap_or_default();
        let mut frames = frames(&taken)?;
        frames.extend(self.journal_frame(selection));
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
