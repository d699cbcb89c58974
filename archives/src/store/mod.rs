//! The store in a directory.

mod also;
pub(crate) mod checks;
mod contents;
pub(crate) mod find;
#[cfg(target_os = "linux")]
pub(crate) mod group;
pub(crate) mod journal;
pub(crate) mod open;
pub(crate) mod options;
pub(crate) mod relocatable;
pub(crate) mod save;
pub(crate) mod share;
pub(crate) mod sync_foreign;
mod take_over;
pub(crate) mod upkeep;
pub(crate) mod uses;
pub(crate) mod wire;
pub(crate) mod write_manifest;

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, SystemTime};

use sde::Key;
use sde::archiver::{
    Announced, ArchiveError, Archiver, Batch, EncodedSave, Holder, Journal, Mark, Payload, Saved,
    Selection, StopListener, StoredEntry,
};
use sde::key::Digest;
use sde::ranks::ProcessGroup;
use sde::record::Record;

use crate::catalog::{Catalog, LOOKS};
use crate::collective::Team;
use crate::compact::room::Room;
use crate::compact::scratch::Trimming;
use crate::format::id::{self, UniqueId};
use crate::format::trust::{Trust, cannot_open};
use crate::locks::{lock, warnings_after};
use crate::vfs::Vfs;
use crate::writer::encode::Provenances;
use crate::writer::group_commit::GroupCommit;
use crate::writer::segment_writer::WriterConfig;
use options::StoreOptions;
use upkeep::{Opened, Upkeep};
use uses::Uses;

/// A store in a directory: saves are on the disk before `save` returns.
///
/// Cloning is cheap; clones are one store. Any number of processes may use one directory at once. Each writes files
/// of its own and needs no lock. Others' saves are found when the store is opened, by [`refresh`](Self::refresh),
/// and after a miss, for which the directory is read at most once a second.
///
/// The index is in memory: one filter for all large sealed segments, and one map for all other frames. So the time
/// of a miss hardly depends on the number of segments. Opening the store and looking for others' saves take longer
/// the more there are, so [`finish`](Archiver::finish) merges short ones once there are more than 32.
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
pub struct DirStore(
    pub(crate) Arc<Inner>,
    #[allow(dead_code, reason = "the last that is dropped waits")] Option<Arc<Opened>>,
);

pub(crate) struct Inner {
    pub(crate) dir: PathBuf,
    pub(crate) read_only: bool,
    pub(crate) grace: Duration,
    pub(crate) uses: Option<Uses>,
    pub(crate) journal: journal::ProcessJournal,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) writer: GroupCommit,
    pub(crate) provenances: Provenances,
    /// Whether the existence of the store is durable, once that was checked.
    pub(crate) settled: OnceLock<Result<(), ArchiveError>>,
    /// Whether something was saved that no manifest lists.
    pub(crate) unvouched: Mutex<bool>,
    pub(crate) trimming: Mutex<Trimming>,
    pub(crate) upkeep: Arc<Upkeep>,
    pub(crate) room: Room,
    looked: Mutex<LastLook>,
    looks: u32,
    pub(crate) sharing: share::Sharing,
    /// The other stores that are looked in.
    also: OnceLock<also::OtherStores>,
    /// The most ranks that write to the store when all commit together.
    pub(crate) writers: usize,
    /// The ranks that have opened the store together.
    pub(crate) team: OnceLock<Team>,
}

/// The time of the last look for others' saves, and how long it took.
struct LastLook {
    at: SystemTime,
    took: Duration,
}

/// The least time between two looks after misses.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The part of its time, one in this many, that a program which always misses spends looking.
const LOOKING: u32 = 20;

impl DirStore {
    /// Opens the store in this directory, or makes one there if the directory is
    /// empty or does not exist; see [`StoreOptions::open`].
    ///
    /// # Errors
    /// As [`StoreOptions::open`].
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, ArchiveError> {
        StoreOptions::new().open(dir)
    }

    /// Opens the store in this directory for reading only: nothing in it is changed, and [`save`](Archiver::save)
    /// gives an error.
    ///
    /// # Errors
    /// If there is no store of this format, or it can't be read.
    pub fn open_read_only(dir: impl AsRef<Path>) -> Result<Self, ArchiveError> {
        StoreOptions::new().read_only().open(dir)
    }

