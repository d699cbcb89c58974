//! Taking chosen entries out of a store.

use sde::Key;
use sde::archiver::ArchiveError;

use crate::compact::Compacted;
use crate::inspect::Entry;
use crate::retention::Retention;
use crate::rewrite::removal::Candidate;
use crate::store::DirStore;

/// A key that may be taken out of a store.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Removable<'a> {
    /// The key. A failure has [one of its own](sde::record::failure_key).
    pub key: &'a Key,
    /// The name of its app.
    pub app: &'a str,
    /// The computation that counts, or would if it were not marked as invalid; `None` if there are only states of a run.
    pub entry: Option<&'a Entry>,
    /// Whether it stays, even if it is wanted: a file that is being written, or that another member of the group owns, has
    /// some of it.
    pub stays: bool,
}

impl DirStore {
    /// Takes the wanted keys out: all computations of each, with intermediates, states of unfinished runs, failures, and
    /// the contents of output files that nobody else needs. Invalidations stay.
    ///
    /// It is a [compaction](Self::compact) without limits, and does what that does. Others may read and write meanwhile.
    /// A key stays as long as a file that is being written has some of it: [`Compacted::left`] tells how many do. They
    /// go with a later call, once the writer has ended, or, if it was killed, after the time of
    /// [grace](crate::StoreOptions::grace). A process that has a result in memory may save it again.
    ///
    /// All entries are read, in the order of their keys. `wanted` is asked again if files were moved meanwhile, or room
    /// had to be made. Memory is 60 bytes for each frame, and 120 while they are written anew.
    ///
    /// ```
    /// use sde::Sde;
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
    /// drop(sde);
    ///
    /// let store = DirStore::open(&path)?;
    /// let done = store.remove(|one| one.app == "cube")?;
    /// assert_eq!((done.taken_out, done.left), (1, 0));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the store can't be read or written. Then all is taken out, or nothing.
    pub fn remove(
        &self,
        wanted: impl Fn(&Removable<'_>) -> bool,
    ) -> Result<Compacted, ArchiveError> {
        let wanted = |one: &Candidate<'_>| is_wanted(one, &wanted);
        self.compact_with(&Retention::new(), Some(&wanted))
    }

    /// Tells what [`remove`](Self::remove) would do now, and changes nothing. It only reads, needs no lock, and works with
    /// a store opened for reading only.
    ///
    /// # Errors
    /// If the store can't be read.
    pub fn would_remove(
        &self,
        wanted: impl Fn(&Removable<'_>) -> bool,
    ) -> Result<Compacted, ArchiveError> {
        let wanted = |one: &Candidate<'_>| is_wanted(one, &wanted);
        self.would_compact_with(&Retention::new(), Some(&wanted))
    }
}

fn is_wanted(one: &Candidate<'_>, wanted: &dyn Fn(&Removable<'_>) -> bool) -> bool {
    let frames = one.frames.iter().filter_map(|frame| Entry::of(frame).ok());
    let entry = frames.reduce(|mut entry, other| {
        entry.fill(other);
        entry
    });
    wanted(&Removable {
        key: &one.key,
        app: &one.app,
        entry: entry.as_ref(),
        stays: one.stays,
    })
}
