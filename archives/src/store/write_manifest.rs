//! Saying what a store holds: the next generation of manifests.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use sde::ArchiveError;

use crate::catalog::manifests::ManifestSet;
use crate::catalog::segments::KnownSegment;
use crate::format::id::UniqueId;
use crate::format::manifest::{ListedSegment, Manifest, ReplacedSegment};
use crate::locks::{lock, warnings_after};
use crate::store::DirStore;
use crate::writer::group_commit::Durable;

impl DirStore {
    /// Writes the next manifest; these segments have been replaced.
    pub(crate) fn write_manifest(&self, replaced: &[ReplacedSegment]) -> Result<(), ArchiveError> {
        self.refresh()?;
        warnings_after(|| self.write_manifest_of(replaced, |_| true))
    }

    /// The same for all ranks, by one of them, of what it was told is there. Their journals are about to
    /// go: they are not vouched for.
    pub(crate) fn write_manifest_for_all(
        &self,
        taken: &HashSet<UniqueId>,
        replaced: &[ReplacedSegment],
    ) -> Result<(), ArchiveError> {
        self.check_there()?;
        let inner = &*self.0;
        lock(&inner.catalog.manifests).look(&**inner.vfs(), &inner.dir)?;
        let own = inner.writer.config().writer();
        let stays = |one: &KnownSegment| {
            let segment = &one.segment;
            let is_shared = segment.path.starts_with(&inner.dir) && segment.writer != own;
            is_shared && !taken.contains(&segment.id)
        };
        warnings_after(|| self.write_manifest_of(replaced, stays))
    }

    fn write_manifest_of(
        &self,
        replaced: &[ReplacedSegment],
        stays: impl Fn(&KnownSegment) -> bool,
    ) -> Result<(), ArchiveError> {
        let inner = &*self.0;
        let mut manifests = lock(&inner.catalog.manifests);
        let replaced = self.still_replaced(&manifests, replaced);
        let (generation, parents) = manifests.next();
        // Before those that are known: what is sealed in between is among both then, and else among none.
        let written = self.written();
        let known = self.sync_foreign_segments(&manifests, stays);
        let manifest = Manifest {
            generation,
            writer: inner.writer.config().writer().to_string(),
            at: inner.catalog.clock.stamp(),
            parents,
            segments: self.listed(written, known, &replaced),
            replaced,
            swept: lock(&inner.room.swept).take().or(manifests.swept()),
        };
        manifests.commit(&**inner.vfs(), &inner.dir, manifest)
    }

    /// What is replaced, by all that the heads say and these, as far as it is still there: what is gone for good need
    /// not be told of any more.
    fn still_replaced(
        &self,
        manifests: &ManifestSet,
        more: &[ReplacedSegment],
    ) -> Vec<ReplacedSegment> {
        let heads = manifests.heads();
        let of_heads = heads.into_iter().flat_map(|head| &head.replaced);
        let segments = lock(&self.0.catalog.segments);
        let there = segments.by_id();
        let mut all: HashMap<&str, ReplacedSegment> = HashMap::new();
        for one in more.iter().chain(of_heads) {
            let known = all.entry(&one.id).or_insert_with(|| one.clone());
            known.length = known.length.max(one.length);
        }
        let is_there = |one: &ReplacedSegment| {
            UniqueId::parse(&one.id).is_some_and(|id| there.contains_key(&id))
        };
        let mut all: Vec<_> = all.into_values().filter(is_there).collect();
        all.sort_by(|a, b| a.path.cmp(&b.path));
        all
    }

    /// The segments that this process has not sealed, as far as they are durable: of those it knows
    /// better than by reading what is on the medium.
    fn written(&self) -> Vec<Durable> {
        match self.0.team.get() {
            None => self.0.writer.written(),
            // What of it counts is in others' segments, or will be.
            Some(_) => Vec::new(),
        }
    }

    /// The segments that a manifest vouches for, in the order of their names.
    fn listed(
        &self,
        written: Vec<Durable>,
        known: Vec<KnownSegment>,
        replaced: &[ReplacedSegment],
    ) -> Vec<ListedSegment> {
        let replaced: HashMap<&str, u64> =
            replaced.iter().map(|one| (&*one.id, one.length)).collect();
        let own: HashSet<UniqueId> = written.iter().map(|(segment, _)| segment.id).collect();
        let known = known
            .into_iter()
            .filter(|known| !own.contains(&known.segment.id))
            .map(|known| (known.segment, known.end));
        let all = known.chain(written).filter(|(_, length)| *length > 0);
        let listed = all.map(|(segment, length)| ListedSegment {
            path: relative(&self.0.dir, &segment.path),
            id: segment.id.to_string(),
            length,
        });
        let counts = |one: &ListedSegment| {
            let replaced = replaced.get(&*one.id);
            replaced.is_none_or(|to| *to < one.length)
        };
        let mut listed: Vec<ListedSegment> = listed.filter(counts).collect();
        listed.sort_by(|a, b| a.path.cmp(&b.path));
        listed
    }

    /// Warns of segments that a manifest vouches for and that are not there, or not whole.
    pub(crate) fn warn_of_losses(&self) {
        for loss in self.losses() {
            sde::warning!("{loss}; what they held is computed again when needed");
        }
    }

    /// What the manifests vouch for and is not there.
    pub(crate) fn losses(&self) -> Vec<String> {
        let inner = &*self.0;
        let manifests = lock(&inner.catalog.manifests);
        let replaced = manifests.replaced();
        let written = inner.writer.written().into_iter();
        let written: Vec<_> = written
            .map(|(segment, length)| (segment.id, length))
            .collect();
        let known: HashMap<UniqueId, u64> = lock(&inner.catalog.segments)
            .known()
            .map(|known| (known.segment.id, known.end))
            .chain(written)
            .collect();
        let mut told = HashSet::new();
        let mut losses = Vec::new();
        for one in manifests
            .heads()
            .into_iter()
            .flat_map(|head| &head.segments)
        {
            let id = UniqueId::parse(&one.id);
            if id.is_some_and(|id| replaced.contains_key(&id)) || !told.insert(&one.id) {
                continue;
            }
            losses.extend(match id.and_then(|id| known.get(&id)) {
                Some(length) if *length >= one.length => None,
                Some(length) => Some(format!(
                    "the last {} of {} bytes of {} are lost or damaged",
                    one.length - length,
                    one.length,
                    one.path
                )),
                None => Some(format!("{} is lost, with {} bytes", one.path, one.length)),
            });
        }
        losses
    }
}

/// A path within a store, as manifests have it.
pub(crate) fn relative(store: &Path, path: &Path) -> String {
    let path = path.strip_prefix(store).unwrap_or(path);
    let parts = path.iter().map(|part| part.to_string_lossy());
    parts.collect::<Vec<_>>().join("/")
}
