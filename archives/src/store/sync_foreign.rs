//! What other processes have written, made durable before this one vouches for it.
//!
//! What another process writes can be read at once, and is on the medium only when that
//! process has synced it; it may be killed before. A person may have copied it, and nobody synced the copy. So a process that
//! says "this is saved" of what it has not written itself syncs it, once each file and length: what other manifests vouch for
//! may have been copied with them.

use std::collections::HashSet;
use std::io;

use crate::catalog::segments::KnownSegment;
use crate::format::class::{Part, folder};
use crate::locks::lock;
use crate::store::DirStore;

impl DirStore {
    /// The segments that others wrote and those that this process has sealed, as far as they are
    /// durable now, of those that `stays` is true of. Warns of those that can't be made durable.
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
                Ok(true)
            }
            Err(error) => {
                segments.doubted.insert(one.segment.id);
                Err(error.to_string())
            }
        }
    }
}
