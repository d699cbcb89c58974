//! Merging what many short programs have left.
//!
//! Each leaves a segment with the few entries that it saved. The program that finishes and finds many merges them. Only
//! segments of like size are merged, so that a byte is written again as often as the number of segments doubles, and
//! not each time.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use sde::ArchiveError;

use super::plan::Plan;
use super::survey::Candidate;
use crate::catalog::segments::KnownSegment;
use crate::format::class::Part;
use crate::format::directory::FORMAT;
use crate::format::id::UniqueId;
use crate::locks::lock;
use crate::store::DirStore;

/// So many small segments of a part are left alone.
const MANY: usize = 32;

impl DirStore {
    /// Merges small segments if there are many, unless another process makes room just now.
    pub(crate) fn merge_small(&self) {
        let inner = &*self.0;
        if inner.read_only || inner.team.get().is_some() || self.small().is_empty() {
            return;
        }
        let alone = inner.vfs().try_lock(&inner.dir.join(FORMAT));
        let merged = match alone {
            Ok(None) => return,
            // Where there are no locks two may merge the same: that costs room, and nothing else.
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
        // Another process may have merged them before this one had the lock.
        self.refresh()?;
        let catalog = &self.0.catalog;
        let replaced = lock(&catalog.manifests).replaced();
        let mut candidates = Vec::new();
        for id in self.small() {
            let known = lock(&catalog.segments)
                .by_id()
                .get(&id)
                .map(|one| Arc::clone(one));
            let Some(segment) = known else { continue };
            let path = segment.path.clone();
            let from = replaced.get(&id).copied().unwrap_or(0);
            match Candidate::survey(catalog, segment, from, true) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                candidate => {
                    candidates
                        .push(candidate.map_err(|error| ArchiveError::io("reading", path, error))?);
                }
            }
        }
        if candidates.len() > MANY {
            self.carry_out(&Plan::everything(candidates))?;
            self.remove_what_is_over(self.0.grace)?;
        }
        Ok(())
    }

    /// The segments to merge, if there are many: those that are short, but for such as are longer than all shorter ones together.
    fn small(&self) -> HashSet<UniqueId> {
        let most = self.0.writer.config().segment_size / 4;
        let segments = lock(&self.0.catalog.segments);
        let is_small = |one: &KnownSegment| one.sealed && one.length < most;
        let mut small: Vec<KnownSegment> = segments.known().filter(is_small).collect();
        small.sort_unstable_by_key(|one| one.length);
        let of_part = |part: Part| {
            let mut of_part: Vec<&KnownSegment> = small
                .iter()
                .filter(|one| one.segment.part == part)
                .collect();
            let mut sum: u64 = of_part.iter().map(|one| one.length).sum();
            while let Some(longest) = of_part.pop_if(|one| one.length > sum - one.length) {
                sum -= longest.length;
            }
            of_part
        };
        let many = Part::ALL
            .map(of_part)
            .into_iter()
            .filter(|one| one.len() > MANY);
        many.flatten().map(|one| one.segment.id).collect()
    }
}
