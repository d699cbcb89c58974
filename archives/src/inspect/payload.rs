//! The bytes of one value.

use std::io::{self, Cursor, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use sde::ArchiveError;
use sde::key::Digest;

use super::item::Damage;
use super::numbers::{self, Numbers};
use super::short;
use super::value::{self, Value};
use crate::vfs::{Vfs, VfsFile};

/// How much is read at once.
const CHUNK: usize = 1 << 20;

/// Where the bytes of a value are, and how to know that they are those.
#[derive(Clone, Debug)]
pub struct Payload {
    pub(super) vfs: Arc<dyn Vfs>,
    pub(super) file: Arc<Path>,
    pub(super) path: Arc<str>,
    pub(super) place: Range<u64>,
    pub(super) checksum: Digest,
    pub(super) type_name: Arc<str>,
    /// Those of a short value, which were read and checked with its frame.
    pub(super) held: Option<Arc<[u8]>>,
}

impl Payload {
    /// The file, within the store.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Where its bytes are in the file.
    #[must_use]
    pub fn place(&self) -> Range<u64> {
        self.place.clone()
    }

    /// How many bytes it has.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.place.end - self.place.start
    }

    /// The BLAKE3 digest of its bytes.
    #[must_use]
    pub fn checksum(&self) -> Digest {
        self.checksum
    }

    /// The Rust type under the name that is stored: as the compiler called it, but a path of ours without crate and
    /// modules (`sde::Name`).
    #[must_use]
    pub fn type_name(&self) -> &str {
        &self.type_name
    }

    /// Reads all its bytes, a part at a time; gives what is wrong with them. `each` is told how
    /// many were read since it was last told.
    ///
    /// # Errors
    /// If they can't be read.
    pub fn check(&self, mut each: impl FnMut(u64)) -> Result<Option<Damage>, ArchiveError> {
        let mut hasher = blake3::Hasher::new();
        let mut reader = self.unchecked()?;
        let mut buffer = vec![0; CHUNK.min(self.size())];
        loop {
            let read = match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return Ok(Some(self.damage("its file was cut short")));
                }
                Err(error) => return Err(self.failed(error)),
            };
            hasher.update(buffer.get(..read).unwrap_or_default());
            each(read as u64);
        }
        let same = *hasher.finalize().as_bytes() == *self.checksum.as_bytes();
        Ok((!same).then(|| self.damage("its bytes are not those saved")))
    }

    /// Its bytes, read when they are asked for. They were checked before: from one end to the
    /// other, which takes as long as reading them.
    ///
    /// # Errors
    /// If they can't be read, or are damaged.
    pub fn reader(&self) -> Result<PayloadReader, ArchiveError> {
        if let Some(damage) = self.check(|_| ())? {
            return Err(damaged(&damage));
        }
        self.unchecked()
    }

    /// All its bytes, checked, if there are no more than `limit`.
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
        let mut bytes = Vec::new();
        let mut reader = self.unchecked()?;
        reader
            .read_to_end(&mut bytes)
            .map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => damaged(&self.damage("its file was cut short")),
                _ => self.failed(error),
            })?;
        match *blake3::hash(&bytes).as_bytes() == *self.checksum.as_bytes() {
            true => Ok(bytes),
            false => Err(damaged(&self.damage("its bytes are not those saved"))),
        }
    }

    /// The value, without its type, if it has no more than `limit` bytes. It may take some
    /// thirty times as much memory where it is made of many small parts.
    ///
    /// # Errors
    /// If it has more, can't be read, is damaged, or is no CBOR item.
    pub fn value(&self, limit: u64) -> Result<Value, ArchiveError> {
        let bytes = self.bytes(limit)?;
        value::read(&bytes).map_err(|why| damaged(&self.damage(&why)))
    }

    /// If the value is an array of numbers: what it has, and where in the payload they begin.
    /// Nothing but the first bytes is read, and they are not checked.
    ///
    /// # Errors
    /// If they can't be read.
    pub fn numbers(&self) -> Result<Option<(Numbers, u64)>, ArchiveError> {
        Ok(numbers::head(&self.beginning()?, self.length()))
    }

    /// The value in one line of at most some eighty characters, without control characters.
    /// Only the beginning of it is read, and not checked; what can't be read gives a text that
    /// says so.
    #[must_use]
    pub fn short(&self) -> String {
        match self.beginning() {
            Ok(bytes) => short::of(&bytes, self.length()),
            Err(_) => "(can't be read)".to_owned(),
        }
    }

    fn beginning(&self) -> Result<Vec<u8>, ArchiveError> {
        let mut bytes = Vec::new();
        let reader = self.unchecked()?;
        let read = reader.take(4096).read_to_end(&mut bytes);
        read.map_err(|error| self.failed(error))?;
        Ok(bytes)
    }

    fn unchecked(&self) -> Result<PayloadReader, ArchiveError> {
        if let Some(held) = &self.held {
            return Ok(PayloadReader(From::Held(Cursor::new(Arc::clone(held)))));
        }
        let file = self.vfs.open(&self.file);
        Ok(PayloadReader(From::File {
            file: file.map_err(|error| self.failed(error))?,
            left: self.place.clone(),
        }))
    }

    fn size(&self) -> usize {
        usize::try_from(self.length()).unwrap_or(usize::MAX)
    }

    fn failed(&self, error: io::Error) -> ArchiveError {
        ArchiveError::io("reading", &*self.file, error)
    }

    fn damage(&self, why: &str) -> Damage {
        Damage::new(&*self.path, self.place.clone(), why)
    }
}

fn damaged(damage: &Damage) -> ArchiveError {
    let (start, end) = (damage.place.start, damage.place.end);
    ArchiveError::Damaged {
        why: format!("bytes {start}..{end} of {}: {}", damage.path, damage.why),
    }
}

/// The bytes of a value, one after another.
pub struct PayloadReader(From);

enum From {
    Held(Cursor<Arc<[u8]>>),
    File {
        file: Box<dyn VfsFile>,
        left: Range<u64>,
    },
}

impl Read for PayloadReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (file, left) = match &mut self.0 {
            From::Held(bytes) => return bytes.read(buffer),
            From::File { file, left } => (file, left),
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
