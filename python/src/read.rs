//! Python objects of [`Data`]: the results of a call.

use std::collections::BTreeMap;

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBytes, PyComplex, PyDict, PyFrozenSet, PyInt, PyList, PySet, PyString, PyTuple,
};
use sde::Data;

use crate::{Error, array};

/// The function of Python that makes an object of the kind and the parts that [`reduce`](crate::reduce) gave.
static BUILD: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Sets the function that makes objects again: `build(kind, parts, is_writable, is_of_others) -> object`.
#[pyfunction]
pub(crate) fn set_build(py: Python<'_>, build: Py<PyAny>) {
    _ = BUILD.set(py, build);
}

/// How results are to be made.
#[derive(Clone, Copy)]
pub(crate) struct How {
    /// Whether arrays are copies, which may be written to.
    pub(crate) is_writable: bool,
    /// Whether another user saved the result. A pickle of it is not loaded: it could run anything.
    pub(crate) is_of_others: bool,
}

/// The object of a value.
pub(crate) fn object<'py>(py: Python<'py>, data: &Data, how: How) -> PyResult<Bound<'py, PyAny>> {
    match data {
        Data::None => Ok(py.None().into_bound(py)),
        Data::Bool(value) => value.into_bound_py_any(py),
        Data::Int(value) => value.into_bound_py_any(py),
        Data::Float(value) => value.into_bound_py_any(py),
        Data::Text(text) => Ok(PyString::new(py, text).into_any()),
        Data::Bytes(bytes) => Ok(PyBytes::new(py, bytes).into_any()),
        Data::List(items) => Ok(PyList::new(py, objects(py, items, how)?)?.into_any()),
        Data::Map(map) => match (map.len(), map.get("py"), map.get("of")) {
            (2, Some(Data::Text(kind)), Some(of)) => of_kind(py, kind, of, how),
            _ => dict(py, map, how),
        },
        Data::Array(values) => array::read(py, values, how.is_writable),
        Data::Shared(value) => object(py, value, how),
        _ => Err(Error::new_err(
            "this kind of result has no object in Python",
        )),
    }
}

fn objects<'py>(py: Python<'py>, items: &[Data], how: How) -> PyResult<Vec<Bound<'py, PyAny>>> {
    items.iter().map(|item| object(py, item, how)).collect()
}

fn dict<'py>(
    py: Python<'py>,
    map: &BTreeMap<String, Data>,
    how: How,
) -> PyResult<Bound<'py, PyAny>> {
    let dict = PyDict::new(py);
    for (name, value) in map {
        dict.set_item(name, object(py, value, how)?)?;
    }
    Ok(dict.into_any())
}

/// An object that [`tagged`](crate::write::tagged) has written.
pub(crate) fn of_kind<'py>(
    py: Python<'py>,
    kind: &str,
    of: &Data,
    how: How,
) -> PyResult<Bound<'py, PyAny>> {
    let damaged = || PyValueError::new_err(format!("a stored value of the kind {kind} is damaged"));
    match (kind, of) {
        ("tuple", Data::List(items)) => Ok(PyTuple::new(py, objects(py, items, how)?)?.into_any()),
        ("set", Data::List(items)) => Ok(PySet::new(py, objects(py, items, how)?)?.into_any()),
        ("frozenset", Data::List(items)) => {
            Ok(PyFrozenSet::new(py, objects(py, items, how)?)?.into_any())
        }
        ("dict", Data::List(pairs)) => {
            let dict = PyDict::new(py);
            for pair in pairs {
                let Data::List(pair) = pair else {
                    return Err(damaged());
                };
                let [key, value] = &pair[..] else {
                    return Err(damaged());
                };
                dict.set_item(object(py, key, how)?, object(py, value, how)?)?;
            }
            Ok(dict.into_any())
        }
        ("complex", Data::List(parts)) => match parts[..] {
            [Data::Float(real), Data::Float(imaginary)] => {
                Ok(PyComplex::from_doubles(py, real, imaginary).into_any())
            }
            _ => Err(damaged()),
        },
        ("int", Data::Text(digits)) => py.get_type::<PyInt>().call1((digits, 16)),
        ("str", Data::Bytes(bytes)) => {
            let bytes = PyBytes::new(py, bytes);
            bytes.call_method1("decode", ("utf-8", "surrogatepass"))
        }
        _ => match BUILD.get(py) {
            Some(build) => {
                let parts = object(py, of, how)?;
                build
                    .bind(py)
                    .call1((kind, parts, how.is_writable, how.is_of_others))
            }
            None => Err(Error::new_err("the package is not set up; import sde")),
        },
    }
}
