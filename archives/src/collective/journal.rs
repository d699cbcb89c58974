//! A rank's journals: segments that it has written alone, and hands over to be written with those of other ranks.
//!
//! Messages about journals are as short as possible: all ranks get those of all ranks, which may be thousands.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::catalog::segments::KnownSegment;
use crate::format::class::Part;
use crate::format::id::UniqueId;
use crate::format::segment::Segment;
use crate::writer::segment_writer;

/// A segment that nobody appends to any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Journal {
    pub(super) part: Part,
    pub(super) id: UniqueId,
    pub(super) writer: UniqueId,
    /// The end of its frames.
    pub(super) length: u64,
}

/// The length of a journal in a message.
const BYTES: usize = 41;

impl Journal {
    /// The journal of a segment, as this rank knows it.
    pub(super) fn of(known: &KnownSegment) -> Self {
        Self {
            part: known.segment.part,
            id: known.segment.id,
            writer: known.segment.writer,
            length: known.end,
        }
    }

    /// The journal's path in the folder that ranks append to.
    pub(super) fn path(&self, dir: &Path) -> PathBuf {
        segment_writer::path(dir, self.part, &self.writer, &self.id)
    }

    /// The segment at this path, for a rank that reads it.
    pub(super) fn segment(&self, path: PathBuf) -> Arc<Segment> {
        Arc::new(Segment::new(path, self.id, self.part, self.writer))
    }

    fn bytes(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[0] = self.part.code();
        bytes[1..17].copy_from_slice(&self.id.0);
        bytes[17..33].copy_from_slice(&self.writer.0);
        bytes[33..].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }

    fn read(bytes: &[u8; BYTES]) -> Option<Self> {
        let (part, rest) = bytes.split_first()?;
        let (id, rest) = rest.split_first_chunk::<16>()?;
        let (writer, rest) = rest.split_first_chunk::<16>()?;
        Some(Self {
            part: Part::from_code(*part)?,
            id: UniqueId(*id),
            writer: UniqueId(*writer),
            length: u64::from_le_bytes(*rest.first_chunk()?),
        })
    }
}

/// The journals that one rank hands over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Handed {
    /// The rank's own, and those of dead ranks on its node.
    pub(super) own: Vec<Journal>,
    /// Short segments of earlier jobs, left over in the store.
    pub(super) left_over: Vec<Journal>,
}

impl Handed {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let all = self.own.iter().chain(&self.left_over);
        let mut bytes: Vec<u8> = all.flat_map(Journal::bytes).collect();
        if !bytes.is_empty() {
            bytes.extend((self.own.len() as u64).to_le_bytes());
        }
        bytes
    }

    pub(super) fn read(bytes: &[u8]) -> Self {
        let Some((all, own)) = bytes.split_last_chunk::<8>() else {
            return Self::default();
        };
        let own = usize::try_from(u64::from_le_bytes(*own)).unwrap_or(usize::MAX);
        let (all, _) = all.as_chunks();
        let read = |journals: &[[u8; BYTES]]| journals.iter().filter_map(Journal::read).collect();
        let (own, left_over) = all.split_at(own.min(all.len()));
        Self {
            own: read(own),
            left_over: read(left_over),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_come_back_as_they_were() {
        let journals = || {
            let journal = |part: &Part| Journal {
                part: *part,
                id: UniqueId::new(),
                writer: UniqueId::new(),
                length: u64::MAX - 7,
            };
            Part::ALL.iter().map(journal).collect::<Vec<_>>()
        };
        let handed = Handed {
            own: journals(),
            left_over: journals(),
        };
        let bytes = handed.to_bytes();
        assert_eq!(bytes.len(), 4 * BYTES + 8);
        assert_eq!(Handed::read(&bytes), handed);
        assert_eq!(Handed::default().to_bytes(), []);
        assert_eq!(Handed::read(&[]), Handed::default());
        assert_eq!(Handed::read(&[9; BYTES]), Handed::default());
    }
}
