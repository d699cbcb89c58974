//! Python objects as [`Data`]: the inputs of a call, and its result.
//!
//! Objects that have a value of `Data` become it. All others become a map of two entries, `py` and `of`: the kind of the
//! object, and what it is made of. So no two objects of other types or values have one encoding.
//!
//! A key tells values apart, not identities: whether two parts of an argument are one object is not in it. A result in
//! which an object lies twice is pickled as a whole, which keeps that.

use std::collections::{HashMap, HashSet};

use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyBytes, PyComplex, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet, PyString,
    PyTuple,
};
use sde::Data;
use sde::key::commit;

use crate::reduce;
use crate::{KeyingError, array};

/// How deep containers may lie in one another in a key.
const DEEPEST: usize = 200;

/// How deep they may lie in a result that is not pickled. A tuple is two levels of `Data`, and stores read 260.
const DEEPEST_RESULT: usize = 64;

/// How many parts of a key may be met in containers that were met before. Twenty lists, each of which holds the next
/// one twice, are a million parts.
const MOST_AGAIN: usize = 1 << 20;

/// How many levels of containers an error names.
const DEEPEST_NAMED: usize = 16;

/// A name that [`Data`] keeps for files.
const FILE: &str = "$sde::file";

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
    let mut writer = Writer::new(purpose);
    match writer.data(object) {
        Err(_) if writer.is_to_be_pickled => Writer::new(purpose).pickled(object),
        data => data,
    }
}

/// The value, in a key, of an object that code reaches.
pub(crate) fn reached(object: &Bound<'_, PyAny>) -> PyResult<Data> {
    let mut writer = Writer::new(Purpose::Key);
    writer.is_reached = true;
    writer.data(object)
}

/// The digest of an object's value, for keys that are made in Python.
#[pyfunction]
pub(crate) fn digest(object: &Bound<'_, PyAny>) -> PyResult<[u8; 32]> {
    digest_of(&data(object, Purpose::Key)?)
}

pub(crate) fn digest_of(data: &Data) -> PyResult<[u8; 32]> {
    let committed = commit(data).map_err(|error| KeyingError::new_err(format!(": {error}")))?;
    Ok(*committed.digest().as_bytes())
}

/// One walk through an object. Addresses stand for objects, all of which live as long as the walk.
pub(crate) struct Writer {
    pub(crate) purpose: Purpose,
    /// Whether this is what code reaches, and no argument.
    pub(crate) is_reached: bool,
    depth: usize,
    /// The containers and objects that the present one lies in.
    pub(crate) path: Vec<usize>,
    /// All that were met.
    met: HashSet<usize>,
    /// How many of those on the path were met before.
    inside_met: usize,
    /// How many parts were met again.
    again: usize,
    /// Whether this is what `reduce` made of an object for a result: nothing in it is the caller's.
    pub(crate) is_made: bool,
    /// Whether the result has to be pickled as a whole.
    pub(crate) is_to_be_pickled: bool,
    /// What `reduce` has made, so that no address is used twice.
    pub(crate) kept: Vec<Py<PyAny>>,
    pub(crate) classes: HashMap<usize, Data>,
    pub(crate) classes_within: Vec<usize>,
}

impl Writer {
    fn new(purpose: Purpose) -> Self {
        Self {
            purpose,
            is_reached: false,
            depth: 0,
            path: Vec::new(),
            met: HashSet::new(),
            inside_met: 0,
            again: 0,
            is_made: false,
            is_to_be_pickled: false,
            kept: Vec::new(),
            classes: HashMap::new(),
            classes_within: Vec::new(),
        }
    }

    pub(crate) fn data(&mut self, object: &Bound<'_, PyAny>) -> PyResult<Data> {
        if self.inside_met > 0 {
            self.again += 1;
            if self.again > MOST_AGAIN {
                let why = format!(
                    ": the same objects lie in it more than {MOST_AGAIN} times; pass each once"
                );
                return Err(KeyingError::new_err(why));
            }
        }
        self.by_type(object)
    }

    /// Notes that this address is met in a result; one that is met twice has the result pickled.
    pub(crate) fn note(&mut self, address: usize) -> PyResult<()> {
        if self.purpose == Purpose::Key || self.is_made || self.met.insert(address) {
            return Ok(());
        }
        self.is_to_be_pickled = true;
        Err(KeyingError::new_err(": it lies in the result twice"))
    }

    /// Goes into a container or object. In a key, one that holds itself is a step upwards.
    fn within(
        &mut self,
        object: &Bound<'_, PyAny>,
        go: impl FnOnce(&mut Self) -> PyResult<Data>,
    ) -> PyResult<Data> {
        let address = object.as_ptr() as usize;
        if self.purpose == Purpose::Key
            && let Some(at) = self.path.iter().rposition(|above| *above == address)
        {
            let up = i64::try_from(self.path.len() - at).unwrap_or(i64::MAX);
            return Ok(tagged("up", Data::Int(up)));
        }
        self.check_depth()?;
        // The outermost one can only be met again in itself.
        let is_met = self.purpose == Purpose::Key && self.depth > 0 && !self.met.insert(address);
        self.path.push(address);
        self.depth += 1;
        self.inside_met += usize::from(is_met);
        let data = go(self);
        self.inside_met -= usize::from(is_met);
        self.depth -= 1;
        self.path.pop();
        data
    }

