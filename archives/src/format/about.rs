//! Who writes to a store, and what each process has done: information for people.

use sde::Key;
use sde::archiver::Journal;
use serde::{Deserialize, Serialize};

/// The writer of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct About {
    /// The machine.
    pub host: String,
    /// The number of the process.
    pub process: u32,
    /// The name of the program.
    pub program: String,
    /// Processor architecture and operating system.
    pub target: String,
    /// The release of SDE.
    pub sde: String,
}

impl About {
    /// This process.
    pub(crate) fn this() -> Self {
        let program = std::env::current_exe().ok();
        let program = program.as_deref().and_then(std::path::Path::file_name);
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
        Self {
            host: host.unwrap_or_default().trim().to_owned(),
            process: std::process::id(),
            program: program.unwrap_or_default().to_string_lossy().into_owned(),
            target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
            sde: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// The most bytes that a store may take; see [`Retention::capacity`](crate::Retention::capacity).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Capacity {
    /// The limit in bytes.
    pub bytes: u64,
    /// Whether results count and are given up, besides intermediates and scratch states.
    #[serde(default)]
    pub results: bool,
}

/// The body of a journal frame: a process's activity so far.
#[derive(Serialize, Deserialize)]
pub(crate) struct JournalBody {
    pub(crate) about: About,
    pub(crate) journal: Journal,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) capacity: Option<Capacity>,
}

/// The key of a process's journal frames, of which the latest counts.
pub(crate) fn journal_key(process: u64) -> Key {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&process.to_le_bytes());
    Key::from_bytes(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cbor::metadata::{from_bytes, to_bytes};

    /// The journal body of releases without a capacity.
    #[derive(Serialize, Deserialize)]
    struct Before {
        about: About,
        journal: Journal,
    }

    #[test]
    fn a_journal_may_have_no_capacity_and_be_read_by_who_knows_of_none() {
        #[derive(Serialize)]
        struct Least {
            process: u64,
            started: std::time::SystemTime,
        }
        let least = Least {
            process: 7,
            started: std::time::UNIX_EPOCH,
        };
        let (journal, _): (Journal, _) = from_bytes(&to_bytes(&least).unwrap()).unwrap();
        let before = Before {
            about: About::this(),
            journal: journal.clone(),
        };
        let before = to_bytes(&before).unwrap();
        let (read, _): (JournalBody, _) = from_bytes(&before).unwrap();
        assert_eq!((read.capacity, &read.journal), (None, &journal));
        let capacity = Some(Capacity {
            bytes: 1 << 30,
            results: true,
        });
        let body = to_bytes(&JournalBody { capacity, ..read }).unwrap();
        let (again, _): (JournalBody, _) = from_bytes(&body).unwrap();
        assert_eq!(again.capacity, capacity);
        let (known, _): (Before, _) = from_bytes(&body).unwrap();
        assert_eq!(known.journal, journal);
    }
}
