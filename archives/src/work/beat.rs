//! What a process does every 2 s while it is at work: it renews its lease, writes into it what it is at, and looks
//! whether it was told to stop.
//!
//! One thread for each lease does that. It begins with the work, and ends after it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
use sde::Key;

use super::file::this;
use super::heed::Heed;
use super::text::{self, Begun};
use crate::format::id::UniqueId;
use crate::locks::{lock, wait_timeout};

/// The time from one beat to the next.
const BEAT: Duration = Duration::from_secs(2);

/// The work of a lease's process.
pub(super) struct Beat {
    file: File,
    id: UniqueId,
    heed: Arc<Heed>,
    begun: SystemTime,
    state: Mutex<BeatState>,
    changed: Condvar,
}

#[derive(Default)]
struct BeatState {
    /// How many guards there are.
    at_work: usize,
    has_thread: bool,
    /// The announced runs, and whether the lease does not tell them yet.
    runs: Vec<Arc<Begun>>,
    is_untold: bool,
    /// The time of the last renewal, by this process's clock and the file system's.
    renewed: Option<(Instant, SystemTime)>,
}

/// Keeps the lease renewed, and its run among those that the process is at.
pub(super) struct AtWork {
    beat: Arc<Beat>,
    run: Option<Arc<Begun>>,
}

impl Drop for AtWork {
    fn drop(&mut self) {
        let mut state = lock(&self.beat.state);
        state.at_work -= 1;
        if let Some(run) = &self.run {
            state.runs.retain(|of| !Arc::ptr_eq(of, run));
            state.is_untold = true;
        }
    }
}

impl Beat {
    pub(super) fn new(file: File, id: UniqueId, heed: Arc<Heed>) -> Self {
        Self {
            file,
            id,
            heed,
            begun: SystemTime::now(),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Renews the lease for as long as the guard lives, and tells of the run.
    pub(super) fn begin(
        self: &Arc<Self>,
        run: Option<(&Key, &str)>,
        duration: Duration,
    ) -> io::Result<AtWork> {
        let every = duration / 3;
        self.renew(every)?;
        let run = run.map(|(key, app)| Arc::new(Begun::now(*key, app)));
        let mut state = lock(&self.state);
        state.at_work += 1;
        state.is_untold = true;
        state.runs.extend(run.clone());
        if !state.has_thread {
            let of_thread = Arc::clone(self);
            let thread = std::thread::Builder::new().name("sde-lease".to_owned());
            let work = move || of_thread.work(every);
            // Without the thread others may take over work that takes longer than a lease.
            state.has_thread = thread.spawn(work).is_ok();
        }
        drop(state);
        let beat = Arc::clone(self);
        Ok(AtWork { beat, run })
    }

    /// Renews the lease if it is due; gives the time of the last renewal.
    pub(super) fn renew(&self, every: Duration) -> io::Result<(Instant, SystemTime)> {
        if let Some(renewed) = lock(&self.state).renewed
            && renewed.0.elapsed() < every
        {
            return Ok(renewed);
        }
        let time = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
        let now = Timestamps {
            last_access: time(UTIME_OMIT),
            last_modification: time(UTIME_NOW),
        };
        rustix::fs::futimens(&self.file, &now)?;
        let renewed = (Instant::now(), self.file.metadata()?.modified()?);
        lock(&self.state).renewed = Some(renewed);
        Ok(renewed)
    }

    /// Ends the thread, if nothing is left to do.
    pub(super) fn wake(&self) {
        self.changed.notify_all();
    }

    /// The thread's work, while anything is left to do. The first beat comes at once: a request to stop may be older
    /// than the work.
    fn work(&self, every: Duration) {
        let beat = BEAT.min(every);
        loop {
            self.heed.look(&self.id);
            // If these fail, others take over in the end, or do not see what this process is at.
            let _ = self.tell();
            let _ = self.renew(every - beat);
            let mut state = wait_timeout(&self.changed, lock(&self.state), beat).0;
            if state.at_work == 0 {
                state.has_thread = false;
                return;
            }
        }
    }

    /// Writes what the process is at, unless the lease says it.
    fn tell(&self) -> io::Result<()> {
        let runs = {
            let mut state = lock(&self.state);
            if !std::mem::take(&mut state.is_untold) {
                return Ok(());
            }
            state.runs.clone()
        };
        let text = format!("{}{}", this(), text::of(self.begun, &runs));
        self.file.write_all_at(text.as_bytes(), 0)?;
        self.file.set_len(text.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_renewed_as_long_as_anything_is_announced() {
        let beat = Arc::new(Beat::new(
            tempfile::tempfile().unwrap(),
            UniqueId::new(),
            Arc::new(Heed::new("nowhere".as_ref())),
        ));
        let at_work = || lock(&beat.state).at_work;
        let guards = [(), ()].map(|()| beat.begin(None, Duration::from_secs(30)).unwrap());
        assert_eq!(at_work(), 2);
        drop(guards);
        assert_eq!(at_work(), 0);
    }
}
