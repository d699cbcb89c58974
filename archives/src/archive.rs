//! An archive to keep and publish: results only, in a store of its own, with nothing superfluous.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sde::{ArchiveError, Selection};

use crate::catalog::manifests::{self, Lineage};
use crate::catalog::segments::Seen;
use crate::compact::{Candidate, Plan, copy};
use crate::format::class::Class;
use crate::format::id::UniqueId;
use crate::format::manifest::{Listed, Manifest};
use crate::format::segment::Segment;
use crate::store::directory::{self, There};
use crate::store::trust::Trust;
use crate::store::{DirStore, lock};
use crate::vfs::{Vfs, make_dirs};
use crate::writer::segment_writer::{self, Ground};

impl DirStore {
    /// Writes the results of this store, and nothing else, to a new one in a directory
    /// that is empty or does not exist. The directory is a store only when all of it is there.
    pub(crate) fn publish(&self, dir: &Path) -> Result<(), ArchiveError> {
        let dir = &crate::store::absolute(dir)?;
        let inner = &*self.0;
        let medium = &*inner.medium;
        if real_path(medium, dir).starts_with(real_path(medium, &inner.dir)) {
            let why = "it is this store itself or lies in it; name a directory outside, where nothing that happens to the store can harm it";
            return Err(directory::not_a_store(dir, why));
        }
        if directory::look(medium, dir)? == There::Store {
            let why =
                "there is a store already; name an empty directory, or one that does not exist yet";
            return Err(directory::not_a_store(dir, why));
        }
        let ground = Ground {
            medium: Arc::clone(&inner.medium),
            dir: dir.clone(),
            writer: UniqueId::new(),
            segment_size: inner.committer.ground().segment_size,
        };
        make_dirs(medium, dir)
            .map_err(|error| ArchiveError::io("making the directory", dir, error))?;
        let written = self.write_to(&ground);
        if written.is_err() {
            take_away(&ground);
        }
        written
    }

    fn write_to(&self, ground: &Ground) -> Result<(), ArchiveError> {
        let (medium, dir) = (&*ground.medium, &ground.dir);
        let plan = Plan::everything(self.results()?);
        copy::all(ground, &plan, &[Class::Result])?;
        self.vouch_there(ground)?;
        directory::create(medium, dir)?;
        // It has all else by now: nothing that is written later would sync this name.
        let synced = medium.sync_dir(dir);
        synced.map_err(|error| ArchiveError::io("syncing the directory", dir, error))
    }

    /// All segments of results, also those that are being written: what is durable of them. An error
    /// if one can't be read.
    fn results(&self) -> Result<Vec<Candidate>, ArchiveError> {
        let inner = &*self.0;
        inner.seal(|_| 0);
        self.refresh()?;
        let retired = lock(&inner.lineage).retired();
        let known: Vec<(PathBuf, Arc<Segment>)> = {
            let seen = lock(&inner.seen);
            // An archive that is told to be there must have all results.
            if let Some(error) = seen.unread().first() {
                return Err(error.clone());
            }
            let known = seen.known().map(|one| (one.path, one.segment));
            // What was acknowledged before an error counts, and is in no index.
            let owned = seen.owned().map(|one| (one.path.clone(), Arc::clone(one)));
            known.chain(owned).collect()
        };
        let results = known
            .into_iter()
            .filter(|(_, segment)| segment.class == Class::Result);
        let surveyed = results.map(|(path, segment)| {
            let from = retired.get(&segment.id).copied().unwrap_or(0);
            let candidate = Candidate::survey(&inner.medium, segment, from, true);
            candidate.map_err(|error| ArchiveError::io("reading", path, error))
        });
        surveyed.collect()
    }

    fn vouch_there(&self, ground: &Ground) -> Result<(), ArchiveError> {
        let inner = &*self.0;
        // All there is was written just now.
        let mut seen = Seen::new(Trust::Others);
        seen.look(&*ground.medium, &ground.dir)?;
        let listed = seen.known().map(|one| Listed {
            path: crate::store::write_manifest::relative(&ground.dir, &one.path),
            id: one.id.to_string(),
            length: one.length,
        });
        let mut segments: Vec<Listed> = listed.collect();
        segments.sort_by(|a, b| a.path.cmp(&b.path));
        let manifest = Manifest {
            kind: Selection::Archive.name().to_owned(),
            generation: 1,
            writer: ground.writer.to_string(),
            at: inner.clock.stamp(),
            parents: Vec::new(),
            segments,
            retired: Vec::new(),
        };
        let mut lineage = Lineage::new(Trust::Others);
        lineage.commit(&*ground.medium, &ground.dir, manifest, Selection::Archive)
    }
}

/// The one path of a directory, also if it is not there yet.
fn real_path(medium: &dyn Vfs, dir: &Path) -> PathBuf {
    let of = |there: &Path| {
        let real = medium.real_path(there).ok()?;
        Some(real.join(dir.strip_prefix(there).ok()?))
    };
    dir.ancestors()
        .find_map(of)
        .unwrap_or_else(|| dir.to_owned())
}

/// Removes what this has begun, as far as that can be done, so that the directory is empty again
/// and it can be tried again there.
fn take_away(ground: &Ground) {
    let (medium, dir) = (&*ground.medium, &ground.dir);
    // Once it is a store all of it is there, whatever failed after that.
    if !matches!(directory::look_for_format(medium, dir), Ok(false)) {
        return;
    }
    for folder in [
        segment_writer::folder(dir, Class::Result),
        dir.join(manifests::FOLDER),
    ] {
        // What is left does no harm but to be in the way, and the first error is the one to tell.
        let _ = take_folder_away(medium, &folder, &ground.writer);
    }
}

/// Removes what one writer has put in a folder, and the folder, if nothing else is in it.
fn take_folder_away(medium: &dyn Vfs, folder: &Path, writer: &UniqueId) -> io::Result<()> {
    let (segment, manifest) = (format!("{}-", writer.short()), writer.to_string());
    for name in medium.list(folder)? {
        let text = name.to_string_lossy();
        if text.starts_with(&segment) || text.contains(&manifest) {
            medium.remove(&folder.join(&name))?;
        }
    }
    medium.remove_dir(folder)
}
