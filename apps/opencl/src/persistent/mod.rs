//! Binaries that outlive the process.
//!
//! A program starts, builds the kernels it built yesterday, and has lost seconds or minutes. So what
//! was built is kept, for all processes of a user. Three things are hard in that, and each has gone
//! wrong in caches that are in use: a binary that is damaged, or of another program with the same
//! digest, must never reach a driver, which would crash or run it; many processes that start at once must
//! not build the same program all at once, nor wait for one that has died; and whatever goes wrong with
//! the store must not keep anybody from the program that was built.
//!
//! [`KernelStore`] is what is asked of a store, so that a user's own can take the place of ours,
//! [`KernelDir`]. Nothing that a store gives is believed: who asked compares the full key and the
//! checksum before a driver sees the bytes.

mod dir;
mod entry;
mod locks;
mod own;
mod settings;

use std::any::Any;
use std::fmt;
use std::time::Duration;

use sde::key::{Digest, commit};
use serde::{Deserialize, Serialize};

pub use dir::KernelDir;
pub use settings::{Mode, Settings, SettingsError};

use crate::driver::DeviceType;
use crate::identity::{FullKey, ProgramKey};

/// A binary with all that is known of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredProgram {
    /// The key of the program.
    pub key: ProgramKey,
    /// All that the key is made of.
    pub full: FullKey,
    /// What kind of device it is for.
    pub device_type: DeviceType,
    /// The name its author gave it, or the short key.
    pub name: String,
    /// The binary, as the driver gave it.
    pub binary: Vec<u8>,
    /// What the compiler said.
    pub log: String,
    /// How long the build took.
    pub build_time: Duration,
    /// Its kernels.
    pub kernels: Vec<String>,
    /// Those that had been launched when the binary was captured: a driver that finishes code at the
    /// first launch has it in the binary for these.
    pub launched: Vec<String>,
    /// The digest of the rest; see [`seal`](Self::seal).
    pub checksum: Digest,
}

impl StoredProgram {
    /// The program with the checksum it should have.
    #[must_use]
    pub fn seal(mut self) -> Self {
        self.checksum = self.digest();
        self
    }

    /// Whether the checksum is right. It tells of damage, not of malice: whoever can write to a store
    /// can write a checksum.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.checksum == self.digest()
    }

    fn digest(&self) -> Digest {
        let about = (
            &self.key,
            &self.full,
            &self.log,
            &self.kernels,
            &self.launched,
        );
        let kind = self.device_type.name();
        let all = (about, kind, &self.name, &self.build_time, &self.binary);
        // Texts, lists and bytes always have a fingerprint.
        commit(&all).map_or(Digest::from_bytes([0; 32]), |made| made.digest())
    }
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The key of the program.
    pub key: ProgramKey,
    /// All that the key is made of.
    pub full: &'a FullKey,
    /// What kind of device it is for.
    pub device_type: DeviceType,
}

/// A store could not be used. The program is built all the same.
#[derive(Clone, thiserror::Error)]
#[error("{doing}: {why}; programs are built and not kept")]
pub struct StoreError {
    /// What was being done.
    pub doing: String,
    /// Why it failed.
    pub why: String,
}

sde::debug_as_said!(StoreError);

impl StoreError {
    /// What was being done, and why it failed.
    pub fn new(doing: impl Into<String>, why: impl fmt::Display) -> Self {
        Self {
            doing: doing.into(),
            why: why.to_string(),
        }
    }
}

/// What came of asking for the turn to build.
#[derive(Default)]
pub struct Turn {
    /// Keeps others from building until it is dropped; `None` if nobody is kept from it.
    pub held: Option<Box<dyn Any + Send>>,
    /// How long it took, if somebody else had the turn.
    pub waited: Option<Duration>,
}

/// A home of binaries, in place of [`KernelDir`] if a user has one: a database, a server, an archive
/// beside the program. Eviction and tracing are its own.
///
/// All are called by many threads at once, also while a program is dropped, and must not panic. What it gives is checked before it is used.
pub trait KernelStore: Send + Sync {
    /// The programs of these keys, in order; `None` for one that is not there.
    ///
    /// # Errors
    /// If the store could not be asked.
    fn get(&self, wanted: &[Wanted<'_>]) -> Result<Vec<Option<StoredProgram>>, StoreError>;

    /// The same for who compares what is there with what there could be: it is no use of it, where uses
    /// are counted.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    fn look(&self, wanted: &[Wanted<'_>]) -> Result<Vec<Option<StoredProgram>>, StoreError> {
        self.get(wanted)
    }

    /// Keeps these programs, each in place of an earlier one of its key; gives how many. One that the
    /// store doesn't want, or has no room for, is left out, and the others are kept; it is no error.
    ///
    /// # Errors
    /// If they could not be kept.
    fn put(&self, programs: &[StoredProgram]) -> Result<usize, StoreError>;

    /// Whether anything will be kept for this kind of device.
    fn keeps(&self, device_type: DeviceType) -> bool {
        let _ = device_type;
        true
    }

    /// Asks for the turn to build a program, so that of several processes one builds. Waits a bounded
    /// time; gives no turn where there is no such thing, and the caller builds. What another process
    /// put while this one waited must be found afterwards. A thread may ask for a turn that it has, where it builds what
    /// needs another program: it must not wait for itself.
    fn turn(&self, wanted: &Wanted<'_>) -> Turn {
        let _ = wanted;
        Turn::default()
    }

    /// The same for who need not build: gives nothing, at once, if somebody else has the turn.
    fn turn_at_once(&self, wanted: &Wanted<'_>) -> Option<Turn> {
        let _ = wanted;
        Some(Turn::default())
    }

    /// Writes down what was used until now, where uses are counted: a process may never come to an end
    /// in which that could be done.
    fn note_uses(&self) {}

    /// What and where it is, for messages.
    fn describe(&self) -> String;
}
