//! Removing segments that have been replaced.
//!
//! Whoever still has a place in such a segment may read it for the time of grace. And it may
//! have been replaced because its writer was taken for dead: locks tell nothing on some file
//! systems. So before it is removed it is closed, that is given another name, which its writer
//! notices before it acknowledges anything more; if it has grown beyond what was copied of
//! it, it stays, and what it has beyond that counts.
//!
//! What a writer has [superseded](crate::compact::scratch) itself needs no such time, and says so: it was replaced at
//! time 0.

use std::io;
use std::path::{Path, PathBuf};

use crate::catalog::scan;
use crate::format::id::UniqueId;
use crate::format::manifest::{Manifest, Retired};
use crate::format::segment::FrameKind;
use crate::store::{DirStore, lock};
use crate::vfs::Vfs;

/// What the name of a closed segment ends with, before the extension.
const CLOSED: &str = ".closed";

impl DirStore {
    /// Removes replaced segments that no manifest lists, and that nobody has had reason
    /// to read for a while. Gives how many.
    pub(crate) fn remove_retired(&self) -> usize {
        let removable = self.removable();
        removable.iter().filter(|one| self.remove_one(one)).count()
    }

    /// Whether there is something that only the manifests before this one keep.
    pub(crate) fn waits_for_another_generation(&self) -> bool {
        let inner = &*self.0;
        let lineage = lock(&inner.lineage);
        let now = inner.clock.stamp();
        let is_over = |one: &&Retired| self.is_over(one, now);
        let retired = lineage.all().flat_map(|manifest| &manifest.retired);
        let listed = |one: &Retired| lineage.all().any(|manifest| manifest.lists(one));
        retired.filter(is_over).any(listed)
    }

    fn is_over(&self, one: &Retired, now: u64) -> bool {
        let grace = u64::try_from(self.0.grace.as_nanos()).unwrap_or(u64::MAX);
        now.saturating_sub(one.at) >= grace
    }

    fn removable(&self) -> Vec<(UniqueId, u64)> {
        let lineage = lock(&self.0.lineage);
        let now = self.0.clock.stamp();
        let manifests: Vec<&Manifest> = lineage.all().collect();
        let is_listed = |one: &Retired| manifests.iter().any(|manifest| manifest.lists(one));
        let over = |one: &&Retired| self.is_over(one, now) && !is_listed(one);
        let retired = manifests.iter().flat_map(|manifest| &manifest.retired);
        let mut removable: Vec<(UniqueId, u64)> = retired
            .filter(over)
            .filter_map(|one| Some((UniqueId::parse(&one.id)?, one.length)))
            .collect();
        removable.sort_unstable_by_key(|(id, length)| (id.0, std::cmp::Reverse(*length)));
        removable.dedup_by_key(|(id, _)| *id);
        removable
    }

    fn remove_one(&self, (id, length): &(UniqueId, u64)) -> bool {
        let medium = &*self.0.medium;
        let path = lock(&self.0.seen).path_of(id).map(Path::to_owned);
        let Some(path) = path else {
            return false;
        };
        // Only the file that was replaced, whatever has its name now.
        let found = scan::open(medium, &path);
        if !matches!(found, Ok(Some(Ok(segment))) if segment.id == *id) {
            return false;
        }
        let removed = remove(medium, &path, *length);
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

/// Removes a segment whose writer may be alive after all, unless it has more whole frames than were
/// copied of it. Gives whether it did.
pub(crate) fn remove(medium: &dyn Vfs, path: &Path, length: u64) -> io::Result<bool> {
    let closed = close(medium, path)?;
    let Some(Ok(segment)) = scan::open(medium, &closed)? else {
        return Ok(false);
    };
    let mut grown = false;
    // What is acknowledged from now on is elsewhere, so what is not whole by now is of no use.
    scan::scan_with(medium, &segment, length, |frame| {
        grown |= frame.header.kind != Some(FrameKind::Index);
    })?;
    match grown {
        true => Ok(false),
        false => medium.remove(&closed).map(|()| true),
    }
}

/// Takes the name away under which its writer looks for it.
fn close(medium: &dyn Vfs, path: &Path) -> io::Result<PathBuf> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    if stem.ends_with(CLOSED) {
        return Ok(path.to_owned());
    }
    let closed = path.with_file_name(format!(
        "{stem}{CLOSED}.{}",
        crate::writer::segment_writer::EXTENSION
    ));
    medium.publish(path, &closed)?;
    Ok(closed)
}
