//! Merging the small segments that many short programs leave.
//!
//! A program that finishes and finds many small segments merges them, a batch at a time, so that memory does not
//! grow with their number. Only segments of similar size are merged, so that a byte is copied once each time the
//! number of segments doubles, not at each merge.

use sde::archiver::ArchiveError;

use super::MANY;
use crate::catalog::segments::KnownSegment;
use crate::format::class::Part;
use crate::locks::lock;
use crate::rewrite::select::{EVERYTHING, Selection};
use crate::rewrite::source::Source;
use crate::store::DirStore;

/// The number of segments merged at a time.
const BATCH: usize = 64;

/// The number of batches for each manifest.
const BATCHES: usize = 64;

impl DirStore {
    /// Merges small segments if there are many, unless another process is compacting.
    pub(crate) fn merge_small(&self) {
        let inner = &*self.0;
        if inner.read_only || inner.team.get().is_some() || self.small().is_empty() {
            return;
        }
        let alone = self.lock_against_compactions();
        let merged = match alone {
            Ok(None) => return,
            // Without locks two processes may merge the same segments, which only costs room.
            _ => self.merge(),
        };
        match merged {
            Err(error) if !error.is_not_found() => {
                sde::warning!("{} has many small files: {error}", inner.dir.display());
            }
            _ => {}
        }
    }

    fn merge(&self) -> Result<(), ArchiveError> {
        // Another process may have merged them before this one got the lock.
        self.refresh()?;
        let small = self.small();
        if small.is_empty() {
            return Ok(());
        }
        let mut replaced = Vec::new();
        for batches in small.chunks(BATCH * BATCHES) {
            for batch in batches.chunks(BATCH) {
                let sources = self.merge_batch(batch)?;
                replaced.extend(self.replaced(&sources));
            }
            self.write_manifest(&std::mem::take(&mut replaced))?;
        }
        self.remove_what_is_over(self.0.grace)?;
        Ok(())
    }

    /// Copies the frames that count of some segments; gives the segments read.
    fn merge_batch(&self, batch: &[KnownSegment]) -> Result<Vec<Source>, ArchiveError> {
        let catalog = &self.0.catalog;
        let mut sources = Vec::new();
        for known in batch {
            match self.source(&known.segment, false) {
                Err(error) if error.is_not_found() => {}
                source => sources.push(source?),
            }
        }
        let selected = Selection::new(catalog, &sources, EVERYTHING).run()?;
        self.rewrite(catalog, self.another_writer(), &sources, &selected)?;
        Ok(sources)
    }

    /// The segments to merge, if there are many, the shortest first. A short segment that is longer than all
    /// shorter ones together is left out.
    fn small(&self) -> Vec<KnownSegment> {
        let most = self.0.writer.config().short();
        let segments = lock(&self.0.catalog.segments);
        let is_small =
            |one: &KnownSegment| one.sealed && one.length < most && !one.segment.is_of_another;
        let mut small: Vec<KnownSegment> = segments.known().filter(is_small).collect();
        small.sort_unstable_by_key(|one| one.length);
        let of_part = |part: Part| {
            let of_part = small.iter().filter(|one| one.segment.part == part);
            let mut of_part: Vec<&KnownSegment> = of_part.collect();
            let mut sum: u64 = of_part.iter().map(|one| one.length).sum();
            while let Some(longest) = of_part.pop_if(|one| one.length > sum - one.length) {
                sum -= longest.length;
            }
            of_part
        };
        let parts = Part::ALL.map(of_part).into_iter();
        let many = parts.filter(|one| one.len() > MANY);
        many.flatten().cloned().collect()
    }
}
