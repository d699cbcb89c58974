//! The manifests that there are, and which count.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::Path;

use sde::ArchiveError;

use super::segments::{SegmentFile, SegmentId};
use crate::catalog::manifests::read;
use crate::format::VERSION;
use crate::format::directory::is_no_folder;
use crate::format::id::UniqueId;
use crate::format::manifest::FOLDER;
use crate::format::manifest::{EXTENSION, Manifest};
use crate::read::trouble::Damage;
use crate::vfs::{Vfs, read_bytes};

/// The manifests of a store.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Manifests {
    /// All there are, by generation.
    pub files: Vec<ManifestFile>,
    /// Up to where those that count say that a segment is replaced.
    replaced: HashMap<SegmentId, u64>,
}

/// A file in the folder of manifests.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ManifestFile {
    /// Its name.
    pub name: String,
    /// What it says, or why it can't be read.
    pub content: Result<ManifestInfo, String>,
    /// The version of its format, if that is another than this program reads: it is not damaged then.
    pub other_format: Option<u32>,
    /// Whether it counts: no other that can be read names it as a parent.
    pub is_head: bool,
}

/// What a manifest says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ManifestInfo {
    /// One more than the latest of its parents.
    pub generation: u64,
    /// Who wrote it.
    pub writer: String,
    /// When, in nanoseconds since 1970.
    pub at: u64,
    /// The names of those that it takes the place of.
    pub parents: Vec<String>,
    /// The segments it vouches for.
    pub segments: Vec<ListedSegment>,
    /// The segments that others have taken the place of.
    pub replaced: Vec<ReplacedSegment>,
}

/// A segment, as far as a manifest vouches for it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedSegment {
    /// Its folder and name.
    pub path: String,
    /// Its id.
    pub id: Option<SegmentId>,
    /// So many bytes of it were there.
    pub length: u64,
}

/// A segment that another has taken the place of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplacedSegment {
    /// Its folder and name.
    pub path: String,
    /// Its id.
    pub id: Option<SegmentId>,
    /// Up to where it is replaced.
    pub length: u64,
    /// When that was, in nanoseconds since 1970; 0 if nobody is given time to read it.
    pub at: u64,
}

impl Manifests {
    /// What the manifests that count say.
    pub fn heads(&self) -> impl Iterator<Item = (&ManifestFile, &ManifestInfo)> {
        let heads = self.files.iter().filter(|file| file.is_head);
        heads.filter_map(|file| Some((file, file.content.as_ref().ok()?)))
    }

    /// Up to where a segment is replaced by others; 0 if it is not.
    #[must_use]
    pub fn replaced(&self, segment: &SegmentFile) -> u64 {
        let id = segment.id().ok();
        let of_this = id.and_then(|id| self.replaced.get(&id));
        of_this.copied().unwrap_or(0)
    }

    /// The manifests that are damaged.
    pub fn damaged(&self) -> impl Iterator<Item = Damage> {
        let damage = |file: &ManifestFile| match (&file.content, file.other_format) {
            (Err(why), None) => Some(Damage::new(format!("{FOLDER}/{}", file.name), 0..0, why)),
            _ => None,
        };
        self.files.iter().filter_map(damage)
    }

    /// What of these segments, all that there are, was there when a generation was made, and is lost. `end` says up to where
    /// a segment can be read. Nothing is known to be lost if a manifest is of another format: that may say why it is not
    /// there.
    pub fn lost(&self, segments: &[SegmentFile], end: impl Fn(&SegmentFile) -> u64) -> Vec<Damage> {
        if self.files.iter().any(|file| file.other_format.is_some()) {
            return Vec::new();
        }
        let there: HashMap<SegmentId, &SegmentFile> = segments
            .iter()
            .filter_map(|one| Some((one.id().ok()?, one)))
            .collect();
        let unread = segments.iter().filter(|one| one.other_format.is_some());
        let unread: HashSet<&str> = unread.map(SegmentFile::path).collect();
        let mut told = HashSet::new();
        let mut lost = Vec::new();
        for (file, info) in self.heads() {
            for listed in &info.segments {
                let is_replaced = listed.id.is_some_and(|id| self.replaced.contains_key(&id));
                if is_replaced || unread.contains(&*listed.path) {
                    continue;
                }
                let found = listed.id.and_then(|id| there.get(&id));
                let (end, what) = match found {
                    Some(one) => (end(one), "lost"),
                    None => (0, "the segment is lost, or its header is damaged"),
                };
                if end < listed.length && told.insert(listed.id) {
                    let path = found.map_or(&*listed.path, |one| one.path());
                    let why = format!("{what}: {} vouches for it", file.name);
                    lost.push(Damage::new(path, end..listed.length, why));
                }
            }
        }
        lost
    }
}

