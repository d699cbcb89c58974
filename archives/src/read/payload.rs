//! Values whose bytes are in a segment.

use std::sync::{Arc, Mutex};

use sde::key::Digest;
use sde::{ArchiveError, Codec, ErasedValue, Payload};

use super::trouble::Trouble;
use crate::cbor;
use crate::format::frame::{self, FRAME_HEADER};
use crate::format::metadata::TypeInfo;
use crate::format::segment::Segment;
use crate::format::stored_name::is_same_name;
use crate::locks::lock;
use crate::vfs::pieces;
use crate::vfs::{Vfs, VfsFile, read_bytes};

/// Where the bytes of a value are, and how to know that they are those.
#[derive(Clone, Debug)]
pub(crate) enum ValueSource {
    /// In the body of a frame, from a place in it on: the frame's checksum covers them.
    Body { frame: u64, at: u64, length: u64 },
    /// At a place in the file, with a digest of their own.
    Payload {
        at: u64,
        length: u64,
        digest: Digest,
    },
}

impl ValueSource {
    /// Where they begin in the file.
    pub(crate) fn at(&self) -> u64 {
        match self {
            Self::Body { frame, at, .. } => frame
                .saturating_add(FRAME_HEADER as u64)
                .saturating_add(*at),
            Self::Payload { at, .. } => *at,
        }
    }

    pub(crate) fn length(&self) -> u64 {
        match self {
            Self::Body { length, .. } | Self::Payload { length, .. } => *length,
        }
    }

    /// The bytes, which are those that were saved.
    pub(crate) fn bytes(&self, file: &dyn VfsFile, segment: &Segment) -> Result<Vec<u8>, Trouble> {
        let failed = |error| Trouble::io(segment, error);
        match self {
            Self::Body { frame, .. } => {
                let found = frame::read_at(file, segment, *frame).map_err(failed)?;
                let bytes = found.and_then(|(_, body)| self.of_body(&body).map(<[u8]>::to_vec));
                bytes.ok_or_else(|| Trouble::Damaged("its frame is damaged".to_owned()))
            }
            Self::Payload { at, length, digest } => {
                let end = at.checked_add(*length);
                let there = file.length().map_err(failed)?;
                if end.is_none_or(|end| end > there) {
                    return Err(Trouble::Damaged("its file was cut short".to_owned()));
                }
                let bytes = read_bytes(file, *at, *length).map_err(failed)?;
                // One thread only: BLAKE3 on several would steal other work while it waits.
                compare(blake3::hash(&bytes), digest).map(|()| bytes)
            }
        }
    }

    /// The bytes in the body of the frame, if they are there.
    pub(crate) fn of_body<'b>(&self, body: &'b [u8]) -> Option<&'b [u8]> {
        match self {
            Self::Body { at, length, .. } => {
                let at = usize::try_from(*at).ok()?;
                let end = at.checked_add(usize::try_from(*length).ok()?)?;
                body.get(at..end)
            }
            Self::Payload { .. } => None,
        }
    }

    /// Whether the bytes of a payload are those that were saved, read a piece at a time. Those of a body were compared when
    /// it was read.
    pub(crate) fn check(&self, file: &dyn VfsFile, segment: &Segment) -> Result<(), Trouble> {
        let Self::Payload { at, length, digest } = self else {
            return Ok(());
        };
        let mut hasher = blake3::Hasher::new();
        let read = pieces(file, *at, *length, |piece| {
            hasher.update(piece);
            Ok(())
        });
        read.map_err(|error| Trouble::io(segment, error))?;
        compare(hasher.finalize(), digest)
    }
}

fn compare(found: blake3::Hash, digest: &Digest) -> Result<(), Trouble> {
    match found.as_bytes() == digest.as_bytes() {
        true => Ok(()),
        false => Err(Trouble::Damaged("its bytes are not those saved".to_owned())),
    }
}

/// A value in a segment. The file is opened when it is read, since a store may have more segments than a process may have
/// open files.
pub(crate) struct FilePayload {
    vfs: Arc<dyn Vfs>,
    segment: Arc<Segment>,
    source: ValueSource,
    stored: TypeInfo,
    has_files: bool,
    of: String,
    /// The bytes of a short one, which were read and checked with its frame; for the first that asks.
    kept: Mutex<Option<Vec<u8>>>,
}

impl FilePayload {
    pub(crate) fn new(
        (vfs, segment): (&Arc<dyn Vfs>, &Arc<Segment>),
        body: &[u8],
        source: ValueSource,
        stored: &TypeInfo,
        has_files: bool,
        of: String,
    ) -> Self {
        let kept = source.of_body(body).map(<[u8]>::to_vec);
        Self {
            vfs: Arc::clone(vfs),
            segment: Arc::clone(segment),
            source,
            stored: stored.clone(),
            has_files,
            of,
            kept: Mutex::new(kept),
        }
    }

    pub(crate) fn of(&self) -> &str {
        &self.of
    }

    /// Whether its bytes are those that were saved, if it is no longer than this.
    pub(crate) fn check_up_to(&self, file: &dyn VfsFile, length: u64) -> Result<(), Trouble> {
        match self.source.length() <= length {
            true => self.source.check(file, &self.segment),
            false => Ok(()),
        }
    }

    fn read(&self, codec: &Codec) -> Result<ErasedValue, Trouble> {
        if !self.may_be(codec) {
            let (stored, wanted) = (&self.stored.name, codec.type_name());
            let why = match is_same_name(stored, wanted) {
                true => format!("the type {wanted} has changed since"),
                false => format!("it is a {stored:?}, not a {wanted}"),
            };
            return Err(Trouble::OtherType(why));
        }
        let kept = lock(&self.kept).take();
        let bytes = match kept {
            Some(bytes) => bytes,
            None => {
                let file = self.vfs.open(&self.segment.path);
                let file = file.map_err(|error| Trouble::io(&self.segment, error))?;
                self.source.bytes(&*file, &self.segment)?
            }
        };
        cbor::decode(&bytes, codec).map_err(Trouble::Damaged)
    }
}

impl Payload for FilePayload {
    fn decode(&self, codec: &Codec) -> Result<ErasedValue, ArchiveError> {
        self.read(codec).map_err(|trouble| {
            let path = self.segment.path.display();
            let error = match trouble {
                Trouble::Damaged(why) => {
                    self.segment.note_damaged(self.source.at());
                    let why = format!("{} in {path}: {why}", self.of);
                    ArchiveError::Damaged { why }
                }
                Trouble::OtherType(why) => ArchiveError::Other(format!(
                    "{} in {path} is not what is wanted: {why}",
                    self.of
                )),
                gone_or_io => gone_or_io.into(),
            };
            sde::warning!("{error}");
            error
        })
    }

    fn may_be(&self, codec: &Codec) -> bool {
        is_same_name(&self.stored.name, codec.type_name())
            && self.stored.schema == cbor::schema(codec)
    }

    fn stored_bytes(&self) -> u64 {
        self.source.length()
    }

    fn has_files(&self) -> bool {
        self.has_files
    }
}
