//! What a frame says of its payloads, as CBOR.

use std::borrow::Cow;

use sde::key::Digest;
use sde::{Record, Tags};
use serde::{Deserialize, Serialize};

use crate::precedence::Rank;

/// The metadata of an entry: `R` is the record, borrowed to be written.
#[derive(Serialize, Deserialize)]
pub(crate) struct EntryMetadata<R> {
    pub(crate) record: R,
    pub(crate) results: Vec<ResultMetadata>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct ResultMetadata {
    pub(crate) name: String,
    pub(crate) tags: Tags,
    /// `None` if the value was not saved.
    pub(crate) payload: Option<PayloadMetadata>,
}

/// Where the bytes of a value are, and how to know that they are those.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct PayloadMetadata {
    /// Counted from the end of the metadata.
    pub(crate) at: u64,
    pub(crate) length: u64,
    /// Their BLAKE3 digest.
    pub(crate) checksum: Digest,
    /// The Rust type by its [`stored_name`]: another one is not decoded.
    pub(crate) type_name: String,
    /// What the type looked like to serde: one that looks otherwise is not decoded.
    pub(crate) schema: Digest,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct ScratchMetadata {
    pub(crate) app: String,
    pub(crate) payload: PayloadMetadata,
}

impl<R> EntryMetadata<R> {
    /// Whether it has all that belongs in an archive.
    pub(crate) fn is_archive(&self) -> bool {
        self.results
            .iter()
            .all(|result| result.payload.is_some() || !result.tags.is_archived())
    }
}

impl EntryMetadata<Record> {
    /// The rank of the frame that this is of, among those of its key.
    pub(crate) fn rank(&self, saved_at: u64) -> Rank {
        let results = self.results.iter();
        let results = results.map(|one| (one.tags, one.payload.is_some()));
        Rank::new(&self.record, saved_at, results)
    }
}

/// Who writes a segment, and where: for people who wonder.
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

/// The crates whose types a store names without the modules in which they lie.
const OWN_CRATES: [&str; 6] = [
    "sde",
    "sde_engine",
    "sde_archives",
    "sde_mpi",
    "sde_opencl",
    "sde_apps",
];

/// The name under which a type is stored: a path of ours is `sde::Name`, so that moving a type between our modules and
/// crates is no other type.
pub(crate) fn stored_name(type_name: &str) -> Cow<'_, str> {
    let is_own = |path: &str| {
        OWN_CRATES
            .iter()
            .any(|own| path.split("::").next() == Some(own))
    };
    let in_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let mut paths = type_name.split(|c| !in_path(c));
    if !paths.any(is_own) {
        return Cow::Borrowed(type_name);
    }
    let mut name = String::new();
    let mut rest = type_name;
    while !rest.is_empty() {
        let (path, after) = rest.split_at(rest.find(|c| !in_path(c)).unwrap_or(rest.len()));
        match path.rsplit_once("::") {
            Some((_, last)) if is_own(path) => name.extend(["sde::", last]),
            _ => name.push_str(path),
        }
        let (between, next) = after.split_at(after.find(in_path).unwrap_or(after.len()));
        name.push_str(between);
        rest = next;
    }
    Cow::Owned(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_types_are_named_without_their_modules() {
        let moved = "alloc::vec::Vec<(sde_engine::app::scratch::Kept<u8>, user::sde::File)>";
        assert_eq!(
            stored_name(moved),
            "alloc::vec::Vec<(sde::Kept<u8>, user::sde::File)>"
        );
        assert_eq!(stored_name("sde::app::scratch::Kept<u8>"), "sde::Kept<u8>");
        assert!(matches!(stored_name("[sdef::Kept; 3]"), Cow::Borrowed(_)));
    }
}
