//! Sharing work with other processes that use the store: their announcements, and the entries they write.

use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use sde::Key;
use sde::archiver::{Announced, ArchiveError, Batch, StopListener};

use super::DirStore;
use crate::locks::lock;
use crate::work::Work;

/// A store's state for sharing work.
pub(crate) struct Sharing {
    /// `None` if this process announces nothing.
    pub(crate) work: Option<Work>,
    looks: Mutex<LookCost>,
}

/// The cost of looking for others' entries.
#[derive(Default)]
struct LookCost {
    last: Option<Instant>,
    /// The usual time of a look; one slow look, as by waiting for a processor, changes it little.
    takes: Duration,
}

impl LookCost {
    /// Whether a look is worthwhile: it takes less time than it may save, or at most a tenth of all time.
    fn is_worth(&self, spares: Duration) -> bool {
        let is_rare = |last: Instant| last.elapsed() > 10 * self.takes;
        self.takes < spares || self.last.is_none_or(is_rare)
    }

    fn took(&mut self, took: Duration) {
        let most = 2 * self.takes.max(Duration::from_millis(1));
        self.takes = took.min(most);
        self.last = Some(Instant::now());
    }
}

impl Sharing {
    pub(crate) fn new(store: Option<&Path>) -> Self {
        Self {
            work: store.map(Work::new),
            looks: Mutex::default(),
        }
    }
}

impl DirStore {
    pub(crate) fn announce_key(&self, app: &str, key: &Key) -> Announced {
        self.work_of_one()
            .map_or(Announced::Unsupported, |work| work.announce(app, key))
    }

    pub(crate) fn attend_work(&self) -> Option<Box<dyn Send + Sync>> {
        self.work_of_one()?.attend()
    }

    pub(crate) fn heed_requests(&self, told: StopListener) {
        if let Some(work) = self.work_of_one() {
            work.heed(told);
        }
    }

    /// Ranks that opened the store together do not look for other programs' entries, so they announce nothing.
    fn work_of_one(&self) -> Option<&Work> {
        let work = self.0.sharing.work.as_ref();
        work.filter(|_| self.0.team.get().is_none())
    }

    pub(crate) fn write_batch_through(&self, batch: &Batch) -> Result<(), ArchiveError> {
        self.check_writable()?;
        let writer = &self.0.writer;
        let abandoned = writer.abandoned();
        let new = self.encode_batch(batch).encoded;
        writer.begin_written().finish(new.frames)?;
        // The save reports values left out and checks copies, so such entries are left to it.
        if new.left_out.is_empty() && new.copies.is_empty() {
            writer.unsynced.add(batch, abandoned);
        }
        Ok(())
    }

    pub(crate) fn catch_up_with_others(&self, spares: Duration) {
        let looks = &self.0.sharing.looks;
        if !lock(looks).is_worth(spares) {
            return;
        }
        let begun = Instant::now();
        if let Err(error) = self.0.catalog.look_if_idle() {
            sde::warning!("what others wrote could not be looked for: {error}");
        }
        lock(looks).took(begun.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_longer_than_it_spares_is_done_seldom() {
        let (short, long) = (Duration::from_millis(20), Duration::from_secs(1000));
        let mut looks = LookCost::default();
        assert!(looks.is_worth(Duration::ZERO));
        looks.took(long);
        assert!(looks.is_worth(short), "it may have been an exception");
        for _ in 0..20 {
            looks.took(long);
        }
        assert!(!looks.is_worth(short));
        assert!(looks.is_worth(2 * long));
    }
}
