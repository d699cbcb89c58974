//! Binaries that outlive the process.
//!
//! A program that builds yesterday's kernels again loses seconds or minutes. So binaries are kept: by default in a
//! [`KernelDir`], a store of SDE in which a build is the entry of an app, or in the user's own [`KernelStore`].
//! Bytes that come back are not trusted: the full key and a checksum are compared before a driver sees them.

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

/// A binary with its facts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// The full key of the program.
    pub(crate) full: FullKey,
    /// As the driver gave it; empty if it gives none.
    pub(crate) binary: Vec<u8>,
    pub(crate) facts: Facts,
    /// The kernels launched before the binary was captured. A driver that finishes code at the first launch has
    /// that code in the binary.
    pub(crate) launched: Vec<String>,
}

/// Facts about a program beside its full key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Facts {
    pub(crate) log: String,
    pub(crate) build_time: Duration,
    pub(crate) kernels: Vec<String>,
}

impl Kept {
    /// Why it is not the binary of this program, if so.
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
