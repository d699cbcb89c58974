//! Copying entries from one store to another.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use sde::Key;
use sde::archiver::ArchiveError;
use sde::record::RunId;

use crate::catalog::Catalog;
use crate::catalog::index::Place;
use crate::format::class::Class;
use crate::format::trust::not_a_store;
use crate::read::frame::EntryFrame;
use crate::rewrite::facts::Facts;
use crate::rewrite::select::{Filter, Selection, Wanted};
use crate::rewrite::selected::Selected;
use crate::rewrite::source::Source;
use crate::store::{DirStore, absolute, where_files_are};
use crate::vfs::real_path;

/// An entry that may be copied.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Copyable<'a> {
    /// The entry's key.
    pub key: &'a Key,
    /// The computation.
    pub run: RunId,
    /// The class of its values.
    pub class: Class,
    /// The name of its app.
    pub app: &'a str,
    /// When it was made.
    pub made_at: SystemTime,
    /// The login name of the process that made it, by its own account; empty if that is not known.
    pub user: &'a str,
    /// The machine that made it; empty if that is not known.
    pub host: &'a str,
    /// The names of the results whose values are there, and whole.
    pub results: &'a [Arc<str>],
    /// The bytes that it takes, without those of its output files.
    pub bytes: u64,
    /// Whether a value of it is damaged: then it is not copied.
    pub is_damaged: bool,
}

impl<'a> Copyable<'a> {
    fn of(one: &'a Facts) -> Self {
        Self {
            key: &one.key,
            run: one.precedence.run,
            class: one.class,
            app: &one.app,
            made_at: one.precedence.made_at,
            user: &one.user,
            host: &one.host,
            results: &one.sound,
            bytes: one.bytes,
            is_damaged: one.damaged,
        }
    }
}

/// The result of a copy. An entry with results and intermediates counts twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Copied {
    /// The entries that were copied.
    pub entries: usize,
    /// The entries that this store already had, whole.
    pub there: usize,
    /// The entries that were left out, since a value is damaged.
    pub damaged: usize,
    /// The output files whose content the other store lacks.
    pub missing: usize,
    /// The keys of copied entries of which this store had another computation. Of each the later one counts.
    pub conflicts: usize,
    /// The login names under which the copied entries were made, by their own account.
    pub users: BTreeSet<Arc<str>>,
    /// The machines that made the copied entries.
    pub hosts: BTreeSet<Arc<str>>,
    /// When the first and the last of the copied entries were made.
    pub made: Option<(SystemTime, SystemTime)>,
}

impl Copied {
    /// Counts an entry that is copied.
    fn add(&mut self, one: &Copyable<'_>) {
        self.entries += 1;
        let named = |name: &str| (!name.is_empty()).then(|| Arc::from(name));
        self.users.extend(named(one.user));
        self.hosts.extend(named(one.host));
        let (first, last) = self.made.unwrap_or((one.made_at, one.made_at));
        self.made = Some((first.min(one.made_at), last.max(one.made_at)));
    }
}

/// What a copy has met so far.
#[derive(Default)]
struct Progress {
    copied: Copied,
    conflicts: HashSet<Key>,
    /// The contents of entries that are here already: an interrupted copy may have brought only the entry.
    needed: HashSet<Key>,
}

