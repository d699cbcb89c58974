//! Reading one frame again, and the values in it.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sde::key::Digest;
use sde::{ArchiveError, Codec, ErasedValue, Key, Payload, Record, StoredEntry, StoredResult};
use serde::de::DeserializeOwned;

use crate::cbor;
use crate::class::Class;
use crate::compact::EntryFacts;
use crate::frame::pieces;
use crate::index::Place;
use crate::medium::{Medium, MediumFile};
use crate::metadata::{EntryMetadata, PayloadMetadata, ScratchMetadata, stored_name};
use crate::rank::Rank;
use crate::segment::{FRAME_HEADER, FrameHeader, FrameKind, Segment, checksum};
use crate::table::bytes as bytes_of;

/// A value up to this size is checked as soon as its entry is found, so that
/// a damaged one is a miss. A larger one is checked when it is asked for.
const CHECKED_WHEN_FOUND: u64 = 16 << 20;
/// The bytes of one up to this size are kept from then until it is asked for.
const KEPT_WHEN_FOUND: u64 = 64 << 10;

const GONE: &str = "its file is gone; a compaction may have put it elsewhere";

/// Why a frame gave nothing.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// It is not what it should be: a miss.
    Damaged(String),
    /// It is sound, and not what was asked for.
    OtherType(String),
    /// Its file is not there any more.
    Gone,
    /// It could not be read.
    Io(ArchiveError),
}

impl Trouble {
    fn io(segment: &Segment, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Damaged("its file was cut short".to_owned()),
            // A network file system may say the second of a file that somebody else removed.
            io::ErrorKind::NotFound | io::ErrorKind::StaleNetworkFileHandle => Self::Gone,
            _ => Self::Io(ArchiveError::io("reading", &segment.path, error)),
        }
    }
}

impl Trouble {
    /// Warns of what is damaged; gives back what is an error.
    pub(crate) fn warned(self, key: &Key, what: &str) -> Option<ArchiveError> {
        match self {
            Self::Damaged(why) | Self::OtherType(why) => {
                sde::warning!("{what} of {} can't be used: {why}", key.short());
                None
            }
            Self::Gone => None,
            Self::Io(error) => Some(error),
        }
    }
}

impl From<Trouble> for ArchiveError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Damaged(why) => Self::Damaged { why },
            Trouble::OtherType(why) => Self::Other(why),
            Trouble::Gone => Self::Damaged {
                why: GONE.to_owned(),
            },
            Trouble::Io(error) => error,
        }
    }
}

/// An entry as the engine wants it, and its rank. Results whose bytes are found to be damaged
/// are there without a payload, and warned of.
pub(crate) fn entry(
    medium: &Arc<dyn Medium>,
    place: &Place,
    key: &Key,
) -> Result<(Rank, StoredEntry), Trouble> {
    let (frame, metadata) =
        OpenFrame::read::<EntryMetadata<Record>>(medium, place, FrameKind::Entry, key)?;
    if metadata.record.key != *key {
        return Err(Trouble::Damaged("it is of another key".to_owned()));
    }
    let mut rank = metadata.rank(frame.saved_at);
    let archived = place.segment.class == Class::Result && metadata.is_archive();
    let results = metadata
        .results
        .into_iter()
        .map(|result| {
            let of = format!("result {:?} of {}", result.name, key.short());
            let was_saved = result.payload.is_some();
            let payload = result
                .payload
                .and_then(|payload| frame.sound(payload, of, CHECKED_WHEN_FOUND));
            if was_saved && payload.is_none() && result.tags.is_archived() {
                rank.has_results = false;
            }
            StoredResult {
                tags: result.tags,
                payload,
                name: result.name,
            }
        })
        .collect();
    let entry = StoredEntry {
        record: Arc::new(metadata.record),
        results,
        archived,
    };
    Ok((rank, entry))
}

/// How an entry was made. Its values are not looked at.
pub(crate) fn record(
    medium: &Arc<dyn Medium>,
    place: &Place,
    key: &Key,
) -> Result<Record, Trouble> {
    let (_, metadata) =
        OpenFrame::read::<EntryMetadata<Record>>(medium, place, FrameKind::Entry, key)?;
    Ok(metadata.record)
}

