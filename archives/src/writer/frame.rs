//! A frame that is still to be written.

use std::io;
use std::sync::Arc;

use sde::OutputFile;
use sde::archiver::{ArchiveError, Mark};

use crate::cbor::Encoded;
use crate::format::class::Part;
use crate::format::frame::{FrameHeader, FrameKind, LONGEST};
use crate::format::metadata::{ProvenanceId, array_head, reference};
use crate::format::uses::{self, UsesOf};
use crate::vfs::{Disk, Vfs, VfsFile, pieces};

/// The most uses in a frame.
const USES: usize = 1 << 16;

/// An encoded provenance, for the body of an entry or a frame of its own.
pub(crate) struct EncodedProvenance {
    pub(crate) id: ProvenanceId,
    pub(crate) bytes: Vec<u8>,
}

impl EncodedProvenance {
    pub(crate) fn new(bytes: Vec<u8>) -> Arc<Self> {
        let id = crate::format::segment::checksum(&bytes);
        Arc::new(Self { id, bytes })
    }
}

/// The content of a frame's body.
pub(crate) enum Body {
    Bytes(Vec<u8>),
    /// An array that begins with the provenance or its digest, whichever its segment needs.
    Entry {
        elements: u8,
        provenance: Arc<EncodedProvenance>,
        rest: Vec<u8>,
    },
}

/// The values that are too long for the body.
pub(crate) enum Payload {
    Encoded(Vec<Encoded>),
    /// Bytes to copy from another segment.
    Copied {
        from: Arc<dyn VfsFile>,
        at: u64,
        length: u64,
    },
    /// The content of an output file.
    File(OutputFile),
}

/// A frame without its place, and so without its checksum.
pub(crate) struct NewFrame {
    pub(crate) part: Part,
    pub(crate) header: FrameHeader,
    pub(crate) body: Body,
    pub(crate) payload: Payload,
    pub(crate) mark: Option<Mark>,
}

impl NewFrame {
    /// A frame without payload; an error if the body is too long.
    pub(crate) fn new(part: Part, header: FrameHeader, body: Body) -> Result<Self, String> {
        Self::with_payload(part, header, body, Payload::Encoded(Vec::new()))
    }

    pub(crate) fn with_payload(
        part: Part,
        header: FrameHeader,
        body: Body,
        payload: Payload,
    ) -> Result<Self, String> {
        let length = body.length();
        // With the payload's length, 8 bytes in the body.
        if length + 8 > LONGEST {
            return Err(format!(
                "its metadata has {length} bytes, more than a store can take"
            ));
        }
        Ok(Self {
            part,
            header,
            body,
            payload,
            mark: None,
        })
    }

    /// Frames with these uses, in the order of keys.
    pub(crate) fn of_uses(uses: &UsesOf) -> Result<Vec<Self>, ArchiveError> {
        let mut uses: Vec<_> = uses.iter().map(|(prefix, one)| (*prefix, *one)).collect();
        uses.sort_unstable_by_key(|(prefix, _)| *prefix);
        let header = || FrameHeader::of_no_key(FrameKind::Uses);
        let frame = |uses| Self::new(Part::Entries, header(), Body::Bytes(uses::body(uses)?));
        let frames = uses.chunks(USES).map(frame).collect::<Result<_, _>>();
        frames.map_err(ArchiveError::Other)
    }

    /// Adds the decoded mark that is in the body.
    pub(crate) fn with_mark(mut self, mark: Mark) -> Self {
        self.mark = Some(mark);
        self
    }

    /// The memory taken until it is written.
    pub(crate) fn bytes(&self) -> u64 {
        let payload = match &self.payload {
            Payload::Encoded(_) => self.payload.length(),
            Payload::Copied { .. } | Payload::File(_) => 0,
        };
        payload + self.body.length()
    }
}

impl Body {
    fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Entry {
                provenance, rest, ..
            } => 1 + (provenance.bytes.len() + rest.len()) as u64,
        }
    }

    /// Passes the parts of the body to `take`; `shared` chooses the digest of the provenance.
    pub(crate) fn with_parts<T>(&self, shared: bool, take: impl FnOnce(&[&[u8]]) -> T) -> T {
        match self {
            Self::Bytes(bytes) => take(&[bytes]),
            Self::Entry {
                elements,
                provenance,
                rest,
            } => {
                let head = [array_head(*elements)];
                match shared {
                    true => take(&[&head, &reference(&provenance.id), rest]),
                    false => take(&[&head, &provenance.bytes, rest]),
                }
            }
        }
    }
}

impl Payload {
    pub(crate) fn length(&self) -> u64 {
        match self {
            Self::Encoded(values) => values.iter().map(Encoded::length).sum(),
            Self::Copied { length, .. } => *length,
            Self::File(file) => file.length(),
        }
    }

    /// Passes all bytes to `take`, in pieces.
    pub(crate) fn each(&self, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        match self {
            Self::File(file) => {
                // The file is on the user's file system, whatever the store is on. It is opened late, since many
                // frames may wait.
                let from = Disk.open(file.path());
                let from = from.map_err(|_| io::Error::other(changed(file)))?;
                let mut hasher = blake3::Hasher::new();
                pieces(&*from, 0, file.length(), |piece| {
                    hasher.update(piece);
                    take(piece)
                })?;
                match hasher.finalize().as_bytes() == file.digest().as_bytes() {
                    true => Ok(()),
                    false => Err(io::Error::other(changed(file))),
                }
            }
            Self::Encoded(values) => values.iter().flat_map(Encoded::slices).try_for_each(take),
            Self::Copied { from, at, length } => pieces(&**from, *at, *length, take),
        }
    }
}

/// The reason why an output file is not saved.
pub(crate) fn changed(file: &OutputFile) -> String {
    let path = file.path().display();
    format!("the output file {path} was deleted or changed before it was saved")
}
