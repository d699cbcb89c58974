//! Group commit: writes what many threads save at once, with as few syncs as possible.
//!
//! If each result is to be durable before `run` returns, threads would wait for their syncs one after another. A
//! disk does a few thousand syncs a second. So the first thread writes for all that have come by then, and syncs
//! once; threads that come meanwhile are next. No extra thread is needed.
//!
//! The writers are locked meanwhile. Threads that must not wait read a copy of their state, [`WriterState`].

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use sde::archiver::ArchiveError;

use crate::catalog::Written;
use crate::format::class::Part;
use crate::format::id::UniqueId;
use crate::format::index_block::IndexBlock;
use crate::format::segment::Segment;
use crate::locks::{lock, wait, warnings_after};
use crate::writer::frame::NewFrame;
use crate::writer::segment_writer::{SegmentWriter, WriterConfig};
use crate::writer::unsynced::{Abandoned, UnsyncedEntries};

/// The frames that one thread wants written.
struct Job {
    number: u64,
    frames: Arc<Vec<NewFrame>>,
    until: Until,
    begun: Begun,
}

/// The stage that a save waits for, with all its pieces.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Until {
    /// Appended; another piece follows.
    Put,
    /// Readable for other processes.
    Written,
    /// On the medium.
    Durable,
}

/// The counts of abandoned segments when a save began: if they change, its earlier pieces are lost.
type Begun = Option<Abandoned>;

type Outcome = Result<Begun, ArchiveError>;

#[derive(Default)]
struct Queue {
    waiting: Vec<Job>,
    done: HashMap<u64, Outcome>,
    next: u64,
    writing: bool,
}

/// A segment without an index, and its durable end.
pub(crate) type Durable = (Arc<Segment>, u64);

/// A copy of the writers' state after a job, for threads that do not wait for their lock.
#[derive(Clone, Default)]
struct WriterState {
    /// The process that the writers belong to: after a fork there are two.
    process: u32,
    abandoned: [u64; 2],
    /// The segments that are being written.
    active: [Option<UniqueId>; 2],
    /// The segments that have no index.
    unsealed: Vec<Durable>,
    has_full: bool,
}

/// Called with frames once they can be read.
type Note = Box<dyn Fn(Written) + Send + Sync>;

/// The writers of a store, and the queue of saves.
pub(crate) struct GroupCommit {
    config: WriterConfig,
    note: Note,
    queue: Mutex<Queue>,
    changed: Condvar,
    writers: Mutex<[SegmentWriter; 2]>,
    state: Mutex<WriterState>,
    /// The length at which a segment of scratch is full.
    scratch_size: AtomicU64,
    pub(crate) unsynced: UnsyncedEntries,
}

/// A save, which may come in pieces.
#[derive(Clone, Copy)]
pub(crate) struct Save<'a> {
    to: &'a GroupCommit,
    until: Until,
    begun: Begun,
}

impl GroupCommit {
    /// `note` gets readable frames before anything else is written or sealed.
    pub(crate) fn new(
        config: WriterConfig,
        note: impl Fn(Written) + Send + Sync + 'static,
    ) -> Self {
        Self {
            scratch_size: AtomicU64::new(config.segment_size),
            config,
            note: Box::new(note),
            queue: Mutex::default(),
            changed: Condvar::new(),
            writers: Mutex::new(Part::ALL.map(SegmentWriter::new)),
            state: Mutex::default(),
            unsynced: UnsyncedEntries::default(),
        }
    }

    pub(crate) fn config(&self) -> &WriterConfig {
        &self.config
    }

