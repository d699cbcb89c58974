//! Writing what many threads save at once, with as few syncs as possible.
//!
//! Where each result is to be durable before `run` returns, every thread would wait for
//! a sync of its own, one after another, and a disk does a few thousand of them in a
//! second. So the first thread that comes writes for all that have come by then, and
//! syncs once; those that come meanwhile are next. Nobody else's thread is needed.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex};

use sde::ArchiveError;

use crate::catalog::Written;
use crate::format::class::Part;
use crate::format::id::UniqueId;
use crate::format::index_block::IndexBlock;
use crate::format::segment::Segment;
use crate::locks::{MutexGuard, lock, wait};
use crate::writer::frame::NewFrame;
use crate::writer::segment_writer::{SegmentWriter, WriterConfig};
use crate::writer::through::Through;

/// What one thread wants written.
struct Job {
    number: u64,
    frames: Arc<Vec<NewFrame>>,
    until: Until,
    begun: Begun,
}

/// How far a save goes with what it and its pieces before have put.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Until {
    /// Another piece follows.
    Put,
    /// Other processes find it.
    Written,
    /// It is on the medium.
    Durable,
}

/// How many segments of each part were abandoned when a save began: if that changes, the
/// pieces of it that were put before are lost.
type Begun = Option<[u64; 2]>;

type Outcome = Result<Begun, ArchiveError>;

#[derive(Default)]
struct Queue {
    waiting: Vec<Job>,
    done: HashMap<u64, Outcome>,
    next: u64,
    writing: bool,
}

/// A segment that has no index, and how much of it is durable.
pub(crate) type Durable = (Arc<Segment>, u64);

/// Takes note of frames that can be read.
type Note = Box<dyn Fn(Written) + Send + Sync>;

/// The writers of a store, and the queue before them.
pub(crate) struct GroupCommit {
    config: WriterConfig,
    note: Note,
    queue: Mutex<Queue>,
    changed: Condvar,
    writers: Mutex<[SegmentWriter; 2]>,
    pub(crate) through: Through,
}

/// One save, which may come in pieces.
pub(crate) struct Save<'a> {
    to: &'a GroupCommit,
    until: Until,
    begun: Begun,
}

impl GroupCommit {
    /// What can be read is noted before anything else is written, or sealed.
    pub(crate) fn new(
        config: WriterConfig,
        note: impl Fn(Written) + Send + Sync + 'static,
    ) -> Self {
        Self {
            config,
            note: Box::new(note),
            queue: Mutex::default(),
            changed: Condvar::new(),
            writers: Mutex::new(Part::ALL.map(SegmentWriter::new)),
            through: Through::default(),
        }
    }

    pub(crate) fn config(&self) -> &WriterConfig {
        &self.config
    }

