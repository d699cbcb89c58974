//! Binaries in a directory, shared by all processes of a user.
//!
//! ```text
//! kernels/store  a store of SDE, read by the program `sde` like any other: an entry for each program
//! kernels/locks  empty files, to be locked while somebody builds
//! ```
//!
//! The store brings what is hard about it: nothing half-written is ever seen, what is damaged is a
//! miss, readers take no lock, and a compaction makes room while others read and write.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sde::{ArchiveError, Archiver, Batch, Key, SavedEntry, Sde, Selection, StoredEntry};
use sde_archives::{Compacted, DirStore, Options, Part, Retention};

use super::entry::{read, run_key, saved, size};
use super::locks::Locks;
use super::own::{self, Links};
use super::settings::{Mode, Settings};
use super::{KernelStore, StoreError, StoredProgram, Turn, Wanted};
use crate::driver::DeviceType;

/// A segment is at most this large, so that little of a store is in files that are being written.
const SEGMENT: u64 = 16 << 20;

/// More files than this are put together, since whoever opens the store reads something of each.
const MANY: usize = 128;

/// Binaries in a directory, for all processes of a user; see [`Settings`].
///
/// Cloning is cheap, and clones are one store. It must belong to who runs the program, and nobody else
/// may write to it: binaries are code.
#[derive(Clone)]
pub struct KernelDir(Arc<Inner>);

struct Inner {
    store: DirStore,
    locks: Locks,
    settings: Settings,
    /// Makes keys and nothing else.
    keys: Sde,
    /// Whether what is too old was looked for.
    tidied: AtomicBool,
    /// Whether something was used since that was last noted.
    used: AtomicBool,
    writes: bool,
}

impl KernelDir {
    /// Opens the directory, or makes it. One that is there and can't be written to is read, and a warning says so.
    ///
    /// # Errors
    /// If there is no directory to be had, it belongs to somebody else or others can write to it, or
    /// it can't be read.
    pub fn open(settings: Settings) -> Result<Self, StoreError> {
        let doing = "opening the kernel cache";
        let dir = settings.directory().ok_or_else(|| {
            let why = "there is neither XDG_CACHE_HOME nor HOME; set SDE_KERNEL_CACHE_DIR";
            StoreError::new(doing, why)
        })?;
        // Wherever the process goes later.
        let dir = std::path::absolute(dir).map_err(|error| StoreError::new(doing, error))?;
        // Whoever can write to it can put another store in place of the one that is looked at next.
        let medium = settings.on();
        let locks = Locks::new(dir.join("locks"), settings.patience);
        let failed = |error: io::Error| StoreError::new(doing, error);
        if !settings.modes.contains(&Mode::ReadWrite) {
            own::check(&*medium, &dir, Links::Followed).map_err(failed)?;
            return Self::open_in(&dir, locks, settings, false);
        }
        let made = own::make(&*medium, &dir, Links::Followed)
            .and_then(|()| locks.make())
            .and_then(|()| own::try_to_write(&*medium, &dir));
        let Err(why) = made else {
            return Self::open_in(&dir, locks, settings, true);
        };
        let is_there = matches!(medium.look(&dir.join("store")), Ok(Some(_)));
        if !(is_there && own::is_of_writing(&why)) {
            return Err(failed(why));
        }
        own::check(&*medium, &dir, Links::Followed).map_err(failed)?;
        let opened = Self::open_in(&dir, locks, settings.only_read(), false)?;
        sde::warning!(
            "{} can't be written to ({why}); it is only read",
            opened.describe()
        );
        Ok(opened)
    }

    fn open_in(
        dir: &Path,
        locks: Locks,
        settings: Settings,
        writes: bool,
    ) -> Result<Self, StoreError> {
        let segment = settings.capacity.map_or(SEGMENT, |bytes| bytes / 32);
        let mut options = Options::new()
            .segment_size(segment.clamp(1 << 12, SEGMENT))
            .grace(Duration::ZERO)
            .without_environment()
            .vfs(settings.on());
        if !writes {
            options = options.read_only();
        }
        let store = options.open(dir.join("store"));
        let store = store.map_err(|error| StoreError::new("opening the kernel cache", error))?;
        Ok(Self(Arc::new(Inner {
            store,
            locks,
            settings,
            keys: Sde::new(),
            tidied: AtomicBool::new(false),
            used: AtomicBool::new(false),
            writes,
        })))
    }

