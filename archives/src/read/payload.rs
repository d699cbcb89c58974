//! The bytes of one value.

use std::fmt;
use std::io::{self, Cursor, Read};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sde::ErasedValue;
use sde::archiver::{ArchiveError, Codec};
use sde::key::Digest;

use super::error::{Damage, ReadError};
use crate::cbor;
use crate::format::frame::{self, FRAME_HEADER};
use crate::format::metadata::TypeInfo;
use crate::format::segment::Segment;
use crate::format::stored_name::is_same_name;
use crate::locks::lock;
use crate::vfs::{Vfs, VfsFile, pieces, read_hashed};

/// The place of a value in a segment, and how it is verified.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ValueSource {
    /// In the body of a frame, at a place in it: the frame's checksum covers it.
    Body { frame: u64, at: u64, length: u64 },
    /// At a place in the file, with a digest of its own.
    Payload {
        at: u64,
        length: u64,
        digest: Digest,
    },
}

impl ValueSource {
    fn place(&self) -> Range<u64> {
        match self {
            Self::Body { frame, at, length } => {
                let start = frame.saturating_add(FRAME_HEADER as u64);
                let start = start.saturating_add(*at);
                start..start.saturating_add(*length)
            }
            Self::Payload { at, length, .. } => *at..at.saturating_add(*length),
        }
    }

    /// The value's bytes in the body of its frame.
    fn of_body<'b>(&self, body: &'b [u8]) -> Option<&'b [u8]> {
        match self {
            Self::Body { at, length, .. } => {
                let at = usize::try_from(*at).ok()?;
                let end = at.checked_add(usize::try_from(*length).ok()?)?;
                body.get(at..end)
            }
            Self::Payload { .. } => None,
        }
    }
}

/// The place of a stored value, and how it is verified. The file is opened for each read: a store may have more
/// segments than a process may have open files.
#[derive(Clone, Debug)]
pub struct StoredValue {
    vfs: Arc<dyn Vfs>,
    segment: Arc<Segment>,
    source: ValueSource,
    stored: TypeInfo,
    /// The bytes of a short value, which were read and checked with its frame.
    held: Option<Arc<[u8]>>,
}

impl StoredValue {
    pub(crate) fn new(
        (vfs, segment): (&Arc<dyn Vfs>, &Arc<Segment>),
        source: ValueSource,
        stored: &TypeInfo,
        body: &[u8],
    ) -> Self {
        Self {
            vfs: Arc::clone(vfs),
            segment: Arc::clone(segment),
            held: source.of_body(body).map(Arc::from),
            source,
            stored: stored.clone(),
        }
    }

    /// The path of the file, within the store.
    #[must_use]
    pub fn path(&self) -> String {
        self.segment.name()
    }

    /// The range of its bytes in the file.
    #[must_use]
    pub fn place(&self) -> Range<u64> {
        self.source.place()
    }

