//! Binaries that outlive the process.
//!
//! A program starts, builds the kernels it built yesterday, and has lost seconds or minutes. So what was built is kept:
//! by default in a [`KernelDir`], a store of SDE in which a build is the entry of an app; or in a [`KernelStore`] of
//! the user's own. Nothing that comes back is believed: the whole key and a checksum are compared before a driver sees a byte of it.

mod blob;
mod build;
mod dir;
mod store;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::identity::FullKey;

pub(crate) use blob::{parse, seal};
pub(crate) use build::NotKept;
pub use dir::KernelDir;
pub use store::{KernelStore, StoreError};

/// A binary with all that is known of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// All that the key of the program is made of.
    pub(crate) full: FullKey,
    /// As the driver gave it; empty if it gives none.
    pub(crate) binary: Vec<u8>,
    pub(crate) facts: Facts,
    /// The kernels that had been launched when the binary was captured: a driver that finishes code at the
    /// first launch has it in the binary for these.
    pub(crate) launched: Vec<String>,
}

/// What is known of a program beside what it was made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Facts {
    pub(crate) log: String,
    pub(crate) build_time: Duration,
    pub(crate) kernels: Vec<String>,
}

impl Kept {
    /// Why it is not the binary of a program, if it is not.
    pub(crate) fn is_unfit(&self, full: &FullKey) -> Option<&'static str> {
        if self.full != *full {
            Some("it is another program with the same digest")
        } else if self.binary.is_empty() {
            Some("it has no binary")
        } else {
            None
        }
    }
}
