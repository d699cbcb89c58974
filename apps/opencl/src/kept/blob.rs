//! Binaries as bytes that a user keeps: oneDNN's cache blobs.
//!
//! A program that has a database, an archive or a server of its own wants bytes and a name for them.
//! The name is [`Descriptor::blob_id`]; the bytes are made and taken here. What comes back may be
//! anything, so nothing in it is believed: the name and the whole key are compared with the descriptor, and the checksum with the
//! content, before a driver sees any of it.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `SDEBLOB2` |
//! | 32 | the blob id |
//! | 32 | the checksum of all that follows |
//! | as many as there are | the whole key, the binary, the log, the time of the build, the kernels and those of them that were launched, as `postcard` writes them |

use sde::key::commit;

use super::Kept;
use crate::Error;
use crate::cacheable::NotCacheable;
use crate::capture::Ended;
use crate::context::Context;
use crate::driver::Refusal;
use crate::identity::Descriptor;
use crate::live::Program;
use crate::make::Making;

const MAGIC: &[u8; 8] = b"SDEBLOB2";
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
    /// The bytes are no blob of this version, damaged, or that of another program, device or driver. No driver saw them.
    #[error("these {length} bytes are no blob of this program: {why}; build it")]
    Unfit {
        /// How many bytes there are.
        length: usize,
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
        let kept = self.0.captured(Ended::All).map_err(BlobError::Other)?;
        if kept.binary.is_empty() {
            let device = kept.full.device.name;
            return Err(BlobError::Unsupported { device });
        }
        Ok(seal(self.descriptor(), &kept))
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
        let kept = parse(descriptor, blob)?;
        let making = Making::new(self, device, descriptor).map_err(BlobError::Other)?;
        let made = making.with_binary(&kept.binary);
        let raw = made.map_err(|refusal| BlobError::Refused { refusal })?;
        Ok(making.loaded(raw, &kept))
    }
}

/// That the name of a program stands for all that it is made of.
fn named(descriptor: &Descriptor) -> Result<(), BlobError> {
    let cacheable = descriptor.is_cacheable();
    cacheable.map_err(|why| BlobError::NotCacheable { why: why.clone() })
}

pub(crate) fn seal(descriptor: &Descriptor, kept: &Kept) -> Vec<u8> {
    // Texts, numbers and bytes can always be written.
    let content = postcard::to_allocvec(kept).unwrap_or_default();
    let head: [&[u8]; 3] = [MAGIC, &descriptor.blob_id(), &checksum(&content)];
    [&head.concat()[..], &content].concat()
}

pub(crate) fn parse(descriptor: &Descriptor, blob: &[u8]) -> Result<Kept, BlobError> {
    let unfit = |why| {
        let length = blob.len();
        Err(BlobError::Unfit { length, why })
    };
    let head = blob.split_at_checked(HEAD);
    let Some((head, content)) = head.filter(|(head, _)| head.starts_with(MAGIC)) else {
        return unfit("this version made none of them");
    };
    let (id, sum) = head[MAGIC.len()..].split_at(32);
    if id != descriptor.blob_id() {
        return unfit("they are of another program, device or driver");
    }
    if sum != checksum(content) {
        return unfit("the checksum is wrong");
    }
    match postcard::take_from_bytes::<Kept>(content) {
        Ok((kept, [])) => match kept.is_unfit(descriptor.full_key()) {
            None => Ok(kept),
            Some(why) => unfit(why),
        },
        Ok(_) => unfit("something follows the end"),
        Err(_) => unfit("they hold something else"),
    }
}

fn checksum(content: &[u8]) -> [u8; 32] {
    // Bytes always have a fingerprint.
    commit(content).map_or([0; 32], |made| *made.digest().as_bytes())
}
