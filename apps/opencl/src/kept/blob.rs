//! Binaries as bytes that a user keeps: oneDNN's cache blobs.
//!
//! A program that has a database, an archive or a server of its own wants bytes and a name for them.
//! The name is [`Descriptor::blob_id`]; the bytes are made and taken here. What comes back may be
//! anything, so nothing in it is believed: the lengths are compared with what is there, the
//! name with the descriptor, the checksum with the content, before a driver sees any of it.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `SDEBLOB1` |
//! | 32 | the blob id |
//! | 32 | the checksum of all that follows |
//! | 8, then as many | the length of the log, little-endian, and the log |
//! | 8, then as many | the names of the kernels, parted by `;` |
//! | 8, then as many | the binary |

use std::time::Duration;

use sde::key::commit;

use crate::cacheable::NotCacheable;
use crate::context::Context;
use crate::driver::Refusal;
use crate::identity::Descriptor;
use crate::live::{Facts, Program};
use crate::{Error, make};

const MAGIC: &[u8; 8] = b"SDEBLOB1";
const HEAD: usize = 8 + 32 + 32;

/// Why there is no blob, or no program from one.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BlobError {
    /// It can't be told what a build of this program reads, so no name stands for it.
    #[error("there are no blobs of this program, {why}; build it each time")]
    NotCacheable {
        /// Why not.
        why: NotCacheable,
    },
    /// The driver gives no binaries.
    #[error("{device} gives no binaries, so there are no blobs; build from source each time")]
    Unsupported {
        /// The device.
        device: String,
    },
    /// The bytes are no blob of this version.
    #[error("these {length} bytes are no blob that this version made; build the program")]
    NotABlob {
        /// How many bytes there are.
        length: usize,
    },
    /// It is the blob of another program, device or driver.
    #[error(
        "this is the blob of another program, device or driver ({found}, not {wanted}); build the program"
    )]
    OtherProgram {
        /// The program the blob is of.
        found: String,
        /// The program that was described.
        wanted: String,
    },
    /// Bytes were changed or are missing.
    #[error("the blob is damaged: {why}; build the program")]
    Damaged {
        /// What is wrong.
        why: &'static str,
    },
    /// The driver does not take a blob that is whole.
    #[error("the driver refuses the blob ({refusal}); build the program")]
    Refused {
        /// What the driver said.
        refusal: Refusal,
    },
    /// Something else failed.
    #[error("{0}")]
    Other(Error),
}

sde::debug_as_said!(BlobError);

impl Program {
    /// The bytes to keep under [`Descriptor::blob_id`].
    ///
    /// Take them after the first launch: many drivers finish code only then.
    ///
    /// # Errors
    /// [`BlobError::NotCacheable`] if the program is not; [`BlobError::Unsupported`] if the driver gives no
    /// binary; if it refuses.
    pub fn blob(&self) -> Result<Vec<u8>, BlobError> {
        named(self.descriptor())?;
        let binary = self.binary().map_err(BlobError::Other)?;
        if binary.is_empty() {
            let device = self.descriptor().full_key().device.name.clone();
            return Err(BlobError::Unsupported { device });
        }
        let mut content = Vec::new();
        let kernels = self.kernel_names().join(";");
        for part in [self.log().as_bytes(), kernels.as_bytes(), &binary] {
            content.extend_from_slice(&(part.len() as u64).to_le_bytes());
            content.extend_from_slice(part);
        }
        let mut blob = Vec::with_capacity(HEAD + content.len());
        blob.extend_from_slice(MAGIC);
        blob.extend_from_slice(&self.descriptor().blob_id());
        blob.extend_from_slice(&checksum(&content));
        blob.extend_from_slice(&content);
        Ok(blob)
    }
}

impl Context {
    /// A program from the bytes that [`Program::blob`] gave for an equal descriptor, in this process or
    /// another. No cache knows of it: it lives as long as it is held.
    ///
    /// # Errors
    /// If the program is not cacheable, the bytes are no blob, of another program, or damaged: then no driver
    /// saw them. If the driver refuses them.
    pub fn from_blob(
        &self,
        device: usize,
        descriptor: &Descriptor,
        blob: &[u8],
    ) -> Result<Program, BlobError> {
        named(descriptor)?;
        let (facts, binary) = parse(descriptor, blob)?;
        let made = make::from_binary(self, device, descriptor, binary, facts);
        let made = made.map_err(BlobError::Other)?;
        made.map_err(|refusal| BlobError::Refused { refusal })
    }
}

/// That the name of a program stands for all that it is made of.
fn named(descriptor: &Descriptor) -> Result<(), BlobError> {
    let cacheable = descriptor.is_cacheable();
    cacheable.map_err(|why| BlobError::NotCacheable { why: why.clone() })
}

fn parse<'a>(descriptor: &Descriptor, blob: &'a [u8]) -> Result<(Facts, &'a [u8]), BlobError> {
    let damaged = |why| BlobError::Damaged { why };
    let not_a_blob = BlobError::NotABlob { length: blob.len() };
    let Some((head, content)) = blob.split_at_checked(HEAD) else {
        return Err(not_a_blob);
    };
    let (magic, head) = head.split_at(8);
    let (id, sum) = head.split_at(32);
    if magic != MAGIC {
        return Err(not_a_blob);
    }
    if id != descriptor.blob_id() {
        let short = |id: &[u8]| id[..6].iter().map(|byte| format!("{byte:02x}")).collect();
        return Err(BlobError::OtherProgram {
            found: short(id),
            wanted: short(&descriptor.blob_id()),
        });
    }
    if sum != checksum(content) {
        return Err(damaged("its checksum is wrong"));
    }
    let (log, rest) = part(content).ok_or_else(|| damaged("it ends early"))?;
    let (kernels, rest) = part(rest).ok_or_else(|| damaged("it ends early"))?;
    let (binary, rest) = part(rest).ok_or_else(|| damaged("it ends early"))?;
    if !rest.is_empty() {
        return Err(damaged("something follows its end"));
    }
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec());
    let not_text = |_| damaged("a text in it is not UTF-8");
    let kernels = text(kernels).map_err(not_text)?;
    let kernels = kernels.split(';').filter(|name| !name.is_empty());
    let facts = Facts {
        log: text(log).map_err(not_text)?,
        build_time: Duration::ZERO,
        kernels: kernels.map(str::to_owned).collect(),
    };
    Ok((facts, binary))
}

/// A length and as many bytes; and what follows.
fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    rest.split_at_checked(length)
}

fn checksum(content: &[u8]) -> [u8; 32] {
    // Bytes always have a fingerprint.
    commit(content).map_or([0; 32], |made| *made.digest().as_bytes())
}