    /// The number of its bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        let place = self.place();
        place.end - place.start
    }

    /// The BLAKE3 digest of its bytes.
    #[must_use]
    pub fn checksum(&self) -> Digest {
        match (&self.source, &self.held) {
            (ValueSource::Payload { digest, .. }, _) => *digest,
            (ValueSource::Body { .. }, held) => {
                let held = held.as_deref().unwrap_or_default();
                Digest::from_bytes(*blake3::hash(held).as_bytes())
            }
        }
    }

    /// The stored name of the Rust type: the compiler's name without crates and modules, which stores of earlier
    /// releases may have.
    #[must_use]
    pub fn type_name(&self) -> &str {
        &self.stored.name
    }

    /// Reads and verifies all bytes, a piece at a time; gives the damage found. `each` gets the number of bytes
    /// read since its last call.
    ///
    /// # Errors
    /// If they can't be read.
    pub fn check(&self, each: impl FnMut(u64)) -> Result<Option<Damage>, ArchiveError> {
        match self.verify(each) {
            Ok(()) => Ok(None),
            Err(ReadError::Damaged(why)) => Ok(Some(self.damage(why))),
            Err(ReadError::Gone) => Err(self.failed(io::ErrorKind::NotFound.into())),
            Err(error) => Err(error.into()),
        }
    }

    /// A reader of its bytes. All of them are verified first, which takes as long as reading them.
    ///
    /// # Errors
    /// If they can't be read, or are damaged.
    pub fn reader(&self) -> Result<PayloadReader, ArchiveError> {
        if let Some(damage) = self.check(|_| ())? {
            return Err(damaged(&damage));
        }
        self.unchecked().map_err(ArchiveError::from)
    }

    /// All bytes, verified, if there are at most `limit`.
    ///
    /// # Errors
    /// If there are more, they can't be read, or are damaged.
    pub fn bytes(&self, limit: u64) -> Result<Vec<u8>, ArchiveError> {
        if self.length() > limit {
            return Err(ArchiveError::Other(format!(
                "a value of {} bytes is not read into memory, {limit} are allowed",
                self.length()
            )));
        }
        self.read().map_err(|error| match error {
            ReadError::Damaged(why) => damaged(&self.damage(why)),
            other => other.into(),
        })
    }

    pub(crate) fn damage(&self, why: impl Into<String>) -> Damage {
        Damage::new(self.path(), self.place(), why)
    }

    fn failed(&self, error: io::Error) -> ArchiveError {
        ArchiveError::io("reading", &self.segment.path, error)
    }

    /// All bytes, verified. BLAKE3 runs on one thread: on several it would steal other work while it waits.
    pub(crate) fn read(&self) -> Result<Vec<u8>, ReadError> {
        let ValueSource::Payload { at, length, digest } = &self.source else {
            return Ok(self.held()?.unwrap_or_default().to_vec());
        };
        let (file, failed) = (self.file()?, |error| ReadError::io(&self.segment, error));
        if self.place().end > file.length().map_err(failed)? {
            return Err(ReadError::Damaged("its file was cut short".to_owned()));
        }
        let (bytes, found) = read_hashed(&*file, *at, *length).map_err(failed)?;
        compare(found, digest).map(|()| bytes)
    }

    /// Whether its bytes are those that were saved.
    pub(crate) fn verify(&self, mut each: impl FnMut(u64)) -> Result<(), ReadError> {
        let copied = self.copy(|piece| {
            each(piece.len() as u64);
            Ok(())
        });
        copied.map(drop)
    }

    /// Passes its bytes to `take` in pieces, then verifies them. An error of `take` is the inner one.
    pub(crate) fn copy(
        &self,
        mut take: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<io::Result<()>, ReadError> {
        let ValueSource::Payload { at, length, digest } = &self.source else {
            return Ok(take(&self.held()?.unwrap_or_default()));
        };
        let (file, failed) = (self.file()?, |error| ReadError::io(&self.segment, error));
        let mut hasher = blake3::Hasher::new();
        let mut refused = None;
        let read = pieces(&*file, *at, *length, |piece| {
            hasher.update(piece);
            take(piece).map_err(|error| {
                let kind = error.kind();
                refused = Some(error);
                kind.into()
            })
        });
        match (refused, read) {
            (Some(error), _) => Ok(Err(error)),
            (None, Err(error)) => Err(failed(error)),
            (None, Ok(())) => compare(hasher.finalize(), digest).map(Ok),
        }
    }

    /// Whether its bytes were checked already.
    pub(crate) fn is_checked(&self) -> bool {
        self.held.is_some()
    }

    /// The bytes of a short value, verified with their frame.
    fn held(&self) -> Result<Option<Arc<[u8]>>, ReadError> {
        let ValueSource::Body { frame, .. } = &self.source else {
            return Ok(None);
        };
        if let Some(held) = &self.held {
            return Ok(Some(Arc::clone(held)));
        }
        let (file, failed) = (self.file()?, |error| ReadError::io(&self.segment, error));
        let found = frame::read_at(&*file, &self.segment, *frame).map_err(failed)?;
        let bytes = found.and_then(|(_, body)| self.source.of_body(&body).map(Arc::from));
        let damaged = || ReadError::Damaged("its frame is damaged".to_owned());
        bytes.map(Some).ok_or_else(damaged)
    }

    pub(crate) fn unchecked(&self) -> Result<PayloadReader, ReadError> {
        if let Some(held) = self.held()? {
            return Ok(PayloadReader(Bytes::Held(Cursor::new(held))));
        }
        Ok(PayloadReader(Bytes::InFile {
            file: self.file()?,
            left: self.place(),
        }))
    }

    fn file(&self) -> Result<Box<dyn VfsFile>, ReadError> {
        let file = self.vfs.open(&self.segment.path);
        file.map_err(|error| ReadError::io(&self.segment, error))
    }
}

