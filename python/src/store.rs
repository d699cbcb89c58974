//! An opened store, which a process that was forked opens anew.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sde::archiver::Archiver;
use sde::key::commit;
use sde::store::{DirStore, StoreOptions};
use sde::{Builder, InputFile, SavePolicy, Sde};

use crate::signals::blocked;
use crate::{KeyingError, current, failed, stack, table};

/// How often this process was forked off. The threads of an engine don't exist in a child, and its locks may be held
/// for ever there.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Counts the openings, so that each has a number of its own.
static OPENINGS: AtomicU64 = AtomicU64::new(1);

/// How many runs tell what the next one costs.
const LATEST: usize = 50;

/// Notes that this process was forked off.
#[pyfunction]
pub(crate) fn forked() {
    FORKS.fetch_add(1, Ordering::SeqCst);
}

/// How often this process and those before it were forked off.
pub(crate) fn forks() -> u64 {
    FORKS.load(Ordering::Relaxed)
}

/// An engine with its store, as one process has it.
pub(crate) struct Opened {
    pub(crate) sde: Sde,
    pub(crate) store: DirStore,
    pub(crate) number: u64,
    forks: u64,
}

impl Opened {
    fn new(path: &PathBuf) -> Result<Arc<Self>, sde::Error> {
        let forks = FORKS.load(Ordering::SeqCst);
        // The store is opened as by `sde::open`, and kept at hand. The builder comes first: it shows warnings of opening.
        let builder = Builder::for_program();
        let store = StoreOptions::new().also_from_env().open(path)?;
        let mut builder = builder.store(store.clone());
        if let Some(runs) = stack::MAX_DEPTH {
            builder = builder.max_depth(runs);
        }
        let sde = match forks {
            0 => builder.build()?,
            // A child may be ended at any time without a word, as those of `multiprocessing.Pool` are.
            _ => builder.save(SavePolicy::EveryResult).build()?,
        };
        Ok(Arc::new(Self {
            sde,
            store,
            number: OPENINGS.fetch_add(1, Ordering::SeqCst),
            forks,
        }))
    }

    /// The seconds that the latest runs of an app in the store took.
    pub(crate) fn costs(&self, app: &str) -> Result<Vec<f64>, sde::Error> {
        let mut costs = BTreeMap::new();
        self.store.records(app, &mut |record| {
            if !record.anew {
                costs.insert((record.made_at, record.run), record.took.as_secs_f64());
                if costs.len() > LATEST {
                    costs.pop_first();
                }
            }
        })?;
        Ok(costs.into_values().collect())
    }

    /// Whether this process was forked off since: the engine is another process's.
    fn is_of_parent(&self) -> bool {
        self.forks != forks()
    }

    /// Keeps the parent's engine in memory for ever: to drop it could wait for a thread that is not here.
    fn leave(self: &Arc<Self>) {
        std::mem::forget(Arc::clone(self));
    }
}

/// A store in a directory, with the memory of this process before it.
#[pyclass(frozen, module = "sde._sde")]
pub(crate) struct Store {
    path: PathBuf,
    opened: ArcSwap<Opened>,
}

impl Store {
    /// The engine of this process.
    pub(crate) fn opened(&self, py: Python<'_>) -> PyResult<Arc<Opened>> {
        let opened = self.opened.load_full();
        if !opened.is_of_parent() {
            return Ok(opened);
        }
        opened.leave();
        let anew = py
            .detach(|| blocked(|| Opened::new(&self.path)))
            .map_err(failed)?;
        self.opened.compare_and_swap(&opened, anew);
        Ok(self.opened.load_full())
    }

    /// Has the run that this code is in not looked up: what the store holds is in no key.
    fn note_outside(&self, py: Python<'_>) -> PyResult<()> {
        let number = self.opened(py)?.number;
        if let Some(handle) = current::handle(py, number)? {
            handle.note_uncacheable();
        }
        Ok(())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let opened = self.opened.load_full();
        if opened.is_of_parent() {
            opened.leave();
        }
    }
}

#[pymethods]
impl Store {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let opened = py
            .detach(|| blocked(|| Opened::new(&path)))
            .map_err(failed)?;
        Ok(Self {
            path,
            opened: ArcSwap::new(opened),
        })
    }

    /// Looks for what other processes have saved.
    fn refresh(&self, py: Python<'_>) -> PyResult<()> {
        let opened = self.opened(py)?;
        let refreshed = py.detach(|| opened.store.refresh());
        refreshed.map_err(|error| failed(error.into()))
    }

    /// Saves all that may be kept, and returns once it is on the disk.
    fn checkpoint(&self, py: Python<'_>) -> PyResult<()> {
        let opened = self.opened(py)?;
        py.detach(|| opened.sde.checkpoint()).map_err(failed)
    }

    /// Saves all, and ends this program's part in the store.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        if self.opened.load().is_of_parent() {
            return Ok(());
        }
        let opened = self.opened(py)?;
        py.detach(|| opened.sde.finish()).map_err(failed)
    }

    /// How often calls were computed, found in memory, loaded, and waited for.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let total = self.opened(py)?.sde.stats().total;
        let stats = PyDict::new(py);
        stats.set_item("computed", total.computed)?;
        stats.set_item("in_memory", total.hits())?;
        stats.set_item("loaded", total.loads)?;
        stats.set_item("waited", total.waits)?;
        Ok(stats)
    }

    /// The table of an app, as [`table::Told`].
    #[pyo3(signature = (app, all_code, code))]
    fn table<'py>(
        &self,
        py: Python<'py>,
        app: Option<String>,
        all_code: bool,
        code: Option<String>,
    ) -> PyResult<table::Told<'py>> {
        self.note_outside(py)?;
        table::table(py, &self.path, app, all_code, code)
    }

    /// The saved results of the run with this key, by name.
    fn load<'py>(
        &self,
        py: Python<'py>,
        key: &str,
        is_writable: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        self.note_outside(py)?;
        table::load(py, &self.path, key, is_writable)
    }

    /// Whether this code is in a run of this store.
    fn is_in_run(&self, py: Python<'_>) -> PyResult<bool> {
        let number = self.opened(py)?.number;
        Ok(current::handle(py, number)?.is_some())
    }

    /// The seconds that are left of the job's time; `None` without a limit.
    fn time_left(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        Ok(self
            .opened(py)?
            .sde
            .time_left()
            .map(|left| left.as_secs_f64()))
    }
}

/// The digest of a file's content.
#[pyfunction]
pub(crate) fn file_digest(py: Python<'_>, path: PathBuf) -> PyResult<Vec<u8>> {
    let digest = py.detach(|| commit(&InputFile::new(path)));
    let digest = digest.map_err(|error| KeyingError::new_err(format!(": {error}")))?;
    Ok(digest.digest().as_bytes().to_vec())
}
