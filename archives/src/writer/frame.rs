//! One frame that waits to be written.

use std::io;
use std::sync::Arc;

use sde::{Key, Mark};

use crate::catalog::table::Row;
use crate::cbor::Encoded;
use crate::format::class::Class;
use crate::format::segment::{FrameHeader, FrameKind, Segment};
use crate::vfs::VfsFile;

/// The bytes of the values.
pub(crate) enum Payloads {
    Encoded(Vec<Encoded>),
    /// They are in another segment.
    Copied {
        from: Arc<dyn VfsFile>,
        at: u64,
        length: u64,
    },
}

/// How much is read at once.
const PIECE: u64 = 1 << 20;

/// What a frame holds. Where it goes, and so its header, is not known yet.
pub(crate) struct NewFrame {
    pub(crate) class: Class,
    pub(crate) header: FrameHeader,
    pub(crate) metadata: Vec<u8>,
    pub(crate) payloads: Payloads,
    pub(crate) mark: Option<Mark>,
}

impl NewFrame {
    /// A frame; an error says why its metadata can't be written.
    pub(crate) fn new(
        class: Class,
        kind: FrameKind,
        metadata: Vec<u8>,
        payloads: Vec<Encoded>,
    ) -> Result<Self, String> {
        let length = payloads.iter().map(Encoded::length).sum();
        let header = FrameHeader::new(kind, &metadata, length).ok_or_else(|| {
            let length = metadata.len();
            format!("its metadata has {length} bytes, more than a store can take")
        })?;
        Ok(Self {
            class,
            header,
            metadata,
            payloads: Payloads::Encoded(payloads),
            mark: None,
        })
    }

    /// A frame that is already in a segment.
    pub(crate) fn copy(
        class: Class,
        header: FrameHeader,
        metadata: Vec<u8>,
        from: Arc<dyn VfsFile>,
        payloads_at: u64,
    ) -> Self {
        Self {
            class,
            header,
            metadata,
            payloads: Payloads::Copied {
                from,
                at: payloads_at,
                length: header.payloads,
            },
            mark: None,
        }
    }

    /// The same, of a run.
    pub(crate) fn of(mut self, key: Key, saved_at: u64) -> Self {
        self.header = self.header.of(key, saved_at);
        self
    }

    /// The same, with the mark that it holds.
    pub(crate) fn with_mark(mut self, mark: Mark) -> Self {
        self.mark = Some(mark);
        self
    }

    /// The row of this frame at a place; `None` if it is found by other means.
    pub(crate) fn row(&self, at: u64) -> Option<Row> {
        let kind = self.header.kind?;
        matches!(kind, FrameKind::Entry | FrameKind::Scratch).then_some(Row {
            key: self.header.key,
            at,
            kind,
            saved_at: self.header.saved_at,
        })
    }

    /// How much memory it takes while it waits.
    pub(crate) fn bytes(&self) -> u64 {
        self.header.payloads + self.metadata.len() as u64
    }
}

impl Payloads {
    /// Gives all bytes, one piece after the other.
    pub(crate) fn each(&self, take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        match self {
            Self::Encoded(values) => values.iter().flat_map(Encoded::slices).try_for_each(take),
            Self::Copied { from, at, length } => pieces(&**from, *at, *length, take),
        }
    }
}

/// Gives bytes of a file, one piece after the other.
pub(crate) fn pieces(
    file: &dyn VfsFile,
    mut at: u64,
    length: u64,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE.min(length) as usize];
    let end = at.saturating_add(length);
    while at < end {
        let piece = &mut piece[..PIECE.min(end - at) as usize];
        file.read_at(piece, at)?;
        take(piece)?;
        at += piece.len() as u64;
    }
    Ok(())
}

/// A frame that is on the medium for good.
pub(crate) struct Written {
    pub(crate) segment: Arc<Segment>,
    pub(crate) row: Option<Row>,
    pub(crate) mark: Option<Mark>,
}