    /// Begins a save.
    pub(crate) fn begin(&self) -> Save<'_> {
        Save {
            to: self,
            until: Until::Durable,
            begun: None,
        }
    }

    /// Begins a save with entries that were [written through](UnsyncedEntries) at this count of abandoned segments.
    pub(crate) fn begin_after(&self, abandoned: Option<Abandoned>) -> Save<'_> {
        Save {
            begun: abandoned,
            ..self.begin()
        }
    }

    /// Begins a save that other processes can read, but that is not durable yet.
    pub(crate) fn begin_written(&self) -> Save<'_> {
        Save {
            until: Until::Written,
            ..self.begin()
        }
    }

    /// Forgets entries that were written through and are lost.
    pub(crate) fn check_unsynced(&self) {
        if !self.unsynced.is_empty() {
            self.unsynced.check(self.abandoned());
        }
    }

    /// The length at which a segment is full.
    pub(crate) fn size(&self, part: Part) -> u64 {
        match part {
            Part::Entries => self.config.segment_size,
            Part::Scratch => self.scratch_size.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn set_scratch_size(&self, size: u64) {
        self.scratch_size.store(size, Ordering::Relaxed);
    }

    /// The number of abandoned segments of each part.
    pub(crate) fn abandoned(&self) -> Abandoned {
        if lock(&self.state).process != std::process::id() {
            self.with_writers(|_| ());
        }
        lock(&self.state).abandoned
    }

    /// The segments of this process that have no index, with their durable ends.
    pub(crate) fn unsealed(&self) -> Vec<Durable> {
        lock(&self.state).unsealed.clone()
    }

    /// Whether frames are being appended to this segment.
    pub(crate) fn is_written_to(&self, id: &UniqueId) -> bool {
        lock(&self.state).active.contains(&Some(*id))
    }

    /// The segments without an index that are not written to any more.
    pub(crate) fn ended(&self) -> Vec<Durable> {
        let state = lock(&self.state);
        let mut ended = state.unsealed.clone();
        ended.retain(|(segment, _)| !state.active.contains(&Some(segment.id)));
        ended
    }

    /// Whether segments wait to be sealed.
    pub(crate) fn has_full(&self) -> bool {
        lock(&self.state).has_full
    }

    /// Seals the segments that are full or at least this long. After an error it goes on with the others.
    pub(crate) fn seal(
        &self,
        length: u64,
        each: impl FnMut(Arc<Segment>, IndexBlock),
    ) -> Result<(), ArchiveError> {
        let closed = self.with_writers(|writers| {
            let full = writers.iter_mut().filter(|one| one.is_full(length));
            full.map(|one| self.close(one, length))
                .fold(Ok(()), Result::and)
        });
        closed.and(self.seal_full(each))
    }

    /// Seals full segments. A segment stays [unsealed](Self::unsealed) until `each` was given its index.
    pub(crate) fn seal_full(
        &self,
        mut each: impl FnMut(Arc<Segment>, IndexBlock),
    ) -> Result<(), ArchiveError> {
        let take =
            || self.with_writers(|writers| writers.iter_mut().find_map(|writer| writer.full.pop()));
        let mut done = Ok(());
        while let Some(full) = take() {
            let sealed = full.seal().map(|(segment, block)| {
                let id = segment.id;
                each(segment, block);
                self.let_go(|one| *one == id);
            });
            done = done.and(sealed);
        }
        done
    }

    /// Makes a segment durable; closes it if it is at least this long.
    fn close(&self, writer: &mut SegmentWriter, length: u64) -> Result<(), ArchiveError> {
        let put = writer.sync(&self.config)?;
        put.into_iter().for_each(&self.note);
        writer.close(length);
        Ok(())
    }

    /// Leaves all segments, after the store was removed: the next save begins new ones, and no manifest lists
    /// these.
    pub(crate) fn forget(&self) {
        self.with_writers(|writers| writers.iter_mut().for_each(SegmentWriter::forget));
        self.unsynced.clear();
    }

    /// Forgets segments that have no index and are not written to any more.
    pub(crate) fn let_go(&self, goes: impl Fn(&UniqueId) -> bool) {
        self.with_writers(|writers| writers.iter_mut().for_each(|writer| writer.let_go(&goes)));
    }

    /// Runs a job with the writers; in a forked child they first let go of the parent's segments.
    fn with_writers<T>(&self, job: impl FnOnce(&mut [SegmentWriter; 2]) -> T) -> T {
        warnings_after(|| {
            let mut writers = lock(&self.writers);
            let process = std::process::id();
            writers
                .iter_mut()
                .for_each(|writer| writer.leave_to_parent(process));
            let done = job(&mut writers);
            *lock(&self.state) = WriterState {
                process,
                abandoned: writers.each_ref().map(SegmentWriter::abandoned),
                active: writers.each_ref().map(SegmentWriter::active),
                unsealed: writers.iter().flat_map(SegmentWriter::durable).collect(),
                has_full: writers.iter().any(|writer| !writer.full.is_empty()),
            };
            done
        })
    }

    /// Makes saves wait until the guard is dropped. The holder must not save.
    pub(crate) fn pause(&self) -> impl Drop + '_ {
        let mut queue = lock(&self.queue);
        while queue.writing {
            queue = wait(&self.changed, queue);
        }
        queue.writing = true;
        Stop(self)
    }

    /// Writes this job, or waits until another thread has; writes the other waiting jobs too.
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
                // Another thread took the job, and panicked.
                queue.waiting = jobs;
                queue.writing = false;
                let why = "the thread that wrote this save panicked; nothing of it was saved: save it again";
                return Err(ArchiveError::Other(why.to_owned()));
            }
            drop(queue);
            let stop = Stop(self);
            let outcomes = self.with_writers(|writers| self.write(&jobs, writers));
            // The waiting threads still hold the values, so that no destructor runs here.
            drop(jobs);
            // Stored before any thread is woken: one that finds no outcome assumes a panic.
            lock(&self.queue).done.extend(outcomes);
            drop(stop);
            queue = lock(&self.queue);
        }
    }

    fn write(&self, jobs: &[Job], writers: &mut [SegmentWriter; 2]) -> Vec<(u64, Outcome)> {
        let mut failed: [Option<ArchiveError>; 2] = [None, None];
        let before = writers.each_ref().map(SegmentWriter::abandoned);
        for frame in jobs.iter().flat_map(|job| &*job.frames) {
            let part = frame.part.number();
            if failed[part].is_none() {
                let writer = &mut writers[part];
                // A segment with as many rows as an index takes is full, whatever its length.
                let begun = match writer.is_full(u64::MAX) {
                    true => self.close(writer, 0),
                    false => Ok(()),
                };
                failed[part] = begun.and_then(|()| writer.put(frame, &self.config)).err();
            }
        }
        let until = jobs.iter().map(|job| job.until).max();
        if until > Some(Until::Put) {
            for ((part, writer), failed) in
                Part::ALL.into_iter().zip(&mut *writers).zip(&mut failed)
            {
                if failed.is_none() {
                    let readable = match until {
                        Some(Until::Durable) => self.close(writer, self.size(part)),
                        _ => writer
                            .flush(&self.config)
                            .map(|put| put.into_iter().for_each(&self.note)),
                    };
                    *failed = readable.err();
                }
            }
        }
        let now = writers.each_ref().map(SegmentWriter::abandoned);
        let outcome = |job: &Job| {
            let begun = job.begun.unwrap_or(before);
            (job.number, outcome(job, &failed, begun, now, writers))
        };
        jobs.iter().map(outcome).collect()
    }
}