    /// Begins to save.
    pub(crate) fn begin(&self) -> Save<'_> {
        Save {
            to: self,
            until: Until::Durable,
            begun: None,
        }
    }

    /// Begins to save entries, some of which may have been [written through](Through) before.
    pub(crate) fn begin_entries(&self, until: Until) -> Save<'_> {
        let with_those_before = until == Until::Durable;
        Save {
            until,
            begun: self.through.abandoned().filter(|_| with_those_before),
            ..self.begin()
        }
    }

    /// Forgets what was written through and is lost.
    pub(crate) fn check_through(&self) {
        if !self.through.is_empty() {
            self.through.check(self.abandoned());
        }
    }

    /// How many segments of each part were abandoned.
    pub(crate) fn abandoned(&self) -> [u64; 2] {
        self.writers().each_ref().map(SegmentWriter::abandoned)
    }

    /// The segments of this process that have no index, as far as they are durable.
    pub(crate) fn written(&self) -> Vec<Durable> {
        let writers = lock(&self.writers);
        let durable = writers.iter().flat_map(SegmentWriter::durable);
        durable
            .map(|(one, length)| (Arc::clone(one), length))
            .collect()
    }

    /// Whether frames are being appended to this segment.
    pub(crate) fn is_written_to(&self, id: &UniqueId) -> bool {
        let writers = self.writers();
        writers.iter().any(|writer| writer.is_written_to(id))
    }

    /// Those of them that are not written to any more.
    pub(crate) fn ended(&self) -> Vec<Durable> {
        let writers = lock(&self.writers);
        let ended = writers.iter().flat_map(SegmentWriter::ended);
        ended
            .map(|(one, length)| (Arc::clone(one), length))
            .collect()
    }

    /// Seals what is as long as is said of its part. The indexes are given while nobody else can ask what
    /// is [written](Self::written): a segment is among that, or its index has been given.
    pub(crate) fn seal(
        &self,
        length: impl Fn(Part) -> u64,
        mut each: impl FnMut(Arc<Segment>, IndexBlock),
    ) {
        let mut writers = self.writers();
        for (part, writer) in Part::ALL.into_iter().zip(&mut *writers) {
            if writer.length() < length(part) {
                continue;
            }
            // Another thread may have put a piece of its save there. If this fails it is told.
            if let Ok(put) = writer.sync(&self.config) {
                put.into_iter().for_each(&self.note);
                let sealed = writer.seal(length(part));
                sealed
                    .into_iter()
                    .for_each(|(segment, block)| each(segment, block));
            }
        }
    }

    /// The store was removed, with all that is written to now: the next save begins anew, and no
    /// manifest is to name what was there.
    pub(crate) fn forget(&self) {
        lock(&self.writers)
            .iter_mut()
            .for_each(SegmentWriter::forget);
        self.through.clear();
    }

    /// Forgets segments that have no index and are not written to any more.
    pub(crate) fn let_go(&self, goes: impl Fn(&UniqueId) -> bool) {
        let mut writers = lock(&self.writers);
        writers.iter_mut().for_each(|writer| writer.let_go(&goes));
    }

    /// The writers, without what is another process's.
    fn writers(&self) -> MutexGuard<'_, [SegmentWriter; 2]> {
        let mut writers = lock(&self.writers);
        let process = std::process::id();
        writers
            .iter_mut()
            .for_each(|writer| writer.leave_to_parent(process));
        writers
    }

    /// Writes a job, and those of others that wait; gives what came of it.
    fn submit(&self, frames: Arc<Vec<NewFrame>>, until: Until, begun: Begun) -> Outcome {
        let mut queue = lock(&self.queue);
        let number = queue.next;
        queue.next += 1;
        queue.waiting.push(Job {
            number,
            frames,
            until,
            begun,
        });
        loop {
            if let Some(outcome) = queue.done.remove(&number) {
                return outcome;
            }
            if queue.writing {
                queue = wait(&self.changed, queue);
                continue;
            }
            queue.writing = true;
            let jobs = std::mem::take(&mut queue.waiting);
            if !jobs.iter().any(|job| job.number == number) {
                // Another thread took it, and did not come to its end.
                queue.waiting = jobs;
                queue.writing = false;
                let why = "the thread that wrote this save panicked; nothing of it was saved: save it again";
                return Err(ArchiveError::Other(why.to_owned()));
            }
            drop(queue);
            let stop = Stop(self);
            let outcomes = self.write(&jobs);
            // Before any thread is woken: one that then finds no outcome takes it that there will be none.
            lock(&self.queue).done.extend(outcomes);
            drop(stop);
            queue = lock(&self.queue);
        }
    }

    fn write(&self, jobs: &[Job]) -> Vec<(u64, Outcome)> {
        let mut writers = self.writers();
        let mut failed: [Option<ArchiveError>; 2] = [None, None];
        let before = writers.each_ref().map(SegmentWriter::abandoned);
        for frame in jobs.iter().flat_map(|job| &*job.frames) {
            let part = frame.part.number();
            if failed[part].is_none() {
                failed[part] = writers[part].put(frame, &self.config).err();
            }
        }
        let until = jobs.iter().map(|job| job.until).max();
        if until > Some(Until::Put) {
            for (writer, failed) in writers.iter_mut().zip(&mut failed) {
                if failed.is_none() {
                    let readable = match until {
                        Some(Until::Durable) => writer.sync(&self.config),
                        _ => writer.flush(&self.config),
                    };
                    match readable {
                        Ok(put) => put.into_iter().for_each(&self.note),
                        Err(error) => *failed = Some(error),
                    }
                }
            }
        }
        let now = writers.each_ref().map(SegmentWriter::abandoned);
        let outcome = |job: &Job| {
            let begun = job.begun.unwrap_or(before);
            (job.number, outcome(job, &failed, begun, now))
        };
        jobs.iter().map(outcome).collect()
    }
}

