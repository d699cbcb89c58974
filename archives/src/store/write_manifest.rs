//! Writes the next generation of manifests.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use sde::archiver::ArchiveError;

use crate::catalog::manifests::ManifestSet;
use crate::catalog::segments;
use crate::catalog::segments::KnownSegment;
use crate::compact::replaced;
use crate::format::class::Part;
use crate::format::id::{self, UniqueId};
use crate::format::manifest::{ListedSegment, Manifest, ReplacedSegment};
use crate::locks::{lock, warnings_after};
use crate::store::DirStore;
use crate::writer::group_commit::Durable;

/// The most time a process may take from looking at the segments to naming the manifest that lists them.
const LONGEST_TO_COMMIT: Duration = Duration::from_secs(60);

impl DirStore {
    /// Writes the next manifest; `replaced` are the newly replaced segments.
    pub(crate) fn write_manifest(&self, replaced: &[ReplacedSegment]) -> Result<(), ArchiveError> {
        self.refresh()?;
        warnings_after(|| self.write_manifest_of(replaced, |_| true))
    }

    /// Writes the next manifest for all ranks, on one of them, without looking for new segments. The journals in
    /// `taken` are not listed, since they are about to be removed.
    pub(crate) fn write_manifest_for_all(
        &self,
        taken: &HashSet<UniqueId>,
        replaced: &[ReplacedSegment],
    ) -> Result<(), ArchiveError> {
        self.check_there()?;
        let inner = &*self.0;
        inner.catalog.look_at_manifests()?;
        let own = inner.writer.config().writer();
        let stays = |one: &KnownSegment| {
            let segment = &one.segment;
            let is_others = segment.path.starts_with(&inner.dir) && segment.writer != own;
            (is_others || self.stays(one)) && !taken.contains(&segment.id)
        };
        warnings_after(|| self.write_manifest_of(replaced, stays))
    }

    fn write_manifest_of(
        &self,
        newly_replaced: &[ReplacedSegment],
        stays: impl Fn(&KnownSegment) -> bool,
    ) -> Result<(), ArchiveError> {
        let inner = &*self.0;
        let _alone = lock(&inner.catalog.committing);
        let before = inner.catalog.manifests();
        let replaced = self.still_replaced(&before, newly_replaced);
        let (generation, parents) = before.next();
        // Taken before the known segments: one sealed in between is in both lists then, not in none.
        let unsealed = self.unsealed();
        // If this process could not make a segment durable, it must not sync it again under another name.
        let own: HashSet<UniqueId> = unsealed.iter().map(|(segment, _)| segment.id).collect();
        let stays = |one: &KnownSegment| !own.contains(&one.segment.id) && stays(one);
        let known = self.sync_foreign_segments(stays);
        let swept = *lock(&inner.room.swept);
        let manifest = Manifest {
            generation,
            writer: inner.writer.config().writer().to_string(),
            at: inner.catalog.clock.stamp(),
            parents,
            segments: self.listed(unsealed, known, &replaced),
            replaced,
            swept: swept.or(before.swept()),
        };
        inner.catalog.commit(&before, manifest)?;
        lock(&inner.room.swept).take_if(|one| Some(*one) == swept);
        if !newly_replaced.is_empty() {
            // Lets go of abandoned segments of this process that were replaced.
            let ids: HashSet<_> = newly_replaced
                .iter()
                .map(|one| UniqueId::parse(&one.id))
                .collect();
            inner.writer.let_go(|id| ids.contains(&Some(*id)));
        }
        Ok(())
    }

    /// The replaced segments: those of the heads and the new ones. A record is dropped once its segment can't come
    /// back: its file is gone and its name off the medium, and no manifest lists it, nor one still being written.
    fn still_replaced(
        &self,
        manifests: &ManifestSet,
        newly_replaced: &[ReplacedSegment],
    ) -> Vec<ReplacedSegment> {
        let heads = manifests.heads();
        let of_heads = heads.into_iter().flat_map(|head| &head.replaced);
        let mut all: HashMap<&str, ReplacedSegment> = HashMap::new();
        for one in newly_replaced.iter().chain(of_heads) {
            let known = all.entry(&one.id).or_insert_with(|| one.clone());
            known.length = known.length.max(one.length);
        }
        let now = id::now(&**self.0.vfs());
        let listed = replaced::listed(&manifests.all().collect::<Vec<_>>());
        let is_needed = |one: &ReplacedSegment| {
            listed.contains(&*one.id) || !replaced::is_as_old(one.at, now, LONGEST_TO_COMMIT)
        };
        let (mut all, old): (Vec<_>, Vec<_>) = all.into_values().partition(is_needed);
        all.extend(self.not_gone(old));
        all.sort_by(|a, b| a.path.cmp(&b.path));
        all
    }

