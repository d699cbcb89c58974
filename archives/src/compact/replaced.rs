//! Removing segments that have been replaced.
//!
//! Whoever still has a place in such a segment may read it for the time of grace. And it may
//! have been replaced because its writer was taken for dead: locks tell nothing on some file
//! systems. So before it is removed it is closed, that is given another name, which its writer
//! notices before it acknowledges anything more; if it has grown beyond what was copied of
//! it, it stays, and what it has beyond that counts.
//!
//! Scratch needs no such time: who finds a state gone looks again.

use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::AddAssign;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::catalog::scan;
use crate::format::class::{EXTENSION, Part};
use crate::format::frame::FrameKind;
use crate::format::id::{self, UniqueId};
use crate::format::manifest::{Manifest, ReplacedSegment};
use crate::locks::lock;
use crate::store::DirStore;
use crate::vfs::Vfs;

/// What the name of a closed segment ends with, before the extension.
const CLOSED: &str = ".closed";

/// What was removed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Removed {
    pub(crate) files: usize,
    pub(crate) bytes: u64,
}

impl AddAssign for Removed {
    fn add_assign(&mut self, other: Self) {
        self.files += other.files;
        self.bytes += other.bytes;
    }
}

impl DirStore {
    /// Removes replaced segments that no manifest lists, and that nobody has had reason
    /// to read for this time.
    pub(crate) fn remove_replaced(&self, grace: Duration) -> Removed {
        let manifests = self.0.catalog.manifests();
        let removable = self.removable(grace, &manifests.all().collect::<Vec<_>>());
        self.each_replaced(removable, |path, one| self.remove_one(path, one))
    }

    /// What a compaction would remove: it makes another generation where only an earlier one lists a segment.
    pub(crate) fn would_remove(&self, grace: Duration) -> Removed {
        let removable = self.removable(grace, &self.0.catalog.manifests().heads());
        self.each_replaced(removable, |_, _| true)
    }

    /// Counts those of the segments that are there and are removed.
    fn each_replaced(
        &self,
        removable: Vec<(UniqueId, u64)>,
        remove: impl Fn(&Path, (UniqueId, u64)) -> bool,
    ) -> Removed {
        let there: HashMap<UniqueId, PathBuf> = {
            let segments = lock(&self.0.catalog.segments);
            let there = segments.by_id();
            there
                .into_iter()
                .map(|(id, one)| (id, one.path.clone()))
                .collect()
        };
        let mut removed = Removed::default();
        for one in removable {
            let Some(path) = there.get(&one.0) else {
                continue;
            };
            let found = self.0.vfs().look(path).ok().flatten();
            if remove(path, one) {
                removed.files += 1;
                removed.bytes += found.map_or(0, |found| found.length);
            }
        }
        removed
    }

    /// Whether there is something that only the manifests before this one keep.
    pub(crate) fn waits_for_another_generation(&self, grace: Duration) -> bool {
        let inner = &*self.0;
        let manifests = inner.catalog.manifests();
        let all: Vec<&Manifest> = manifests.all().collect();
        let listed = listed(&all);
        let now = id::now(&**inner.vfs());
        let mut replaced = all.iter().flat_map(|manifest| &manifest.replaced);
        replaced.any(|one| is_over(one, now, grace) && listed.contains(&*one.id))
    }

    fn removable(&self, grace: Duration, manifests: &[&Manifest]) -> Vec<(UniqueId, u64)> {
        let listed = listed(manifests);
        let now = id::now(&**self.0.vfs());
        let over = |one: &&ReplacedSegment| is_over(one, now, grace) && !listed.contains(&*one.id);
        let replaced = manifests.iter().flat_map(|manifest| &manifest.replaced);
        let mut removable: Vec<(UniqueId, u64)> = replaced
            .filter(over)
            .filter_map(|one| Some((UniqueId::parse(&one.id)?, one.length)))
            .collect();
        removable.sort_unstable_by_key(|(id, length)| (id.0, std::cmp::Reverse(*length)));
        removable.dedup_by_key(|(id, _)| *id);
        removable
    }

    fn remove_one(&self, path: &Path, (id, length): (UniqueId, u64)) -> bool {
        let vfs = &**self.0.vfs();
        // Only the file that was replaced, whatever has its name now.
        let found = scan::open(vfs, path);
        if !matches!(found, Ok(Some(Ok(segment))) if segment.id == id) {
            return false;
        }
        let removed = remove(vfs, path, length);
        removed.unwrap_or_else(|error| {
            // Others may be at it too.
            if error.kind() != io::ErrorKind::NotFound {
                let path = path.display();
                sde::warning!("{path} was replaced and can't be removed: {error}");
            }
            false
        })
    }
}

/// Whether nobody has reason to read a segment any more. Who finds a state of scratch gone looks again.
fn is_over(one: &ReplacedSegment, now: u64, grace: Duration) -> bool {
    one.path.starts_with(Part::Scratch.folder()) || is_as_old(one.at, now, grace)
}

/// Whether something was so long ago. One clock or the other may be wrong.
pub(crate) fn is_as_old(at: u64, now: u64, age: Duration) -> bool {
    let age = u64::try_from(age.as_nanos()).unwrap_or(u64::MAX);
    now.abs_diff(at) >= age
}

/// The segments that some manifest lists: of one that is replaced in part, the rest.
pub(crate) fn listed<'m>(manifests: &[&'m Manifest]) -> HashSet<&'m str> {
    let listed = manifests.iter().flat_map(|manifest| &manifest.segments);
    listed.map(|one| &*one.id).collect()
}

/// Removes a segment whose writer may be alive after all, unless it has more whole frames than were
/// copied of it. Gives whether it did.
pub(crate) fn remove(vfs: &dyn Vfs, path: &Path, length: u64) -> io::Result<bool> {
    let closed = close(vfs, path)?;
    let Some(Ok(segment)) = scan::open(vfs, &closed)? else {
        return Ok(false);
    };
    let mut grown = false;
    // What is acknowledged from now on is elsewhere, so what is not whole by now is of no use.
    scan::scan_with(vfs, &segment, length, |frame, _| {
        grown |= frame.header.kind() != Some(FrameKind::Index);
        Ok(())
    })?;
    match grown {
        true => Ok(false),
        false => vfs.remove(&closed).map(|()| true),
    }
}

/// Takes the name away under which its writer looks for it.
fn close(vfs: &dyn Vfs, path: &Path) -> io::Result<PathBuf> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    if stem.ends_with(CLOSED) {
        return Ok(path.to_owned());
    }
    let closed = path.with_file_name(format!("{stem}{CLOSED}.{}", EXTENSION));
    vfs.publish(path, &closed)?;
    Ok(closed)
}
