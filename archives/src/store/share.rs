//! Work shared with other processes that use the store: what they are at, and what they have written.

use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use sde::{Announced, ArchiveError, Batch, Key};

use super::DirStore;
use crate::locks::lock;
use crate::work::Work;

/// What a store needs for that.
pub(crate) struct Sharing {
    /// `None` if other processes are told nothing.
    pub(crate) work: Option<Work>,
    looks: Mutex<LookCost>,
}

/// How it is to look for what others wrote.
#[derive(Default)]
struct LookCost {
    last: Option<Instant>,
    /// How long a look takes, as a rule: one that has to wait for a processor is none.
    takes: Duration,
}

impl LookCost {
    /// Whether what it may spare is worth a look. If not, a tenth of the time goes into looking at most.
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
        let new = self.encode_batch(batch).encoded;
        writer.begin_written().finish(new.frames)?;
        // What is left out is told of by the save, which makes sure of copies too.
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
