//! The gate before the items of a sweep: nothing begins that does not fit the time that the job has left.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use super::Engine;
use crate::entry::RecordHead;
use crate::error::{Error, ErrorKind};
use crate::job::Costs;
use crate::sync::lock;

/// The gate of one sweep.
pub(crate) struct Gate<'a> {
    engine: &'a Engine,
    app: Arc<str>,
    /// What items cost; read when it is first needed.
    costs: OnceLock<Mutex<Costs>>,
    has_warned: AtomicBool,
    begun: Instant,
    /// Keeps the process known as one that is at work.
    attends: OnceLock<Option<Box<dyn Send + Sync>>>,
}

/// A sweep of that length is known to others, who may tell the process to stop. What is done sooner costs no file.
const KNOWN_AFTER: Duration = Duration::from_secs(1);

impl<'a> Gate<'a> {
    /// The gate of a sweep of this app.
    pub(super) fn new(engine: &'a Engine, app: &Arc<str>) -> Self {
        Self {
            engine,
            app: Arc::clone(app),
            costs: OnceLock::new(),
            has_warned: AtomicBool::new(false),
            begun: Instant::now(),
            attends: OnceLock::new(),
        }
    }

    /// How long items may still begin: `None` without limit, nothing if none fits any more.
    pub(crate) fn closes_in(&self) -> Option<Duration> {
        if self.begun.elapsed() >= KNOWN_AFTER {
            self.attends.get_or_init(|| self.engine.attend());
        }
        let job = &self.engine.job;
        let (left, whole) = (job.time_left()?, job.whole()?);
        if left.is_zero() {
            return Some(left);
        }
        let costs = lock(self.costs.get_or_init(|| Mutex::new(self.recorded())));
        let closes_in = costs.closes_in(left, whole);
        let length = job.length();
        let needs = costs.estimate().filter(|needs| *needs > length);
        drop(costs);
        if let Some(needs) = needs
            && !self.has_warned.swap(true, Ordering::Relaxed)
        {
            let app = &self.app;
            self.engine.warn(|| {
                format!("nothing of {app} is begun: a run may take {needs:.0?}, and the whole job has {length:.0?}; give it more time")
            });
        }
        Some(closes_in)
    }

    /// Checks that an item may begin.
    pub(crate) fn pass(&self) -> Result<(), Error> {
        match self.closes_in() {
            Some(Duration::ZERO) => Err(self.closed()),
            _ => Ok(()),
        }
    }

    /// The error of an item that may not begin.
    pub(crate) fn closed(&self) -> Error {
        let (app, stopped) = (Arc::clone(&self.app), self.engine.job.is_stopped());
        ErrorKind::NotStarted { app, stopped }.into()
    }

    /// Notes a run that has ended, well or not.
    pub(crate) fn note(&self, record: &RecordHead) {
        // Before they are first needed none are kept.
        if let Some(costs) = self.costs.get() {
            self.note_in(&mut lock(costs), record);
        }
    }

    /// A run that was not made from nothing, and took longer in all than a job lasts, tells nothing of what the next job can do: it
    /// may have gone on from the state of another job.
    pub(super) fn note_in(&self, costs: &mut Costs, record: &RecordHead) {
        if !record.anew || record.took <= self.engine.job.length() {
            let run = (record.run.process, record.run.number);
            costs.note(record.made_at, run, record.took);
        }
    }

    /// Notes what a run took on other ranks.
    pub(crate) fn note_elsewhere(&self, run: (u64, u64), began: SystemTime, took: Duration) {
        // What ended in this job and took longer than the job went on from another's state.
        if let Some(costs) = self.costs.get()
            && took <= self.engine.job.length()
        {
            lock(costs).note(began, run, took);
        }
    }

    /// The costs that memory and the store have.
    fn recorded(&self) -> Costs {
        let mut costs = Costs::default();
        if let Some(store) = self.engine.archiver() {
            // Without the store's the estimate is poorer.
            let read = store.records(&self.app, &mut |record| self.note_in(&mut costs, record));
            let _ =
                read.inspect_err(|why| tracing::warn!(target: "sde", "no costs were read: {why}"));
        }
        if let Some(cache) = self.engine.caches.named(&self.app) {
            let entries = cache.entries();
            entries
                .iter()
                .for_each(|entry| self.note_in(&mut costs, &entry.record));
        }
        costs
    }
}
