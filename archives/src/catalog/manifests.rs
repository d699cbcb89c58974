//! The manifests of a store: which count, and how the next is made.
//!
//! A manifest names its parents. Manifests that no other names are the heads, and all heads count: processes that
//! save at the same time make one each. The next manifest names every known one as a parent, and so joins the
//! heads. If a head is damaged its parents are heads again: that is why two generations are kept.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use sde::archiver::ArchiveError;

use super::{Catalog, LOOKS};
use crate::format::directory::{is_no_folder, make_folder, with_unfinished};
use crate::format::id::UniqueId;
use crate::format::manifest::{EXTENSION, FOLDER, ListedSegment, Manifest, Sweep};
use crate::format::trust::{Distrusted, Trust, no_permission, not_listed};
use crate::locks::lock;
use crate::vfs::{Vfs, read_bytes};

/// The readable manifests, by name. Users take a copy, since the lock must not be held during I/O.
#[derive(Clone, Debug)]
pub(crate) struct ManifestSet {
    trust: Trust,
    /// Manifests that are not trusted.
    pub(crate) distrusted: Distrusted,
    manifests: HashMap<String, Arc<Manifest>>,
    /// Manifests that can't be read; each was warned of once.
    damaged: HashSet<String>,
}

impl ManifestSet {
    pub(crate) fn new(trust: Trust) -> Self {
        Self {
            trust,
            distrusted: Distrusted::default(),
            manifests: HashMap::new(),
            damaged: HashSet::new(),
        }
    }

    fn knows(&self, name: &str) -> bool {
        self.manifests.contains_key(name) || self.damaged.contains(name)
    }

    /// Adds a manifest that was read.
    pub(crate) fn add(&mut self, manifest: Arc<Manifest>) {
        self.manifests.insert(manifest.name(), manifest);
    }

    /// The manifests that no other names as a parent.
    pub(crate) fn heads(&self) -> Vec<&Manifest> {
        let parents: HashSet<&String> = self.all().flat_map(|one| &one.parents).collect();
        let all = self.manifests.iter();
        let heads = all.filter(|(name, _)| !parents.contains(name));
        let mut heads: Vec<_> = heads.map(|(_, one)| &**one).collect();
        heads.sort_by_key(|one| (one.generation, &one.writer));
        heads
    }

    /// All that can be read.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Manifest> {
        self.manifests.values().map(|one| &**one)
    }

    /// Every segment that the heads call replaced, and up to where. Concurrent compactions may give different
    /// lengths; each has copied everything up to its own, so the greatest counts.
    pub(crate) fn replaced(&self) -> HashMap<UniqueId, u64> {
        let mut replaced = HashMap::new();
        for (id, length) in self.heads().into_iter().flat_map(Manifest::replaced) {
            let known = replaced.entry(id).or_insert(length);
            *known = length.max(*known);
        }
        replaced
    }

    /// The segments that the heads list and whose files, by `end`, are missing or too short: with manifest and
    /// actual end. Replaced segments are not lost.
    pub(crate) fn lost(
        &self,
        end: impl Fn(&UniqueId) -> Option<u64>,
    ) -> Vec<(&Manifest, &ListedSegment, Option<u64>)> {
        let (replaced, mut told) = (self.replaced(), HashSet::new());
        let mut lost = Vec::new();
        for head in self.heads() {
            for one in &head.segments {
                let id = UniqueId::parse(&one.id);
                let end = id.as_ref().and_then(&end);
                let is_whole = end.is_some_and(|end| end >= one.length);
                let is_replaced = id.is_some_and(|id| replaced.contains_key(&id));
                if !is_whole && !is_replaced && told.insert(&one.id) {
                    lost.push((head, one, end));
                }
            }
        }
        lost
    }

    /// The latest compaction that a head tells of.
    pub(crate) fn swept(&self) -> Option<Sweep> {
        let heads = self.heads().into_iter();
        heads.filter_map(|one| one.swept).max_by_key(|one| one.at)
    }

    /// The names of the generations before the heads. They are kept only in case a head is damaged.
    fn earlier(&self) -> HashSet<String> {
        let heads: HashSet<String> = self.heads().into_iter().map(Manifest::name).collect();
        let all = self.manifests.keys();
        all.filter(|name| !heads.contains(*name)).cloned().collect()
    }

    /// The number and the parents of the next generation. Every manifest is a parent: a power failure may undo the
    /// removal of an older one and not that of a newer one, and the older one must not count then.
    pub(crate) fn next(&self) -> (u64, Vec<String>) {
        let heads = self.heads();
        let latest = heads.iter().map(|one| one.generation).max().unwrap_or(0);
        // A damaged manifest may have a higher number, and its name is taken.
        let damaged = self.damaged.iter().filter_map(|name| {
            let number = name.split('-').next()?.parse::<u64>().ok();
            // The last number has no successor, and anybody can give a file any name.
            number.filter(|number| *number < u64::MAX)
        });
        let latest = latest.max(damaged.max().unwrap_or(0));
        let mut parents: Vec<String> = self.manifests.keys().cloned().collect();
        parents.sort_unstable();
        (latest.saturating_add(1), parents)
    }
}

