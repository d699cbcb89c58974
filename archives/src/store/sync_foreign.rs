//! What other processes have written, made durable before this one vouches for it.
//!
//! What another process writes can be read at once, and is on the medium only when that
//! process has synced it; it may be killed before. So whoever says "this is saved" of
//! something that somebody else wrote syncs it himself.

use std::collections::HashMap;

use crate::catalog::manifests::Lineage;
use crate::catalog::segments::Known;
use crate::format::class::Class;
use crate::format::id::UniqueId;
use crate::store::{DirStore, lock};
use crate::writer::segment_writer::folder;

impl DirStore {
    /// The segments that others wrote and those that this process has sealed, as far as they are
    /// durable now, of those that `stays` is true of.
    pub(crate) fn durable(&self, lineage: &Lineage, stays: impl Fn(&Known) -> bool) -> Vec<Known> {
        let inner = &*self.0;
        let own = inner.committer.ground().writer;
        let vouched = vouched(lineage);
        let (mut known, sure): (Vec<Known>, HashMap<UniqueId, u64>) = {
            let seen = lock(&inner.seen);
            let known = seen.known();
            let known = known.filter(|one| !seen.is_doubted(&one.id) && stays(one));
            let sure = |one: Known| (one.id, seen.sure(&one.id));
            (known.collect(), seen.known().map(sure).collect())
        };
        let is_sure = |sure: &HashMap<UniqueId, u64>, one: &Known| {
            sure.get(&one.id).is_some_and(|sure| *sure >= one.length)
        };
        let is_unsure = |one: &Known| {
            one.segment.writer != own && !is_sure(&vouched, one) && !is_sure(&sure, one)
        };
        let unsure: Vec<Class> = known
            .iter()
            .filter(|one| is_unsure(one))
            .map(|one| one.class)
            .collect();
        let synced_names = self.sync_names(&unsure);
        known.retain(|one| {
            let synced = match is_unsure(one) {
                false => Ok(()),
                true => synced_names.clone().and_then(|()| self.sync_other(one)),
            };
            if let Err(why) = &synced {
                let path = one.path.display();
                sde::warning!("{path} is not vouched for, it can't be made durable: {why}");
            }
            synced.is_ok()
        });
        known
    }

    /// The names of the files; those of the folders are synced with that of the manifests.
    fn sync_names(&self, classes: &[Class]) -> Result<(), String> {
        let inner = &*self.0;
        let mut classes = Class::ALL.iter().filter(|class| classes.contains(class));
        classes.try_for_each(|class| {
            let synced = inner.medium.sync_dir(&folder(&inner.dir, *class));
            synced.map_err(|error| error.to_string())
        })
    }

    /// If this fails it is not tried again: a second sync may succeed without having written.
    fn sync_other(&self, one: &Known) -> Result<(), String> {
        let inner = &*self.0;
        let synced = inner
            .medium
            .open(&one.path)
            .and_then(|mut file| file.sync());
        synced.map_err(|error| {
            lock(&inner.seen).doubt(one.id);
            error.to_string()
        })
    }
}

/// How much of each segment some manifest vouches for.
fn vouched(lineage: &Lineage) -> HashMap<UniqueId, u64> {
    let mut vouched = HashMap::new();
    for one in lineage.all().flat_map(|manifest| &manifest.segments) {
        if let Some(id) = UniqueId::parse(&one.id) {
            let sure: &mut u64 = vouched.entry(id).or_default();
            *sure = one.length.max(*sure);
        }
    }
    vouched
}
