//! Saying what a store holds: the next generation of a lineage.

use std::path::Path;

use sde::{ArchiveError, Selection};

use crate::class::Class;
use crate::id::FileId;
use crate::manifest::{Listed, Manifest, Retired};
use crate::store::{DirStore, lock};

impl DirStore {
    /// Writes the next manifest of a lineage; `retired` are segments that have been
    /// replaced.
    pub(crate) fn vouch(
        &self,
        selection: Selection,
        retired: &[Retired],
    ) -> Result<(), ArchiveError> {
        self.refresh()?;
        let inner = &*self.0;
        let mut all_retired: Vec<Retired> = retired.to_vec();
        let mut lineage = lock(&inner.lineage);
        for head in lineage.heads(selection) {
            for one in &head.retired {
                if !all_retired.iter().any(|other| other.id == one.id) {
                    all_retired.push(one.clone());
                }
            }
        }
        // What is gone for good need not be told of any more.
        all_retired
            .retain(|one| !matches!(inner.medium.look(&inner.dir.join(&one.path)), Ok(None)));
        let (generation, parents) = lineage.next(selection);
        let manifest = Manifest {
            kind: selection.name().to_owned(),
            generation,
            writer: inner.committer.ground().writer.to_string(),
            at: inner.clock.stamp(),
            parents,
            segments: self.listed(selection, &all_retired),
            retired: all_retired,
        };
        lineage.commit(&*inner.medium, &inner.dir, manifest, selection)?;
        drop(lineage);
        self.remove_retired();
        Ok(())
    }

    /// The segments that a manifest vouches for, in the order of their names.
    fn listed(&self, selection: Selection, retired: &[Retired]) -> Vec<Listed> {
        let inner = &*self.0;
        let in_selection =
            |class: Class| selection == Selection::Checkpoint || class == Class::Result;
        let mut listed: Vec<Listed> = lock(&inner.seen)
            .known()
            .map(|known| (known.path, known.id, known.class, known.length))
            .chain(inner.committer.written())
            .filter(|(.., class, _)| in_selection(*class))
            .map(|(path, id, _, length)| Listed {
                path: self.relative(&path),
                id: id.to_string(),
                length,
            })
            .filter(|one| !retired.iter().any(|other| other.id == one.id))
            .collect();
        listed.sort_by(|a, b| a.path.cmp(&b.path));
        listed
    }

    /// A path within the store, as manifests have it.
    pub(crate) fn relative(&self, path: &Path) -> String {
        let path = path.strip_prefix(&self.0.dir).unwrap_or(path);
        let parts = path.iter().map(|part| part.to_string_lossy());
        parts.collect::<Vec<_>>().join("/")
    }

    /// Removes replaced segments that no manifest lists, and that nobody has had reason
    /// to read for a while.
    pub(crate) fn remove_retired(&self) {
        let inner = &*self.0;
        let lineage = lock(&inner.lineage);
        let grace = u64::try_from(inner.grace.as_nanos()).unwrap_or(u64::MAX);
        let now = inner.clock.stamp();
        let is_listed = |one: &Retired| {
            let mut listed = lineage.all().flat_map(|manifest| &manifest.segments);
            listed.any(|other| other.id == one.id)
        };
        let over = |one: &&Retired| now.saturating_sub(one.at) >= grace && !is_listed(one);
        for one in lineage
            .all()
            .flat_map(|manifest| &manifest.retired)
            .filter(over)
        {
            let Some(path) = self.within(&one.path) else {
                continue;
            };
            // Only the file that was replaced, whatever has its name now.
            let is_it = crate::scan::open(&*inner.medium, &path)
                .is_ok_and(|found| matches!(found, Some(Ok(found)) if FileId::parse(&one.id) == Some(found.id)));
            if is_it && let Err(error) = inner.medium.remove(&path) {
                tracing::warn!(
                    "{} was replaced and can't be removed: {error}",
                    path.display()
                );
            }
        }
    }

    /// A path that a manifest has, if it is one of a segment in this store: no path taken
    /// from a file leads anywhere else.
    fn within(&self, path: &str) -> Option<std::path::PathBuf> {
        let (folder, name) = path.split_once('/')?;
        let class = Class::ALL
            .into_iter()
            .find(|class| class.folder() == folder)?;
        let plain = !name.is_empty() && !name.contains(['/', '\\', '\0']) && name != "..";
        plain.then(|| crate::lane::folder(&self.0.dir, class).join(name))
    }

    /// Warns of segments that a manifest vouches for and that are not there, or not whole.
    pub(crate) fn warn_of_losses(&self) {
        for loss in self.losses() {
            tracing::warn!("{loss}; what they held is computed again when needed");
        }
    }

    /// What the manifests vouch for and is not there.
    pub(crate) fn losses(&self) -> Vec<String> {
        let inner = &*self.0;
        let lineage = lock(&inner.lineage);
        let retired = lineage.retired();
        let written = inner.committer.written();
        let known: std::collections::HashMap<FileId, u64> = lock(&inner.seen)
            .known()
            .map(|known| (known.id, known.length))
            .chain(written.into_iter().map(|(_, id, _, length)| (id, length)))
            .collect();
        let mut losses = Vec::new();
        for selection in [Selection::Checkpoint, Selection::Archive] {
            for head in lineage.heads(selection) {
                for one in &head.segments {
                    let id = FileId::parse(&one.id);
                    if id.is_some_and(|id| retired.contains(&id)) {
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
