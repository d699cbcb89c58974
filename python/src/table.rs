//! Looking into a store by the rules of the program `sde`: tables of runs, and the results of a key.

use std::convert::Infallible;
use std::path::Path;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use sde::bulk::NumberType;
use sde::key::{Bare, Scalar};
use sde::{AnyArray, Data};
use sde_archives::inspect::{Decoded, Numbers, Snapshot, StoredValue};
use sde_table::find::{find_any, none};
use sde_table::listing::Choice;
use sde_table::table::{Asked, Table};
use sde_table::text_table::Lines;
use sde_table::{CodeChoice, Unseen, python};

use crate::read::{self, How};
use crate::{Error, warn};

/// The columns of a text, and the rows that it has at most.
const WIDTH: usize = 80;
const MOST: usize = 20;

/// The longest value that is read by key.
const LONGEST: u64 = 4 << 30;

/// A table without what only its reading needs.
struct Read {
    titles: Vec<String>,
    columns: Vec<Vec<Option<Scalar>>>,
    keys: Vec<String>,
    text: Vec<String>,
    left_out: Vec<String>,
}

/// Lines in memory.
#[derive(Default)]
struct Text(Vec<String>);

impl Lines for Text {
    type Error = Infallible;

    fn width(&self) -> Option<usize> {
        Some(WIDTH)
    }

    fn line(&mut self, line: String) -> Result<(), Infallible> {
        self.0.push(line.trim_end().to_owned());
        Ok(())
    }

    fn look_alike(&mut self) -> Result<(), Infallible> {
        self.0
            .push("Some texts look alike where they are cut; the rows have them whole.".to_owned());
        Ok(())
    }
}

impl Read {
    fn of(table: &Table) -> Self {
        let count = table.rows.all.len();
        let mut text = Text::default();
        let Ok(no_room) = table.write(MOST, &mut text);
        if !no_room.is_empty() {
            let names = no_room.join(", ");
            text.0.push(format!("no room for: {names}"));
        }
        text.0.extend(shown(count));
        text.0.extend(notes(&table.unseen));
        let cells = |(column, _): &(u32, String)| table.cells(*column).collect();
        let title = |(_, title): &(u32, String)| title.clone();
        Self {
            titles: table.titles.iter().map(title).collect(),
            columns: table.titles.iter().map(cells).collect(),
            keys: table
                .rows
                .all
                .iter()
                .map(|row| row.key.to_string())
                .collect(),
            text: text.0,
            left_out: table.left_out.iter().map(title).collect(),
        }
    }
}

fn shown(count: usize) -> Option<String> {
    let runs = sde_table::text::count(count, "run", "runs");
    match count {
        0 => Some("no entries".to_owned()),
        _ if count > MOST => Some(format!("the first {MOST} of {runs}")),
        _ => Some(runs),
    }
}

/// What a table does not show, with the options of Python that show it.
fn notes(unseen: &Unseen) -> Vec<String> {
    let other = (unseen.other_code > 0).then(|| {
        let count = sde_table::text::count(unseen.other_code, "combination", "combinations");
        format!("{count} only under other code: all_code=True")
    });
    let since = unseen.since.as_ref();
    let since =
        since.map(|named| format!("other code was used since this one began: {named}: code="));
    other.into_iter().chain(since).collect()
}

/// Opens a store as `sde` does, and warns of what could not be read.
fn opened<T: Send>(
    py: Python<'_>,
    path: &Path,
    what: impl FnMut(&mut Snapshot) -> Result<T, sde_table::Error> + Send,
) -> PyResult<T> {
    let found = py.detach(|| {
        let (store, found) = sde_table::store::read(path, what)?;
        Ok::<_, sde_table::Error>((sde_table::store::notes(&store), found?))
    });
    let (notes, found) = found.map_err(|error| Error::new_err(error.text()))?;
    notes.into_iter().try_for_each(|note| warn(py, note))?;
    Ok(found)
}

/// The titles, the columns and the keys of a table, its text, and the titles of results that have no column.
pub(crate) type Told<'py> = (
    Vec<String>,
    Vec<Bound<'py, PyList>>,
    Vec<String>,
    Vec<String>,
    Vec<String>,
);

/// The table of an app, or of the only one of the store.
pub(crate) fn table<'py>(
    py: Python<'py>,
    path: &Path,
    app: Option<String>,
    all_code: bool,
    code: Option<String>,
) -> PyResult<Told<'py>> {
    let app = app.map(|name| name.parse());
    let Ok(app) = app.transpose();
    let choice = Choice {
        app,
        ..Choice::default()
    };
    let asked = Asked {
        choice,
        code: CodeChoice { all_code, code },
        ..Asked::default()
    };
    let read = opened(py, path, |store| {
        Table::read(store, &asked).map(|table| Read::of(&table))
    })?;
    let column = |cells: &Vec<Option<Scalar>>| {
        let values = cells.iter().map(|value| cell(py, value.as_ref()));
        PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)
    };
    let columns = read.columns.iter().map(column).collect::<PyResult<_>>()?;
    Ok((read.titles, columns, read.keys, read.text, read.left_out))
}

fn cell<'py>(py: Python<'py>, value: Option<&Scalar>) -> PyResult<Bound<'py, PyAny>> {
    match value.map(Scalar::bare) {
        Some(Bare::Bool(truth)) => truth.into_bound_py_any(py),
        Some(Bare::Unsigned(integer)) => integer.into_bound_py_any(py),
        Some(Bare::Signed(integer)) => integer.into_bound_py_any(py),
        Some(Bare::F32(number)) => number.into_bound_py_any(py),
        Some(Bare::F64(number)) => number.into_bound_py_any(py),
        Some(Bare::Text(text)) => text.into_bound_py_any(py),
        _ => Ok(py.None().into_bound(py)),
    }
}

