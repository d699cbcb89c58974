//! The options of a store.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sde::archiver::ArchiveError;
use sde::ranks::ProcessGroup;

use crate::format::class::EXTENSION;
use crate::format::directory::{self, DirectoryContent};
use crate::format::trust::{Trust, not_a_store};
use crate::retention::Retention;
use crate::store::also::OtherStores;
use crate::store::{DirStore, absolute};
use crate::vfs::{Disk, Trusted, Vfs};

/// The options with which a store is opened.
///
/// ```
/// use sde_archives::StoreOptions;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("store");
/// let store = StoreOptions::new().segment_size(16 << 20).open(&path)?;
/// # Ok::<(), sde::archiver::ArchiveError>(())
/// ```
#[derive(Clone, Debug)]
pub struct StoreOptions {
    pub(crate) read_only: bool,
    pub(crate) local: Option<PathBuf>,
    also: Vec<PathBuf>,
    /// The number of stores among which the time for looks is divided.
    pub(super) looks: u32,
    /// Whether a file that may not be read is left out with a warning, and no error.
    leaves_out: bool,
    pub(crate) writers: usize,
    pub(crate) trust_others: bool,
    runs_results: bool,
    pub(crate) segment_size: u64,
    pub(crate) grace: Duration,
    pub(crate) record_uses: bool,
    pub(crate) retention: Retention,
    pub(super) environment: bool,
    pub(crate) vfs: Arc<dyn Vfs>,
}

/// The other stores that `SDE_ALSO` names.
#[doc(hidden)]
#[must_use]
pub fn other_stores() -> Vec<PathBuf> {
    let named = std::env::var_os("SDE_ALSO").unwrap_or_default();
    let named = std::env::split_paths(&named);
    named.filter(|dir| !dir.as_os_str().is_empty()).collect()
}

/// The least segment size that a small capacity leads to.
const SHORTEST: u64 = 1 << 16;

impl Default for StoreOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl StoreOptions {
    /// StoreOptions for a store of the user's own, to read and write, on a disk.
    #[must_use]
    pub fn new() -> Self {
        Self {
            read_only: false,
            local: None,
            also: Vec::new(),
            looks: 1,
            leaves_out: false,
            writers: 24,
            trust_others: false,
            runs_results: false,
            segment_size: 256 << 20,
            grace: Duration::from_secs(600),
            record_uses: true,
            retention: Retention::new(),
            environment: true,
            vfs: Arc::new(Disk),
        }
    }

    /// Opens the store for reading only: nothing in it is changed, and saving is an error.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Opens a store even if it, or a folder or file of it, belongs to another user, can be written to by others,
    /// or is a link. The contents are taken for results, whoever wrote them. Without this such a store is refused.
    ///
    /// ```
    /// let options = sde_archives::StoreOptions::new().read_only().trust_others();
    /// # let _ = options;
    /// ```
    #[must_use]
    pub fn trust_others(mut self) -> Self {
        self.trust_others = true;
        self
    }

    /// Declares that what is in the store is run, or may run code when it is read, as compiled programs and pickles do. Then only what this
    /// user has saved counts, and what the users in [`trusted`](crate::trusted) have. Naming a group's store trusts the group for values,
    /// never for code. What others saved is a miss, of which one warning tells.
    ///
    /// The author is the owner of the file, so a file that anybody else can write to does not count either. A copy is its copier's: what
    /// this user or a trusted one copied there counts, whoever made it. Opening reads the list of users.
    ///
    /// ```
    /// let options = sde_archives::StoreOptions::new().runs_results();
    /// # let _ = options;
    /// ```
    #[must_use]
    pub fn runs_results(mut self) -> Self {
        self.runs_results = true;
        self
    }

    /// The size at which a segment is sealed and another begun (256 MiB).
    #[must_use]
    pub fn segment_size(mut self, bytes: u64) -> Self {
        self.segment_size = bytes;
        self
    }

    /// The time for which a replaced segment stays for its readers (10 minutes). Unfinished files stay as long, and
    /// at least a minute. Without locks, a segment not written to for that time counts as left by its writer: on a
    /// network file system it must be longer than attributes are cached.
    ///
    /// ```
    /// let options = sde_archives::StoreOptions::new().grace(std::time::Duration::from_secs(3600));
    /// # let _ = options;
    /// ```
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// The limits of the store. When they are exceeded, the thread that commits or finishes gives up entries until
    /// seven eighths of the capacity are used. So the store may be larger by the saves between two commits and,
    /// while a limit applies to one app alone, by a sixteenth of all. Entries that are too old go within a tenth of
    /// the age. Entries of a size that is not kept are not saved. Stores that ranks
    /// [open together](Self::open_together) are left to `sde gc`.
    ///
    /// Limits not set here are taken from the [environment](Retention::from_env). A full disk frees replaced
    /// segments and the scratch of ended runs, and then entries that a capacity or an age set here applies to.
    ///
    /// ```
    /// use sde_archives::{StoreOptions, Retention};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("store");
    /// let retention = Retention::new().capacity(50 << 30).results();
    /// let store = StoreOptions::new().retention(retention).open(&path)?;
    /// # Ok::<(), sde::archiver::ArchiveError>(())
    /// ```
    #[must_use]
    pub fn retention(mut self, retention: Retention) -> Self {
        self.retention = retention;
        self
    }