impl Catalog {
    /// The manifests as they are known now.
    pub(crate) fn manifests(&self) -> ManifestSet {
        lock(&self.manifests).clone()
    }

    /// Reads new manifests and forgets those that are gone. Other threads may look or commit at the same time.
    pub(crate) fn look_at_manifests(&self) -> Result<(), ArchiveError> {
        let mut looked = Ok(false);
        for _ in 0..LOOKS {
            looked = look_once(&self.manifests, &*self.vfs, &self.dir);
            if !matches!(looked, Ok(false)) {
                break;
            }
        }
        let replaced = self.manifests().replaced();
        lock(&self.segments).replace(replaced);
        looked.map(drop)
    }

    /// Writes the manifest after those of `before`, durably, and removes the generations before its parents. Only
    /// one thread commits at a time; it need not hold the lock of the set.
    pub(crate) fn commit(
        &self,
        before: &ManifestSet,
        manifest: Manifest,
    ) -> Result<(), ArchiveError> {
        write(&*self.vfs, &self.dir, &manifest)?;
        lock(&self.manifests).add(Arc::new(manifest));
        self.remove_manifests(&before.earlier());
        Ok(())
    }

    /// Removes the generations before the heads: they list replaced segments that a full disk must lose.
    pub(crate) fn remove_earlier_manifests(&self) {
        let earlier = lock(&self.manifests).earlier();
        self.remove_manifests(&earlier);
    }

    fn remove_manifests(&self, names: &HashSet<String>) {
        let mut known = lock(&self.manifests);
        known.manifests.retain(|name, _| !names.contains(name));
        drop(known);
        for name in names {
            // A manifest that can't be removed only keeps the segments it lists.
            let _ = self.vfs.remove(&self.dir.join(FOLDER).join(name));
        }
    }
}

/// Looks once. `false` if a listed manifest was gone: others have committed since.
fn look_once(set: &Mutex<ManifestSet>, vfs: &dyn Vfs, store: &Path) -> Result<bool, ArchiveError> {
    let before = lock(set).clone();
    let dir = store.join(FOLDER);
    let there: HashSet<String> = names(vfs, store)?.into_iter().collect();
    let new = there.iter().filter(|name| !before.knows(name));
    let new = new.map(|name| (name, read_new(vfs, &dir.join(name), before.trust)));
    let new: Vec<_> = new.collect();
    let (mut refused, mut all) = (Vec::new(), true);
    let mut known = lock(set);
    // Manifests committed since the listing stay.
    let stays = |name: &String| there.contains(name) || !before.knows(name);
    known.manifests.retain(|name, _| stays(name));
    known.damaged.retain(stays);
    for (name, read) in new {
        let path = dir.join(name);
        match read {
            Ok(Some(manifest)) => known.add(Arc::new(manifest)),
            Ok(None) => all = false,
            Err(Refused { why, distrusted }) => {
                if distrusted {
                    known.distrusted.add(&path, &why);
                }
                if known.damaged.insert(name.clone()) {
                    refused.push((path, why));
                }
            }
        }
    }
    drop(known);
    for (path, why) in refused {
        let path = path.display();
        sde::warning!("{path} is left out: {why}; the generation before it counts instead");
    }
    Ok(all)
}

/// The names of a store's manifests, in any order; none if there is no such folder.
pub(crate) fn names(vfs: &dyn Vfs, store: &Path) -> Result<Vec<String>, ArchiveError> {
    let dir = store.join(FOLDER);
    let names = match vfs.list(&dir) {
        Err(error) if is_no_folder(&error) => Vec::new(),
        names => names.map_err(|error| not_listed(vfs, store, &dir, error))?,
    };
    let is_manifest = |name: &String| Path::new(name).extension() == Some(OsStr::new(EXTENSION));
    let names = names.into_iter().filter_map(|name| name.into_string().ok());
    Ok(names.filter(is_manifest).collect())
}

