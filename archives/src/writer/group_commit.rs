//! Writing what many threads save at once, with as few syncs as possible.
//!
//! Where each result is to be durable before `run` returns, every thread would wait for
//! a sync of its own, one after another, and a disk does a few thousand of them in a
//! second. So the first thread that comes writes for all that have come by then, and
//! syncs once; those that come meanwhile are next. Nobody else's thread is needed.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use sde::ArchiveError;

use crate::catalog::table::Table;
use crate::format::class::Class;
use crate::format::id::UniqueId;
use crate::writer::frame::{NewFrame, Written};
use crate::writer::segment_writer::{Ground, Lane};

/// What one thread wants written.
struct Job {
    number: u64,
    frames: Vec<NewFrame>,
    /// Sync what this job, and its parts before, have put.
    durable: bool,
    begun: Begun,
}

/// How many segments of each class were abandoned when a save began: if that changes, the
/// parts of it that were put before are lost.
type Begun = Option<[u64; 3]>;

type Outcome = Result<(Vec<Written>, Begun), ArchiveError>;

#[derive(Default)]
struct Queue {
    waiting: Vec<Job>,
    done: HashMap<u64, Outcome>,
    next: u64,
    writing: bool,
}

/// A segment that has no index, and how much of it is durable.
pub(crate) type Durable = (PathBuf, UniqueId, Class, u64);

/// The lanes of a store, and the queue before them.
pub(crate) struct Committer {
    ground: Ground,
    queue: Mutex<Queue>,
    changed: Condvar,
    lanes: Mutex<[Lane; 3]>,
}

/// One save, which may come in parts.
pub(crate) struct Save<'a> {
    to: &'a Committer,
    begun: Begun,
    written: Vec<Written>,
}

impl Committer {
    pub(crate) fn new(ground: Ground) -> Self {
        Self {
            ground,
            queue: Mutex::default(),
            changed: Condvar::new(),
            lanes: Mutex::new(Class::ALL.map(Lane::new)),
        }
    }

    pub(crate) fn ground(&self) -> &Ground {
        &self.ground
    }

    /// Begins to save.
    pub(crate) fn begin(&self) -> Save<'_> {
        Save {
            to: self,
            begun: None,
            written: Vec::new(),
        }
    }

    /// The segments of this process that have no index, as far as they are durable.
    pub(crate) fn written(&self) -> Vec<Durable> {
        let lanes = lock(&self.lanes);
        let durable = lanes.iter().flat_map(Lane::durable);
        durable
            .map(|(segment, length)| (segment.path.clone(), segment.id, segment.class, length))
            .collect()
    }

    /// Those of them that are not written to any more.
    pub(crate) fn ended(&self) -> Vec<Durable> {
        let lanes = lock(&self.lanes);
        let ended = lanes.iter().flat_map(Lane::ended);
        ended
            .map(|(segment, length)| (segment.path.clone(), segment.id, segment.class, length))
            .collect()
    }

    /// Seals what is as long as is said of its class. The tables are given while nobody else can ask what
    /// is [written](Self::written): a segment is among that, or its table has been given.
    pub(crate) fn seal(&self, length: impl Fn(Class) -> u64, mut each: impl FnMut(Table)) {
        let mut lanes = lock(&self.lanes);
        for (class, lane) in Class::ALL.into_iter().zip(&mut *lanes) {
            // Another thread may have put a part of its save there. If this fails it is told.
            if lane.sync(&self.ground).is_ok() {
                lane.seal(length(class)).into_iter().for_each(&mut each);
            }
        }
    }

    /// The store was removed, with all that is written to now: the next save begins anew, and no
    /// manifest is to name what was there.
    pub(crate) fn forget(&self) {
        lock(&self.lanes).iter_mut().for_each(Lane::forget);
    }

    /// Forgets segments that have no index and are not written to any more.
    pub(crate) fn let_go(&self, goes: impl Fn(&UniqueId) -> bool) {
        lock(&self.lanes)
            .iter_mut()
            .for_each(|lane| lane.let_go(&goes));
    }

    /// Writes a job, and those of others that wait; gives what came of it.
    fn submit(&self, frames: Vec<NewFrame>, durable: bool, begun: Begun) -> Outcome {
        let mut queue = lock(&self.queue);
        let number = queue.next;
        queue.next += 1;
        queue.waiting.push(Job {
            number,
            frames,
            durable,
            begun,
        });
        loop {
            if let Some(outcome) = queue.done.remove(&number) {
                return outcome;
            }
            if queue.writing {
                queue = self
                    .changed
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            queue.writing = true;
            let jobs = std::mem::take(&mut queue.waiting);
            if !jobs.iter().any(|job| job.number == number) {
                // Somebody took it, and did not come to its end.
                queue.waiting = jobs;
                queue.writing = false;
                let why = "the thread that wrote this save panicked; nothing of it was saved";
                return Err(ArchiveError::Other(why.to_owned()));
            }
            drop(queue);
            let stop = Stop(self);
            let outcomes = self.write(&jobs);
            // Before anybody is woken: who then finds no outcome takes it that there will be none.
            lock(&self.queue).done.extend(outcomes);
            drop(stop);
            queue = lock(&self.queue);
        }
    }

    fn write(&self, jobs: &[Job]) -> Vec<(u64, Outcome)> {
        let mut lanes = lock(&self.lanes);
        let mut failed: [Option<ArchiveError>; 3] = [None, None, None];
        let before = lanes.each_ref().map(Lane::abandoned);
        let put: Vec<Vec<Written>> = jobs
            .iter()
            .map(|job| put(job, &mut lanes, &mut failed, &self.ground))
            .collect();
        if jobs.iter().any(|job| job.durable) {
            for (lane, failed) in lanes.iter_mut().zip(&mut failed) {
                if failed.is_none() {
                    *failed = lane.sync(&self.ground).err();
                }
            }
        }
        let now = lanes.each_ref().map(Lane::abandoned);
        let outcomes = jobs.iter().zip(put);
        outcomes
            .map(|(job, written)| {
                let begun = job.begun.unwrap_or(before);
                (job.number, outcome(job, written, &failed, begun, now))
            })
            .collect()
    }
}

