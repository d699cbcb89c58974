//! The files of a store at one moment, while programs save to it and compact it.

use std::cmp::Reverse;
use std::collections::HashSet;

use sde::archiver::ArchiveError;

use super::Inspection;
use super::item::Item;
use super::listed::Listed;
use super::manifests::Manifests;
use super::segments::SegmentFile;
use super::walk::Walked;
use crate::catalog::LOOKS;
use crate::read::error::Damage;

/// The listed manifests and segments of a store, and the damage found in them.
///
/// A compaction may remove a listed segment, after it has copied its frames to another. [`Inspection::read`] reads
/// again then.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// The manifests.
    pub manifests: Manifests,
    /// The segments.
    pub segments: Vec<SegmentFile>,
    /// The damage found so far, each once.
    pub damages: Vec<Damage>,
    /// Whether a file was removed while it was read. Callers that notice this themselves set it.
    pub gone: bool,
    inspection: Inspection,
}

/// A predicate for the frames to read.
pub type Wanted<'a> = &'a dyn Fn(&Listed) -> bool;

impl Inspection {
    /// Runs `job` to read the store. It runs again if files are removed meanwhile, or a new generation may explain
    /// the damage found. If that goes on for several runs, `gone` is set. Memory and time are those of the job.
    ///
    /// ```
    /// use sde::Sde;
    /// use sde_archives::{DirStore, inspect::{Inspection, Item}};
    ///
    /// # fn main() -> Result<(), sde::Error> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("store");
    /// # drop(DirStore::open(&path)?);
    /// let (snapshot, entries) = Inspection::open(&path)?.read(|snapshot| {
    ///     let mut entries = 0;
    ///     snapshot.walk(None, |_, item| entries += u64::from(matches!(item, Item::Entry(_))));
    ///     Ok::<_, sde::archiver::ArchiveError>(entries)
    /// })?;
    /// assert_eq!((snapshot.is_whole(), entries?), (true, 0));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the files can't be listed. The job's result comes with the snapshot of its last run.
    pub fn read<T, E>(
        &self,
        mut job: impl FnMut(&mut Snapshot) -> Result<T, E>,
    ) -> Result<(Snapshot, Result<T, E>), ArchiveError> {
        let mut left = LOOKS;
        loop {
            // A new inspection, since cached data may be of files that are gone.
            let mut snapshot = self.again().snapshot()?;
            let found = job(&mut snapshot);
            let is_sure = found.is_ok() && snapshot.is_whole();
            let has_changed = !is_sure && snapshot.has_changed()?;
            left -= 1;
            if !has_changed || left == 0 {
                snapshot.gone = has_changed;
                return Ok((snapshot, found));
            }
        }
    }

    fn snapshot(self) -> Result<Snapshot, ArchiveError> {
        let (manifests, segments) = (self.manifests()?, self.segments()?);
        let mut damages = self.misplaced()?;
        damages.extend(manifests.lost(&segments, SegmentFile::length));
        damages.extend(manifests.damaged());
        Ok(Snapshot {
            manifests,
            segments,
            damages,
            gone: false,
            inspection: self,
        })
    }
}

impl Snapshot {
    /// Whether files were removed, or generations made, since the listing.
    fn has_changed(&self) -> Result<bool, ArchiveError> {
        let names = |manifests: &Manifests| -> Vec<String> {
            let files = manifests.files.iter();
            files.map(|file| file.name.clone()).collect()
        };
        Ok(self.gone || names(&self.manifests) != names(&self.inspection.manifests()?))
    }

    /// The inspected store.
    #[must_use]
    pub fn inspection(&self) -> &Inspection {
        &self.inspection
    }

    /// Passes the items of all segments that are not replaced to `each`, except damage, which is noted: the
    /// [wanted](SegmentFile::walk_wanted) ones, or all. Gives a summary of each segment; that of an unreadable one
    /// is empty.
    pub fn walk(
        &mut self,
        wanted: Option<Wanted<'_>>,
        mut each: impl FnMut(&SegmentFile, Item),
    ) -> Vec<Walked> {
        let mut all = Vec::new();
        for segment in &self.segments {
            let replaced = self.manifests.replaced(segment);
            let damages = &mut self.damages;
            let each = |item: Item| match item {
                item if item.at().is_some_and(|at| at < replaced) => {}
                Item::Damage(damage) => damages.push(damage),
                item => each(segment, item),
            };
            let walked = match wanted {
                Some(wanted) => segment.walk_wanted(wanted, each),
                None => segment.walk(each),
            };
            let walked = walked.unwrap_or_else(|error| {
                let whole = 0..segment.length();
                let damage = Damage::new(segment.path(), whole, error.to_string());
                self.damages.push(damage);
                Walked::default()
            });
            self.gone |= walked.gone;
            all.push(walked);
        }
        // Earlier walks may have noted the same damage.
        let place = |damage: &Damage| (damage.path.clone(), damage.place.start);
        self.damages.sort_by_cached_key(place);
        self.damages
            .dedup_by(|one, other| place(one) == place(other));
        all
    }

    /// The prefixes of the keys of the entries and states saved last, for at least `frames` frames; `None` if there
    /// are no others. Only the segments' indexes are read.
    #[must_use]
    pub fn latest(&self, frames: usize) -> Option<HashSet<u64>> {
        let mut latest: Vec<(u64, u64)> = Vec::new();
        let mut is_all = true;
        let mut keep = |latest: &mut Vec<(u64, u64)>| {
            if latest.len() > frames {
                is_all = false;
                latest.select_nth_unstable_by_key(frames, |(saved_at, _)| Reverse(*saved_at));
                latest.truncate(frames);
            }
        };
        for segment in &self.segments {
            let listed = segment.list(|listed| {
                if listed.is_entry() || listed.is_scratch() {
                    latest.push((listed.saved_at(), listed.prefix()));
                }
                // Bounds the memory, whatever the size of the store.
                if latest.len() > frames.saturating_mul(4) {
                    keep(&mut latest);
                }
            });
            // Walks report the segments that can't be read.
            let _ = listed;
        }
        keep(&mut latest);
        (!is_all).then(|| latest.into_iter().map(|(_, prefix)| prefix).collect())
    }

    /// The files of formats that this program can't read: path and version.
    pub fn other_formats(&self) -> impl Iterator<Item = (String, u32)> {
        let segments = self.segments.iter();
        let segments =
            segments.filter_map(|one| Some((one.path().to_owned(), one.other_format()?)));
        let manifests = self.manifests.files.iter();
        let manifests = manifests
            .filter_map(|one| Some((format!("manifests/{}", one.name), one.other_format?)));
        segments.chain(manifests)
    }

    /// Whether everything read so far was sound.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let is_damaged =
            self.gone || !self.damages.is_empty() || self.inspection.format_damage().is_some();
        !is_damaged && self.other_formats().next().is_none()
    }
}