/// The saved results of the run that has this key, or the only one that begins so, by name.
pub(crate) fn load<'py>(
    py: Python<'py>,
    path: &Path,
    key: &str,
    is_writable: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let values = opened(py, path, |store| {
        let counts = find_any(store, key)?.into_iter().next();
        let entry = counts.ok_or_else(|| none(key))?.entry;
        if let Some(failure) = &entry.record.failure {
            let why = format!("the run {key} failed: {}", failure.message);
            return Err(sde_table::Error::told(why));
        }
        let saved = entry.results.iter();
        let saved = saved.filter_map(|one| Some((one.name.to_string(), one.payload.as_ref()?)));
        let value = |(name, payload): (_, &StoredValue)| Ok((name, payload.value(LONGEST)?));
        saved
            .map(value)
            .collect::<Result<Vec<_>, sde_table::Error>>()
    })?;
    let how = How {
        is_writable,
        // A pickle is not loaded by key: it could run anything, and who saved it is not looked at here.
        is_of_others: true,
    };
    let results = PyDict::new(py);
    for (name, value) in values {
        results.set_item(name, object(py, value, how)?)?;
    }
    Ok(results)
}

/// The object of a stored value, whatever language wrote it.
fn object<'py>(py: Python<'py>, value: Decoded, how: How) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Decoded::Null => Ok(py.None().into_bound(py)),
        Decoded::Bool(truth) => truth.into_bound_py_any(py),
        Decoded::Integer(integer) => integer.into_bound_py_any(py),
        Decoded::Large(integer) => integer.into_bound_py_any(py),
        Decoded::Float(number) => number.into_bound_py_any(py),
        Decoded::Text(text) => Ok(PyString::new(py, &text).into_any()),
        Decoded::Bytes(bytes) => Ok(PyBytes::new(py, &bytes).into_any()),
        Decoded::List(items) => {
            let items = items.into_iter().map(|item| object(py, item, how));
            Ok(PyList::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
        Decoded::Map(pairs) => map(py, pairs, how),
        Decoded::Numbers(numbers, bytes) if is_bytes(&numbers) => {
            Ok(PyBytes::new(py, &bytes).into_any())
        }
        Decoded::Numbers(numbers, bytes) => {
            let values = array(&numbers, &bytes)?;
            py.import("numpy")?;
            crate::array::read(py, &values, how.is_writable)
        }
        Decoded::Tagged(_, inner) => object(py, *inner, how),
        _ => Err(Error::new_err(
            "this kind of result has no object in Python",
        )),
    }
}

/// A dict; or the object that Python took apart to store it.
fn map<'py>(
    py: Python<'py>,
    pairs: Vec<(Decoded, Decoded)>,
    how: How,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some((kind, parts)) = python::tagged(&pairs)
        && let Some(parts) = data(parts, kind.starts_with(OF_NUMPY))
    {
        return read::of_kind(py, kind, &parts, how);
    }
    let dict = PyDict::new(py);
    for (name, value) in pairs {
        dict.set_item(object(py, name, how)?, object(py, value, how)?)?;
    }
    Ok(dict.into_any())
}

/// The beginning of the kinds in which bytes are those of an array.
const OF_NUMPY: &str = "numpy.";

/// Whether these are bytes: a store has them as numbers.
fn is_bytes(numbers: &Numbers) -> bool {
    numbers.kind == NumberType::U8 && numbers.lengths.len() == 1
}

/// A value as Python wrote it; `None` if it did not.
fn data(value: &Decoded, is_of_array: bool) -> Option<Data> {
    Some(match value {
        Decoded::Null => Data::None,
        Decoded::Bool(truth) => Data::Bool(*truth),
        Decoded::Integer(integer) => Data::Int(i64::try_from(*integer).ok()?),
        Decoded::Float(number) => Data::Float(*number),
        Decoded::Text(text) => Data::Text(text.clone()),
        Decoded::Bytes(bytes) => Data::Bytes(bytes.clone()),
        Decoded::List(items) => {
            let items = items.iter().map(|item| data(item, is_of_array));
            Data::List(items.collect::<Option<_>>()?)
        }
        Decoded::Map(pairs) => {
            let kind = python::tagged(pairs).map(|(kind, _)| kind);
            let is_of_array = kind.is_some_and(|kind| kind.starts_with(OF_NUMPY));
            let pairs = pairs.iter().map(|(name, value)| match name {
                Decoded::Text(name) => Some((name.clone(), data(value, is_of_array)?)),
                _ => None,
            });
            Data::Map(pairs.collect::<Option<_>>()?)
        }
        Decoded::Numbers(numbers, bytes) if is_bytes(numbers) && !is_of_array => {
            Data::Bytes(bytes.clone())
        }
        Decoded::Numbers(numbers, bytes) => array(numbers, bytes).ok()?.into(),
        _ => return None,
    })
}

fn array(numbers: &Numbers, bytes: &[u8]) -> PyResult<AnyArray> {
    let lengths = numbers.lengths.iter().map(|length| *length as usize);
    let shape = Some((lengths.collect(), numbers.order));
    let values = AnyArray::from_bytes(numbers.kind, bytes, shape);
    values.map_err(|error| Error::new_err(error.to_string()))
}
