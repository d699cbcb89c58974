//! The store: a directory.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use sde::{
    ArchiveError, Archiver, Batch, Key, Mark, Payload, Saved, Selection, StoredEntry, StoredResult,
};

use crate::directory::{self, There};
use crate::id::Clock;
use crate::index::{EntryAt, Index, Item};
use crate::read::{self, Trouble};
use crate::save;
use crate::seen::Seen;
use crate::writer::{Appender, Open};

/// A store in a directory: what is saved is on the disk before `save` returns.
///
/// Cloning is cheap; clones are one store. Any number of processes may use one
/// directory at once. Each writes files of its own and takes no lock; what others
/// saved is found when the store is opened, by [`refresh`](Self::refresh), and
/// after a miss, for which the directory is looked at once a second at most.
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
pub struct DirStore(Arc<Inner>);

struct Inner {
    dir: PathBuf,
    read_only: bool,
    clock: Clock,
    index: RwLock<Index>,
    seen: Mutex<Seen>,
    writers: Mutex<Writers>,
    looked: Mutex<Instant>,
}

/// The segments this process appends to.
#[derive(Default)]
struct Writers {
    checkpoint: Option<Open>,
    archive: Option<Open>,
}

impl Writers {
    fn slot(&mut self, selection: Selection) -> &mut Option<Open> {
        match selection {
            Selection::Checkpoint => &mut self.checkpoint,
            Selection::Archive => &mut self.archive,
        }
    }
}

/// How often a miss may look for what other processes saved.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

