//! Syncs files that other processes wrote, before this process lists them.
//!
//! Frames of another process can be read at once, but are durable only when that process has synced them, and it
//! may be killed before. Or the file is a copy that a person made and nobody synced. So a process that commits a
//! manifest first syncs what it has not written itself, once for each file and length. Other manifests are no
//! proof: they may have been copied too.

use std::collections::HashSet;
use std::io;

use crate::catalog::segments::KnownSegment;
use crate::format::class::{Part, folder};
use crate::locks::lock;
use crate::store::DirStore;

impl DirStore {
    /// The durable parts of segments that others wrote or this process has sealed, of those that `stays` accepts.
    /// Warns of those that can't be made durable.
    pub(crate) fn sync_foreign_segments(
        &self,
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
        for one in unsure {
            match synced_names.clone().and_then(|()| self.sync_foreign(&one)) {
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

    /// Syncs the names of files; names of folders are synced with those of the manifests.
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

    /// Gives whether the file is still there. A failed sync is not tried again: a second one may succeed without
    /// writing.
    pub(crate) fn sync_foreign(&self, one: &KnownSegment) -> Result<bool, String> {
        let inner = &*self.0;
        let mut file = match inner.vfs().open(&one.segment.path) {
            // Another process has just closed or removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            file => file.map_err(|error| error.to_string())?,
        };
        let synced = file.sync();
        let mut segments = lock(&inner.catalog.segments);
        match synced {
            Ok(()) => {
                segments.note_durable(one);
                Ok(true)
            }
            Err(error) => {
                segments.doubted.insert(one.segment.id);
                Err(error.to_string())
            }
        }
    }
}
