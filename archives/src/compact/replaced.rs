//! Removing segments that have been replaced.
//!
//! Readers that know a place in such a segment may read it for the time of grace.
//!
//! A writer that seems dead may only be slow: on some file systems locks tell nothing. It may even fill a gap that
//! was skipped when its segment was read. So an unsealed segment is closed first: it is renamed, which its writer
//! notices before it acknowledges anything more. It is read for replacement a time of grace later, when no cache
//! shows its writer the old name. The new name has the time of closing.
//!
//! Scratch needs no time of grace: a reader that misses a state looks again.

use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::AddAssign;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sde::archiver::ArchiveError;

use crate::catalog::scan;
use crate::catalog::segments::KnownSegment;
use crate::format::class::{EXTENSION, Part};
use crate::format::frame::FrameKind;
use crate::format::id::{self, UniqueId};
use crate::format::index_block::{TRAILER, is_trailer};
use crate::format::manifest::{Manifest, ReplacedSegment};
use crate::locks::lock;
use crate::store::DirStore;
use crate::vfs::Vfs;

/// The end of a closed segment's name, before the time and the extension.
const CLOSED: &str = ".closed";

/// The files and bytes that were removed.
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
    /// Removes segments replaced a time of grace ago that no manifest lists.
    pub(crate) fn remove_replaced(&self, grace: Duration) -> Removed {
        let manifests = self.0.catalog.manifests();
        let removable = self.removable(grace, &manifests.all().collect::<Vec<_>>());
        self.each_replaced(removable, |path, one| self.remove_one(path, one))
    }

    /// What a compaction would remove. Only the heads' lists count: it would commit another generation to drop
    /// earlier ones.
    pub(crate) fn would_remove_replaced(&self, grace: Duration) -> Removed {
        let removable = self.removable(grace, &self.0.catalog.manifests().heads());
        self.each_replaced(removable, |_, _| true)
    }

    /// Counts the segments that are there and that `remove` accepts.
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

    /// Whether a segment can be removed only after another generation is committed.
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
        // The name may belong to another file now, so the id must match.
        let found = scan::open(vfs, path);
        if !matches!(found, Ok(Some(Ok(segment))) if segment.id == id) {
            return false;
        }
        let removed = remove(vfs, path, length);
        removed.unwrap_or_else(|error| {
            // Another process may have removed it.
            if error.kind() != io::ErrorKind::NotFound {
                let path = path.display();
                sde::warning!("{path} was replaced and can't be removed: {error}");
            }
            false
        })
    }
}

/// Whether a replaced segment has no readers any more. Readers that miss a scratch state look again.
fn is_over(one: &ReplacedSegment, now: u64, grace: Duration) -> bool {
    one.path.starts_with(Part::Scratch.folder()) || is_as_old(one.at, now, grace)
}

/// Whether something was at least so long ago, or lies as far in the future: clocks may be wrong.
pub(crate) fn is_as_old(at: u64, now: u64, age: Duration) -> bool {
    let age = u64::try_from(age.as_nanos()).unwrap_or(u64::MAX);
    now.abs_diff(at) >= age
}

/// The ids of the segments that a manifest lists, including those replaced only in part.
pub(crate) fn listed<'m>(manifests: &[&'m Manifest]) -> HashSet<&'m str> {
    let listed = manifests.iter().flat_map(|manifest| &manifest.segments);
    listed.map(|one| &*one.id).collect()
}