impl DirStore {
    /// Opens the store in this directory, or makes one there if the directory is
    /// empty or does not exist. Takes as long as reading the metadata of every
    /// entry in it; the values are read when they are asked for.
    ///
    /// # Errors
    /// If something else is in the directory, or a store of another format; then
    /// nothing is changed. If it can't be read or written.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, ArchiveError> {
        let dir = absolute(dir.as_ref())?;
        match directory::look(&dir)? {
            There::Store => directory::probe(&dir)?,
            There::Nothing => directory::create(&dir)?,
        }
        Self::read(dir, false)
    }

    /// Opens the store in this directory for reading; nothing in it is changed, and
    /// [`save`](Archiver::save) gives an error.
    ///
    /// # Errors
    /// If there is no store of this format, or it can't be read.
    pub fn open_read_only(dir: impl AsRef<Path>) -> Result<Self, ArchiveError> {
        let dir = absolute(dir.as_ref())?;
        match directory::look(&dir)? {
            There::Store => Self::read(dir, true),
            There::Nothing => Err(directory::not_a_store(
                &dir,
                "there is nothing; `DirStore::open` makes a new store",
            )),
        }
    }

    /// Looks for what other processes have saved since.
    ///
    /// # Errors
    /// If the directory can't be listed.
    pub fn refresh(&self) -> Result<(), ArchiveError> {
        let mut seen = lock(&self.0.seen);
        let items = seen.look(&self.0.dir)?;
        // Still under the lock: the marks and entries of one look come in order.
        self.add(items);
        Ok(())
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.dir
    }

    fn read(dir: PathBuf, read_only: bool) -> Result<Self, ArchiveError> {
        let store = Self(Arc::new(Inner {
            dir,
            read_only,
            clock: Clock::default(),
            index: RwLock::default(),
            seen: Mutex::default(),
            writers: Mutex::default(),
            looked: Mutex::new(Instant::now()),
        }));
        store.refresh()?;
        Ok(store)
    }

    fn add(&self, items: Vec<Item>) {
        let mut index = self.0.index.write().unwrap_or_else(PoisonError::into_inner);
        for item in items {
            item.saved_at()
                .into_iter()
                .for_each(|at| self.0.clock.saw(at));
            index.add(item);
        }
    }

    /// What the index says, copied: no lock is held while files are read.
    fn known<T>(&self, what: impl FnOnce(&Index) -> T) -> T {
        what(&self.0.index.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks for what others saved, if that was not done just now.
    fn look_again(&self) -> bool {
        {
            let mut looked = lock(&self.0.looked);
            if looked.elapsed() < LOOK_AGAIN {
                return false;
            }
            *looked = Instant::now();
        }
        match self.refresh() {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!("what others saved could not be looked for: {error}");
                false
            }
        }
    }

    /// Saves part of a batch to the segment of one selection.
    fn append(
        &self,
        selection: Selection,
        save: impl FnOnce(&mut Appender<'_>) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        let mut writers = lock(&self.0.writers);
        let mut appender = Appender::begin(writers.slot(selection), &self.0.dir, selection)?;
        lock(&self.0.seen).own(appender.segment());
        save(&mut appender)?;
        let items = appender.commit()?;
        self.add(items);
        Ok(())
    }
}

impl Archiver for DirStore {
    fn save(&self, batch: &Batch) -> Result<Saved, ArchiveError> {
        if self.0.read_only {
            let path = self.0.dir.clone();
            return Err(ArchiveError::ReadOnly { path });
        }
        let mut left_out = Vec::new();
        if batch.is_empty() {
            return Ok(Saved::default());
        }
        self.append(batch.selection, |to| {
            save::batch(batch, to, &self.0.clock, &mut left_out)
        })?;
        // An archive that is copied alone must know what is not to be used, and so
        // must a checkpoint.
        if !batch.marks.is_empty() {
            let other = match batch.selection {
                Selection::Checkpoint => Selection::Archive,
                Selection::Archive => Selection::Checkpoint,
            };
            self.append(other, |to| save::marks(&batch.marks, to, &mut left_out))?;
        }
        Ok(Saved::without(left_out))
    }

    fn find(&self, key: &Key) -> Result<Option<StoredEntry>, ArchiveError> {
        let mut places = self.known(|index| index.entries(key).to_vec());
        if places.is_empty() && self.look_again() {
            places = self.known(|index| index.entries(key).to_vec());
        }
        best(&places, key)
    }

    fn find_scratch(&self, key: &Key) -> Result<Option<Arc<dyn Payload>>, ArchiveError> {
        let states = self.known(|index| index.scratch(key).to_vec());
        let mut failed = None;
        for state in states {
            match read::scratch(&state.place, key) {
                Ok(Some(payload)) => return Ok(Some(payload)),
                Ok(None) => {}
                Err(trouble) => failed = warned(trouble, key, "a scratch state").or(failed),
            }
        }
        failed.map_or(Ok(None), Err)
    }

    fn marks(&self) -> Result<Vec<Mark>, ArchiveError> {
        Ok(self.known(|index| index.marks().to_vec()))
    }

    fn describe(&self) -> String {
        format!("the store in {}", self.0.dir.display())
    }
}

/// The best entry that can be read. What it lacks, or has damaged, is taken from other copies of
/// the same computation, if they have it.
fn best(places: &[EntryAt], key: &Key) -> Result<Option<StoredEntry>, ArchiveError> {
    let mut best: Option<StoredEntry> = None;
    let mut failed = None;
    for place in places {
        if let Some(found) = &best
            && (lacks_nothing(found) || place.run != found.record.run)
        {
            break;
        }
        match read::entry(place, key) {
            Ok(copy) => match &mut best {
                None => best = Some(copy),
                Some(found) => fill(found, copy),
            },
            Err(trouble) => failed = warned(trouble, key, "an entry").or(failed),
        }
    }
    if let Some(found) = &mut best {
        let archived = |place: &EntryAt| place.run == found.record.run && place.archived;
        found.archived = places.iter().any(archived);
    }
    match (best, failed) {
        (None, Some(error)) => Err(error),
        (best, _) => Ok(best),
    }
}

fn lacks_nothing(entry: &StoredEntry) -> bool {
    let has = |result: &StoredResult| result.payload.is_some() || !result.tags.is_needed();
    entry.results.iter().all(has)
}

fn fill(entry: &mut StoredEntry, copy: StoredEntry) {
    for other in copy.results {
        let same = |result: &&mut StoredResult| result.name == other.name;
        if let Some(result) = entry.results.iter_mut().find(same)
            && result.payload.is_none()
        {
            result.payload = other.payload;
        }
    }
}

/// Warns of what is damaged; gives back what is an error.
fn warned(trouble: Trouble, key: &Key, what: &str) -> Option<ArchiveError> {
    match trouble {
        Trouble::Damaged(why) => {
            tracing::warn!("{what} of {} can't be used: {why}", key.short());
            None
        }
        Trouble::Io(error) => Some(error),
    }
}

fn absolute(dir: &Path) -> Result<PathBuf, ArchiveError> {
    std::path::absolute(dir).map_err(|e| directory::cannot_open(dir, "finding where it is", e))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for DirStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DirStore")
            .field("dir", &self.0.dir)
            .finish()
    }
}