    fn check_depth(&mut self) -> PyResult<()> {
        let deepest = match self.purpose {
            Purpose::Key => DEEPEST,
            Purpose::Result => DEEPEST_RESULT,
        };
        if self.depth < deepest {
            return Ok(());
        }
        self.is_to_be_pickled = self.purpose == Purpose::Result;
        let why = format!(": containers and objects lie more than {deepest} deep in one another");
        Err(KeyingError::new_err(why))
    }

    /// An error about a part, with its place before it.
    pub(crate) fn inside(&self, py: Python<'_>, error: PyErr, place: &str) -> PyErr {
        match self.depth {
            ..DEEPEST_NAMED => inside(py, error, place),
            DEEPEST_NAMED => inside(py, error, "[..]"),
            _ => error,
        }
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
            self.note(object.as_ptr() as usize)?;
            return self.within(object, |this| this.list(list.iter()));
        }
        if let Ok(tuple) = object.cast_exact::<PyTuple>() {
            let items = self.within(object, |this| this.list(tuple.iter()))?;
            return Ok(tagged("tuple", items));
        }
        if let Ok(dict) = object.cast_exact::<PyDict>() {
            self.note(object.as_ptr() as usize)?;
            return self.within(object, |this| this.dict(dict));
        }
        if let Ok(set) = object.cast_exact::<PySet>() {
            self.note(object.as_ptr() as usize)?;
            let items = self.within(object, |this| this.unordered(set.iter().collect()))?;
            return Ok(tagged("set", items));
        }
        if let Ok(set) = object.cast_exact::<PyFrozenSet>() {
            let items = self.within(object, |this| this.unordered(set.iter().collect()))?;
            return Ok(tagged("frozenset", items));
        }
        if let Ok(number) = object.cast_exact::<PyComplex>() {
            let parts = vec![Data::Float(number.real()), Data::Float(number.imag())];
            return Ok(tagged("complex", Data::List(parts)));
        }
        if array::is_array(object) {
            self.note(object.as_ptr() as usize)?;
            if let Some(data) = array::write(object, self.purpose)? {
                return Ok(data);
            }
        }
        self.within(object, |this| reduce::reduced(this, object))
    }

    fn list<'py>(&mut self, items: impl Iterator<Item = Bound<'py, PyAny>>) -> PyResult<Data> {
        let items = items.enumerate().map(|(place, item)| {
            let data = self.data(&item);
            data.map_err(|error| self.inside(item.py(), error, &format!("[{place}]")))
        });
        Ok(Data::List(items.collect::<PyResult<_>>()?))
    }

    /// A dict is a map if that keeps its order; else a list of pairs.
    fn dict(&mut self, dict: &Bound<'_, PyDict>) -> PyResult<Data> {
        let mut pairs = Vec::with_capacity(dict.len());
        // To take a part apart can run Python code, which may change the dict.
        let items: Vec<_> = dict.iter().collect();
        for (key, value) in items {
            let name = self.data(&key);
            let name = name.map_err(|error| self.inside(dict.py(), error, "[a key]"))?;
            let value = self.data(&value);
            let value = value.map_err(|error| self.inside(dict.py(), error, &place_of(&key)))?;
            pairs.push((name, value));
        }
        let mut last: Option<&str> = None;
        let is_map = pairs.iter().all(|(key, _)| match key {
            Data::Text(name) => {
                let is_next = last.replace(name).is_none_or(|last| last < name.as_str());
                is_next && name != "py" && name != FILE
            }
            _ => false,
        });
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
    fn unordered(&mut self, items: Vec<Bound<'_, PyAny>>) -> PyResult<Data> {
        let mut sorted = Vec::with_capacity(items.len());
        for item in items {
            let data = self.data(&item);
            let data = data.map_err(|error| self.inside(item.py(), error, "[a member]"))?;
            sorted.push((digest_of(&data)?, data));
        }
        sorted.sort_by_key(|(digest, _)| *digest);
        Ok(Data::List(
            sorted.into_iter().map(|(_, data)| data).collect(),
        ))
    }

    /// A result as one pickle.
    fn pickled(&mut self, object: &Bound<'_, PyAny>) -> PyResult<Data> {
        self.is_made = true;
        reduce::pickled(self, object)
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
        true => {
            let with_place = KeyingError::new_err(format!("{place}{}", error.value(py)));
            with_place.set_cause(py, error.cause(py));
            with_place
        }
        false => error,
    }
}