/// Puts the frames of a job, as far as no lane fails.
fn put(
    job: &Job,
    lanes: &mut [Lane; 3],
    failed: &mut [Option<ArchiveError>; 3],
    ground: &Ground,
) -> Vec<Written> {
    let mut written = Vec::with_capacity(job.frames.len());
    for frame in &job.frames {
        let class = frame.class.number();
        if failed[class].is_none() {
            match lanes[class].put(frame, ground) {
                Ok(one) => written.push(one),
                Err(error) => failed[class] = Some(error),
            }
        }
    }
    written
}

fn outcome(
    job: &Job,
    written: Vec<Written>,
    failed: &[Option<ArchiveError>; 3],
    begun: [u64; 3],
    now: [u64; 3],
) -> Outcome {
    let touched = |class: usize| {
        let own = job.frames.iter().any(|frame| frame.class.number() == class);
        // A part before this one may have been put there.
        own || job.begun.is_some()
    };
    for class in (0..3).filter(|class| touched(*class)) {
        if let Some(error) = &failed[class] {
            return Err(error.clone());
        }
        if begun[class] != now[class] {
            let why = "another save failed while this one was written; nothing of it was saved";
            return Err(ArchiveError::Other(why.to_owned()));
        }
    }
    Ok((written, Some(begun)))
}

/// Lets the next one write, also after a panic.
struct Stop<'a>(&'a Committer);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        lock(&self.0.queue).writing = false;
        self.0.changed.notify_all();
    }
}

impl Save<'_> {
    /// Writes a part. It is not durable yet.
    pub(crate) fn part(&mut self, frames: Vec<NewFrame>) -> Result<(), ArchiveError> {
        self.submit(frames, false)
    }

    /// Writes the last part and makes all of them durable; gives what was written.
    pub(crate) fn finish(mut self, frames: Vec<NewFrame>) -> Result<Vec<Written>, ArchiveError> {
        self.submit(frames, true)?;
        Ok(self.written)
    }

    fn submit(&mut self, frames: Vec<NewFrame>, durable: bool) -> Result<(), ArchiveError> {
        let (written, begun) = self.to.submit(frames, durable, self.begun)?;
        self.begun = begun;
        self.written.extend(written);
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