    pub(crate) fn new(options: StoreOptions, dir: PathBuf, trust: Trust) -> Self {
        let local = options.local.clone();
        let catalog = Arc::new(Catalog::new(&options.vfs, dir.clone(), trust, local));
        let looked = options.vfs.now();
        let config = WriterConfig {
            vfs: options.vfs,
            dir: options.local.unwrap_or_else(|| dir.clone()),
            opening: UniqueId::new(),
            segment_size: options.segment_size,
        };
        // Other processes do not find frames in a local folder.
        let is_shared = !options.read_only && config.dir == dir;
        let goes_by_uses = options.record_uses || options.retention.goes_by_uses();
        // A store opened for reading only could not write them.
        let are_counted = goes_by_uses && !options.read_only;
        let noting = Arc::clone(&catalog);
        let inner = Arc::new(Inner {
            looked: Mutex::new(LastLook {
                at: looked,
                took: Duration::ZERO,
            }),
            looks: options.looks,
            sharing: share::Sharing::new(is_shared.then_some(&dir)),
            dir,
            read_only: options.read_only,
            grace: options.grace,
            uses: are_counted.then(Uses::default),
            journal: journal::ProcessJournal::default(),
            writer: GroupCommit::new(config, move |written| noting.note_written(written)),
            catalog,
            provenances: Provenances::default(),
            settled: OnceLock::new(),
            unvouched: Mutex::default(),
            trimming: Mutex::default(),
            upkeep: Arc::default(),
            room: Room::new(options.retention),
            writers: options.writers,
            also: OnceLock::new(),
            team: OnceLock::new(),
        });
        let store = Self(Arc::clone(&inner), Some(Arc::new(Opened(inner))));
        store.note_scratch_of_use(0);
        store
    }

    /// A handle for the store's own thread and values, whose drop does not wait for the thread.
    pub(crate) fn inner(inner: Arc<Inner>) -> Self {
        Self(inner, None)
    }

    /// Reads the directory for the first time.
    pub(crate) fn look_first(&self) -> Result<(), ArchiveError> {
        let begun = self.0.vfs().now();
        self.refresh()?;
        self.note_look(begun);
        Ok(())
    }

    fn note_look(&self, begun: SystemTime) {
        let at = self.0.vfs().now();
        let took = at.duration_since(begun).unwrap_or_default();
        *lock(&self.0.looked) = LastLook { at, took };
    }

    /// Looks for saves of other processes.
    ///
    /// # Errors
    /// If the directory can't be listed.
    pub fn refresh(&self) -> Result<(), ArchiveError> {
        let catalog = &*self.0.catalog;
        catalog.look_at_manifests()?;
        catalog.look()
    }

    /// Refreshes, unless another thread does so now: a call that missed is not to wait for a disk. `false` if it
    /// did not.
    fn refresh_if_idle(&self) -> Result<bool, ArchiveError> {
        let catalog = &*self.0.catalog;
        catalog.look_at_manifests()?;
        catalog.look_if_idle()
    }

    /// The store's directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.dir
    }

    /// Looks for others' saves, unless the last look is recent. If a file was gone it always looks: a compaction
    /// has moved its frames.
    pub(crate) fn look_again(&self, gone: bool) -> bool {
        if self.0.team.get().is_some() && !gone {
            // Ranks open a store together to avoid a listing by each every second.
            return false;
        }
        let begun = self.0.vfs().now();
        let is_new = {
            let looked = lock(&self.0.looked);
            let age = begun.duration_since(looked.at);
            let pause = looked
                .took
                .saturating_mul(LOOKING.saturating_mul(self.0.looks));
            age.is_ok_and(|age| age < LOOK_AGAIN.max(pause))
        };
        if is_new && !gone {
            return false;
        }
        let refreshed = match gone {
            true => self.refresh().map(|()| true),
            false => self.refresh_if_idle(),
        };
        // Noted at the end, since a look may take longer than the interval.
        self.note_look(begun);
        match refreshed {
            Ok(done) => done,
            Err(error) => {
                let how = also::permission(&**self.0.vfs(), &error);
                sde::warning!("what others saved could not be looked for: {error}{how}");
                false
            }
        }
    }
}

impl Inner {
    pub(crate) fn vfs(&self) -> &Arc<dyn Vfs> {
        &self.catalog.vfs
    }

    /// The folder that this process appends to, if not the store's.
    pub(crate) fn local(&self) -> Option<&Path> {
        let dir = &*self.writer.config().dir;
        (dir != self.dir).then_some(dir)
    }

    /// The durable ends of this process's unsealed segments.
    pub(crate) fn durable_ends(&self) -> HashMap<UniqueId, u64> {
        let unsealed = self.writer.unsealed().into_iter();
        unsealed.map(|(one, end)| (one.id, end)).collect()
    }

    /// Seals the durable part of all segments.
    pub(crate) fn seal(&self) {
        let note = |segment: Arc<_>, block| self.catalog.note_sealed(&segment, block);
        warn_unsealed(self.writer.seal(0, note));
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !self.read_only {
            self.seal();
            self.team.get().into_iter().for_each(Team::end);
        }
    }
}

impl Archiver for DirStore {
    fn save(&self, batch: &Batch) -> Result<Saved, ArchiveError> {
        self.encode_to_save(batch)?()
    }

