//! The store: a directory.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use sde::{
    ArchiveError, Archiver, Batch, Key, Mark, Payload, ProcessGroup, Record, Saved, SavedEntry,
    Selection, StoredEntry,
};

use crate::ahead::Ahead;
use crate::archived::Archived;
use crate::class::Class;
use crate::committer::Committer;
use crate::directory;
use crate::frame::Written;
use crate::id::{Clock, UniqueId};
use crate::index::{Index, KnownFrame};
use crate::lane::Ground;
use crate::lineage::Lineage;
use crate::medium::Medium;
use crate::options::Options;
use crate::read;
use crate::save::Framer;
use crate::seen::{News, Seen};
use crate::together::Team;
use crate::trim::Trim;
use crate::trust::Trust;
use crate::uses::Uses;

/// A store in a directory: what is saved is on the disk before `save` returns.
///
/// Cloning is cheap; clones are one store. Any number of processes may use one
/// directory at once. Each writes files of its own and takes no lock; what others
/// saved is found when the store is opened, by [`refresh`](Self::refresh), and
/// after a miss, for which the directory is looked at once a second at most.
///
/// The index is in memory. A miss asks the table of each sealed segment, so it takes longer the more
/// segments there are: a store that many short processes have written to is worth
/// [compacting](Self::compact) when it has some hundreds of them.
///
/// ```
/// use sde::{Sde, SavePolicy};
/// use sde_archives::DirStore;
///
/// #[sde::app]
/// fn cube(x: f64) -> f64 {
///     x * x * x
/// }
///
/// # fn main() -> Result<(), sde::Error> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("store");
/// let sde = Sde::builder().store(DirStore::open(&path)?).build()?;
/// cube.call(&sde, 2.0)?;
/// sde.finish()?;
///
/// let later = Sde::builder().store(DirStore::open(&path)?).build()?;
/// assert_eq!(*cube.call(&later, 2.0)?, 8.0);
/// assert_eq!(later.stats().total.computed, 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct DirStore(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) medium: Arc<dyn Medium>,
    pub(crate) dir: PathBuf,
    pub(crate) read_only: bool,
    pub(crate) grace: Duration,
    pub(crate) uses: Option<Uses>,
    pub(crate) clock: Clock,
    pub(crate) index: RwLock<Index>,
    pub(crate) seen: Mutex<Seen>,
    pub(crate) lineage: Mutex<Lineage>,
    pub(crate) committer: Committer,
    pub(crate) archived: Archived,
    pub(crate) unvouched: Mutex<HashSet<Selection>>,
    pub(crate) trim: Trim,
    looked: Mutex<SystemTime>,
    /// How many ranks write to the store at most when all commit together.
    pub(crate) writers: usize,
    /// The ranks that have opened it together.
    pub(crate) team: OnceLock<Team>,
}

/// How often a miss may look for what other processes saved.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How often a find looks again if the files that it knew of are gone.
pub(crate) const LOOKS: usize = 8;

/// How many records are looked at for a person who asks what is nearest.
const RECORDS: usize = 10_000;

impl DirStore {
    /// Opens the store in this directory, or makes one there if the directory is
    /// empty or does not exist; see [`Options::open`].
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, ArchiveError> {
        Options::new().open(dir)
    }

    /// Opens the store in this directory for reading; nothing in it is changed, and
    /// [`save`](Archiver::save) gives an error.
    ///
    /// # Errors
    /// If there is no store of this format, or it can't be read.
    pub fn open_read_only(dir: impl AsRef<Path>) -> Result<Self, ArchiveError> {
        Options::new().read_only().open(dir)
    }

    pub(crate) fn new(options: Options, dir: PathBuf, trust: Trust) -> Self {
        let mut seen = Seen::new(trust);
        options
            .local
            .iter()
            .for_each(|local| seen.set_local(local.clone()));
        let ground = Ground {
            medium: Arc::clone(&options.medium),
            dir: options.local.unwrap_or_else(|| dir.clone()),
            writer: UniqueId::new(),
            segment_size: options.segment_size,
        };
        let medium = options.medium;
        Self(Arc::new(Inner {
            clock: Clock::new(&medium),
            looked: Mutex::new(medium.now()),
            medium,
            dir,
            read_only: options.read_only,
            grace: options.grace,
            uses: options.record_uses.then(Uses::default),
            index: RwLock::default(),
            seen: Mutex::new(seen),
            lineage: Mutex::new(Lineage::new(trust)),
            committer: Committer::new(ground),
            archived: Archived::default(),
            unvouched: Mutex::default(),
            trim: Trim::default(),
            writers: options.writers,
            team: OnceLock::new(),
        }))
    }

