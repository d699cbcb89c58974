//! Python objects as [`Data`]: the inputs of a call, and its result.
//!
//! Objects that have a value of `Data` become it. All others become a map of two entries, `py` and `of`: the kind of the
//! object, and what it is made of. So no two objects of other types or values have one encoding.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyBytes, PyComplex, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet, PyString,
    PyTuple,
};
use sde::Data;
use sde::key::commit;

use crate::{KeyingError, array};

/// How deep containers may lie in one another. A container that holds itself is deeper.
const DEEPEST: usize = 200;

/// The function of Python that takes an object of any other type apart: into its kind, and a built-in value.
static REDUCE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Sets the function that takes objects apart: `reduce(object, is_result) -> (kind, parts)`.
#[pyfunction]
pub(crate) fn set_reduce(py: Python<'_>, reduce: Py<PyAny>) {
    _ = REDUCE.set(py, reduce);
}

/// What the value is for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Purpose {
    /// Part of a key: it need not be made again.
    Key,
    /// A result, of which the object is made again.
    Result,
}

/// An object of a kind that [`Data`] does not have.
pub(crate) fn tagged(kind: &str, of: Data) -> Data {
    Data::Map([("py".to_owned(), kind.into()), ("of".to_owned(), of)].into())
}

/// The value of an object.
pub(crate) fn data(object: &Bound<'_, PyAny>, purpose: Purpose) -> PyResult<Data> {
    Writer { purpose, depth: 0 }.data(object)
}

/// The digest of an object's value, for keys that are made in Python.
#[pyfunction]
pub(crate) fn digest(object: &Bound<'_, PyAny>) -> PyResult<[u8; 32]> {
    digest_of(&data(object, Purpose::Key)?)
}

fn digest_of(data: &Data) -> PyResult<[u8; 32]> {
    let committed = commit(data).map_err(|error| KeyingError::new_err(error.to_string()))?;
    Ok(*committed.digest().as_bytes())
}

struct Writer {
    purpose: Purpose,
    depth: usize,
}

impl Writer {
    fn data(&mut self, object: &Bound<'_, PyAny>) -> PyResult<Data> {
        if self.depth >= DEEPEST {
            let why =
                format!(": containers lie {DEEPEST} deep in one another, or one holds itself");
            return Err(KeyingError::new_err(why));
        }
        self.depth += 1;
        let data = self.by_type(object);
        self.depth -= 1;
        data
    }

    fn by_type(&mut self, object: &Bound<'_, PyAny>) -> PyResult<Data> {
        if object.is_none() {
            return Ok(Data::None);
        }
        if let Ok(value) = object.cast_exact::<PyFloat>() {
            return Ok(Data::Float(value.value()));
        }
        if let Ok(value) = object.cast_exact::<PyInt>() {
            return match value.extract::<i64>() {
                Ok(value) => Ok(Data::Int(value)),
                Err(_) => Ok(tagged("int", hexadecimal(value)?)),
            };
        }
        if let Ok(value) = object.cast_exact::<PyString>() {
            return text(value);
        }
        if let Ok(value) = object.cast_exact::<PyBool>() {
            return Ok(Data::Bool(value.is_true()));
        }
        if let Ok(value) = object.cast_exact::<PyBytes>() {
            return Ok(Data::Bytes(value.as_bytes().to_vec()));
        }
        self.container(object)
    }

    fn container(&mut self, object: &Bound<'_, PyAny>) -> PyResult<Data> {
        if let Ok(list) = object.cast_exact::<PyList>() {
            return self.list(list.iter());
        }
        if let Ok(tuple) = object.cast_exact::<PyTuple>() {
            return Ok(tagged("tuple", self.list(tuple.iter())?));
        }
        if let Ok(dict) = object.cast_exact::<PyDict>() {
            return self.dict(dict);
        }
        if let Ok(set) = object.cast_exact::<PySet>() {
            return Ok(tagged("set", self.unordered(set.iter())?));
        }
        if let Ok(set) = object.cast_exact::<PyFrozenSet>() {
            return Ok(tagged("frozenset", self.unordered(set.iter())?));
        }
        if let Ok(number) = object.cast_exact::<PyComplex>() {
            let parts = vec![Data::Float(number.real()), Data::Float(number.imag())];
            return Ok(tagged("complex", Data::List(parts)));
        }
        if array::is_array(object)
            && let Some(data) = array::write(object)?
        {
            return Ok(data);
        }
        self.reduced(object)
    }