impl DirStore {
    /// Closes the segments whose writers seem to have ended. Gives whether there were any.
    pub(crate) fn close_what_is_left(&self) -> Result<bool, ArchiveError> {
        let inner = &*self.0;
        let known: Vec<KnownSegment> = lock(&inner.catalog.segments).known().collect();
        let mut any = false;
        for KnownSegment { segment, .. } in known.iter().filter(|one| !one.sealed) {
            let path = &segment.path;
            let is_mine = !segment.is_abandoned() && !segment.is_of_another;
            if !is_mine || closed_at(path).is_some() || !self.is_left(path) {
                continue;
            }
            any = true;
            match close(&**inner.vfs(), path) {
                // Another compaction has closed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                closed => {
                    closed.map_err(|error| ArchiveError::io("closing", path, error))?;
                }
            }
        }
        Ok(any)
    }

    /// The unsealed segments to which no acknowledged frames are added any more. Either they were closed a time of
    /// grace ago, under all names, or this process has abandoned them.
    pub(crate) fn at_rest(&self, known: &[KnownSegment]) -> HashSet<UniqueId> {
        let mut closed: HashMap<UniqueId, Option<u64>> = HashMap::new();
        for KnownSegment { segment, .. } in known {
            let abandoned = segment.is_abandoned().then_some(0);
            let at = abandoned.or_else(|| closed_at(&segment.path));
            let of_all = closed.entry(segment.id).or_insert(at);
            *of_all = of_all.zip(at).map(|(one, other)| one.max(other));
        }
        let now = id::now(&**self.0.vfs());
        let at_rest = |at: Option<u64>| at.is_some_and(|at| is_as_old(at, now, self.0.grace));
        closed.retain(|_, at| at_rest(*at));
        closed.into_keys().collect()
    }
}

/// Removes a segment that was replaced up to a length, and gives `true`. If it has whole frames beyond that, it
/// stays: its writer may be alive after all.
pub(crate) fn remove(vfs: &dyn Vfs, path: &Path, length: u64) -> io::Result<bool> {
    let path = match closed_at(path).is_some() || is_sealed(vfs, path)? {
        true => path.to_owned(),
        false => close(vfs, path)?,
    };
    let Some(Ok(segment)) = scan::open(vfs, &path)? else {
        return Ok(false);
    };
    let mut grown = false;
    // The writer acknowledges nothing more in this file, so a frame not whole by now is useless.
    scan::scan_with(vfs, &segment, length, |frame, _| {
        grown |= frame.header.kind() != Some(FrameKind::Index);
        Ok(())
    })?;
    match grown {
        true => Ok(false),
        false => vfs.remove(&path).map(|()| true),
    }
}

/// Whether a segment has its trailer.
fn is_sealed(vfs: &dyn Vfs, path: &Path) -> io::Result<bool> {
    let Some(Ok(segment)) = scan::open(vfs, path)? else {
        return Ok(false);
    };
    let file = vfs.open(path)?;
    let mut trailer = [0; TRAILER];
    let at = file.length()?.checked_sub(TRAILER as u64);
    at.map_or(Ok(()), |at| file.read_at(&mut trailer, at))?;
    Ok(is_trailer(&segment, &trailer))
}

/// Renames a segment, so that its writer misses it; the new name has the time.
fn close(vfs: &dyn Vfs, path: &Path) -> io::Result<PathBuf> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = name.split(CLOSED).next().unwrap_or_default();
    let closed = path.with_file_name(format!("{name}{CLOSED}-{}.{EXTENSION}", id::now(vfs)));
    match vfs.link(path, &closed) {
        // Without hard links the file is renamed.
        Err(error) if error.kind() == io::ErrorKind::Unsupported => vfs.publish(path, &closed)?,
        linked => {
            linked?;
            // Without a sync a power failure may take both names.
            closed.parent().map_or(Ok(()), |dir| vfs.sync_dir(dir))?;
            match vfs.remove(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed?,
            }
        }
    }
    Ok(closed)
}

/// The time when a segment was closed, by its name.
fn closed_at(path: &Path) -> Option<u64> {
    let name = path.file_stem()?.to_str()?;
    let (_, at) = name.rsplit_once(CLOSED)?;
    at.strip_prefix('-')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_when_a_segment_was_closed() {
        let of = |name: &str| closed_at(Path::new(name));
        assert_eq!(of("entries/ab-cd.closed-17.sde"), Some(17));
        // The name an earlier release gave.
        assert_eq!(of("entries/ab-cd.closed.sde"), None);
        assert_eq!(of("entries/ab-cd.sde"), None);
    }
}