/// What a compaction wants to know of an entry. All its values are read and checked.
pub(crate) fn facts(
    medium: &Arc<dyn Medium>,
    segment: &Arc<Segment>,
    at: u64,
    key: &Key,
) -> Result<EntryFacts, Trouble> {
    let place = Place {
        segment: Arc::clone(segment),
        at,
    };
    let (frame, metadata) =
        OpenFrame::read::<EntryMetadata<Record>>(medium, &place, FrameKind::Entry, key)?;
    let mut rank = metadata.rank(frame.saved_at);
    let (mut sound, mut damaged) = (Vec::new(), false);
    for result in metadata.results {
        let Some(payload) = result.payload else {
            continue;
        };
        let payload = frame.payload(payload, String::new());
        match payload.and_then(|payload| payload.check(&*frame.file)) {
            Ok(()) => sound.push(result.name),
            Err(Trouble::Damaged(_)) => {
                damaged = true;
                rank.has_results &= !result.tags.is_archived();
            }
            Err(error) => return Err(error),
        }
    }
    Ok(EntryFacts {
        rank,
        sound,
        damaged,
    })
}

/// A scratch state, if its bytes are whole. All of it is read, however long it is: when it is
/// decoded it is too late to go on from the state before.
pub(crate) fn scratch(
    medium: &Arc<dyn Medium>,
    place: &Place,
    key: &Key,
) -> Result<Option<Arc<dyn Payload>>, Trouble> {
    let (frame, metadata) =
        OpenFrame::read::<ScratchMetadata>(medium, place, FrameKind::Scratch, key)?;
    let of = format!("the scratch of {}", key.short());
    Ok(frame.sound(metadata.payload, of, u64::MAX))
}

/// What a compaction wants to know of a scratch state: that it is whole.
pub(crate) fn check_scratch(
    medium: &Arc<dyn Medium>,
    place: &Place,
    key: &Key,
) -> Result<(), Trouble> {
    let (frame, metadata) =
        OpenFrame::read::<ScratchMetadata>(medium, place, FrameKind::Scratch, key)?;
    let payload = frame.payload(metadata.payload, String::new())?;
    payload.check(&*frame.file)
}

/// An open frame.
struct OpenFrame<'a> {
    medium: &'a Arc<dyn Medium>,
    segment: &'a Arc<Segment>,
    file: Box<dyn MediumFile>,
    payloads: std::ops::Range<u64>,
    saved_at: u64,
}

impl<'a> OpenFrame<'a> {
    fn read<M: DeserializeOwned>(
        medium: &'a Arc<dyn Medium>,
        place: &'a Place,
        kind: FrameKind,
        key: &Key,
    ) -> Result<(Self, M), Trouble> {
        let segment = &place.segment;
        let failed = |error| Trouble::io(segment, error);
        let damaged = |why: &str| Trouble::Damaged(why.to_owned());
        let file = medium.open(&segment.path).map_err(failed)?;
        let mut bytes = [0; FRAME_HEADER];
        file.read_at(&mut bytes, place.at).map_err(failed)?;
        let header = FrameHeader::read(&bytes, segment, place.at)
            .filter(|header| header.kind == Some(kind) && header.key == *key)
            .ok_or_else(|| damaged("its header is damaged"))?;
        let end = header.end(place.at);
        if end > file.length().map_err(failed)? {
            return Err(damaged("its file was cut short"));
        }
        let at = FrameHeader::metadata_at(place.at);
        let metadata = bytes_of(&*file, at, header.metadata.into()).map_err(failed)?;
        if checksum(&metadata) != header.metadata_checksum {
            return Err(damaged("its metadata is damaged"));
        }
        let metadata = cbor::from_bytes(&metadata)
            .map_err(|why| Trouble::Damaged(format!("its metadata can't be read: {why}")))?;
        let frame = Self {
            medium,
            segment,
            file,
            payloads: header.payloads_at(place.at)..end,
            saved_at: header.saved_at,
        };
        Ok((frame, metadata))
    }

    /// A payload, read and checked up to this length; `None`, with a warning, if it is known to be
    /// damaged.
    fn sound(
        &self,
        metadata: PayloadMetadata,
        of: String,
        checked: u64,
    ) -> Option<Arc<dyn Payload>> {
        let payload = self.payload(metadata, of.clone());
        let checked = payload.and_then(|payload| {
            if self.segment.is_damaged(payload.at) {
                let why = "it was found to be damaged before".to_owned();
                return Err(Trouble::Damaged(why));
            }
            match payload.length {
                ..=KEPT_WHEN_FOUND => {
                    let bytes = payload.bytes(&*self.file)?;
                    *payload.kept() = Some(bytes);
                }
                length if length <= checked => payload.check(&*self.file)?,
                _ => {}
            }
            Ok(payload)
        });
        match checked {
            Ok(payload) => Some(Arc::new(payload)),
            Err(trouble) => {
                let error = ArchiveError::from(trouble);
                let path = self.segment.path.display();
                sde::warning!("{of} in {path} can't be used: {error}");
                None
            }
        }
    }

