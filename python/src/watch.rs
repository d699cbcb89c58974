//! Where the objects were found that a function's code was made of, and whether they are there still.
//!
//! Each hit asks this, so it runs no Python code where dicts, functions and classes are of Python's own types. Objects are
//! compared by identity.

use pyo3::exceptions::{PyException, PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

/// The places that `_code_watch.py` noted.
#[pyclass(frozen, module = "sde._sde")]
pub(crate) struct Watched(Vec<Place>);

#[pymethods]
impl Watched {
    #[new]
    fn new(places: Vec<Noted>) -> PyResult<Self> {
        places
            .into_iter()
            .map(Place::new)
            .collect::<PyResult<_>>()
            .map(Self)
    }

    /// Whether each place has the object that was found there.
    pub(crate) fn is_unchanged(&self, py: Python<'_>) -> PyResult<bool> {
        for place in &self.0 {
            match place.is_unchanged(py) {
                Ok(true) => {}
                // To look can run Python code, which Ctrl-C may end.
                Err(error) if !error.is_instance_of::<PyException>(py) => return Err(error),
                // A place that raises is not what it was.
                _ => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// A place as Python notes it: its kind, the container, and what the kind needs.
type Noted = (u8, Py<PyAny>, Py<PyAny>, Py<PyAny>);

enum Place {
    /// A container has this object under a name.
    Item(Py<PyAny>, Py<PyString>, Py<PyAny>),
    /// An object has this attribute.
    Attribute(Py<PyAny>, Py<PyString>, Py<PyAny>),
    /// A container has nothing under a name.
    Missing(Py<PyAny>, Py<PyString>),
    /// A container has these elements in this order, and under each, if it is a mapping, this value.
    Items(Py<PyAny>, Vec<Py<PyAny>>, Option<Vec<Py<PyAny>>>),
    /// A container has this many elements.
    Length(Py<PyAny>, usize),
    /// A variable of a closure has no value.
    Empty(Py<PyAny>),
}

impl Place {
    fn new((kind, container, first, second): Noted) -> PyResult<Self> {
        Python::attach(|py| {
            Ok(match kind {
                0 => Self::Item(container, first.extract(py)?, second),
                1 => Self::Attribute(container, first.extract(py)?, second),
                2 => Self::Missing(container, first.extract(py)?),
                3 => Self::Items(container, first.extract(py)?, second.extract(py)?),
                4 => Self::Length(container, first.extract(py)?),
                5 => Self::Empty(container),
                _ => return Err(PyValueError::new_err(format!("{kind} is no kind of place"))),
            })
        })
    }

    fn is_unchanged(&self, py: Python<'_>) -> PyResult<bool> {
        match self {
            Self::Item(container, name, object) => {
                let found = item(container.bind(py), name.bind(py))?;
                Ok(found.is_some_and(|found| found.is(object)))
            }
            Self::Attribute(container, name, object) => {
                Ok(container.bind(py).getattr(name.bind(py))?.is(object))
            }
            Self::Missing(container, name) => {
                Ok(item(container.bind(py), name.bind(py))?.is_none())
            }
            Self::Items(container, elements, values) => {
                has_items(container.bind(py), elements, values.as_deref())
            }
            Self::Length(container, length) => Ok(container.bind(py).len()? == *length),
            Self::Empty(cell) => is_empty(cell.bind(py)),
        }
    }
}

fn item<'py>(
    container: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if let Ok(dict) = container.cast_exact::<PyDict>() {
        return dict.get_item(name);
    }
    match container.get_item(name) {
        Err(error) if error.is_instance_of::<PyKeyError>(container.py()) => Ok(None),
        found => found.map(Some),
    }
}

fn has_items(
    container: &Bound<'_, PyAny>,
    elements: &[Py<PyAny>],
    values: Option<&[Py<PyAny>]>,
) -> PyResult<bool> {
    if container.len()? != elements.len() {
        return Ok(false);
    }
    if let (Ok(dict), Some(values)) = (container.cast_exact::<PyDict>(), values) {
        let mut expected = elements.iter().zip(values);
        return Ok(dict.iter().all(|(key, value)| {
            let pair = expected.next();
            pair.is_some_and(|(a, b)| key.is(a) && value.is(b))
        }));
    }
    if let Ok(list) = container.cast_exact::<PyList>() {
        return are(list.iter().map(Ok), elements);
    }
    if let Ok(tuple) = container.cast_exact::<PyTuple>() {
        return are(tuple.iter().map(Ok), elements);
    }
    let is_same = are(container.try_iter()?, elements)?;
    match values {
        Some(values) if is_same => are(container.call_method0("values")?.try_iter()?, values),
        _ => Ok(is_same),
    }
}

/// Whether these are the expected objects, and no more.
fn are<'py>(
    mut found: impl Iterator<Item = PyResult<Bound<'py, PyAny>>>,
    expected: &[Py<PyAny>],
) -> PyResult<bool> {
    for expected in expected {
        match found.next().transpose()? {
            Some(found) if found.is(expected) => {}
            _ => return Ok(false),
        }
    }
    Ok(found.next().is_none())
}

fn is_empty(cell: &Bound<'_, PyAny>) -> PyResult<bool> {
    match cell.getattr("cell_contents") {
        Err(error) if error.is_instance_of::<PyValueError>(cell.py()) => Ok(true),
        found => found.map(|_| false),
    }
}