    /// Ignores the environment for this store: [limits](Retention::from_env), and [stores to look in
    /// too](Self::also_from_env) of a [builder](Self::builder).
    #[must_use]
    pub fn without_environment(mut self) -> Self {
        self.environment = false;
        self
    }

    /// Looks in this store too, for what the store that is opened lacks; given several times, in their order. It is
    /// read and never changed, and whoever may read it can name it: its values are taken for results, whoever wrote
    /// them. Short entries (64 KiB) that are found there are copied with the next save, as they are.
    ///
    /// A store that can't be opened is left out with a warning. One that goes away later, or is damaged, is a miss.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let (mine, theirs) = (folder.path().join("mine"), folder.path().join("theirs"));
    /// # sde_archives::DirStore::open(&theirs)?;
    /// let sde = sde_archives::StoreOptions::new().also(&theirs).builder(&mine)?.build()?;
    /// # Ok::<(), sde::Error>(())
    /// ```
    #[must_use]
    pub fn also(mut self, dir: impl Into<PathBuf>) -> Self {
        self.also.push(dir.into());
        self
    }

    /// Looks in the stores [too](Self::also) that the variable `SDE_ALSO` names, one after another with `:` between
    /// them (`;` on Windows).
    #[must_use]
    pub fn also_from_env(mut self) -> Self {
        self.also.extend(other_stores());
        self
    }

    /// Completes the limits from the environment, and the users who are trusted.
    pub(crate) fn resolved(mut self) -> Result<Self, ArchiveError> {
        if self.environment && !self.read_only {
            let said = Retention::from_env();
            let said = said.map_err(|error| ArchiveError::Other(error.to_string()))?;
            self.retention = self.retention.or(said);
        }
        if std::mem::take(&mut self.runs_results) {
            #[cfg(target_os = "linux")]
            let users = crate::trusted::users()?;
            #[cfg(not(target_os = "linux"))]
            let users = Vec::new();
            self.vfs = Arc::new(Trusted::new(self.vfs, users, EXTENSION));
        }
        if let Some(capacity) = self.retention.all.capacity {
            // With small segments, entries that go are in few of them, and those being written are a small part.
            let most = (capacity / 32).max(SHORTEST);
            self.segment_size = self.segment_size.min(most);
        }
        Ok(self)
    }

    /// Records neither uses of entries nor this process's journal. Uses are loads, and finds in
    /// memory: entries without any go first. The journal has how often the process computed, loaded and waited, and
    /// the time that took and saved. A commit writes both, at most once a minute and at the end, some hundred bytes
    /// for a program that loads little. A store opened for reading only writes nothing. If a limit of the
    /// [retention](Self::retention) goes by uses or age, both are always recorded.
    #[must_use]
    pub fn without_uses(mut self) -> Self {
        self.record_uses = false;
        self
    }

    /// Puts what a rank appends into files in this folder, on a disk of its node, until all ranks commit together. It
    /// is for [`open_together`](Self::open_together) only. If the node's disk is lost, so are saves since the last
    /// commit; otherwise ranks of a later job on that node find them.
    ///
    /// Any number of stores and programs may be given the same folder. Each store has a folder of its own in it.
    ///
    /// ```
    /// let options = sde_archives::StoreOptions::new().local("/tmp").writers(8);
    /// # let _ = options;
    /// ```
    #[must_use]
    pub fn local(mut self, dir: impl Into<PathBuf>) -> Self {
        self.local = Some(dir.into());
        self
    }

    /// The most ranks that write to the store when all commit together (24), at most one on each node. With
    /// [`local`](Self::local) one rank of each node does, however many there are. Each has at most two open files,
    /// one of entries and one of scratch. For [`open_together`](Self::open_together) only; 0 counts as 1.
    #[must_use]
    pub fn writers(mut self, most: usize) -> Self {
        self.writers = most;
        self
    }

