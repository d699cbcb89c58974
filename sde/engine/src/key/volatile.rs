//! Parts of an encoding that may change while the value stays the same.
//!
//! An [`InputFile`](super::InputFile) names a file, and anybody can write to it. A kept encoding (in a
//! [`Value`](crate::Value), [`Inputs`](crate::Inputs), a prepared app) would give the key of an earlier content. So the
//! encoder notes such values, and a noted encoding is not kept. The files that a key was made from are read again when
//! the run ends: a result that may come from another content is not remembered under that key.

use std::path::PathBuf;

use super::digest::Digest;
use super::encoder::Encoder;
use super::error::{FingerprintError, FingerprintErrorKind};
use super::input_file::digest_file;

/// The things beside the values that an encoding depends on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Volatile {
    files: Vec<Seen>,
    /// Whether a distributed value was encoded, of which each rank has a part.
    distributed: bool,
}

/// A file as it was when it was encoded.
#[derive(Clone, Debug)]
struct Seen {
    file: PathBuf,
    length: u64,
    digest: Digest,
}

impl Volatile {
    /// Whether a distributed value was encoded, of which each rank has a part.
    pub(crate) fn is_distributed(&self) -> bool {
        self.distributed
    }

    /// Checks that all files are as they were when they were encoded. Reads them.
    ///
    /// # Errors
    /// [`FingerprintErrorKind::Changed`] with the first file that differs.
    pub(crate) fn verify(&self) -> Result<(), FingerprintError> {
        let changed = |seen: &&Seen| match digest_file(&seen.file) {
            Ok(now) => now != (seen.length, seen.digest),
            Err(_) => true,
        };
        match self.files.iter().find(changed) {
            None => Ok(()),
            Some(seen) => Err(FingerprintErrorKind::Changed {
                file: seen.file.clone(),
            }
            .into()),
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.files.extend(other.files.iter().cloned());
        self.distributed |= other.distributed;
    }
}

impl Encoder<'_> {
    /// Declares that the value being written may change while its holder stays the same, so that nobody keeps the
    /// encoding: it is made anew for each key. For a [`Fingerprint`] written by hand that reads data which others can
    /// write to.
    ///
    /// [`Fingerprint`]: super::Fingerprint
    ///
    /// ```
    /// use sde::key::{Encoder, Fingerprint, FingerprintError, with_encoder};
    /// use std::sync::atomic::{AtomicU32, Ordering};
    ///
    /// struct Shared(AtomicU32);
    ///
    /// impl Fingerprint for Shared {
    ///     fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
    ///         to.volatile();
    ///         to.structure("Shared", |fields| fields.field("0", &self.0.load(Ordering::Relaxed)))
    ///     }
    /// }
    /// with_encoder(|to| {
    ///     to.value(&[1_u32, 2])?;
    ///     assert!(!to.is_volatile());
    ///     to.value(&Shared(AtomicU32::new(3)))?;
    ///     assert!(to.is_volatile());
    ///     Ok::<_, FingerprintError>(())
    /// })?;
    /// # Ok::<(), FingerprintError>(())
    /// ```
    #[cold]
    pub fn volatile(&mut self) {
        self.volatile.get_or_insert_default();
    }

    /// Declares that the value being written is distributed, with a part on each rank: it can be an input of
    /// `distributed` apps only.
    pub fn distributed(&mut self) {
        self.volatile.get_or_insert_default().distributed = true;
    }

    /// Whether anything written may change while its holder stays the same. A holder that keeps a
    /// [`Commitment`](super::Commitment) asks this first.
    #[inline]
    #[must_use]
    pub fn is_volatile(&self) -> bool {
        self.volatile.is_some()
    }

    /// Notes the content of a file that was encoded.
    pub(super) fn file_seen(&mut self, file: PathBuf, length: u64, digest: Digest) {
        let seen = Seen {
            file,
            length,
            digest,
        };
        self.volatile.get_or_insert_default().files.push(seen);
    }

    /// Takes over the notes of another encoder, whose bytes become part of this encoding.
    #[inline]
    pub(crate) fn add_volatile(&mut self, noted: Option<Box<Volatile>>) {
        if let Some(noted) = noted {
            self.add_noted(noted);
        }
    }

    #[cold]
    fn add_noted(&mut self, noted: Box<Volatile>) {
        match &mut self.volatile {
            Some(own) => own.add(&noted),
            None => self.volatile = Some(noted),
        }
    }

    /// Takes out the notes.
    #[inline]
    pub(crate) fn take_volatile(&mut self) -> Option<Box<Volatile>> {
        self.volatile.take()
    }
}
