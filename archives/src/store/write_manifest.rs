//! Saying what a store holds: the next generation of a lineage.

use std::collections::HashSet;
use std::path::Path;

use sde::{ArchiveError, Selection};

use crate::catalog::manifests::Lineage;
use crate::catalog::segments::Known;
use crate::format::class::Class;
use crate::format::id::UniqueId;
use crate::format::manifest::{Listed, Manifest, Retired};
use crate::store::{DirStore, lock};
use crate::writer::group_commit::Durable;

impl DirStore {
    /// Writes the next manifest of a lineage; `retired` are segments that have been
    /// replaced.
    pub(crate) fn vouch(
        &self,
        selection: Selection,
        retired: &[Retired],
    ) -> Result<(), ArchiveError> {
        self.refresh()?;
        self.vouch_for(selection, retired, |_| true)
    }

    /// The same for all ranks, by one of them, of what it was told is there. Their journals are about to
    /// go: nobody vouches for those.
    pub(crate) fn vouch_for_all(
        &self,
        selection: Selection,
        taken: &HashSet<UniqueId>,
        retired: &[Retired],
    ) -> Result<(), ArchiveError> {
        self.check_there()?;
        let inner = &*self.0;
        lock(&inner.lineage).look(&*inner.medium, &inner.dir)?;
        let own = inner.committer.ground().writer;
        let stays = |one: &Known| {
            let is_shared = one.path.starts_with(&inner.dir) && one.segment.writer != own;
            is_shared && !taken.contains(&one.id)
        };
        self.vouch_for(selection, retired, stays)
    }

    fn vouch_for(
        &self,
        selection: Selection,
        retired: &[Retired],
        stays: impl Fn(&Known) -> bool,
    ) -> Result<(), ArchiveError> {
        let inner = &*self.0;
        let mut lineage = lock(&inner.lineage);
        let retired = self.still_retired(&lineage, retired);
        let (generation, parents) = lineage.next(selection);
        // Before those that are known: what is sealed in between is among both then, and else among none.
        let written = self.written();
        let known = self.durable(&lineage, stays);
        let manifest = Manifest {
            kind: selection.name().to_owned(),
            generation,
            writer: inner.committer.ground().writer.to_string(),
            at: inner.clock.stamp(),
            parents,
            segments: self.listed(selection, written, known, &retired),
            retired,
        };
        lineage.commit(&*inner.medium, &inner.dir, manifest, selection)?;
        Ok(())
    }

    /// What is replaced, by all that the heads of both lineages say and these, as far as
    /// it is still there: what is gone for good need not be told of any more.
    fn still_retired(&self, lineage: &Lineage, more: &[Retired]) -> Vec<Retired> {
        let mut all: Vec<Retired> = Vec::new();
        let heads = [Selection::Checkpoint, Selection::Archive]
            .into_iter()
            .flat_map(|selection| lineage.heads(selection));
        for one in more.iter().chain(heads.flat_map(|head| &head.retired)) {
            match all.iter_mut().find(|other| other.id == one.id) {
                Some(other) => other.length = other.length.max(one.length),
                None => all.push(one.clone()),
            }
        }
        let seen = lock(&self.0.seen);
        all.retain(|one| UniqueId::parse(&one.id).is_some_and(|id| seen.path_of(&id).is_some()));
        all.sort_by(|a, b| a.path.cmp(&b.path));
        all
    }

    /// The segments that this process has not sealed, as far as they are durable: of those it knows
    /// better than by reading what is on the medium.
    fn written(&self) -> Vec<Durable> {
        match self.0.team.get() {
            None => self.0.committer.written(),
            // What of it counts is in others' segments, or will be.
            Some(_) => Vec::new(),
        }
    }

    /// The segments that a manifest vouches for, in the order of their names.
    fn listed(
        &self,
        selection: Selection,
        written: Vec<Durable>,
        known: Vec<Known>,
        retired: &[Retired],
    ) -> Vec<Listed> {
        let inner = &*self.0;
        let in_selection =
            |class: Class| selection == Selection::Checkpoint || class == Class::Result;
        let own: HashSet<UniqueId> = written.iter().map(|(_, id, ..)| *id).collect();
        let mut listed: Vec<Listed> = known
            .into_iter()
            .filter(|known| !own.contains(&known.id))
            .map(|known| (known.path, known.id, known.class, known.length))
            .chain(written)
            .filter(|(.., class, length)| in_selection(*class) && *length > 0)
            .map(|(path, id, _, length)| Listed {
                path: relative(&inner.dir, &path),
                id: id.to_string(),
                length,
            })
            .filter(|one| {
                let same = |other: &&Retired| other.id == one.id;
                retired
                    .iter()
                    .find(same)
                    .is_none_or(|other| other.length < one.length)
            })
            .collect();
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
        let lineage = lock(&inner.lineage);
        let retired = lineage.retired();
        let written = inner.committer.written();
        let known: std::collections::HashMap<UniqueId, u64> = lock(&inner.seen)
            .known()
            .map(|known| (known.id, known.length))
            .chain(written.into_iter().map(|(_, id, _, length)| (id, length)))
            .collect();
        let mut losses = Vec::new();
        for selection in [Selection::Checkpoint, Selection::Archive] {
            for head in lineage.heads(selection) {
                for one in &head.segments {
                    let id = UniqueId::parse(&one.id);
                    if id.is_some_and(|id| retired.contains_key(&id)) {
                        continue;
                    }
                    let loss = match id.and_then(|id| known.get(&id)) {
                        Some(length) if *length >= one.length => continue,
                        Some(length) => format!(
                            "the last {} of {} bytes of {} are lost or damaged",
                            one.length - length,
                            one.length,
                            one.path
                        ),
                        None => format!("{} is lost, with {} bytes", one.path, one.length),
                    };
                    if !losses.contains(&loss) {
                        losses.push(loss);
                    }
                }
            }
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
