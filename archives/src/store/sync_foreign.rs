//! What other processes have written, made durable before this one vouches for it.
//!
//! What another process writes can be read at once, and is on the medium only when that
//! process has synced it; it may be killed before. So a process that says "this is saved" of
//! what another wrote syncs it itself.

use std::collections::{HashMap, HashSet};

use crate::catalog::manifests::ManifestSet;
use crate::catalog::segments::KnownSegment;
use crate::format::class::{Part, folder};
use crate::format::id::UniqueId;
use crate::locks::lock;
use crate::store::DirStore;

impl DirStore {
    /// The segments that others wrote and those that this process has sealed, as far as they are
    /// durable now, of those that `stays` is true of.
    pub(crate) fn sync_foreign_segments(
        &self,
        manifests: &ManifestSet,
        stays: impl Fn(&KnownSegment) -> bool,
    ) -> Vec<KnownSegment> {
        let inner = &*self.0;
        let own = inner.writer.config().writer();
        let vouched = vouched(manifests);
        let (mut known, unsure) = {
            let segments = lock(&inner.catalog.segments);
            let is_unsure = |one: &KnownSegment| {
                let id = &one.segment.id;
                let vouched = vouched.get(id).copied().unwrap_or(0);
                one.segment.writer != own && vouched.max(segments.durable_to(id)) < one.end
            };
            let known = segments.known();
            let known = known.filter(|one| !segments.is_doubted(&one.segment.id) && stays(one));
            let known: Vec<KnownSegment> = known.collect();
            let unsure = known.iter().filter(|one| is_unsure(one));
            let unsure: HashSet<UniqueId> = unsure.map(|one| one.segment.id).collect();
            (known, unsure)
        };
        let is_unsure = |one: &KnownSegment| unsure.contains(&one.segment.id);
        let parts: HashSet<Part> = known
            .iter()
            .filter(|one| is_unsure(one))
            .map(|one| one.segment.part)
            .collect();
        let synced_names = self.sync_names(&parts);
        known.retain(|one| {
            let synced = match is_unsure(one) {
                false => Ok(()),
                true => synced_names.clone().and_then(|()| self.sync_foreign(one)),
            };
            if let Err(why) = &synced {
                let path = one.segment.path.display();
                sde::warning!("{path} is not vouched for, it can't be made durable: {why}");
            }
            synced.is_ok()
        });
        known
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

    /// If this fails it is not tried again: a second sync may succeed without having written.
    pub(crate) fn sync_foreign(&self, one: &KnownSegment) -> Result<(), String> {
        let inner = &*self.0;
        let synced = inner
            .vfs()
            .open(&one.segment.path)
            .and_then(|mut file| file.sync());
        synced.map_err(|error| {
            lock(&inner.catalog.segments).doubt(one.segment.id);
            error.to_string()
        })
    }
}

/// How much of each segment some manifest vouches for.
fn vouched(manifests: &ManifestSet) -> HashMap<UniqueId, u64> {
    let mut vouched = HashMap::new();
    for one in manifests.all().flat_map(|manifest| &manifest.segments) {
        if let Some(id) = UniqueId::parse(&one.id) {
            let to: &mut u64 = vouched.entry(id).or_default();
            *to = one.length.max(*to);
        }
    }
    vouched
}
