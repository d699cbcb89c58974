//! The manifests that there are, and which count.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use sde::ArchiveError;

use super::segments::SegmentFile;
use crate::catalog::manifests::{ManifestSet, bytes, read};
use crate::format::VERSION;
use crate::format::directory::is_no_folder;
use crate::format::id::UniqueId;
use crate::format::manifest::{EXTENSION, FOLDER, Manifest};
use crate::format::trust::Trust;
use crate::read::error::Damage;
use crate::vfs::Vfs;

/// The manifests of a store.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Manifests {
    /// All there are, by generation.
    pub files: Vec<ManifestFile>,
    /// Up to where those that count say that a segment is replaced.
    replaced: HashMap<UniqueId, u64>,
}

/// A file in the folder of manifests.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ManifestFile {
    /// Its name.
    pub name: String,
    /// What it says, or why it can't be read.
    pub content: Result<Arc<Manifest>, String>,
    /// The version of its format, if that is another than this program reads: it is not damaged then.
    pub other_format: Option<u32>,
    /// Whether it counts: no other that can be read names it as a parent.
    pub is_head: bool,
}

impl Manifests {
    /// What the manifests that count say.
    pub fn heads(&self) -> impl Iterator<Item = (&ManifestFile, &Manifest)> {
        let heads = self.files.iter().filter(|file| file.is_head);
        heads.filter_map(|file| Some((file, &**file.content.as_ref().ok()?)))
    }

    /// Up to where a segment is replaced by others; 0 if it is not.
    #[must_use]
    pub fn replaced(&self, segment: &SegmentFile) -> u64 {
        let id = segment.id().ok();
        let of_this = id.and_then(|id| self.replaced.get(&id.0));
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
        let there: HashMap<UniqueId, &SegmentFile> = segments
            .iter()
            .filter_map(|one| Some((one.id().ok()?.0, one)))
            .collect();
        let unread = segments.iter().filter(|one| one.other_format.is_some());
        let unread: HashSet<&str> = unread.map(SegmentFile::path).collect();
        let mut told = HashSet::new();
        let mut lost = Vec::new();
        for (file, info) in self.heads() {
            for listed in &info.segments {
                let id = UniqueId::parse(&listed.id);
                let is_replaced = id.is_some_and(|id| self.replaced.contains_key(&id));
                if is_replaced || unread.contains(&*listed.path) {
                    continue;
                }
                let found = id.and_then(|id| there.get(&id));
                let (end, what) = match found {
                    Some(one) => (end(one), "lost"),
                    None => (0, "the segment is lost, or its header is damaged"),
                };
                if end < listed.length && told.insert(id) {
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
    let (mut files, mut all) = (Vec::new(), ManifestSet::new(Trust::Others));
    for name in names {
        let path = folder.join(&name);
        if path.extension() != Some(OsStr::new(EXTENSION)) {
            continue;
        }
        let name = name.to_string_lossy().into_owned();
        let content = read(vfs, &path).and_then(|manifest| match manifest.name() == name {
            true => Ok(Arc::new(manifest)),
            false => Err("it is of another name".to_owned()),
        });
        let other_format = match &content {
            Ok(manifest) => {
                all.add(Arc::clone(manifest));
                None
            }
            Err(_) => bytes(vfs, &path)
                .ok()
                .as_deref()
                .and_then(Manifest::version),
        };
        files.push(ManifestFile {
            name,
            content,
            other_format: other_format.filter(|version| *version != VERSION),
            is_head: false,
        });
    }
    let heads: HashSet<String> = all.heads().into_iter().map(Manifest::name).collect();
    for file in &mut files {
        file.is_head = file.content.is_ok() && heads.contains(&file.name);
    }
    Ok(Manifests {
        files,
        replaced: all.replaced(),
    })
}
