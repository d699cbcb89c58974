//! What other processes have written, made durable before this one vouches for it.
//!
//! What another process writes can be read at once, and is on the medium only when that
//! process has synced it; it may be killed before. A person may have copied it, and nobody synced the copy. So a process that
//! says "this is saved" of what it has not written itself syncs it, once each file and length, and the names; but for a file
//! that a manifest vouches for by its number, which no copy has.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;

use crate::catalog::manifests::ManifestSet;
use crate::catalog::segments::KnownSegment;
use crate::format::class::{Part, folder};
use crate::format::manifest::ListedSegment;
use crate::locks::lock;
use crate::store::DirStore;

impl DirStore {
    /// The segments that others wrote and those that this process has sealed, as far as they are
    /// durable now, of those that `stays` is true of. Warns of those that can't be made durable.
    pub(crate) fn sync_foreign_segments(
        &self,
        manifests: &ManifestSet,
        stays: impl Fn(&KnownSegment) -> bool,
    ) -> Vec<KnownSegment> {
        let inner = &*self.0;
        let (mut durable, unsure): (Vec<KnownSegment>, Vec<KnownSegment>) = {
            let segments = lock(&inner.catalog.segments);
            let known = segments.known();
            let known =
                known.filter(|one| !segments.doubted.contains(&one.segment.id) && stays(one));
            known.partition(|one| segments.is_durable(one))
        };
        let parts = unsure.iter().map(|one| one.segment.part).collect();
        let synced_names = self.sync_names(&parts);
        let heads = manifests.heads().into_iter();
        let listed = heads.flat_map(|head| &head.segments);
        let listed: HashMap<&str, &ListedSegment> = listed.map(|one| (&*one.id, one)).collect();
        for one in unsure {
            let listed = listed.get(&*one.segment.id.to_string()).copied();
            let is_listed = || listed.is_some_and(|listed| self.is_the_listed_file(listed, &one));
            let synced = match &synced_names {
                Ok(()) if is_listed() => Ok(true),
                Ok(()) => self.sync_foreign(&one),
                Err(why) => Err(why.clone()),
            };
            match synced {
                Ok(true) => durable.push(one),
                Ok(false) => {}
                Err(why) => {
                    let path = one.segment.path.display();
                    sde::warning!("{path} is not vouched for, it can't be made durable: {why}");
                }
            }
        }
        durable
    }

    /// Whether a manifest lists this much of this very file, so that whoever wrote the manifest has made it durable. A copy is
    /// another file.
    fn is_the_listed_file(&self, listed: &ListedSegment, one: &KnownSegment) -> bool {
        let segment = &*one.segment;
        let is_it = listed.file != 0
            && listed.length >= one.end
            && listed.file == self.file_at(&segment.path);
        if is_it {
            segment.note_durable_file(listed.file);
            lock(&self.0.catalog.segments).note_durable(one);
        }
        is_it
    }

    /// The number of the file at a path; 0 if it can't be told.
    pub(crate) fn file_at(&self, path: &Path) -> u64 {
        let found = self.0.vfs().look(path).ok().flatten();
        found.map_or(0, |found| found.id)
    }

    /// The names of the files; those of the folders are synced with that of the manifests.
    pub(crate) fn sync_names(&self, parts: &HashSet<Part>) -> Result<(), String> {
        let inner = &*self.0;
        Part::ALL
            .iter()
            .filter(|part| parts.contains(part))
            .try_for_each(|part| {
                let synced = inner.vfs().sync_dir(&folder(&inner.dir, *part));
                synced.map_err(|error| error.to_string())
            })
    }

    /// Gives whether the file is still there. If a sync fails it is not tried again: a second one may succeed without having
    /// written.
    pub(crate) fn sync_foreign(&self, one: &KnownSegment) -> Result<bool, String> {
        let inner = &*self.0;
        let number = self.file_at(&one.segment.path);
        let mut file = match inner.vfs().open(&one.segment.path) {
            // Another process has closed or removed it just now.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            file => file.map_err(|error| error.to_string())?,
        };
        let synced = file.sync();
        let mut segments = lock(&inner.catalog.segments);
        match synced {
            Ok(()) => {
                segments.note_durable(one);
                one.segment.note_durable_file(number);
                Ok(true)
            }
            Err(error) => {
                segments.doubted.insert(one.segment.id);
                Err(error.to_string())
            }
        }
    }
}
