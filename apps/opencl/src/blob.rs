//! Binaries as bytes that a user keeps: oneDNN's cache blobs. Their names are [`Descriptor::blob_id`].

use crate::Error;
use crate::cacheable::NotCacheable;
use crate::capture::Ended;
use crate::context::Context;
use crate::error::Refusal;
use crate::identity::Descriptor;
use crate::kept::{parse, seal};
use crate::live::Program;
use crate::make::Making;

/// Why there is no blob, or no program from one.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BlobError {
    /// The key does not cover all that a build of this program reads, so no name stands for it.
    #[error("there are no blobs of this program, {why}; build it each time")]
    #[non_exhaustive]
    NotCacheable {
        /// The reason.
        why: NotCacheable,
    },
    /// The driver gives no binaries.
    #[error("{device} gives no binaries, so there are no blobs; build from source each time")]
    #[non_exhaustive]
    Unsupported {
        /// The device.
        device: String,
    },
    /// The bytes are damaged, or no blob of this version, program, device and driver. No driver saw them.
    #[error("the {length} bytes are no blob of this program: {why}; build it")]
    #[non_exhaustive]
    Unfit {
        /// The number of bytes.
        length: usize,
        /// The reason.
        why: &'static str,
    },
    /// The driver refuses a blob that passed the checks.
    #[error("the driver refuses the blob ({refusal}); build the program")]
    #[non_exhaustive]
    Refused {
        /// The driver's answer.
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
    /// another. No cache holds it: it lives as long as it is held.
    ///
    /// # Errors
    /// If the program is not cacheable, or the driver refuses the bytes. If they are damaged, no blob, or another
    /// program's; no driver sees such bytes.
    pub fn from_blob(
        &self,
        device: usize,
        descriptor: &Descriptor,
        blob: &[u8],
    ) -> Result<Program, BlobError> {
        named(descriptor)?;
        let kept = parse(descriptor, blob).map_err(|why| BlobError::Unfit {
            length: blob.len(),
            why,
        })?;
        let making = Making::new(self, device, descriptor).map_err(BlobError::Other)?;
        let made = making.with_binary(&kept.binary);
        let raw = made.map_err(|refusal| BlobError::Refused { refusal })?;
        Ok(making.loaded(raw, &kept))
    }
}

/// Refuses a program whose name does not stand for all that it is made of.
fn named(descriptor: &Descriptor) -> Result<(), BlobError> {
    let cacheable = descriptor.is_cacheable();
    cacheable.map_err(|why| BlobError::NotCacheable { why: why.clone() })
}