/// Why a manifest does not count.
struct Refused {
    why: String,
    /// Whether others can write to it.
    distrusted: bool,
}

/// Reads a manifest; `None` if it is gone, since another process has committed its successor.
fn read_new(vfs: &dyn Vfs, path: &Path, trust: Trust) -> Result<Option<Manifest>, Refused> {
    let refused = |distrusted| move |why| Refused { why, distrusted };
    let found = vfs.look(path).ok().flatten();
    if let Some(why) = found.and_then(|found| trust.refusal(&found)) {
        return Err(refused(true)(why));
    }
    match read(vfs, path) {
        Ok(manifest) => Ok(Some(manifest)),
        Err(_) if matches!(vfs.look(path), Ok(None)) => Ok(None),
        Err(why) => {
            let opened = vfs.open(path).err();
            let denied = opened.and_then(|error| no_permission(vfs, path, &error));
            Err(match denied {
                Some(why) => refused(true)(why),
                None => refused(false)(why),
            })
        }
    }
}

/// The limit for a manifest's length: some million segments.
const LONGEST: u64 = 256 << 20;

/// The bytes of a manifest; an error says why they can't be read.
pub(crate) fn bytes(vfs: &dyn Vfs, path: &Path) -> Result<Vec<u8>, String> {
    let file = vfs.open(path).map_err(|error| error.to_string())?;
    let length = file.length().map_err(|error| error.to_string())?;
    if length > LONGEST {
        return Err(format!("it has {length} bytes, more than any manifest"));
    }
    read_bytes(&*file, 0, length).map_err(|error| error.to_string())
}

/// Reads a manifest; an error says what is wrong with it.
pub(crate) fn read(vfs: &dyn Vfs, path: &Path) -> Result<Manifest, String> {
    let manifest = Manifest::read(&bytes(vfs, path)?)?;
    if manifest.generation == u64::MAX {
        return Err("no other could come after it".to_owned());
    }
    if path.file_name() != Some(OsStr::new(&manifest.name())) {
        return Err("it is of another name".to_owned());
    }
    Ok(manifest)
}

/// Writes a manifest, durable.
pub(crate) fn write(vfs: &dyn Vfs, store: &Path, manifest: &Manifest) -> Result<(), ArchiveError> {
    let dir = &store.join(FOLDER);
    let path = &dir.join(manifest.name());
    let failed = |doing: &'static str| move |error| ArchiveError::io(doing, path, error);
    let bytes = manifest.bytes().map_err(ArchiveError::Other)?;
    make_folder(vfs, store, dir).map_err(failed("making the directory of"))?;
    // The names are synced here: a process that made this folder, or one of segments, may have been killed before
    // it did.
    vfs.sync_dir(store)
        .map_err(failed("syncing the directory of"))?;
    with_unfinished(vfs, dir, |unfinished| {
        let written = vfs.create(unfinished).and_then(|mut file| {
            file.write_at(&[&bytes], 0)?;
            file.sync()
        });
        written.map_err(failed("writing"))?;
        publish(vfs, unfinished, path, manifest)
    })?;
    vfs.sync_dir(dir)
        .map_err(failed("syncing the directory of"))
}

/// A rename may have happened although it reported an error, so the file is read back.
fn publish(vfs: &dyn Vfs, from: &Path, to: &Path, manifest: &Manifest) -> Result<(), ArchiveError> {
    let published = vfs.publish(from, to);
    match (read(vfs, to), published) {
        (Ok(found), _) if found == *manifest => Ok(()),
        // Other processes have committed later generations and removed this one.
        (Err(_), Ok(())) if matches!(vfs.look(to), Ok(None)) => Ok(()),
        (_, Err(error)) => Err(ArchiveError::io("naming", to, error)),
        (Ok(_), Ok(())) => Err(ArchiveError::Other(format!(
            "{} is another manifest than was written; save again",
            to.display()
        ))),
        (Err(why), Ok(())) => Err(ArchiveError::Other(format!(
            "{} was written and can't be read back: {why}; save again",
            to.display()
        ))),
    }
}
