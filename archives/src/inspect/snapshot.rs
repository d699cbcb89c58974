//! The files of a store at one moment, while programs save to it and compact it.

use std::cmp::Reverse;
use std::collections::HashSet;

use sde::ArchiveError;

use super::Inspection;
use super::item::Item;
use super::listed::Listed;
use super::manifests::Manifests;
use super::segments::SegmentFile;
use super::walk::Walked;
use crate::catalog::LOOKS;
use crate::read::error::Damage;

/// The manifests and segments of a store as they were listed, and what was found damaged in them since.
///
/// A compaction may remove a segment after that, and has put what counts of it in another before.
/// [`Inspection::read`] looks again then.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// The manifests.
    pub manifests: Manifests,
    /// The segments.
    pub segments: Vec<SegmentFile>,
    /// What is damaged, of what was looked at: each once.
    pub damages: Vec<Damage>,
    /// Whether a file was removed while it was read. Who finds that otherwise says so here.
    pub gone: bool,
    inspection: Inspection,
}

/// Which frames are wanted.
pub type Wanted<'a> = &'a dyn Fn(&Listed) -> bool;

impl Inspection {
    /// Has `job` read what it wants of the store. If files are removed meanwhile, or damage was found that a
    /// new generation may explain, it is called again for what is there then; `gone` is set if that is so
    /// after several times, too. Memory and time are those of the job.
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
    ///     Ok::<_, sde::ArchiveError>(entries)
    /// })?;
    /// assert_eq!((snapshot.is_whole(), entries?), (true, 0));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the files can't be listed. What the job returns comes with the snapshot that it was given last.
    pub fn read<T, E>(
        &self,
        mut job: impl FnMut(&mut Snapshot) -> Result<T, E>,
    ) -> Result<(Snapshot, Result<T, E>), ArchiveError> {
        let mut left = LOOKS;
        loop {
            // What was read of the files may be of files that are gone.
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
    /// Whether files were removed, or generations made, since the files were listed.
    fn has_changed(&self) -> Result<bool, ArchiveError> {
        let names = |manifests: &Manifests| -> Vec<String> {
            let files = manifests.files.iter();
            files.map(|file| file.name.clone()).collect()
        };
        Ok(self.gone || names(&self.manifests) != names(&self.inspection.manifests()?))
    }

    /// The store.
    #[must_use]
    pub fn inspection(&self) -> &Inspection {
        &self.inspection
    }

    /// Gives each thing in the segments that has not been replaced to `each`, but for damage, which is noted: of
    /// those frames that are [wanted](SegmentFile::walk_wanted), or of all. Gives what was found of each segment as a
    /// whole; nothing of one that can't be read.
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
        // It may have been walked through before.
        let place = |damage: &Damage| (damage.path.clone(), damage.place.start);
        self.damages.sort_by_cached_key(place);
        self.damages
            .dedup_by(|one, other| place(one) == place(other));
        all
    }

    /// How the keys of the entries and states begin that were saved last, at least so many frames if there are as many; `None`
    /// if these are all. No more is read than the indexes of the segments.
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
                // So that memory does not grow with the store.
                if latest.len() > frames.saturating_mul(4) {
                    keep(&mut latest);
                }
            });
            // What can't be read is told of where it is walked through.
            let _ = listed;
        }
        keep(&mut latest);
        (!is_all).then(|| latest.into_iter().map(|(_, prefix)| prefix).collect())
    }

    /// What is of another format than this program reads: a path, and the version.
    pub fn other_formats(&self) -> impl Iterator<Item = (String, u32)> {
        let segments = self.segments.iter();
        let segments =
            segments.filter_map(|one| Some((one.path().to_owned(), one.other_format()?)));
        let manifests = self.manifests.files.iter();
        let manifests = manifests
            .filter_map(|one| Some((format!("manifests/{}", one.name), one.other_format?)));
        segments.chain(manifests)
    }

    /// Whether all that was looked at could be read.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let is_damaged =
            self.gone || !self.damages.is_empty() || self.inspection.format_damage().is_some();
        !is_damaged && self.other_formats().next().is_none()
    }
}
