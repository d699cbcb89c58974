//! The run that Python code is in, for calls that it makes.
//!
//! It is kept in a context variable: code that `asyncio` or `contextvars.copy_context` take along has it, and a thread
//! that a body starts has not.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use sde::Handle;

static VARIABLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// The handle of a run, and the opened store that the run belongs to.
#[pyclass(frozen, module = "sde._sde")]
pub(crate) struct Current {
    handle: Handle,
    opened: u64,
    /// Code that a body leaves for later, as a callback of `asyncio`, has its context when the run has ended.
    has_ended: AtomicBool,
}

fn variable(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    let made = VARIABLE.get_or_try_init(py, || {
        let class = py.import("contextvars")?.getattr("ContextVar")?;
        let options = pyo3::types::PyDict::new(py);
        options.set_item("default", py.None())?;
        class.call(("sde.run",), Some(&options)).map(Bound::unbind)
    })?;
    Ok(made.bind(py))
}

/// The handle of the run that this code is in, if it is one of that opened store.
pub(crate) fn handle(py: Python<'_>, opened: u64) -> PyResult<Option<Handle>> {
    let current = variable(py)?.call_method0(pyo3::intern!(py, "get"))?;
    let Ok(current) = current.cast::<Current>() else {
        return Ok(None);
    };
    let current = current.get();
    let is_in_it = current.opened == opened && !current.has_ended.load(Ordering::Relaxed);
    Ok(is_in_it.then(|| current.handle.clone()))
}

/// Runs something within a run.
pub(crate) fn within<R>(
    py: Python<'_>,
    handle: Handle,
    opened: u64,
    run: impl FnOnce() -> R,
) -> PyResult<R> {
    let variable = variable(py)?;
    let current = Current {
        handle,
        opened,
        has_ended: AtomicBool::new(false),
    };
    let current = Bound::new(py, current)?;
    let token = variable.call_method1("set", (&current,))?;
    let result = run();
    current.get().has_ended.store(true, Ordering::Relaxed);
    variable.call_method1("reset", (token,))?;
    Ok(result)
}
