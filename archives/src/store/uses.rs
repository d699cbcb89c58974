//! Which entries were asked for, and when: what "least recently used" needs.
//!
//! Reading must not cost a write, so uses are counted in memory and written as one frame when
//! a generation is committed. Those of a process that is killed are lost with it, which costs
//! nothing but a worse choice when room is made.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use sde::key::BuildKeyHasher;
use sde::{ArchiveError, Key, Selection};
use serde::{Deserialize, Serialize};

use crate::cbor::metadata::to_bytes;
use crate::format::class::Part;
use crate::format::frame::FrameKind;
use crate::store::{DirStore, lock};
use crate::writer::frame::{Body, NewFrame};
use crate::writer::segment_writer::header_of;

/// How often an entry was given out, and when last, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

/// The uses of many entries.
pub(crate) type UsesOf = HashMap<Key, Use, BuildKeyHasher>;

/// Adds up what was counted in several places.
pub(crate) fn add(to: &mut UsesOf, key: Key, one: Use) {
    let known = to.entry(key).or_default();
    *known = known.and(one);
}

/// What the metadata of a frame of uses is.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct UsesMetadata {
    pub(crate) uses: Vec<(Key, Use)>,
}

/// How many uses a frame has at most.
const MOST: usize = 1 << 16;

/// The frames of these uses, in the order of the keys.
pub(crate) fn frames(uses: UsesOf) -> Result<Vec<NewFrame>, ArchiveError> {
    let mut uses: Vec<_> = uses.into_iter().collect();
    uses.sort_unstable_by_key(|(key, _)| *key.as_bytes());
    let frame = |uses: &[(Key, Use)]| {
        let uses = uses.to_vec();
        to_bytes(&UsesMetadata { uses }).and_then(|body| {
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
    pub(crate) fn note(&self, key: Key, last: u64) {
        add(&mut self.part(&key), key, Use { count: 1, last });
    }

    fn part(&self, key: &Key) -> MutexGuard<'_, UsesOf> {
        // Keys are digests.
        lock(&self.0[usize::from(key.as_bytes()[0]) % self.0.len()])
    }

    /// All of them; they are counted from nothing again.
    pub(crate) fn take(&self) -> UsesOf {
        let parts = self.0.iter().map(|part| std::mem::take(&mut *lock(part)));
        parts.flatten().collect()
    }

    /// What was taken and could not be written.
    pub(crate) fn put_back(&self, uses: UsesOf) {
        for (key, one) in uses {
            add(&mut self.part(&key), key, one);
        }
    }
}

impl DirStore {
    /// Writes which entries were used since the last time, and what else this process did.
    pub(crate) fn write_uses(&self, selection: Selection) -> Result<(), ArchiveError> {
        let uses = self.0.uses.as_ref();
        let taken = uses.map(Uses::take).unwrap_or_default();
        let mut frames = frames(taken.clone())?;
        frames.extend(self.journal_frame(selection));
        if frames.is_empty() {
            return Ok(());
        }
        let written = self.0.writer.begin().finish(frames);
        if let (Err(_), Some(uses)) = (&written, uses) {
            uses.put_back(taken);
        }
        written
    }
}
