//! Work shared with other processes that use the store: what they are at, and what they have written.

use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use sde::{Announced, ArchiveError, Batch, Holder, Key};

use super::{DirStore, lock};
use crate::work::Work;
use crate::writer::group_commit::Until;

/// What a store needs for that.
pub(crate) struct Sharing {
    /// `None` if other processes are told nothing.
    work: Option<Work>,
    /// When what others wrote was looked for last, and how long that took.
    looked: Mutex<Option<(Instant, Duration)>>,
}

/// Looking for what others wrote that takes more than this is done a tenth of the time at most.
const SLOW: Duration = Duration::from_millis(50);

impl Sharing {
    pub(crate) fn new(store: Option<&Path>) -> Self {
        Self {
            work: store.map(Work::new),
            looked: Mutex::default(),
        }
    }

    pub(crate) fn announced_by(&self, key: &Key) -> Option<Holder> {
        self.work.as_ref()?.announced_by(key)
    }

    /// Removes what dead processes have left.
    pub(crate) fn clean(&self) {
        self.work.iter().for_each(Work::clean);
    }
}

impl DirStore {
    /// Ranks that opened the store together look for nothing that other programs write.
    pub(crate) fn announce_key(&self, key: &Key) -> Announced {
        let work = self.0.sharing.work.as_ref();
        let work = work.filter(|_| self.0.team.get().is_none());
        work.map_or(Announced::Unsupported, |work| work.announce(key))
    }

    pub(crate) fn write_batch_through(&self, batch: &Batch) -> Result<(), ArchiveError> {
        self.check_writable()?;
        let writer = &self.0.writer;
        let abandoned = writer.abandoned();
        let left_out = self.write_batch(batch, Until::Written)?;
        // What is left out is told of by the save.
        if left_out.is_empty() {
            writer.through.add(batch, abandoned);
        }
        Ok(())
    }

    pub(crate) fn catch_up_with_others(&self) {
        let mut looked = lock(&self.0.sharing.looked);
        let is_slow = |(at, took): (Instant, Duration)| took > SLOW && at.elapsed() < 10 * took;
        if looked.is_some_and(is_slow) {
            return;
        }
        let begun = Instant::now();
        if let Err(error) = self.refresh() {
            sde::warning!("what others saved could not be looked for: {error}");
        }
        *looked = Some((Instant::now(), begun.elapsed()));
    }
}
