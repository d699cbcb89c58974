//! The manifests of a store: which count, and how the next is made.
//!
//! A manifest names its parents, and those that nobody names as a parent are the heads: of
//! processes that save at the same time each has one. All heads count. The next manifest names all heads that its
//! writer knows, and so joins them. If a head is damaged its parents are heads again:
//! that is why two generations are kept.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use sde::ArchiveError;

use crate::format::directory::{is_no_folder, make_folder};
use crate::format::id::UniqueId;
use crate::format::manifest::{EXTENSION, FOLDER, Manifest, Sweep};
use crate::format::trust::{Distrusted, Trust};
use crate::vfs::{Vfs, read_bytes};

/// The manifests that can be read, by their names.
pub(crate) struct ManifestSet {
    trust: Trust,
    distrusted: Distrusted,
    manifests: HashMap<String, Manifest>,
    /// Those that can't be read, and were warned of.
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

    /// The manifests that are not to be trusted.
    pub(crate) fn distrusted(&self) -> &Distrusted {
        &self.distrusted
    }

    /// Reads what is new, and forgets what is gone.
    pub(crate) fn look(&mut self, vfs: &dyn Vfs, store: &Path) -> Result<(), ArchiveError> {
        let dir = store.join(FOLDER);
        let names = match vfs.list(&dir) {
            Err(error) if is_no_folder(&error) => Vec::new(),
            names => names.map_err(|error| ArchiveError::io("listing", &dir, error))?,
        };
        let mut there = HashSet::new();
        for name in names {
            let path = dir.join(&name);
            let (Some(name), true) = (
                name.to_str(),
                path.extension() == Some(OsStr::new(EXTENSION)),
            ) else {
                continue;
            };
            there.insert(name.to_owned());
            if self.manifests.contains_key(name) || self.damaged.contains(name) {
                continue;
            }
            let found = vfs.look(&path).ok().flatten();
            if let Some(why) = found.and_then(|found| self.trust.refusal(&found)) {
                self.distrusted.add(&path, &why);
                self.refuse(&path, name, &why);
                continue;
            }
            match read(vfs, &path) {
                Ok(manifest) if manifest.name() == name => {
                    self.manifests.insert(name.to_owned(), manifest);
                }
                Ok(_) => self.refuse(&path, name, "it is of another name"),
                // Another process has committed one that takes its place.
                Err(_) if matches!(vfs.look(&path), Ok(None)) => {}
                Err(why) => self.refuse(&path, name, &why),
            }
        }
        self.manifests.retain(|name, _| there.contains(name));
        self.damaged.retain(|name| there.contains(name));
        Ok(())
    }

    fn refuse(&mut self, path: &Path, name: &str, why: &str) {
        let path = path.display();
        sde::warning!("{path} is left out: {why}; the generation before it counts instead");
        self.damaged.insert(name.to_owned());
    }

    /// Those that nobody names as a parent.
    pub(crate) fn heads(&self) -> Vec<&Manifest> {
        let all = self.manifests.values();
        let parents: HashSet<&String> = all.flat_map(|one| &one.parents).collect();
        let all = self.manifests.iter();
        let heads = all.filter(|(name, _)| !parents.contains(name));
        let mut heads: Vec<_> = heads.map(|(_, one)| one).collect();
        heads.sort_by_key(|one| (one.generation, &one.writer));
        heads
    }