    /// Makes room now, as far as the settings say: what is too old goes, and what there is no room for.
    /// It is done by itself when something is put and there is too much.
    ///
    /// # Errors
    /// If the store can't be read or written. What was there is still there then.
    pub fn tidy(&self) -> Result<Compacted, StoreError> {
        self.0.tidy()
    }

    /// How many bytes the files of the binaries have.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let folder = self.0.store.path().join(Part::Entries.folder());
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        files
            .filter_map(|file| Some(file.metadata().ok()?.len()))
            .sum()
    }

    /// Where the store of binaries is, for the program `sde`.
    #[must_use]
    pub fn path(&self) -> &std::path::Path {
        self.0.store.path()
    }

    /// Has an entry count in place of one that is there. The later one counts, and a clock may have been
    /// wrong when that was made.
    fn date_after_what_is_there(&self, entry: &mut SavedEntry) {
        // What can't be read is replaced in any case.
        if let Ok(Some(there)) = self.0.store.look(&entry.record.key) {
            let there = there.record.made_at;
            let after = there.checked_add(Duration::from_nanos(1));
            let record = Arc::make_mut(&mut entry.record);
            record.made_at = record.made_at.max(after.unwrap_or(there));
        }
    }

    /// One program, as `find` has it.
    fn one(
        &self,
        wanted: &Wanted<'_>,
        find: impl Fn(&Key) -> Result<Option<StoredEntry>, ArchiveError>,
    ) -> Result<Option<StoredProgram>, StoreError> {
        let inner = &*self.0;
        if inner.settings.of(wanted.device_type) == Mode::Off {
            return Ok(None);
        }
        let doing = "looking into the kernel cache";
        let key = run_key(&inner.keys, wanted).map_err(|why| StoreError::new(doing, why))?;
        let found = find(&key).map_err(|error| StoreError::new(doing, error))?;
        Ok(found.and_then(|entry| read(&entry)))
    }

    /// How many bytes may be added; makes room if there is too little for so many.
    ///
    /// Somebody else may be making room already. What is put meanwhile must not fill the disk, so there is never
    /// more than a quarter more than there should be.
    fn room(&self, bytes: u64) -> Result<u64, StoreError> {
        let settings = &self.0.settings;
        let first = !self.0.tidied.swap(true, Ordering::Relaxed);
        let is_over = settings
            .capacity
            .is_some_and(|capacity| self.bytes() + bytes > capacity);
        if is_over || (first && settings.max_age.is_some()) {
            // There may be room all the same.
            if let Err(error) = self.tidy() {
                sde::warning!("{error}");
            }
        }
        Ok(match settings.capacity {
            None => u64::MAX,
            Some(capacity) if is_over => (capacity + capacity / 4).saturating_sub(self.bytes()),
            Some(_) => bytes,
        })
    }

    /// Those of these programs that the settings let in and there is room for.
    fn wanted<'a>(
        &self,
        programs: &'a [StoredProgram],
    ) -> Result<Vec<&'a StoredProgram>, StoreError> {
        let settings = &self.0.settings;
        let sizes = settings.min_binary..=settings.max_binary;
        let capacity = settings.capacity.unwrap_or(u64::MAX);
        let mut wanted: Vec<_> = programs.iter().collect();
        wanted.retain(|program| {
            settings.of(program.device_type) == Mode::ReadWrite
                && sizes.contains(&(program.binary.len() as u64))
                && size(program) <= capacity
        });
        if wanted.is_empty() {
            return Ok(wanted);
        }
        let mut left = self.room(wanted.iter().map(|program| size(program)).sum())?;
        wanted.retain(|program| match left.checked_sub(size(program)) {
            Some(less) => {
                left = less;
                true
            }
            None => {
                tracing::debug!("there is no room in {}", self.describe());
                false
            }
        });
        Ok(wanted)
    }
}

