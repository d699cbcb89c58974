//! Copying entries from one store to another.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::SystemTime;

use sde::Key;
use sde::archiver::ArchiveError;

use crate::catalog::Catalog;
use crate::catalog::index::Place;
use crate::format::class::Class;
use crate::format::trust::not_a_store;
use crate::read::frame::EntryFrame;
use crate::rewrite::facts::Facts;
use crate::rewrite::select::{Filter, Selection, Wanted};
use crate::store::{DirStore, where_files_are};
use crate::vfs::real_path;

/// An entry that may be copied.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Copyable<'a> {
    /// The entry's key.
    pub key: &'a Key,
    /// The name of its app.
    pub app: &'a str,
    /// When it was made.
    pub made_at: SystemTime,
}

/// The result of a copy. An entry with results and intermediates counts twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// long as reading the wanted entries twice and writing them once; memory is 24 bytes for each frame of the
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
        let vfs = &**self.0.vfs();
        let (source, target) = (real_path(vfs, from.path()), real_path(vfs, self.path()));
        if target.starts_with(source) {
            let why =
                "it is the store that was to be copied from, or lies in it; name another directory";
            return Err(not_a_store(self.path(), why));
        }
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

    fn try_copy(
        &self,
        from: &Self,
        wanted: &dyn Fn(&Copyable<'_>) -> bool,
    ) -> Result<Copied, ArchiveError> {
        self.check_there()?;
        self.refresh()?;
        let catalog = &*self.0.catalog;
        let marks: HashSet<_> = catalog.known(|index| {
            let marks = index.marks().into_iter();
            marks.map(|mark| (mark.key, mark.run, mark.at)).collect()
        });
        let [entries, there, damaged] = [const { Cell::new(0) }; 3];
        let count = |of: &Cell<usize>| of.set(of.get() + 1);
        // The contents of entries that are here already: an interrupted copy may have brought only the entry.
        let needed = RefCell::new(HashSet::<Key>::new());
        // Only durable copies count, since the caller may remove the source next.
        let is_durable = &|place: &Place| self.is_durable(place);
        let wants = |one: Wanted<'_>| match one {
            Wanted::Mark(mark) => !marks.contains(&(mark.key, mark.run, mark.at)),
            Wanted::Content(key) => {
                needed.borrow().contains(key) && !catalog.has_whole_content(key, is_durable)
            }
            Wanted::Entry(one) => {
                let copyable = Copyable {
                    key: &one.key,
                    app: &one.app,
                    made_at: one.precedence.made_at,
                };
                if !wanted(&copyable) {
                    return false;
                }
                let is_there = catalog.has_whole(one, is_durable);
                count(match (is_there, one.damaged) {
                    (true, _) => &there,
                    (false, true) => &damaged,
                    (false, false) => &entries,
                });
                if is_there {
                    needed.borrow_mut().extend(&one.contents);
                }
                !is_there && !one.damaged
            }
        };
        let sources = from.all_entries()?;
        let filter = Filter {
            classes: &[Class::Result, Class::Intermediate],
            wants: Some(&wants),
            journals: false,
            contents: Some(&HashSet::new()),
        };
        let mut selected = Selection::new(&from.0.catalog, &sources, filter).run()?;
        selected.uses.clear();
        if (0..sources.len()).any(|source| selected.keeps_any(source)) {
            self.rewrite(&from.0.catalog, self.another_writer(), &sources, &selected)?;
        }
        Ok(Copied {
            entries: entries.get(),
            there: there.get(),
            damaged: damaged.get(),
            missing: selected.missing,
        })
    }
}

impl Catalog {
    /// Whether a durable frame of this computation and class has all values whole.
    fn has_whole(&self, one: &Facts, is_durable: &dyn Fn(&Place) -> bool) -> bool {
        let frames = self.known(|index| index.entries(&one.key));
        frames.iter().any(|frame| {
            let read = EntryFrame::read(self, &frame.place);
            read.is_ok_and(|entry| {
                let is_same = entry.frame.header.key == one.key
                    && entry.frame.header.class() == one.class
                    && entry.precedence().run == one.precedence.run;
                let values = entry.values().unwrap_or_default();
                let is_whole = |name: &Arc<str>| {
                    let mut there = entry.provenance.results.iter().zip(&values);
                    there.any(|(kind, value)| {
                        let value = value.as_ref().filter(|_| kind.name == *name);
                        value.is_some_and(|value| value.verify(|_| ()).is_ok())
                    })
                };
                is_same && one.sound.iter().all(is_whole) && is_durable(&frame.place)
            })
        })
    }
}
