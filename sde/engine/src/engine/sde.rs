//! [`Sde`], the program's own handle of an engine.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Engine;
use super::app_store::Apps;
use super::background::Background;
use super::builder::{Builder, read_invalidations};
use super::handle::{AppSource, Handle};
use super::invalidate::Invalidated;
use super::stats::Stats;
use crate::checkpoint::{Archiver, SavePolicy, Selection};
use crate::entry::Record;
use crate::error::Error;
use crate::event::RunId;
use crate::key::Key;
use crate::ranks::{ProcessGroup, ProcessSet};
use crate::result_map::Tags;
use crate::sync::{lock, user_code, write};

/// Runs apps and remembers their results.
///
/// It dereferences to a [`Handle`], where `run` and its kin are. The methods here are for the user alone, who sees the
/// whole program. Cloning is cheap, and all clones share one memory. It is `Send` and `Sync`, and no call holds a lock
/// while an app runs.
///
/// Dropping the last clone saves new results, best effort, unless the policy is [`SavePolicy::Never`]. The last of the
/// handles and runs that outlive it saves what came since. Nothing important should hang on that: call
/// [`finish`](Self::finish), which can say that it failed.
///
/// ```
/// use sde::Sde;
///
/// #[sde::app]
/// fn cube(x: f64) -> f64 {
///     x.powi(3)
/// }
///
/// let sde = Sde::new();
/// assert_eq!(*cube.call(&sde, 2.0)?, 8.0);
/// assert_eq!(*cube.call(&sde, 2.0)?, 8.0);
/// assert_eq!(sde.stats().total.computed, 1);
/// sde.finish()?;
/// # Ok::<(), sde::Error>(())
/// ```
#[derive(Clone)]
pub struct Sde {
    handle: Handle,
    /// Shared by all clones, and by no handle.
    _last: Arc<Last>,
}

/// Saves when the last `Sde` goes, whatever handles an app has kept.
struct Last(Arc<Engine>, Option<Arc<ProcessSet>>);

impl Drop for Last {
    fn drop(&mut self) {
        self.0.save_at_the_end();
        self.0.tell_the_end();
        self.0.warn_of_budgets_without_effect();
        if let Some(ranks) = &self.1 {
            ranks.leave_unless_closed();
        }
    }
}

impl Deref for Sde {
    type Target = Handle;
    fn deref(&self) -> &Handle {
        &self.handle
    }
}

impl Default for Sde {
    fn default() -> Self {
        Self::new()
    }
}

impl Sde {
    /// An engine with no store and all defaults.
    #[must_use]
    pub fn new() -> Self {
        // Without a store there is nothing to read, so nothing to fail.
        match Self::builder().build() {
            Ok(sde) => sde,
            Err(error) => unreachable!("an engine without a store was refused: {error:#}"),
        }
    }