impl DirStore {
    /// Copies entries of another store to this one: those that count there, results and intermediates, and that are
    /// `wanted`. All invalidations are copied too, whatever is wanted, and the contents of output files that these
    /// entries need. Nothing of this store is replaced. Of a key that both stores have, the computation with the
    /// highest [`Precedence`](crate::Precedence) counts from then on.
    ///
    /// Others may read and write both stores meanwhile. All values are checked when they are read, and read back
    /// once they are written. States of unfinished runs, journals and uses are not copied. Entries that this store
    /// has already are not copied again, so calling this again continues an interrupted copy. The copy takes as
    /// long as reading the wanted entries twice and writing them once; memory is 110 bytes for each frame of the
    /// other store.
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
    /// # let (laptop, cluster) = (folder.path().join("laptop"), folder.path().join("cluster"));
    /// let sde = Sde::builder().store(DirStore::open(&cluster)?).build()?;
    /// cube.call(&sde, 2.0)?;
    /// sde.finish()?;
    ///
    /// let (from, to) = (DirStore::open_read_only(&cluster)?, DirStore::open(&laptop)?);
    /// let copied = to.copy_from(&from, |entry| entry.app == "cube")?;
    /// assert_eq!((copied.entries, copied.there), (1, 0));
    /// assert_eq!(to.copy_from(&from, |_| true)?.there, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If both are one store, this one lies in the other, or one can't be read or written. Entries copied by then
    /// stay, and another call continues the copy.
    pub fn copy_from(
        &self,
        from: &Self,
        wanted: impl Fn(&Copyable<'_>) -> bool,
    ) -> Result<Copied, ArchiveError> {
        self.check_writable()?;
        from.check_copy_to(self.path())?;
        let retention = &self.0.room.retention;
        let copied = self.with_room(retention, &mut 0, || {
            where_files_are(|| self.try_copy(from, &wanted))
        })?;
        // Entries found already here may not be on the medium.
        self.with_room(retention, &mut 0, || {
            self.with_reserve(|| self.write_manifest(&[]))
        })?;
        Ok(copied)
    }

    /// Refuses to be copied to a directory that is this store, or lies in it. The directory need not exist: ask before
    /// a store is made there.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// let store = sde_archives::DirStore::open(folder.path().join("store"))?;
    /// assert!(store.check_copy_to(folder.path().join("store/inner")).is_err());
    /// store.check_copy_to(folder.path().join("other"))?;
    /// # Ok::<(), sde::archiver::ArchiveError>(())
    /// ```
    ///
    /// # Errors
    /// If it is this store, or lies in it.
    pub fn check_copy_to(&self, dir: impl AsRef<Path>) -> Result<(), ArchiveError> {
        let vfs = &**self.0.vfs();
        let target = absolute(dir.as_ref())?;
        if real_path(vfs, &target).starts_with(real_path(vfs, self.path())) {
            let why =
                "it is the store that was to be copied from, or lies in it; name another directory";
            return Err(not_a_store(&target, why));
        }
        Ok(())
    }

    fn try_copy(
        &self,
        from: &Self,
        wanted: &dyn Fn(&Copyable<'_>) -> bool,
    ) -> Result<Copied, ArchiveError> {
        self.check_there()?;
        self.refresh()?;
        let marks: HashSet<_> = self.0.catalog.known(|index| {
            let marks = index.marks().into_iter();
            marks.map(|mark| (mark.key, mark.run, mark.at)).collect()
        });
        let progress = RefCell::new(Progress::default());
        let wants = |one: Wanted<'_>| match one {
            Wanted::Mark(mark) => !marks.contains(&(mark.key, mark.run, mark.at)),
            Wanted::Content(key) => {
                let is_durable = &|place: &Place| self.is_durable(place);
                progress.borrow().needed.contains(key)
                    && !self.0.catalog.has_whole_content(key, is_durable)
            }
            Wanted::Entry(one) => {
                wanted(&Copyable::of(one)) && self.lacks(one, &mut progress.borrow_mut())
            }
        };
        let (sources, mut selected) = from.select_copyable(&wants)?;
        selected.uses.clear();
        if (0..sources.len()).any(|source| selected.keeps_any(source)) {
            self.rewrite(&from.0.catalog, self.another_writer(), &sources, &selected)?;
        }
        let Progress {
            copied, conflicts, ..
        } = progress.into_inner();
        Ok(Copied {
            missing: selected.missing,
            conflicts: conflicts.len(),
            ..copied
        })
    }

    /// Whether an entry is to be copied; counts it. Only durable copies here count, since the caller may remove the
    /// source next.
    fn lacks(&self, one: &Facts, progress: &mut Progress) -> bool {
        let copyable = Copyable::of(one);
        let is_durable = &|place: &Place| self.is_durable(place);
        let of = (copyable.key, copyable.run, copyable.class, copyable.results);
        let here = self.0.catalog.compared(of, is_durable);
        match (here.is_whole, one.damaged) {
            (true, _) => {
                progress.copied.there += 1;
                progress.needed.extend(&one.contents);
            }
            (false, true) => progress.copied.damaged += 1,
            (false, false) => {
                progress.copied.add(&copyable);
                let is_conflict = here.has_another && !here.has_it;
                progress.conflicts.extend(is_conflict.then_some(one.key));
            }
        }
        !here.is_whole && !one.damaged
    }

    /// Selects frames of the entries that may be copied, whose values are no states of unfinished runs.
    fn select_copyable(
        &self,
        wants: &dyn Fn(Wanted<'_>) -> bool,
    ) -> Result<(Vec<Source>, Selected), ArchiveError> {
        let (sources, no_contents) = (self.all_entries()?, HashSet::new());
        let filter = Filter {
            classes: &[Class::Result, Class::Intermediate],
            wants: Some(wants),
            journals: false,
            contents: Some(&no_contents),
        };
        let selected = Selection::new(&self.0.catalog, &sources, filter).run()?;
        Ok((sources, selected))
    }

    /// What `keep` makes of the entries that [`copy_from`](Self::copy_from) this store would offer. Takes as long as
    /// reading their values, which are checked.
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
    ///
    /// let store = DirStore::open_read_only(&path)?;
    /// let apps = store.copyable(|one| Some(one.app.to_owned()))?;
    /// assert_eq!(apps, ["cube"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the store can't be read.
    pub fn copyable<T>(
        &self,
        keep: impl Fn(&Copyable<'_>) -> Option<T>,
    ) -> Result<Vec<T>, ArchiveError> {
        where_files_are(|| {
            let kept = RefCell::new(Vec::new());
            let wants = |one: Wanted<'_>| {
                if let Wanted::Entry(one) = one {
                    kept.borrow_mut().extend(keep(&Copyable::of(one)));
                }
                false
            };
            self.select_copyable(&wants)?;
            Ok(kept.into_inner())
        })
    }

    /// Whether this store has a whole and durable copy of the computation of a key: the values of this class and of
    /// these results, and what its output files hold. Reads and checks them. Others' saves since the last
    /// [`refresh`](Self::refresh) are not looked for.
    #[must_use]
    pub fn has_copy(&self, key: &Key, run: RunId, class: Class, results: &[Arc<str>]) -> bool {
        let is_durable = &|place: &Place| self.is_durable(place);
        let catalog = &*self.0.catalog;
        let here = catalog.compared((key, run, class, results), is_durable);
        let has_content = |key: &Key| catalog.has_whole_content(key, is_durable);
        here.is_whole && here.contents.iter().all(has_content)
    }
}

/// How the frames of a key in this store compare with an entry of another.
#[derive(Default)]
struct Here {
    /// Whether a durable frame of the computation and class has all its values whole.
    is_whole: bool,
    /// What the output files of that frame hold.
    contents: Vec<Key>,
    /// Whether there is a frame of the computation.
    has_it: bool,
    /// Whether there is another computation of the key.
    has_another: bool,
}

impl Catalog {
    fn compared(
        &self,
        (key, run, class, results): (&Key, RunId, Class, &[Arc<str>]),
        is_durable: &dyn Fn(&Place) -> bool,
    ) -> Here {
        let mut here = Here::default();
        for frame in self.known(|index| index.entries(key)) {
            let Ok(entry) = EntryFrame::read(self, &frame.place) else {
                continue;
            };
            if entry.frame.header.key != *key {
                continue;
            }
            if entry.precedence().run != run {
                here.has_another = true;
                continue;
            }
            here.has_it = true;
            let values = entry.values().unwrap_or_default();
            let is_whole = |name: &Arc<str>| {
                let mut there = entry.provenance.results.iter().zip(&values);
                there.any(|(kind, value)| {
                    let value = value.as_ref().filter(|_| kind.name == *name);
                    value.is_some_and(|value| value.verify(|_| ()).is_ok())
                })
            };
            let is_of_class = entry.frame.header.class() == class;
            if is_of_class && results.iter().all(is_whole) && is_durable(&frame.place) {
                here.is_whole = true;
                here.contents = entry.body.contents().collect();
            }
        }
        here
    }
}
