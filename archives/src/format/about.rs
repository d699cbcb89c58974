//! Who writes to a store, and what each has done: for people who ask.

use sde::{Journal, Key};
use serde::{Deserialize, Serialize};

/// Who writes a segment, and where.
#[derive(Serialize, Deserialize)]
pub(crate) struct About {
    pub(crate) host: String,
    pub(crate) process: u32,
    pub(crate) program: String,
    pub(crate) target: String,
    pub(crate) sde: String,
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

/// What a process has done.
#[derive(Serialize, Deserialize)]
pub(crate) struct JournalBody {
    pub(crate) about: About,
    pub(crate) journal: Journal,
}

/// The key of the frames of a process: the latest counts.
pub(crate) fn journal_key(process: u64) -> Key {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&process.to_le_bytes());
    Key::from_bytes(key)
}
