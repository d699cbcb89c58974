//! An opened store, which a process that was forked opens anew.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sde::key::commit;
use sde::{InputFile, Sde};

use crate::{KeyingError, failed};

/// How often this process was forked off. The threads of an engine don't exist in a child, and its locks may be held
/// for ever there.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Counts the openings, so that each has a number of its own.
static OPENINGS: AtomicU64 = AtomicU64::new(1);

/// Notes that this process was forked off.
#[pyfunction]
pub(crate) fn forked() {
    FORKS.fetch_add(1, Ordering::SeqCst);
}

/// An engine with its store, as one process has it.
pub(crate) struct Opened {
    pub(crate) sde: Sde,
    pub(crate) number: u64,
    forks: u64,
}

impl Opened {
    fn new(path: &PathBuf) -> Result<Arc<Self>, sde::Error> {
        Ok(Arc::new(Self {
            sde: sde::open(path)?,
            number: OPENINGS.fetch_add(1, Ordering::SeqCst),
            forks: FORKS.load(Ordering::SeqCst),
        }))
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
        if opened.forks == FORKS.load(Ordering::Relaxed) {
            return Ok(opened);
        }
        // The parent's engine stays in memory: to drop it could wait for a thread that is not here.
        std::mem::forget(Arc::clone(&opened));
        let anew = py
            .detach(|| Opened::new(&self.path))
            .map_err(|error| failed(&error))?;
        self.opened.compare_and_swap(&opened, anew);
        Ok(self.opened.load_full())
    }
}

#[pymethods]
impl Store {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let opened = py
            .detach(|| Opened::new(&path))
            .map_err(|error| failed(&error))?;
        Ok(Self {
            path,
            opened: ArcSwap::new(opened),
        })
    }

    /// The directory of the store.
    #[getter]
    fn path(&self) -> &PathBuf {
        &self.path
    }

    /// Saves all that may be kept, and returns once it is on the disk.
    fn checkpoint(&self, py: Python<'_>) -> PyResult<()> {
        let opened = self.opened(py)?;
        py.detach(|| opened.sde.checkpoint())
            .map_err(|error| failed(&error))
    }

    /// Saves all, and ends this program's part in the store.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        let opened = self.opened(py)?;
        py.detach(|| opened.sde.finish())
            .map_err(|error| failed(&error))
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