    /// All that can be read.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Manifest> {
        self.manifests.values()
    }

    /// Every segment that the heads say is replaced, and up to where. Two that were at it
    /// at once may differ: each has copied all up to where it looked.
    pub(crate) fn replaced(&self) -> HashMap<UniqueId, u64> {
        let mut replaced = HashMap::new();
        for (id, length) in self.heads().into_iter().flat_map(Manifest::replaced) {
            let known = replaced.entry(id).or_insert(length);
            *known = length.max(*known);
        }
        replaced
    }

    /// The latest compaction that the heads tell of.
    pub(crate) fn swept(&self) -> Option<Sweep> {
        let heads = self.heads().into_iter();
        heads.filter_map(|one| one.swept).max_by_key(|one| one.at)
    }

    /// Removes the generations before the heads, which are only there for the case that a head is damaged: on a full disk
    /// they keep what was replaced from being removed.
    pub(crate) fn remove_earlier(&mut self, vfs: &dyn Vfs, store: &Path) {
        let dir = store.join(FOLDER);
        let heads: HashSet<String> = self.heads().into_iter().map(Manifest::name).collect();
        self.manifests.retain(|name, _| {
            let stays = heads.contains(name);
            if !stays {
                // One that is left only keeps what it lists.
                let _ = vfs.remove(&dir.join(name));
            }
            stays
        });
    }

    /// The next generation after all heads: its number and parents. These are all that are there: the removal of an older one may
    /// be lost when the power fails, and that of a newer one not, and the older one must not count then.
    pub(crate) fn next(&self) -> (u64, Vec<String>) {
        let heads = self.heads();
        let latest = heads.iter().map(|one| one.generation).max().unwrap_or(0);
        // A damaged one may have had a later number, and its name is taken.
        let damaged = self.damaged.iter().filter_map(|name| {
            let number = name.split('-').next()?.parse::<u64>().ok();
            // None comes after the last number; anybody can give a file any name.
            number.filter(|number| *number < u64::MAX)
        });
        let latest = latest.max(damaged.max().unwrap_or(0));
        let mut parents: Vec<String> = self.manifests.keys().cloned().collect();
        parents.sort_unstable();
        (latest.saturating_add(1), parents)
    }

    /// Writes a manifest and makes it durable; then removes those before its parents.
    pub(crate) fn commit(
        &mut self,
        vfs: &dyn Vfs,
        store: &Path,
        manifest: Manifest,
    ) -> Result<(), ArchiveError> {
        let dir = store.join(FOLDER);
        let name = manifest.name();
        write(vfs, store, &dir, &dir.join(&name), &manifest)?;
        let mut kept: HashSet<String> = self.heads().into_iter().map(Manifest::name).collect();
        kept.insert(name.clone());
        self.manifests.insert(name, manifest);
        self.manifests.retain(|name, _| {
            let stays = kept.contains(name);
            if !stays {
                // One that is left does no harm.
                let _ = vfs.remove(&dir.join(name));
            }
            stays
        });
        Ok(())
    }
}

/// No manifest is as long: it would list a million segments.
const LONGEST: u64 = 256 << 20;

/// Reads a manifest; an error says what is wrong with it.
pub(crate) fn read(vfs: &dyn Vfs, path: &Path) -> Result<Manifest, String> {
    let file = vfs.open(path).map_err(|error| error.to_string())?;
    let length = file.length().map_err(|error| error.to_string())?;
    if length > LONGEST {
        return Err(format!("it has {length} bytes, more than any manifest"));
    }
    let bytes = read_bytes(&*file, 0, length).map_err(|error| error.to_string())?;
    match Manifest::read(&bytes)? {
        manifest if manifest.generation == u64::MAX => {
            Err("no other could come after it".to_owned())
        }
        manifest => Ok(manifest),
    }
}

fn write(
    vfs: &dyn Vfs,
    store: &Path,
    dir: &Path,
    path: &Path,
    manifest: &Manifest,
) -> Result<(), ArchiveError> {
    let failed = |doing: &'static str| move |error| ArchiveError::io(doing, path, error);
    let bytes = manifest.bytes().map_err(ArchiveError::Other)?;
    make_folder(vfs, store, dir).map_err(failed("making the directory of"))?;
    // Whoever made it, or a folder of the segments that others wrote, may have been killed before
    // he synced its name.
    vfs.sync_dir(store)
        .map_err(failed("syncing the directory of"))?;
    let unfinished = unfinished(path);
    let written = (|| {
        let mut file = vfs.create(&unfinished)?;
        file.write_at(&[&bytes], 0)?;
        file.sync()
    })();
    let published = written
        .map_err(failed("writing"))
        .and_then(|()| publish(vfs, &unfinished, path, manifest));
    if published.is_err() {
        // What is left if this fails too does no harm.
        let _ = vfs.remove(&unfinished);
    }
    published?;
    vfs.sync_dir(dir)
        .map_err(failed("syncing the directory of"))
}

/// A rename may have happened although it says that it failed: what counts is what is there.
fn publish(vfs: &dyn Vfs, from: &Path, to: &Path, manifest: &Manifest) -> Result<(), ArchiveError> {
    let published = vfs.publish(from, to);
    match (read(vfs, to), published) {
        (Ok(found), _) if found == *manifest => Ok(()),
        // Others have gone on from it since, and removed it.
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

fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(
        ".{}{}",
        UniqueId::new().short(),
        crate::format::directory::UNFINISHED
    ));
    path.with_file_name(name)
}