    /// Replaces the machine's file system, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn vfs(mut self, vfs: Arc<dyn Vfs>) -> Self {
        self.vfs = vfs;
        self
    }

    /// Opens the store in this directory, or makes one there if the directory is
    /// empty or does not exist. Takes as long as reading the indices of its segments,
    /// and the frames of those that have none.
    ///
    /// No value is read on opening. Values of up to 16 MiB are read and checked when their entry is looked up.
    /// Those of up to 64 KiB are kept in memory until they are asked for; longer ones are then read a second time,
    /// mostly from the page cache. So looking up an entry takes as long as reading all its values of up to 16 MiB.
    /// Longer values are read when they are asked for, scratch states of any length when they are looked up.
    ///
    /// # Errors
    /// If the directory has other contents, or a store of another format. If it, or a folder or file of it, belongs
    /// to another user or can be written to by others, or one in it is a link. If a file has the name of one of its
    /// folders: for reading only that is warned of, and the rest is read. In these cases nothing is changed. If it
    /// can't be read or written. If a variable with a [limit](Retention::from_env) is not understood.
    pub fn open(self, dir: impl AsRef<Path>) -> Result<DirStore, ArchiveError> {
        if self.local.is_some() {
            let why = "a folder for one node is of use to ranks that commit together; open the store with `open_together`, or without `local`";
            return Err(ArchiveError::Other(why.to_owned()));
        }
        let mut options = self.resolved()?;
        let others = std::mem::take(&mut options.also);
        let dir = absolute(dir.as_ref())?;
        let vfs = &*options.vfs;
        let trust = || Trust::of(vfs, &dir, options.trust_others);
        let found = directory::look(vfs, &dir)?;
        match &found {
            DirectoryContent::Store => {
                trust().check(vfs, &dir)?;
                directory::check_parts(vfs, &dir, trust(), options.read_only)?;
                if !options.read_only {
                    match directory::probe(vfs, &dir) {
                        // Room is made on the first save: the store may have frames that can go.
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
                // Others could write to it, and the store would be refused the next time, with its saves.
                trust().check(vfs, &dir)?;
                directory::create(vfs, &dir)?;
            }
        }
        // A new directory is a group's if the one that it was made in is.
        let trust = trust();
        let mut of_others = Self::new().vfs(Arc::clone(&options.vfs)).read_only();
        of_others = of_others.trust_others();
        of_others.runs_results = options.runs_results;
        of_others.leaves_out = true;
        of_others.looks = u32::try_from(others.len()).unwrap_or(u32::MAX);
        let open = |dir: &Path| of_others.clone().open(dir);
        let also = (!others.is_empty()).then(|| OtherStores::open(vfs, &dir, &others, open));
        let leaves_out = options.leaves_out;
        let store = DirStore::new(options, dir, trust);
        if let Some(also) = also {
            let _ = store.0.also.set(also);
        }
        if found == DirectoryContent::Nothing {
            // `directory::create` has synced the `FORMAT` file, and `make_folder` syncs its name.
            _ = store.0.settled.set(Ok(()));
        }
        if !store.0.read_only {
            crate::work::remove_if_over(&store.0.dir);
        }
        store.look_first()?;
        if !leaves_out {
            store.check_trust()?;
        }
        store.warn_of_losses()?;
        Ok(store)
    }

    /// Opens the store for all ranks of a program: one of them reads the directory, and tells the others where the
    /// frames are. Collective: every rank calls it, with the group that it then gives to its engine, and with equal
    /// options.
    ///
    /// Each rank saves to files of its own. Where all ranks meet (`finish` and `checkpoint_all`; with automatic
    /// saves also when they are split and released) a few ranks copy these to few files, and remove them. A
    /// `checkpoint` or `archive` of one rank is durable like any save, and is no generation of its own. Saves of
    /// other programs' ranks in the meantime are not looked for.
    ///
    /// ```
    /// use sde::Sde;
    /// use sde::ranks::OneProcess;
    /// use sde_archives::{Cbor, StoreOptions};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("store");
    /// let group = OneProcess; // or `session.world()`
    /// let store = StoreOptions::new().open_together(&path, &group)?;
    /// let sde = Sde::builder().store(store).process_group(group, Cbor).build()?;
    /// sde.finish()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`open`](Self::open); an error on one rank is returned on all.
    pub fn open_together(
        self,
        dir: impl AsRef<Path>,
        group: &dyn ProcessGroup,
    ) -> Result<DirStore, ArchiveError> {
        if !self.also.is_empty() {
            let why = "ranks that open a store together must all find the same, so they look in no other stores; copy what you need with `sde copy`, or open without `also`";
            return Err(ArchiveError::Other(why.to_owned()));
        }
        crate::collective::open(self, dir.as_ref(), group)
    }
}