fn outcome(
    job: &Job,
    failed: &[Option<ArchiveError>; 2],
    begun: [u64; 2],
    now: [u64; 2],
    writers: &[SegmentWriter; 2],
) -> Outcome {
    let touched = |part: usize| {
        let own = job.frames.iter().any(|frame| frame.part.number() == part);
        // An earlier piece may have been appended to that part.
        own || job.begun.is_some()
    };
    for part in (0..2).filter(|part| touched(*part)) {
        if let Some(error) = &failed[part] {
            return Err(error.clone());
        }
        if begun[part] != now[part] {
            return Err(writers[part].why_abandoned());
        }
    }
    Ok(Some(begun))
}

/// Lets the next thread write, even after a panic.
struct Stop<'a>(&'a GroupCommit);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        lock(&self.0.queue).writing = false;
        self.0.changed.notify_all();
    }
}

impl Save<'_> {
    /// Writes a piece, which is not durable yet.
    pub(crate) fn piece(&mut self, frames: Vec<NewFrame>) -> Result<(), ArchiveError> {
        self.begun = self.to.submit(Arc::new(frames), Until::Put, self.begun)?;
        Ok(())
    }

    /// Writes the last piece and makes all pieces durable, or only readable for a save begun so.
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
    use crate::format::frame::{FrameHeader, FrameKind, LONGEST};
    use crate::format::index_block::{ROW, ROWS};
    use crate::vfs::Disk;
    use crate::writer::frame::Body;

    fn frame() -> NewFrame {
        let body = Body::Bytes(vec![0xf6]);
        NewFrame::new(Part::Entries, FrameHeader::of_no_key(FrameKind::Uses), body).unwrap()
    }

    fn save(to: &GroupCommit) {
        to.begin().finish(vec![frame()]).unwrap();
    }

    fn config(dir: &tempfile::TempDir) -> WriterConfig {
        WriterConfig {
            vfs: Arc::new(Disk),
            dir: dir.path().to_owned(),
            opening: UniqueId::new(),
            segment_size: 1 << 30,
        }
    }

    /// Found by reading: with a segment size above some 370 MB of small results no segment was sealed or compacted any more.
    #[test]
    fn a_segment_of_many_small_results_is_sealed_whatever_its_size() {
        let dir = tempfile::tempdir().unwrap();
        let commit = GroupCommit::new(config(&dir), |_| ());
        let frames = |count: usize| (0..count).map(|_| frame()).collect::<Vec<_>>();
        let mut save = commit.begin();
        save.piece(frames(2 * ROWS + 1)).unwrap();
        save.finish(frames(ROWS)).unwrap();
        let mut rows = Vec::new();
        commit
            .seal(0, |_, block| rows.push(block.rows.len()))
            .unwrap();
        rows.sort_unstable();
        assert_eq!(rows, [1, ROWS, ROWS, ROWS]);
        assert_eq!(commit.unsealed().len(), 0);
        const { assert!(LONGEST as usize / ROW / 2 * ROW + 1024 < LONGEST as usize) }
    }

    /// Found by an attack: the second save got another error, so it did not make room although the disk was full.
    #[test]
    fn a_save_that_another_save_has_failed_is_told_why_that_failed() {
        let dir = tempfile::tempdir().unwrap();
        let commit = GroupCommit::new(config(&dir), |_| ());
        let mut first = commit.begin();
        first.piece(vec![frame()]).unwrap();
        std::fs::remove_file(&commit.unsealed()[0].0.path).unwrap();
        let other = commit.begin().finish(vec![frame()]).unwrap_err();
        assert!(other.is_not_found(), "{other}");
        let error = first.finish(Vec::new()).unwrap_err();
        assert!(error.is_not_found(), "{error}");
    }

    #[test]
    fn a_thread_that_waits_writes_when_another_has_written() {
        static COMMIT: OnceLock<GroupCommit> = OnceLock::new();
        let dir = tempfile::tempdir().unwrap();
        let config = config(&dir);
        let (comes, came) = mpsc::channel();
        let (saves, saved) = mpsc::channel();
        // The first writer goes on once the other waits.
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
