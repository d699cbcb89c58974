//! How a store is opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sde::{ArchiveError, ProcessGroup};

use crate::format::directory::{self, DirectoryContent};
use crate::format::trust::{Trust, not_a_store};
use crate::retention::Retention;
use crate::store::{DirStore, absolute};
use crate::vfs::{Disk, Vfs};

/// How a store is opened.
///
/// ```
/// use sde_archives::Options;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("store");
/// let store = Options::new().segment_size(16 << 20).open(&path)?;
/// # Ok::<(), sde::ArchiveError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) read_only: bool,
    pub(crate) local: Option<PathBuf>,
    pub(crate) writers: usize,
    pub(crate) trust_others: bool,
    pub(crate) segment_size: u64,
    pub(crate) grace: Duration,
    pub(crate) record_uses: bool,
    pub(crate) retention: Retention,
    environment: bool,
    pub(crate) vfs: Arc<dyn Vfs>,
}

/// No segment is sealed before it is as long because of a small capacity.
const SHORTEST: u64 = 1 << 16;

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl Options {
    /// A store of one's own, to read and write, on a disk.
    #[must_use]
    pub fn new() -> Self {
        Self {
            read_only: false,
            local: None,
            writers: 24,
            trust_others: false,
            segment_size: 256 << 20,
            grace: Duration::from_secs(600),
            record_uses: true,
            retention: Retention::new(),
            environment: true,
            vfs: Arc::new(Disk),
        }
    }

    /// Nothing in the store is changed, and saving is an error.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Opens a store that belongs to someone else, or that others can write to, as a whole or a
    /// folder or file of it; also one in which a folder or file is a link. What others put there is
    /// taken for results. Without this such a store is refused.
    ///
    /// ```
    /// let options = sde_archives::Options::new().read_only().trust_others();
    /// # let _ = options;
    /// ```
    #[must_use]
    pub fn trust_others(mut self) -> Self {
        self.trust_others = true;
        self
    }

    /// A segment of this many bytes is sealed, and another begun (256 MiB).
    #[must_use]
    pub fn segment_size(mut self, bytes: u64) -> Self {
        self.segment_size = bytes;
        self
    }

    /// How long a segment that was replaced stays for those who still read it (10
    /// minutes), and, but for at least a minute, a file that somebody began and did not finish. Where there are no
    /// locks, a segment that was not written to for as long counts as left by its writer: on a network file system
    /// it must be longer than attributes are cached.
    ///
    /// ```
    /// let options = sde_archives::Options::new().grace(std::time::Duration::from_secs(3600));
    /// # let _ = options;
    /// ```
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// What the store may keep. The thread that commits, or finishes, sees to it once there is too much: it gives up entries until seven
    /// eighths of the capacity are used. So the store may be larger by what is saved between two commits and, while a
    /// limit holds for one app alone, by a sixteenth of all. What is too old goes within a tenth of the age. Entries of a size that is not
    /// kept are not saved. Stores that ranks [open together](Self::open_together) are left to `sde gc`.
    ///
    /// What is not said here is taken from the [environment](Retention::from_env). A full disk frees what was
    /// replaced and the scratch of runs that have ended, and then what is limited here by a capacity or an age.
    ///
    /// ```
    /// use sde_archives::{Options, Retention};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("store");
    /// let retention = Retention::new().max_bytes(50 << 30).results();
    /// let store = Options::new().retention(retention).open(&path)?;
    /// # Ok::<(), sde::ArchiveError>(())
    /// ```
    #[must_use]
    pub fn retention(mut self, retention: Retention) -> Self {
        self.retention = retention;
        self
    }

    /// What the environment says of [limits](Retention::from_env) is not meant for this store.
    #[must_use]
    pub fn without_environment(mut self) -> Self {
        self.environment = false;
        self
    }

    /// With the limits that hold: those of the environment too.
    pub(crate) fn resolved(mut self) -> Result<Self, ArchiveError> {
        if self.environment && !self.read_only {
            let said = Retention::from_env();
            let said = said.map_err(|error| ArchiveError::Other(error.to_string()))?;
            self.retention = self.retention.or(said);
        }
        if let Some(capacity) = self.retention.all.max_bytes {
            // What goes is in few segments then, and what is being written is little of it.
            let most = (capacity / 32).max(SHORTEST);
            self.segment_size = self.segment_size.min(most);
        }
        Ok(self)
    }

    /// Whether it is recorded which entries are loaded, or used from memory, so that those go first that are not used, and what
    /// this process has done: how often it computed, loaded and waited, and what that took and spared. On by default. A
    /// commit writes the uses since the last time, once a minute at most and at the end, some hundred bytes for a program that loads little; a store
    /// opened for reading only writes nothing. Where a limit of the [retention](Self::retention) goes by uses, or by
    /// age, both are recorded in any case.
    #[must_use]
    pub fn record_uses(mut self, whether: bool) -> Self {
        self.record_uses = whether;
        self
    }

    /// Has each rank append to files in this folder, on a disk of its node, until all ranks commit
    /// together; for [`open_together`](Self::open_together) only. What was saved since the last
    /// commit is lost with the node's disk, and else found by ranks of a later job on that node.
    ///
    /// Any number of stores and programs may be given the same folder. Each store has a folder of its own in it.
    ///
    /// ```
    /// let options = sde_archives::Options::new().local("/tmp").writers(8);
    /// # let _ = options;
    /// ```
    #[must_use]
    pub fn local(mut self, dir: impl Into<PathBuf>) -> Self {
        self.local = Some(dir.into());
        self
    }

    /// How many ranks write to the store at most when all commit together (24), one on each
    /// node at most. With [`local`](Self::local) one rank of each node does, however many there are. Each has two open files at most, one of entries and one of scratch. For
    /// [`open_together`](Self::open_together) only; 0 counts as 1.
    #[must_use]
    pub fn writers(mut self, most: usize) -> Self {
        self.writers = most;
        self
    }

    /// Another file system than that of the machine, for tests.
    #[must_use]
    pub fn vfs(mut self, vfs: Arc<dyn Vfs>) -> Self {
        self.vfs = vfs;
        self
    }

    /// Opens the store in this directory, or makes one there if the directory is
    /// empty or does not exist. Takes as long as reading the indices of its segments,
    /// and the frames of those that have none.
    ///
    /// No value is read here. Those of up to 16 MiB are read and checked when their entry is looked
    /// for; those of up to 64 KiB are kept until they are asked for, longer ones are then read a second
    /// time, mostly from the page cache. So looking for an entry takes as long as reading all its values
    /// that are no longer than 16 MiB. A longer value is read when it is asked for, and a scratch state
    /// of any length when it is looked for.
    ///
    /// # Errors
    /// If something else is in the directory, or a store of another format, or others
    /// can write to it or to any folder or file of it, or such is a link, or a file has the name of one of its folders (if it is opened for reading
    /// only, that is warned of, and the rest is read); then nothing is changed. If it can't be read
    /// or written. If a variable with a [limit](Retention::from_env) is not understood.
    pub fn open(self, dir: impl AsRef<Path>) -> Result<DirStore, ArchiveError> {
        if self.local.is_some() {
            let why = "a folder for one node is of use to ranks that commit together; open the store with `open_together`, or without `local`";
            return Err(ArchiveError::Other(why.to_owned()));
        }
        let options = self.resolved()?;
        let dir = absolute(dir.as_ref())?;
        let vfs = &*options.vfs;
        let trust = Trust::new(vfs, options.trust_others);
        let found = directory::look(vfs, &dir)?;
        match &found {
            DirectoryContent::Store => {
                trust.check(vfs, &dir)?;
                directory::check_parts(vfs, &dir, trust, options.read_only)?;
                if !options.read_only {
                    match directory::probe(vfs, &dir) {
                        // Room is made when it is needed: what may go is in the store.
                        Err(error) if error.is_full() => sde::warning!("{error}"),
                        probed => probed?,
                    }
                }
            }
            DirectoryContent::Nothing if options.read_only => {
                let why = "there is nothing; `DirStore::open` makes a new store";
                return Err(not_a_store(&dir, why));
            }
            DirectoryContent::Nothing => {
                // It would be refused the next time, with what was saved in it.
                trust.check(vfs, &dir)?;
                directory::create(vfs, &dir)?;
            }
        }
        let store = DirStore::new(options, dir, trust);
        if found == DirectoryContent::Nothing {
            // `directory::create` has synced its `FORMAT`, and `make_folder` syncs that name.
            _ = store.0.settled.set(Ok(()));
        }
        store.look_first()?;
        store.check_trust()?;
        store.warn_of_losses()?;
        Ok(store)
    }

    /// Opens the store for all ranks of a program: one of them looks at the directory, and tells the
    /// others what is there. Collective: every rank calls it, with the group that it then
    /// gives to its engine, and the same options.
    ///
    /// What each rank saves goes to files of its own. Where all ranks come by (`finish` and
    /// `checkpoint_all`; with automatic saves also when they are split and released) a few ranks
    /// write it to few files, and the many go. A `checkpoint` or `archive` of one rank is durable like any
    /// save, and is no generation of its own. What ranks of other programs save meanwhile is not
    /// looked for.
    ///
    /// ```
    /// use sde::{OneProcess, Sde};
    /// use sde_archives::{Cbor, Options};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("store");
    /// let group = OneProcess; // or `session.world()`
    /// let store = Options::new().open_together(&path, &group)?;
    /// let sde = Sde::builder().store(store).process_group(group, Cbor).build()?;
    /// sde.finish()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`open`](Self::open), on all ranks if on any.
    pub fn open_together(
        self,
        dir: impl AsRef<Path>,
        group: &dyn ProcessGroup,
    ) -> Result<DirStore, ArchiveError> {
        crate::collective::open(self, dir.as_ref(), group)
    }
}