    /// Looks for what other processes have saved since.
    ///
    /// # Errors
    /// If the directory can't be listed.
    pub fn refresh(&self) -> Result<(), ArchiveError> {
        let inner = &*self.0;
        let retired = inner.look_at_manifests(lock(&inner.lineage))?;
        inner.look_at_segments(retired, lock(&inner.seen))
    }

    /// The same, if nobody is at it or saves: who has missed something is not to wait for
    /// a disk. Gives whether it was done.
    fn refresh_if_idle(&self) -> Result<bool, ArchiveError> {
        let inner = &*self.0;
        let Ok(lineage) = inner.lineage.try_lock() else {
            return Ok(false);
        };
        let retired = inner.look_at_manifests(lineage)?;
        let Ok(seen) = inner.seen.try_lock() else {
            return Ok(false);
        };
        inner.look_at_segments(retired, seen)?;
        Ok(true)
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.dir
    }

    /// What the index says, copied: no lock is held while files are read.
    pub(crate) fn known<T>(&self, what: impl FnOnce(&Index) -> T) -> T {
        what(&self.0.index.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks for what others saved, if that was not done just now; in any case if a file is
    /// gone: a compaction has put what was in it elsewhere.
    pub(crate) fn look_again(&self, gone: bool) -> bool {
        if self.0.team.get().is_some() && !gone {
            // One listing of ten thousand ranks each second is what they have opened it together for.
            return false;
        }
        let age = self.0.medium.now().duration_since(*lock(&self.0.looked));
        if age.is_ok_and(|age| age < LOOK_AGAIN) && !gone {
            return false;
        }
        let refreshed = match gone {
            true => self.refresh().map(|()| true),
            false => self.refresh_if_idle(),
        };
        // Only now: a look may take longer than that.
        *lock(&self.0.looked) = self.0.medium.now();
        match refreshed {
            Ok(done) => done,
            Err(error) => {
                sde::warning!("what others saved could not be looked for: {error}");
                false
            }
        }
    }

    /// Whether a class has no frame of this entry yet.
    fn lacks(&self, class: Class, entry: &SavedEntry) -> bool {
        class != Class::Result || !self.0.archived.has(entry)
    }

    pub(crate) fn candidates(&self, key: &Key) -> Vec<KnownFrame> {
        self.known(|index| index.entries(key))
    }
}

impl Inner {
    /// Where this process appends, if not in the store.
    pub(crate) fn local(&self) -> Option<&Path> {
        let dir = &*self.committer.ground().dir;
        (dir != self.dir).then_some(dir)
    }

    /// Reads the manifests that are new; gives what is replaced.
    fn look_at_manifests(
        &self,
        mut lineage: MutexGuard<'_, Lineage>,
    ) -> Result<HashMap<UniqueId, u64>, ArchiveError> {
        lineage.look(&*self.medium, &self.dir)?;
        Ok(lineage.retired())
    }

    fn look_at_segments(
        &self,
        retired: HashMap<UniqueId, u64>,
        mut seen: MutexGuard<'_, Seen>,
    ) -> Result<(), ArchiveError> {
        seen.retire(retired);
        let news = seen.look(&*self.medium, &self.dir)?;
        // Still under the lock: the marks and entries of one look come in order.
        self.add_news(news);
        Ok(())
    }

    pub(crate) fn add_news(&self, news: News) {
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        for id in &news.gone {
            index.remove(id);
        }
        for table in news.tables {
            self.clock.saw(table.latest);
            index.add_table(table);
        }
        for (segment, rows) in &news.frames {
            let latest = rows.iter().map(|row| row.saved_at).max();
            latest.into_iter().for_each(|at| self.clock.saw(at));
            index.add(segment, rows);
        }
        for mark in news.marks {
            index.add_mark(mark);
        }
    }

    /// Takes note of what this process has written.
    pub(crate) fn add_written(&self, written: Vec<Written>) {
        // Before the index knows of it: nobody is to read it a second time.
        let mut seen = lock(&self.seen);
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        for one in written {
            if !seen.own(&one.segment) {
                continue;
            }
            if let Some(row) = one.row {
                index.add(&one.segment, &[row]);
            }
            if let Some(mark) = one.mark {
                index.add_mark(mark);
            }
        }
    }

    /// Seals what is as long as is said of its class; the tables take the place of single frames. Gives
    /// whether there was scratch among it.
    pub(crate) fn seal(&self, length: impl Fn(Class) -> u64) -> bool {
        let mut scratch = false;
        self.committer.seal(length, |table| {
            scratch |= table.segment.class == Class::Scratch;
            lock(&self.seen).sealed(&table);
            let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
            index.add_table(table);
        });
        scratch
    }

    /// Forgets what was in segments.
    pub(crate) fn forget(&self, goes: impl Fn(&UniqueId) -> bool) {
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        index.remove_all(goes);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !self.read_only {
            self.committer.seal(|_| 0, drop);
            self.team.get().into_iter().for_each(Team::end);
        }
    }
}

impl Archiver for DirStore {
    /// In a store opened for reading only nothing can be saved; entries that were loaded from it are.
    fn save(&self, batch: &Batch) -> Result<Saved, ArchiveError> {
        if self.0.read_only && !batch.entries.is_empty() && self.has_all(batch)? {
            return Ok(Saved::default());
        }
        self.check_writable()?;
        if batch.is_empty() {
            return Ok(Saved::default());
        }
        let inner = &*self.0;
        let saved = std::thread::scope(|scope| {
            let ahead = Ahead::new(&inner.committer, scope);
            let segment_size = inner.committer.ground().segment_size;
            let mut framer = Framer::new(&inner.clock, ahead, segment_size);
            framer.batch(batch, |class, entry| self.lacks(class, entry))?;
            framer.finish()
        });
        if saved.is_err() {
            self.check_there()?;
        }
        let (written, left_out) = saved?;
        let results = written.iter().any(|one| one.segment.class == Class::Result);
        inner.add_written(written);
        inner.archived.note(batch);
        {
            let mut unvouched = lock(&inner.unvouched);
            unvouched.insert(Selection::Checkpoint);
            if results || batch.selection == Selection::Archive {
                unvouched.insert(Selection::Archive);
            }
        }
        self.seal_what_is_long();
        Ok(Saved::without(left_out))
    }

    fn commit(&self, selection: Selection) -> Result<(), ArchiveError> {
        if self.0.read_only {
            // Nothing was saved that is to be noted.
            return Ok(());
        }
        if self.0.team.get().is_some() {
            // The rest when all ranks do.
            self.write_uses()?;
            self.0.archived.committed();
            return Ok(());
        }
        self.check_there()?;
        self.write_uses()?;
        if lock(&self.0.unvouched).remove(&selection) {
            let committed = self.vouch(selection, &[]);
            if committed.is_err() {
                lock(&self.0.unvouched).insert(selection);
                self.check_there()?;
            }
            committed?;
            self.remove_retired();
        }
        self.0.archived.committed();
        Ok(())
    }

    fn archives_checkpoints(&self) -> bool {
        true
    }

    fn commits_together(&self) -> bool {
        self.0.team.get().is_some() && !self.0.read_only
    }

    fn commit_together(
        &self,
        selection: Selection,
        ranks: &dyn ProcessGroup,
    ) -> Result<(), ArchiveError> {
        self.commit_all(selection, ranks)
    }

    fn find(&self, key: &Key) -> Result<Option<StoredEntry>, ArchiveError> {
        let found = self.look(key)?;
        if let (Some(uses), Some(_)) = (&self.0.uses, &found) {
            uses.note(*key, self.0.clock.stamp());
        }
        Ok(found)
    }

    fn find_scratch(&self, key: &Key) -> Result<Option<Arc<dyn Payload>>, ArchiveError> {
        self.find_state(key, 0)
    }

    fn find_earlier_scratch(&self, key: &Key) -> Result<Option<Arc<dyn Payload>>, ArchiveError> {
        self.find_state(key, 1)
    }

    fn marks(&self) -> Result<Vec<Mark>, ArchiveError> {
        Ok(self.known(|index| index.marks().to_vec()))
    }

    /// Of the latest ten thousand entries, of whatever app: each takes some microseconds to read.
    fn records(&self, app: &str, each: &mut dyn FnMut(&Record)) -> Result<(), ArchiveError> {
        let mut failed = None;
        for (key, place) in self.known(|index| index.latest(RECORDS)) {
            match read::record(&self.0.medium, &place, &key) {
                Ok(record) if &*record.app == app => each(&record),
                Ok(_) => {}
                Err(trouble) => failed = trouble.warned(&key, "the record").or(failed),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    fn archive_to(&self, dir: &Path) -> Result<(), ArchiveError> {
        self.publish(dir)
    }

    fn describe(&self) -> String {
        format!("the store in {}", self.0.dir.display())
    }
}

pub(crate) fn absolute(dir: &Path) -> Result<PathBuf, ArchiveError> {
    std::path::absolute(dir).map_err(|e| directory::cannot_open(dir, "finding where it is", e))
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for DirStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DirStore")
            .field("dir", &self.0.dir)
            .finish()
    }
}