fn outcome(
    job: &Job,
    failed: &[Option<ArchiveError>; 2],
    begun: [u64; 2],
    now: [u64; 2],
) -> Outcome {
    let touched = |part: usize| {
        let own = job.frames.iter().any(|frame| frame.part.number() == part);
        // A piece before this one may have been put there.
        own || job.begun.is_some()
    };
    for part in (0..2).filter(|part| touched(*part)) {
        if let Some(error) = &failed[part] {
            return Err(error.clone());
        }
        if begun[part] != now[part] {
            let why = "another save failed while this one was written; nothing of it was saved: save it again";
            return Err(ArchiveError::Other(why.to_owned()));
        }
    }
    Ok(Some(begun))
}

/// Lets the next one write, also after a panic.
struct Stop<'a>(&'a GroupCommit);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        lock(&self.0.queue).writing = false;
        self.0.changed.notify_all();
    }
}

impl Save<'_> {
    /// Writes a piece. It is not durable yet.
    pub(crate) fn piece(&mut self, frames: Vec<NewFrame>) -> Result<(), ArchiveError> {
        self.begun = self.to.submit(Arc::new(frames), Until::Put, self.begun)?;
        Ok(())
    }

    /// Writes the last piece and makes all of them durable, or only readable if it goes no further.
    pub(crate) fn finish(self, frames: impl Into<Arc<Vec<NewFrame>>>) -> Result<(), ArchiveError> {
        self.to
            .submit(frames.into(), self.until, self.begun)
            .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{OnceLock, mpsc};
    use std::time::Duration;

    use super::*;
    use crate::format::frame::FrameKind;
    use crate::vfs::Disk;
    use crate::writer::frame::Body;
    use crate::writer::segment_writer::header_of;

    fn save(to: &GroupCommit) {
        let body = Body::Bytes(vec![0xf6]);
        let frame = NewFrame::new(Part::Entries, header_of(FrameKind::Uses), body).unwrap();
        to.begin().finish(vec![frame]).unwrap();
    }

    #[test]
    fn a_thread_that_waits_writes_when_another_has_written() {
        static COMMIT: OnceLock<GroupCommit> = OnceLock::new();
        let dir = tempfile::tempdir().unwrap();
        let config = WriterConfig {
            vfs: Arc::new(Disk),
            dir: dir.path().to_owned(),
            opening: UniqueId::new(),
            segment_size: 1 << 20,
        };
        let (comes, came) = mpsc::channel();
        let (saves, saved) = mpsc::channel();
        // Whoever writes first goes on when the other waits.
        let is_first = AtomicBool::new(true);
        let note = move |_| {
            if is_first.swap(false, Ordering::Relaxed) {
                comes.send(()).unwrap();
                while lock(&COMMIT.get().unwrap().queue).waiting.is_empty() {
                    std::thread::yield_now();
                }
            }
        };
        let commit = COMMIT.get_or_init(|| GroupCommit::new(config, note));
        for first in [true, false] {
            let saves = saves.clone();
            std::thread::spawn(move || {
                save(commit);
                saves.send(()).unwrap();
            });
            if first {
                came.recv().unwrap();
            }
        }
        let limit = Duration::from_secs(60);
        assert_eq!([(); 2].map(|()| saved.recv_timeout(limit)), [Ok(()); 2]);
    }
}