    fn payload(&self, metadata: PayloadMetadata, of: String) -> Result<FilePayload, Trouble> {
        let at = self.payloads.start.checked_add(metadata.at);
        let fits = |at: &u64| {
            at.checked_add(metadata.length)
                .is_some_and(|end| end <= self.payloads.end)
        };
        let at = at
            .filter(fits)
            .ok_or_else(|| Trouble::Damaged("it lies outside of its frame".to_owned()))?;
        Ok(FilePayload {
            medium: Arc::clone(self.medium),
            segment: Arc::clone(self.segment),
            at,
            length: metadata.length,
            checksum: *metadata.checksum.as_bytes(),
            type_name: metadata.type_name,
            schema: metadata.schema,
            of,
            kept: Mutex::default(),
        })
    }
}

/// A value whose bytes are in a segment. The file is opened when it is read, since
/// a store may have more segments than a process may have open files.
struct FilePayload {
    medium: Arc<dyn Medium>,
    segment: Arc<Segment>,
    at: u64,
    length: u64,
    checksum: [u8; 32],
    type_name: String,
    schema: Digest,
    of: String,
    /// What was read and checked when it was found, for who asks first.
    kept: Mutex<Option<Vec<u8>>>,
}

impl FilePayload {
    fn kept(&self) -> MutexGuard<'_, Option<Vec<u8>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the bytes are those that were saved. They are read a piece at a time.
    fn check(&self, file: &dyn MediumFile) -> Result<(), Trouble> {
        let mut digest = blake3::Hasher::new();
        let read = pieces(file, self.at, self.length, |piece| {
            digest.update(piece);
            Ok(())
        });
        read.map_err(|error| Trouble::io(&self.segment, error))?;
        self.compare(digest.finalize())
    }

    fn compare(&self, digest: blake3::Hash) -> Result<(), Trouble> {
        match *digest.as_bytes() == self.checksum {
            true => Ok(()),
            false => Err(Trouble::Damaged("its bytes are not those saved".to_owned())),
        }
    }

    /// The bytes, which are those that were saved.
    fn bytes(&self, file: &dyn MediumFile) -> Result<Vec<u8>, Trouble> {
        let failed = |error| Trouble::io(&self.segment, error);
        let there = file.length().map_err(failed)?;
        let end = self.at.checked_add(self.length);
        if end.is_none_or(|end| end > there) {
            return Err(Trouble::Damaged("its file was cut short".to_owned()));
        }
        let bytes = bytes_of(file, self.at, self.length).map_err(failed)?;
        // One thread only: BLAKE3 on several would steal other work while it waits.
        self.compare(blake3::hash(&bytes)).map(|()| bytes)
    }

    fn read(&self, codec: &Codec) -> Result<ErasedValue, Trouble> {
        if !self.may_be(codec) {
            let wanted = codec.type_name();
            let why = match stored_name(&self.type_name) == stored_name(wanted) {
                true => format!("the type {wanted} has changed since"),
                false => format!("it is a {:?}, not a {wanted}", self.type_name),
            };
            return Err(Trouble::OtherType(why));
        }
        let bytes = match self.kept().take() {
            Some(bytes) => bytes,
            None => {
                let file = self.medium.open(&self.segment.path);
                self.bytes(&*file.map_err(|error| Trouble::io(&self.segment, error))?)?
            }
        };
        cbor::decode(&bytes, codec).map_err(Trouble::Damaged)
    }
}

impl Payload for FilePayload {
    fn decode(&self, codec: &Codec) -> Result<ErasedValue, ArchiveError> {
        self.read(codec).map_err(|trouble| {
            let error = match trouble {
                Trouble::Damaged(why) => {
                    self.segment.note_damaged(self.at);
                    let path = self.segment.path.display();
                    let why = format!("{} in {path}: {why}", self.of);
                    ArchiveError::Damaged { why }
                }
                Trouble::OtherType(why) => {
                    let path = self.segment.path.display();
                    ArchiveError::Other(format!(
                        "{} in {path} is not what is wanted: {why}",
                        self.of
                    ))
                }
                gone_or_io => gone_or_io.into(),
            };
            sde::warning!("{error}");
            error
        })
    }

    fn may_be(&self, codec: &Codec) -> bool {
        stored_name(&self.type_name) == stored_name(codec.type_name())
            && self.schema == cbor::schema(codec)
    }

    fn stored_bytes(&self) -> u64 {
        self.length
    }
}