fn compare(found: blake3::Hash, digest: &Digest) -> Result<(), ReadError> {
    match found.as_bytes() == digest.as_bytes() {
        true => Ok(()),
        false => Err(ReadError::Damaged(
            "its bytes are not those saved".to_owned(),
        )),
    }
}

pub(crate) fn damaged(damage: &Damage) -> ArchiveError {
    let (start, end) = (damage.place.start, damage.place.end);
    let (path, why) = (&damage.path, &damage.why);
    ArchiveError::damaged(format!("bytes {start}..{end} of {path}: {why}"))
}

/// Reads the bytes of a value.
pub struct PayloadReader(Bytes);

impl fmt::Debug for PayloadReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PayloadReader")
    }
}

enum Bytes {
    Held(Cursor<Arc<[u8]>>),
    InFile {
        file: Box<dyn VfsFile>,
        left: Range<u64>,
    },
}

impl Read for PayloadReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (file, left) = match &mut self.0 {
            Bytes::Held(bytes) => return bytes.read(buffer),
            Bytes::InFile { file, left } => (file, left),
        };
        let length = usize::try_from(left.end - left.start).unwrap_or(usize::MAX);
        let length = buffer.len().min(length);
        let wanted = buffer.get_mut(..length).unwrap_or_default();
        if !wanted.is_empty() {
            file.read_at(wanted, left.start)?;
            left.start += length as u64;
        }
        Ok(length)
    }
}

/// A stored value, as the engine gets it.
pub(crate) struct StoredPayload {
    /// The bytes of a short value are dropped by the first `decode`.
    payload: Mutex<StoredValue>,
    facts: PayloadFacts,
    /// The value's description, for messages.
    of: String,
}

/// What the metadata says of a value.
#[derive(Clone, Copy, Default)]
pub(crate) struct PayloadFacts {
    pub(crate) has_files: bool,
    /// The time that the run of a scratch state had taken.
    pub(crate) took: Duration,
}

impl StoredPayload {
    pub(crate) fn new(payload: StoredValue, facts: PayloadFacts, of: String) -> Self {
        Self {
            payload: Mutex::new(payload),
            facts,
            of,
        }
    }

    fn payload(&self) -> StoredValue {
        lock(&self.payload).clone()
    }
}

fn may_be(payload: &StoredValue, codec: &Codec) -> bool {
    is_same_name(payload.type_name(), codec.type_name())
        && payload.stored.schema == cbor::schema(codec)
}

impl sde::archiver::Payload for StoredPayload {
    fn decode(&self, codec: &Codec) -> Result<ErasedValue, ArchiveError> {
        let payload = self.payload();
        // The lock is not held here, since the schema of a type is learned by running its own code.
        let read = if may_be(&payload, codec) {
            lock(&self.payload).held = None;
            let bytes = payload.read();
            bytes.and_then(|bytes| cbor::decode(&bytes, codec).map_err(ReadError::Damaged))
        } else {
            let (stored, wanted) = (payload.type_name(), codec.type_name());
            Err(ReadError::OtherType(match is_same_name(stored, wanted) {
                true => format!("the type {wanted} has changed since"),
                false => format!("it is a {stored:?}, not a {wanted}"),
            }))
        };
        read.map_err(|error| {
            let (of, path) = (&self.of, payload.segment.path.display());
            let error = match error {
                ReadError::Damaged(why) => {
                    payload.segment.note_damaged(payload.place().start);
                    ArchiveError::damaged(format!("{of} in {path}: {why}"))
                }
                ReadError::OtherType(why) => {
                    ArchiveError::Other(format!("{of} in {path} is not what is wanted: {why}"))
                }
                gone_or_io => gone_or_io.into(),
            };
            sde::warning!("{error}");
            error
        })
    }

    fn may_be(&self, codec: &Codec) -> bool {
        may_be(&self.payload(), codec)
    }

    fn stored_bytes(&self) -> u64 {
        lock(&self.payload).length()
    }

    fn has_files(&self) -> bool {
        self.facts.has_files
    }

    fn took(&self) -> Duration {
        self.facts.took
    }

    fn digest(&self) -> Option<Digest> {
        let payload = self.payload();
        let was_let_go =
            matches!(payload.source, ValueSource::Body { .. }) && payload.held.is_none();
        (!was_let_go).then(|| payload.checksum())
    }

    fn digest_of(&self, value: &ErasedValue, codec: &Codec) -> Option<Digest> {
        let encoded = cbor::encode(value, codec).ok()?;
        Some(Digest::from_bytes(encoded.digest()))
    }
}