    fn encode(&self, batch: &Batch) -> Result<Option<EncodedSave<'_>>, ArchiveError> {
        self.encode_to_save(batch).map(Some)
    }

    fn keep_journal(&self, journal: Journal) {
        if self.0.uses.is_some() {
            self.0.journal.keep(journal);
        }
    }

    fn note_uses(&self, keys: &[Key]) -> bool {
        let now = id::now(&**self.0.vfs());
        let uses = self.0.uses.as_ref();
        uses.is_some_and(|uses| {
            keys.iter().for_each(|key| uses.note(key, now));
            true
        })
    }

    fn commit(&self, selection: Selection) -> Result<(), ArchiveError> {
        if self.0.read_only {
            // A reader saves nothing.
            return Ok(());
        }
        if self.0.team.get().is_some() {
            // Manifests are written when all ranks commit together.
            return self.write_uses(selection);
        }
        self.check_there()?;
        self.write_uses(selection)?;
        if self.copy_given()? | std::mem::take(&mut *lock(&self.0.unvouched)) {
            let retention = &self.0.room.retention;
            let committed = self.with_room(retention, &mut 0, || {
                self.with_reserve(|| self.write_manifest(&[]))
            });
            if committed.is_err() {
                *lock(&self.0.unvouched) = true;
                self.check_there()?;
            }
            committed?;
            self.remove_replaced(self.0.grace);
            self.keep_reserve();
            self.keep_limits();
        }
        Ok(())
    }

    fn announce(&self, app: &str, key: &Key) -> Announced {
        self.announce_key(app, key)
    }

    fn attend(&self) -> Option<Box<dyn Send + Sync>> {
        self.attend_work()
    }

    fn heed(&self, told: StopListener) {
        self.heed_requests(told);
    }

    fn announced_by(&self, key: &Key) -> Option<Holder> {
        self.0.sharing.work.as_ref()?.announced_by(key)
    }

    fn watch(
        &self,
        key: &Key,
        changed: Arc<dyn Fn() + Send + Sync>,
    ) -> Option<Box<dyn Send + Sync>> {
        self.0.sharing.work.as_ref()?.watch(key, changed)
    }

    fn write_through(&self, batch: &Batch) -> Result<(), ArchiveError> {
        self.write_batch_through(batch)
    }

    fn catch_up(&self, spares: Duration) {
        self.catch_up_with_others(spares);
    }

    fn finish(&self) {
        self.0.upkeep.wait();
        self.merge_small();
        // A process that only loads commits nothing, so it keeps the limits here. This comes last, since a process
        // ending meanwhile may have left its saves to this one.
        self.keep_limits();
    }

    fn is_one_store(&self) -> bool {
        true
    }

    fn commits_together(&self) -> bool {
        self.0.team.get().is_some() && !self.0.read_only
    }

    fn commit_together(&self, _: Selection, ranks: &dyn ProcessGroup) -> Result<(), ArchiveError> {
        warnings_after(|| self.commit_all(ranks))
    }

    fn look(&self, key: &Key) -> Result<Option<StoredEntry>, ArchiveError> {
        self.look(key)
    }

    fn find(&self, key: &Key) -> Result<Option<StoredEntry>, ArchiveError> {
        let found = self.find_in_all(key)?;
        if let (Some(uses), Some(_)) = (&self.0.uses, &found) {
            uses.note(key, id::now(&**self.0.vfs()));
        }
        Ok(found)
    }

    fn find_scratch(&self, key: &Key) -> Result<Option<Arc<dyn Payload>>, ArchiveError> {
        self.find_state(key, 0)
    }

    fn find_earlier_scratch(&self, key: &Key) -> Result<Option<Arc<dyn Payload>>, ArchiveError> {
        self.find_state(key, 1)
    }

    fn content(&self, digest: &Digest, mut to: Option<&mut File>) -> Result<bool, ArchiveError> {
        self.give_content(digest, |catalog, key| match to.as_deref_mut() {
            Some(to) => catalog.copy_content(key, to),
            None => Ok((catalog.has_content(key)?, false)),
        })
    }

    fn has_whole_content(&self, digest: &Digest) -> Result<bool, ArchiveError> {
        self.give_content(digest, Catalog::check_content)
    }

    fn marks(&self) -> Result<Vec<Mark>, ArchiveError> {
        Ok(self.marks_in_all())
    }

    fn records(&self, app: &str, each: &mut dyn FnMut(&Record)) -> Result<(), ArchiveError> {
        self.each_store(|store| store.records_here(app, each))
    }

    fn archive_to(&self, dir: &Path) -> Result<(), ArchiveError> {
        self.publish(dir)
    }

    fn describe(&self) -> String {
        format!("the store in {}", self.0.dir.display())
    }

    fn is_read_only(&self) -> bool {
        self.0.read_only
    }
}

/// Runs a job; runs it again each time that a file was gone, since a compaction or a run has replaced it.
pub(crate) fn where_files_are<T>(
    job: impl Fn() -> Result<T, ArchiveError>,
) -> Result<T, ArchiveError> {
    for _ in 1..LOOKS {
        match job() {
            Err(error) if error.is_not_found() => {}
            done => return done,
        }
    }
    job()
}

/// Warns that a segment got no index; nothing is lost.
pub(crate) fn warn_unsealed(sealed: Result<(), ArchiveError>) {
    if let Err(error) = sealed {
        sde::warning!("a segment has no index, it is read from end to end: {error}");
    }
}

pub(crate) fn absolute(dir: &Path) -> Result<PathBuf, ArchiveError> {
    std::path::absolute(dir).map_err(|e| cannot_open(dir, "finding where it is", e))
}

impl std::fmt::Debug for DirStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DirStore")
            .field("dir", &self.0.dir)
            .finish()
    }
}