impl KernelStore for KernelDir {
    fn get(&self, wanted: &[Wanted<'_>]) -> Result<Vec<Option<StoredProgram>>, StoreError> {
        let find = |key: &Key| {
            let found = self.0.store.find(key)?;
            self.0.used.fetch_or(found.is_some(), Ordering::Relaxed);
            Ok(found)
        };
        wanted.iter().map(|one| self.one(one, find)).collect()
    }

    fn look(&self, wanted: &[Wanted<'_>]) -> Result<Vec<Option<StoredProgram>>, StoreError> {
        let look = |key: &Key| self.0.store.look(key);
        wanted.iter().map(|one| self.one(one, look)).collect()
    }

    fn put(&self, programs: &[StoredProgram]) -> Result<usize, StoreError> {
        let doing = "keeping a binary";
        let wanted = self.wanted(programs)?;
        if wanted.is_empty() {
            return Ok(0);
        }
        let entries = wanted.into_iter().map(saved).collect::<Result<Vec<_>, _>>();
        let mut entries = entries.map_err(|why| StoreError::new(doing, why))?;
        for entry in &mut entries {
            self.date_after_what_is_there(entry);
        }
        let batch = Batch {
            selection: Selection::Archive,
            entries,
            scratch: Vec::new(),
            marks: Vec::new(),
        };
        let failed = |error| StoreError::new(doing, error);
        let saved = match self.0.store.save(&batch) {
            // It has been made again.
            Err(ArchiveError::Removed { .. }) => self.0.store.save(&batch),
            outcome => outcome,
        };
        let saved = saved.map_err(failed)?;
        self.note_uses();
        match saved.left_out.first() {
            Some(why) => Err(failed(why.clone())),
            None => Ok(batch.entries.len()),
        }
    }

    fn keeps(&self, device_type: DeviceType) -> bool {
        self.0.settings.of(device_type) == Mode::ReadWrite
    }

    fn turn(&self, wanted: &Wanted<'_>) -> Turn {
        if !self.keeps(wanted.device_type) {
            return Turn::default();
        }
        let turn = self.0.locks.turn(&wanted.key);
        self.0.refresh();
        turn
    }

    fn turn_at_once(&self, wanted: &Wanted<'_>) -> Option<Turn> {
        let turn = self.0.locks.turn_at_once(&wanted.key)?;
        self.0.refresh();
        Some(turn)
    }

    fn note_uses(&self) {
        if self.0.writes && self.0.used.swap(false, Ordering::Relaxed) {
            self.0.note_uses();
        }
    }

    fn describe(&self) -> String {
        format!("the kernel cache in {}", self.0.store.path().display())
    }
}

impl Inner {
    /// Has what others put until now be found.
    fn refresh(&self) {
        if let Err(error) = self.store.refresh() {
            sde::warning!("what others kept could not be looked for: {error}");
        }
    }

    fn tidy(&self) -> Result<Compacted, StoreError> {
        let settings = &self.settings;
        let mut retention = Retention::new().results().order(settings.order);
        if let Some(capacity) = settings.capacity {
            // Not to the brim, or the next put would begin again.
            retention = retention.max_bytes(capacity / 4 * 3);
        }
        if let Some(age) = settings.max_age {
            retention = retention.max_age(age);
        }
        let done = self.store.compact(&retention);
        done.map_err(|error| StoreError::new("making room in the kernel cache", error))
    }

    /// How many files there are with binaries, or with notes of their use.
    fn files(&self) -> usize {
        let folder = self.store.path().join(Part::Entries.folder());
        std::fs::read_dir(folder).map_or(0, Iterator::count)
    }

    /// Each process that used something leaves a short file, so that they are many some day.
    fn tidy_if_files_are_many(&self) {
        if self.files() <= MANY {
            return;
        }
        if let Err(error) = self.tidy() {
            sde::warning!("the kernel cache has many files: {error}");
        }
    }

    fn note_uses(&self) {
        if let Err(error) = self.store.commit(Selection::Archive) {
            sde::warning!("what was used of the kernel cache could not be noted: {error}");
        }
    }
}

impl Drop for Inner {
    /// Notes what was used, so that it does not leave first.
    fn drop(&mut self) {
        if self.writes {
            self.note_uses();
            self.tidy_if_files_are_many();
        }
    }
}

#[cfg(test)]
mod tests;