    /// Sets up an engine: store, observers, threads.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(super) fn of(engine: Engine, group: Option<(Box<dyn ProcessGroup>, Duration)>) -> Self {
        let engine = Arc::new(engine);
        let ranks = group.map(|(group, patience)| engine.world(group, patience));
        Self {
            handle: Handle::new(Arc::clone(&engine), None, ranks.clone()),
            _last: Arc::new(Last(engine, ranks)),
        }
    }

    /// The apps registered by name.
    #[must_use]
    pub fn apps(&self) -> Apps<'_> {
        Apps(self.engine())
    }

    /// Everything the app, with all its sub-apps, lacks before it can run, a
    /// sentence each; empty if it is ready.
    ///
    /// # Errors
    /// If the app can't be found or identified.
    pub fn not_ready<A: AppSource + ?Sized>(&self, app: &A) -> Result<Vec<String>, Error> {
        let called = app.resolve(self)?;
        Ok(called.resolved.missing.clone())
    }

    /// The works to cite for the apps run or remembered so far, through all sub-apps
    /// and callees: app, then its citations.
    #[must_use]
    pub fn citations_used(&self) -> BTreeMap<String, Vec<String>> {
        let mut names = lock(&self.engine().forgotten).clone();
        for entry in self.engine().entries() {
            names.extend(entry.record.apps());
        }
        let catalog = &self.engine().catalog;
        let citations = |name: Arc<str>| (name.to_string(), catalog.citations(&name));
        let all = names.into_iter().map(citations);
        all.filter(|(_, citations)| !citations.is_empty()).collect()
    }

    /// Counts and times so far, for each app and in all.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.engine().stats()
    }

    /// Tells `each` the records of the entries in memory, those without values among them, in the order they were
    /// made. The inputs of saved entries are read from the store, one after another. `each` may use the engine: what
    /// comes or goes meanwhile changes nothing of what it is told.
    ///
    /// ```
    /// # #[sde::app]
    /// # fn square(x: f64) -> f64 { x * x }
    /// let sde = sde::Sde::new();
    /// square.call(&sde, 3.0)?;
    /// square.call(&sde, 4.0)?;
    /// let mut of = Vec::new();
    /// sde.records(|record| of.push(record.inputs[0].short.to_string()));
    /// assert_eq!(of, ["3.0", "4.0"]);
    /// # Ok::<(), sde::Error>(())
    /// ```
    pub fn records(&self, mut each: impl FnMut(&Record)) {
        let engine = self.engine();
        let mut entries: Vec<_> = engine.entries().collect();
        entries.sort_by_key(|entry| (entry.record.made_at, entry.record.run));
        for entry in entries {
            let record = engine.record_of(&entry);
            user_code("what is told of records");
            each(&record);
        }
    }

    /// Deletes from memory all values of an app *type*, whatever the instance, and the states of its scratch. Saved
    /// values, and those given out, stay; so do the records of the runs. Runs in progress are not disturbed. Values that
    /// a store is still to save are let go after that.
    ///
    /// ```
    /// # #[sde::app]
    /// # fn square(x: f64) -> f64 { x * x }
    /// let sde = sde::Sde::new();
    /// square.call(&sde, 3.0)?;
    /// sde.clear_app("square")?;
    /// let error = sde.clear_app("sqaure").unwrap_err();
    /// assert!(error.to_string().contains("did you mean: square"));
    /// # Ok::<(), sde::Error>(())
    /// ```
    ///
    /// # Errors
    /// If this program has shown no app of that name, neither by linking nor by
    /// running, preparing or registering one. An app's own name is meant, not one
    /// under which it is registered.
    pub fn clear_app(&self, app: &str) -> Result<(), Error> {
        self.clear(app, |_| true)?;
        if let Some(cache) = self.engine().caches.named(app) {
            let of_sets = self.engine().sets.caches(app);
            let in_set = |key: &Key| of_sets.iter().any(|cache| cache.is_flying(key));
            let scratches = &cache.scratches;
            scratches.retain(|key| cache.is_flying(key) || in_set(key));
        }
        Ok(())
    }

    /// Removes the values of an app that have one of these tags from memory. States of scratch stay.
    ///
    /// # Errors
    /// As [`clear_app`](Self::clear_app).
    pub fn clear_tagged(&self, app: &str, tags: impl Into<Tags>) -> Result<(), Error> {
        let tags = tags.into();
        self.clear(app, |of_value| of_value.intersects(tags))
    }

    fn clear(&self, app: &str, goes: impl Fn(Tags) -> bool) -> Result<(), Error> {
        let why = "it was cleared from memory";
        self.engine().sets.clear(app, &goes, why);
        match self.engine().caches.named(app) {
            Some(cache) => cache.clear(|named| goes(named.tags), why),
            None => self.engine().must_know(app)?,
        }
        self.engine().raise_epoch();
        Ok(())
    }

    /// Invalidates an entry: the run that has this key is made again when next asked for. Saved with the next
    /// checkpoint or archive.
    ///
    /// # Errors
    /// If there is no such entry in memory or in the store, or the store can't be asked.
    pub fn invalidate(&self, key: &Key, reason: &str) -> Result<Invalidated, Error> {
        let run = self.engine().mark(key, reason, false)?;
        Ok(Invalidated {
            run,
            dependents: self.engine().dependents(key),
        })
    }

    /// Invalidates one computation of a key, known from its [record](crate::record::RecordHead::run), whatever this
    /// program has in memory: another process may have made one of its own. Nothing is looked up.
    ///
    /// ```
    /// # #[sde::app]
    /// # fn square(x: f64) -> f64 { x * x }
    /// let sde = sde::Sde::new();
    /// square.call(&sde, 3.0)?;
    /// let mut made = Vec::new();
    /// sde.records(|record| made.push((record.key, record.run)));
    /// sde.invalidate_run(&made[0].0, made[0].1, "the node had bad memory");
    /// assert!(matches!(square.request(&sde, 3.0).peek()?, sde::Peek::Miss { .. }));
    /// # Ok::<(), sde::Error>(())
    /// ```
    pub fn invalidate_run(&self, key: &Key, run: RunId, reason: &str) {
        self.engine().mark_run(*key, run, reason, false);
    }

    /// Takes [`invalidate`](Self::invalidate) back.
    ///
    /// # Errors
    /// As [`invalidate`](Self::invalidate).
    pub fn undo_invalidate(&self, key: &Key) -> Result<(), Error> {
        self.engine().mark(key, "", true).map(drop)
    }

    /// Saves new results, intermediates and the scratch of runs in progress. Does nothing if nothing changed.
    ///
    /// # Errors
    /// If there is no store, or it fails; what could not be saved is saved next
    /// time.
    pub fn checkpoint(&self) -> Result<(), Error> {
        self.engine().save(Selection::Checkpoint, true)
    }

    /// Starts a [checkpoint](Self::checkpoint) on another thread, and returns at once. Runs go on meanwhile. If it
    /// fails, an event warns of it, and the next one tries again.
    ///
    /// # Errors
    /// If there is no store, or no thread can be started.
    pub fn checkpoint_in_background(&self) -> Result<(), Error> {
        self.engine().store_to("checkpoint")?;
        Background::start(self.engine()).map_err(super::builder::no_thread)?;
        self.engine().background.want();
        Ok(())
    }

    /// Saves new results only. Does nothing if nothing changed.
    ///
    /// # Errors
    /// If there is no store, or it fails; what could not be saved is saved next
    /// time.
    pub fn archive(&self) -> Result<(), Error> {
        self.engine().save(Selection::Archive, true)
    }

    /// Saves all results, and writes them to a store of their own in another directory,
    /// with nothing in it that is not needed: to be kept, copied or published. The directory
    /// must be empty or not exist yet; it is a store only once all is there.
    ///
    /// Takes as long as reading and writing all results of the store. In a program that runs on several
    /// ranks it is collective: all save, and then the first rank writes the results of its store, which are those of
    /// all ranks if the store is one for all.
    ///
    /// # Errors
    /// If there is no store, or it can't be read, or the directory can't be written. On all ranks, if
    /// it fails on any, or if they name different directories.
    pub fn archive_to(&self, dir: impl AsRef<Path>) -> Result<(), Error> {
        let dir = dir.as_ref();
        let saved = self.engine().save(Selection::Archive, true);
        self.saved_together("archives", Selection::Archive, saved)?;
        match self.handle.collective_ranks(|| "archives".to_owned())? {
            Some(ranks) => self.engine().archive_for_all(ranks, dir),
            None => self.engine().archive_to(dir),
        }
    }

    /// Checkpoints and archives, and says whether that went well: the last call of a program. The next program that
    /// opens the store computes nothing that this one has, but for `expendable` and `no_cache` values. With no store it
    /// saves nothing. In a program that runs on several ranks it is collective, and returns when all have saved.
    ///
    /// # Errors
    /// If the store fails; on all ranks, if it fails on any.
    pub fn finish(&self) -> Result<(), Error> {
        let save = |selection| match self.engine().archiver() {
            Some(_) => self.engine().save(selection, true),
            None => Ok(()),
        };
        let saved = save(Selection::Checkpoint);
        let saved = self.saved_together("finishes", Selection::Checkpoint, saved);
        // Also if that failed: results come first.
        let archived = save(Selection::Archive);
        self.saved_together("finishes", Selection::Archive, saved.and(archived))?;
        if let Some(ranks) = self.handle.shared_ranks() {
            ranks.close();
        } else if let Some(store) = self.engine().archiver() {
            store.finish();
        }
        Ok(())
    }

    /// Saves a [checkpoint](Self::checkpoint) of all ranks of the program, and returns when all have saved.
    /// Collective; in a program that runs on one process it is `checkpoint`.
    ///
    /// # Errors
    /// As [`checkpoint`](Self::checkpoint); on all ranks, if it fails on any.
    pub fn checkpoint_all(&self) -> Result<(), Error> {
        let saved = self.engine().save(Selection::Checkpoint, true);
        self.saved_together("checkpoints", Selection::Checkpoint, saved)
    }

    fn saved_together(
        &self,
        doing: &str,
        selection: Selection,
        saved: Result<(), Error>,
    ) -> Result<(), Error> {
        match self.handle.collective_ranks(|| doing.to_owned()) {
            Ok(Some(ranks)) => self.engine().commit_saved(ranks, doing, selection, saved),
            Ok(None) => saved,
            // The save stands: only the collective call was at fault.
            Err(error) => saved.and(Err(error)),
        }
    }

    /// Takes another store, and forgets all entries in memory. Runs in progress end for their callers, and are not
    /// remembered. A run that goes on at the same time sees either store.
    ///
    /// Results not saved to the old store are not saved at all. The policy and the budget stay: an engine built without a
    /// store saves on request. In a program that runs on several ranks it is
    /// collective: all forget their entries, distributed results too, and each takes the store that it gives.
    ///
    /// # Errors
    /// If the new store can't be read, on all ranks if one's can't; or if ranks opened it together and the engine has
    /// none. Then nothing has changed.
    pub fn load(&self, archiver: impl Archiver + 'static) -> Result<(), Error> {
        let doing = || "loads a store".to_owned();
        let ranks = self.handle.collective_ranks(doing)?;
        let read = read_invalidations(&archiver, ranks.is_some());
        let invalidations = match ranks {
            Some(ranks) => ranks.agree("loading a store", read)?,
            None => read?,
        };
        let engine = self.engine();
        // Dropped when others may save again: destructors may use the engine.
        let (_store, _old, _unsaved);
        // Until nothing is left of the old store, entries marked in either store are refused.
        let only_old = engine.invalidations.add(invalidations);
        let archiver: Arc<dyn Archiver> = Arc::new(archiver);
        engine.heed(&*archiver);
        _store = write(&engine.archiver).replace(archiver);
        // After the store: a run that begins between the two is not remembered, where
        // one that had looked in the old store must not be.
        let of_sets = engine.sets.entries();
        let of_caches = engine.caches.all().map(|cache| cache.forget_all());
        _old = (of_caches.collect::<Vec<_>>(), of_sets);
        engine.sets.forget_all();
        _unsaved = Selection::BOTH.map(|selection| engine.pending.take(selection, usize::MAX));
        engine.raise_epoch();
        engine.count_uses();
        engine.invalidations.remove(&only_old);
        Ok(())
    }
}

impl std::fmt::Debug for Sde {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sde")
            .field("total", &self.stats().total)
            .finish()
    }
}

impl Engine {
    /// In a `drop` an error can only be warned of.
    fn save_at_the_end(&self) {
        let runs = self.runs.load(Ordering::Relaxed);
        let is_told = self.unsaved.load(Ordering::Relaxed) == runs;
        if is_told || self.policy == SavePolicy::Never || self.archiver().is_none() {
            return;
        }
        for selection in Selection::BOTH {
            if let Err(error) = self.save(selection, true) {
                let name = selection.name();
                self.warn(|| format!("the {name} at the end failed: {error:#}"));
                self.unsaved.store(runs, Ordering::Relaxed);
            }
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.save_at_the_end();
        self.tell_all_repeats();
    }
}
