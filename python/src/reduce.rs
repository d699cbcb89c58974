//! Objects of other types, which Python takes apart (`_values.py`).

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};
use sde::Data;

use crate::KeyingError;
use crate::write::{Purpose, Writer, digest_of, tagged};

/// The functions of Python that take an object apart, into its kind and a value of built-in types.
static REDUCE: PyOnceLock<[Py<PyAny>; 3]> = PyOnceLock::new();

/// Sets the functions that take objects apart.
///
/// - `key(object) -> (kind, parts, places)`: where there are `places`, `parts` is a tuple, and they name where each lies.
/// - `result(object) -> (kind, parts, addresses)`: the addresses are those of the objects in a pickle.
/// - `pickled(object) -> (kind, parts, addresses)`: as `result` gives for what it pickles.
#[pyfunction]
pub(crate) fn set_reduce(py: Python<'_>, key: Py<PyAny>, result: Py<PyAny>, pickled: Py<PyAny>) {
    _ = REDUCE.set(py, [key, result, pickled]);
}

fn functions(py: Python<'_>) -> PyResult<&[Py<PyAny>; 3]> {
    let why = ": the package is not set up; import sde";
    REDUCE.get(py).ok_or_else(|| KeyingError::new_err(why))
}

/// An object of a type that the writer does not know.
pub(crate) fn reduced(writer: &mut Writer, object: &Bound<'_, PyAny>) -> PyResult<Data> {
    let [key, result, _] = functions(object.py())?;
    if writer.purpose == Purpose::Result {
        return of_result(writer, object, result);
    }
    if let Ok(class) = object.cast::<PyType>() {
        return of_class(writer, class, key);
    }
    if is_bare(object) && !writer.is_reached {
        return Err(KeyingError::new_err(BARE));
    }
    let (kind, parts, places): (String, _, _) =
        key.bind(object.py()).call1((object,))?.extract()?;
    let was_reached = writer.is_reached;
    writer.is_reached |= kind == "function";
    let data = of_parts(writer, kind, parts, places);
    writer.is_reached = was_reached;
    data
}

const BARE: &str = ": an object() is told from others by its identity alone, which no other process knows; \
    pass a member of an enum, or None";

/// Whether this is a bare `object()`. One that code reaches has a name there; an argument has none.
pub(crate) fn is_bare(object: &Bound<'_, PyAny>) -> bool {
    object.get_type().is(object.py().get_type::<PyAny>())
}

/// An object as one pickle.
pub(crate) fn pickled(writer: &mut Writer, object: &Bound<'_, PyAny>) -> PyResult<Data> {
    let [.., pickled] = functions(object.py())?;
    of_result(writer, object, pickled)
}

fn of_result(writer: &mut Writer, object: &Bound<'_, PyAny>, reduce: &Py<PyAny>) -> PyResult<Data> {
    let reduced = reduce.bind(object.py()).call1((object,))?;
    let (kind, parts, addresses): (String, Bound<'_, PyAny>, Vec<usize>) = reduced.extract()?;
    for address in addresses {
        writer.note(address)?;
    }
    let was_made = std::mem::replace(&mut writer.is_made, true);
    let data = writer.data(&parts);
    writer.is_made = was_made;
    Ok(tagged(&kind, data?))
}

fn of_parts(
    writer: &mut Writer,
    kind: String,
    parts: Bound<'_, PyAny>,
    places: Option<Vec<String>>,
) -> PyResult<Data> {
    writer.kept.push(parts.clone().unbind());
    let Some(places) = places else {
        return Ok(tagged(&kind, writer.data(&parts)?));
    };
    let parts = parts.cast_into::<PyTuple>()?;
    let each = parts.iter().zip(places).map(|(part, place)| {
        let data = writer.data(&part);
        data.map_err(|error| writer.inside(part.py(), error, &place))
    });
    Ok(tagged(&kind, Data::List(each.collect::<PyResult<_>>()?)))
}

/// A class by its name, its code and the values that it reaches. A class that is reached from its own values is there by
/// name and code alone: its values count where they were begun.
fn of_class(writer: &mut Writer, class: &Bound<'_, PyType>, reduce: &Py<PyAny>) -> PyResult<Data> {
    let address = class.as_ptr() as usize;
    if let Some(data) = writer.classes.get(&address) {
        return Ok(data.clone());
    }
    let (name, code, values): (String, Bound<'_, PyAny>, Bound<'_, PyAny>) =
        reduce.bind(class.py()).call1((class,))?.extract()?;
    writer.kept.push(class.clone().into_any().unbind());
    let mut parts = vec![Data::Text(name), writer.data(&code)?];
    if writer.classes_within.contains(&address) {
        return Ok(tagged("class", Data::List(parts)));
    }
    writer.classes_within.push(address);
    // What a class is does not depend on where it is met.
    let path = std::mem::take(&mut writer.path);
    let was_reached = std::mem::replace(&mut writer.is_reached, true);
    let values = writer.data(&values);
    writer.is_reached = was_reached;
    writer.path = path;
    writer.classes_within.pop();
    parts.push(values?);
    let name = parts[0].clone();
    let digest = digest_of(&Data::List(parts))?;
    let data = tagged(
        "class",
        Data::List(vec![name, Data::Bytes(digest.to_vec())]),
    );
    writer.classes.insert(address, data.clone());
    Ok(data)
}