    fn list<'py>(&mut self, items: impl Iterator<Item = Bound<'py, PyAny>>) -> PyResult<Data> {
        let items = items.enumerate().map(|(place, item)| {
            let data = self.data(&item);
            data.map_err(|error| inside(item.py(), error, &format!("[{place}]")))
        });
        Ok(Data::List(items.collect::<PyResult<_>>()?))
    }

    /// A dict is a map if that keeps its order; else a list of pairs.
    fn dict(&mut self, dict: &Bound<'_, PyDict>) -> PyResult<Data> {
        let mut pairs = Vec::with_capacity(dict.len());
        for (key, value) in dict.iter() {
            let within = |error| inside(dict.py(), error, &place_of(&key));
            pairs.push((
                self.data(&key).map_err(within)?,
                self.data(&value).map_err(within)?,
            ));
        }
        let names = || {
            pairs.iter().map(|(key, _)| match key {
                Data::Text(name) => Some(name.as_str()),
                _ => None,
            })
        };
        let is_map =
            names().all(|name| name.is_some_and(|name| name != "py")) && names().is_sorted();
        if !is_map {
            let pairs = pairs
                .into_iter()
                .map(|(key, value)| Data::List(vec![key, value]));
            return Ok(tagged("dict", Data::List(pairs.collect())));
        }
        let entries = pairs.into_iter().filter_map(|(key, value)| match key {
            Data::Text(name) => Some((name, value)),
            _ => None,
        });
        Ok(Data::Map(entries.collect()))
    }

    /// The members of a set, in the order of their digests: that of a set differs from process to process.
    fn unordered<'py>(&mut self, items: impl Iterator<Item = Bound<'py, PyAny>>) -> PyResult<Data> {
        let mut sorted = Vec::new();
        for item in items {
            let data = self
                .data(&item)
                .map_err(|error| inside(item.py(), error, "{..}"))?;
            sorted.push((digest_of(&data)?, data));
        }
        sorted.sort_by_key(|(digest, _)| *digest);
        Ok(Data::List(
            sorted.into_iter().map(|(_, data)| data).collect(),
        ))
    }

    /// An object of any other type, as Python takes it apart.
    fn reduced(&mut self, object: &Bound<'_, PyAny>) -> PyResult<Data> {
        let py = object.py();
        let Some(reduce) = REDUCE.get(py) else {
            return Err(KeyingError::new_err(
                ": the package is not set up; import sde",
            ));
        };
        let is_result = self.purpose == Purpose::Result;
        let (kind, parts): (String, Bound<'_, PyAny>) =
            reduce.bind(py).call1((object, is_result))?.extract()?;
        Ok(tagged(&kind, self.data(&parts)?))
    }
}

/// A text, or the code points of one that is no valid Unicode.
fn text(value: &Bound<'_, PyString>) -> PyResult<Data> {
    match value.to_cow() {
        Ok(text) => Ok(Data::Text(text.into_owned())),
        Err(_) => {
            let bytes = value.call_method1("encode", ("utf-8", "surrogatepass"))?;
            Ok(tagged("str", Data::Bytes(bytes.extract()?)))
        }
    }
}

/// An integer that `i64` does not hold. Unlike decimal digits these have no limit of length.
fn hexadecimal(value: &Bound<'_, PyInt>) -> PyResult<Data> {
    let text = value.call_method1("__format__", ("x",))?;
    Ok(Data::Text(text.extract()?))
}

/// The place of a dict's value, as a person writes it.
fn place_of(key: &Bound<'_, PyAny>) -> String {
    match key.cast_exact::<PyString>().is_ok() || key.cast_exact::<PyInt>().is_ok() {
        true => key
            .repr()
            .map_or_else(|_| "[..]".to_owned(), |text| format!("[{text}]")),
        false => "[..]".to_owned(),
    }
}

/// An error about a value, with the place of that within its container before it.
pub(crate) fn inside(py: Python<'_>, error: PyErr, place: &str) -> PyErr {
    match error.is_instance_of::<KeyingError>(py) {
        true => KeyingError::new_err(format!("{place}{}", error.value(py))),
        false => error,
    }
}