    /// Those whose file may exist, now or after a power failure.
    fn not_gone(&self, all: Vec<ReplacedSegment>) -> Vec<ReplacedSegment> {
        if all.is_empty() {
            return all;
        }
        let inner = &*self.0;
        let Ok(files) = segments(&**inner.vfs(), &inner.dir) else {
            return all;
        };
        let names = files
            .iter()
            .filter_map(|(path, _)| path.file_name()?.to_str());
        let in_names: HashSet<&str> = names.flat_map(|name| name.split(['-', '.'])).collect();
        // A closed segment's file has another name, which has the id too unless a person gave it.
        let known = lock(&inner.catalog.segments);
        let by_id = known.by_id();
        let is_there = |one: &ReplacedSegment| {
            in_names.contains(&*one.id)
                || UniqueId::parse(&one.id).is_some_and(|id| by_id.contains_key(&id))
        };
        let (mut there, gone): (Vec<_>, Vec<_>) = all.into_iter().partition(is_there);
        drop(known);
        let folder = |part: &Part| gone.iter().any(|one| one.path.starts_with(part.folder()));
        let parts = Part::ALL.into_iter().filter(folder).collect();
        if self.sync_names(&parts).is_err() {
            there.extend(gone);
        }
        there
    }

    /// The durable parts of this process's unsealed segments, which it knows without reading them.
    fn unsealed(&self) -> Vec<Durable> {
        match self.0.team.get() {
            None => self.0.writer.unsealed(),
            // Journals of ranks are not listed: their frames are in others' segments, or will be.
            Some(_) => Vec::new(),
        }
    }

    /// The list of segments for a manifest, in the order of their names.
    fn listed(
        &self,
        unsealed: Vec<Durable>,
        known: Vec<KnownSegment>,
        replaced: &[ReplacedSegment],
    ) -> Vec<ListedSegment> {
        let replaced: HashMap<&str, u64> =
            replaced.iter().map(|one| (&*one.id, one.length)).collect();
        let known = known.into_iter().map(|known| (known.segment, known.end));
        let all = known.chain(unsealed).filter(|(_, length)| *length > 0);
        let listed = all.map(|(segment, length)| ListedSegment::new(&segment, length));
        let counts = |one: &ListedSegment| {
            let replaced = replaced.get(&*one.id);
            replaced.is_none_or(|to| *to < one.length)
        };
        let mut listed: Vec<ListedSegment> = listed.filter(counts).collect();
        listed.sort_by(|a, b| a.path.cmp(&b.path));
        listed
    }

    /// Warns of segments that a manifest lists and that are missing or cut short. A compaction may have removed one
    /// after the manifests were read: then a second look finds it replaced.
    pub(crate) fn warn_of_losses(&self) -> Result<(), ArchiveError> {
        let mut losses = self.losses();
        if !losses.is_empty() {
            self.refresh()?;
            let again = self.losses();
            losses.retain(|loss| again.contains(loss));
        }
        for loss in losses {
            sde::warning!("{loss}; what they held is computed again when needed");
        }
        Ok(())
    }

    /// Descriptions of the listed segments that are lost.
    fn losses(&self) -> Vec<String> {
        let inner = &*self.0;
        if !lock(&inner.catalog.segments).untrusted.is_empty() {
            // What a manifest lists may be there, and not be read.
            return Vec::new();
        }
        let own = inner.durable_ends();
        let known: HashMap<UniqueId, u64> = lock(&inner.catalog.segments)
            .known()
            .map(|known| (known.segment.id, known.end))
            .chain(own)
            .collect();
        let manifests = inner.catalog.manifests();
        let lost = manifests.lost(|id| known.get(id).copied()).into_iter();
        let described = lost.filter_map(|(_, one, end)| {
            let path = inner.dir.join(&one.path);
            // It was told that the file can't be read.
            let is_unread = lock(&inner.catalog.segments).is_unread(&path);
            let (length, path) = (one.length, path.display());
            match end {
                Some(end) => Some(format!(
                    "the last {} of {length} bytes of {path} are lost or damaged",
                    length - end,
                )),
                None if is_unread => None,
                None => Some(format!("{path} is lost, with {length} bytes")),
            }
        });
        described.collect()
    }
}