pub(super) fn list(vfs: &dyn Vfs, dir: &Path) -> Result<Manifests, ArchiveError> {
    let folder = dir.join(FOLDER);
    let mut names = match vfs.list(&folder) {
        Err(error) if is_no_folder(&error) => Vec::new(),
        names => names.map_err(|error| ArchiveError::io("listing", &folder, error))?,
    };
    names.sort();
    let mut files = Vec::new();
    for name in names {
        let path = folder.join(&name);
        if path.extension() != Some(OsStr::new(EXTENSION)) {
            continue;
        }
        let name = name.to_string_lossy().into_owned();
        let content = read(vfs, &path).and_then(|manifest| match manifest.name() == name {
            true => Ok(info(manifest)),
            false => Err("it is of another name".to_owned()),
        });
        let other_format = content.is_err().then(|| version(vfs, &path)).flatten();
        files.push(ManifestFile {
            name,
            content,
            other_format: other_format.filter(|version| *version != VERSION),
            is_head: false,
        });
    }
    mark_heads(&mut files);
    let mut manifests = Manifests {
        files,
        replaced: HashMap::new(),
    };
    let mut replaced = HashMap::new();
    for one in manifests.heads().flat_map(|(_, info)| &info.replaced) {
        if let Some(id) = one.id {
            let known = replaced.entry(id).or_insert(one.length);
            *known = one.length.max(*known);
        }
    }
    manifests.replaced = replaced;
    Ok(manifests)
}

/// The version in a manifest that is whole.
fn version(vfs: &dyn Vfs, path: &Path) -> Option<u32> {
    let file = vfs.open(path).ok()?;
    // One as long was refused for that.
    let length = file.length().ok().filter(|length| *length <= 256 << 20)?;
    let bytes = read_bytes(&*file, 0, length).ok()?;
    let (head, rest) = bytes.split_at_checked(24)?;
    let (check, text) = rest.split_at_checked(32)?;
    let number = head.get(8..12)?.try_into().ok()?;
    let digest = blake3::Hasher::new().update(head).update(text).finalize();
    let is_whole = head.starts_with(b"SDEmanif") && digest.as_bytes() == check;
    is_whole.then(|| u32::from_le_bytes(number))
}

/// A parent counts again if all that name it are damaged.
fn mark_heads(files: &mut [ManifestFile]) {
    let read = files.iter().filter_map(|file| file.content.as_ref().ok());
    let parents: HashSet<String> = read.flat_map(|info| info.parents.iter().cloned()).collect();
    for file in files {
        file.is_head = file.content.is_ok() && !parents.contains(&file.name);
    }
}

fn info(manifest: Manifest) -> ManifestInfo {
    let id = |text: &str| UniqueId::parse(text).map(SegmentId);
    ManifestInfo {
        generation: manifest.generation,
        writer: manifest.writer,
        at: manifest.at,
        parents: manifest.parents,
        segments: manifest
            .segments
            .into_iter()
            .map(|one| ListedSegment {
                id: id(&one.id),
                path: one.path,
                length: one.length,
            })
            .collect(),
        replaced: manifest
            .replaced
            .into_iter()
            .map(|one| ReplacedSegment {
                id: id(&one.id),
                path: one.path,
                length: one.length,
                at: one.at,
            })
            .collect(),
    }
}
