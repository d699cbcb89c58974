//! The manifests of a store, and which count.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use sde::archiver::ArchiveError;

use super::Inspection;
use super::segments::SegmentFile;
use crate::catalog::manifests::{ManifestSet, bytes, names, read};
use crate::format::VERSION;
use crate::format::id::UniqueId;
use crate::format::manifest::{FOLDER, ListedSegment, Manifest};
use crate::format::trust::Trust;
use crate::read::error::Damage;

/// The manifests of a store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Manifests {
    /// All manifest files, by generation.
    pub files: Vec<ManifestFile>,
    /// The manifests that can be read.
    all: ManifestSet,
    /// The lengths up to which the heads call segments replaced.
    replaced: HashMap<UniqueId, u64>,
}

/// A file in the folder of manifests.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ManifestFile {
    /// The manifest's name.
    pub name: String,
    /// The manifest, or why it can't be read.
    pub content: Result<Arc<Manifest>, String>,
    /// The version of its format, if this program can't read it; that is no damage.
    pub other_format: Option<u32>,
    /// Whether it counts: no other readable manifest names it as a parent.
    pub is_head: bool,
}

impl Manifests {
    /// The manifests that count, with their files.
    pub fn heads(&self) -> impl Iterator<Item = (&ManifestFile, &Manifest)> {
        let heads = self.files.iter().filter(|file| file.is_head);
        heads.filter_map(|file| Some((file, &**file.content.as_ref().ok()?)))
    }

    /// The length up to which a segment is replaced by others; 0 if it is not.
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

    /// The parts of segments that manifests list and that are lost. `segments` must be all segments of the store;
    /// `end` gives the end of a segment's frames. Nothing is given if a manifest has another format, since that may
    /// record the replacement.
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
        let mut lost = self.all.lost(|id| there.get(id).map(|one| end(one)));
        lost.retain(|(_, listed, _)| !unread.contains(&*listed.path));
        let damage = |(head, listed, end): (&Manifest, &ListedSegment, Option<u64>)| {
            let found = UniqueId::parse(&listed.id).and_then(|id| there.get(&id));
            let what = match found {
                Some(_) => "lost",
                None => "the segment is lost, or its header is damaged",
            };
            let path = found.map_or(&*listed.path, |one| one.path());
            let why = format!("{what}: {} vouches for it", head.name());
            Damage::new(path, end.unwrap_or(0)..listed.length, why)
        };
        lost.into_iter().map(damage).collect()
    }
}

impl Inspection {
    /// The manifests, by generation; none if their folder is missing or no folder.
    ///
    /// # Errors
    /// If the folder can't be listed.
    pub fn manifests(&self) -> Result<Manifests, ArchiveError> {
        let (vfs, dir) = (&*self.vfs, &self.dir);
        let folder = dir.join(FOLDER);
        let mut names = names(vfs, dir)?;
        names.sort();
        let (mut files, mut all) = (Vec::new(), ManifestSet::new(Trust::Others));
        for name in names {
            let path = folder.join(&name);
            let content = read(vfs, &path).map(Arc::new);
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
            all,
        })
    }
}
