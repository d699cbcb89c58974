//! An archive to keep and publish: results only, in a store of its own, with nothing superfluous.

use std::path::Path;
use std::sync::Arc;

use sde::{ArchiveError, Selection};

use crate::class::Class;
use crate::compact::{Candidate, Plan, copy};
use crate::directory::{self, There};
use crate::id::FileId;
use crate::lane::Ground;
use crate::lineage::Lineage;
use crate::manifest::{Listed, Manifest};
use crate::medium::make_dirs;
use crate::seen::Seen;
use crate::store::{DirStore, lock};

impl DirStore {
    /// Writes the results of this store, and nothing else, to a new one in a directory
    /// that is empty or does not exist. The directory is a store only when all of it is there.
    pub(crate) fn publish(&self, dir: &Path) -> Result<(), ArchiveError> {
        let dir = &crate::store::absolute(dir)?;
        let inner = &*self.0;
        let medium = &*inner.medium;
        if directory::look(medium, dir)? == There::Store {
            let why =
                "there is a store already; name an empty directory, or one that does not exist yet";
            return Err(directory::not_a_store(dir, why));
        }
        let ground = Ground {
            medium: Arc::clone(&inner.medium),
            dir: dir.clone(),
            writer: FileId::new(),
            segment_size: inner.committer.ground().segment_size,
        };
        make_dirs(medium, dir)
            .map_err(|error| ArchiveError::io("making the directory", dir, error))?;
        let plan = Plan::everything(self.results()?);
        copy::all(&ground, &plan, &[Class::Result])?;
        self.vouch_there(&ground)?;
        directory::create(medium, dir)
    }

    /// All segments of results, also those that are being written: what is durable of them.
    fn results(&self) -> Result<Vec<Candidate>, ArchiveError> {
        let inner = &*self.0;
        inner.seal(true);
        self.refresh()?;
        let retired = lock(&inner.lineage).retired();
        let known: Vec<_> = lock(&inner.seen).known().collect();
        let results = known.into_iter().filter(|one| one.class == Class::Result);
        let surveyed = results.map(|one| {
            let from = retired.get(&one.id).copied().unwrap_or(0);
            let candidate = Candidate::survey(&inner.medium, one.segment, from, true);
            candidate.map_err(|error| ArchiveError::io("reading", &one.path, error))
        });
        surveyed.collect()
    }

    fn vouch_there(&self, ground: &Ground) -> Result<(), ArchiveError> {
        let inner = &*self.0;
        let mut seen = Seen::default();
        seen.look(&*ground.medium, &ground.dir)?;
        let listed = seen.known().map(|one| Listed {
            path: crate::vouch::relative(&ground.dir, &one.path),
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
        let mut lineage = Lineage::default();
        lineage.commit(&*ground.medium, &ground.dir, manifest, Selection::Archive)
    }
}
