//! Inputs, settings and results of runs, as the cells of a table.

use std::borrow::Cow;
use std::collections::hash_map::Entry as Slot;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use sde::key::{Bare, Digest, Scalar};
use sde::record::{AppSetup, ValueSummary};
use sde_archives::inspect::{Decoded, Entry};
use serde_json::Value as Json;

use crate::json;
use crate::python;
use crate::text;

/// The cells of a row, each with its column's number: a row has few of possibly many columns.
pub type Cells = Vec<(u32, Cell)>;

/// A value of a cell.
pub type Cell = Scalar;

/// The kind of a column, in the order of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An argument or another input.
    Input,
    /// The digest of an input or a setting, for runs that its text does not tell apart.
    Digest,
    /// A field or a parameter of an app.
    Setting,
    /// A result, or a field of one.
    Result,
    /// Why a run failed.
    Error,
    /// The code of a run.
    Code,
    /// A result that is no scalar, listed with its type: its cells are not shown.
    LeftOut,
}

/// The columns found so far.
#[derive(Debug, Default)]
pub struct Columns {
    /// In the order in which they were found.
    all: Vec<(Kind, Rc<str>)>,
    known: [HashMap<Rc<str>, u32>; 7],
}

/// Longer values are not read: nobody has a table of them.
const LONGEST: u64 = 64 << 10;

/// The digits of a digest that are shown.
pub const DIGITS: usize = 12;

/// The end of the name of a column of digests.
const DIGEST: &str = " digest";

/// A longer text has no cell.
const LONGEST_TEXT: usize = 64;

impl Columns {
    /// The cells of a run's inputs and settings: fields and parameters of its app and of those in its slots, then
    /// inputs.
    pub fn given(&mut self, entry: &Entry) -> Cells {
        let (mut cells, record) = (Cells::new(), &entry.record);
        self.settings("", &record.setup, &mut cells);
        self.values(Kind::Input, "", &record.inputs, &mut cells);
        cells
    }

    fn settings(&mut self, before: &str, setup: &AppSetup, cells: &mut Cells) {
        for slot in &setup.slots {
            let app = Cell::Text((&*slot.app).into());
            let column = self.column(Kind::Setting, &format!("{before}{}", slot.slot));
            cells.push((column, app));
        }
        for values in [&setup.fields, &setup.parameters, &setup.transparent] {
            self.values(Kind::Setting, before, values, cells);
        }
        for slot in &setup.slots {
            let before = format!("{before}{}.", slot.slot);
            self.settings(&before, &slot.setup, cells);
        }
    }

    fn values(&mut self, kind: Kind, before: &str, of: &[ValueSummary], cells: &mut Cells) {
        for value in of {
            let name = match before {
                "" => Cow::Borrowed(&*value.name),
                before => Cow::Owned(format!("{before}{}", value.name)),
            };
            // The variant of an enum has the name of its value.
            let name = match &*value.name {
                "" => before.trim_end_matches('.'),
                _ => &name,
            };
            let cell = match &value.scalar {
                Some(scalar) => scalar.clone(),
                // Nothing was given, which is no text. The variant `None` of an enum is one.
                None if value.short == "()" || Some(value.digest) == *python::NONE => continue,
                None => {
                    self.digest(kind, name, &value.digest, cells);
                    if !value.fields.is_empty() {
                        self.values(kind, &format!("{name}."), &value.fields, cells);
                        continue;
                    }
                    Cell::Text(plain(&value.short).into())
                }
            };
            cells.push((self.column(kind, name), cell));
        }
    }

    /// The cell of a digest, which few tables show.
    fn digest(&mut self, kind: Kind, name: &str, digest: &Digest, cells: &mut Cells) {
        // That of a field is not known, but that of the whole value is.
        if *digest.as_bytes() != [0; 32] {
            let column = match kind {
                Kind::Setting => self.column(Kind::Digest, &format!("setting {name}{DIGEST}")),
                _ => self.column(Kind::Digest, &format!("{name}{DIGEST}")),
            };
            cells.push((column, Cell::Text(short(digest).into())));
        }
    }

    /// The columns of digests that tell rows apart: those of which two rows have one text and two digests.
    pub fn telling(
        &self,
        rows: impl Iterator<Item = impl AsRef<[(u32, Cell)]>> + Clone,
    ) -> HashSet<u32> {
        let columns = self.all.iter().zip(0..);
        let digests = columns.filter(|((kind, _), _)| *kind == Kind::Digest);
        let is_telling = |(name, column): &(&str, u32)| {
            let texts = self.texts(name);
            let mut seen: HashMap<u64, String> = HashMap::new();
            rows.clone().any(|row| {
                let row = row.as_ref();
                let digest = row.iter().find(|(own, _)| own == column);
                digest.is_some_and(|(_, digest)| {
                    let mut hasher = DefaultHasher::new();
                    for (column, cell) in row.iter().filter(|(own, _)| texts.contains(own)) {
                        (column, text(cell)).hash(&mut hasher);
                    }
                    let digest = text(digest);
                    match seen.entry(hasher.finish()) {
                        Slot::Vacant(slot) => {
                            slot.insert(digest);
                            false
                        }
                        Slot::Occupied(known) => *known.get() != digest,
                    }
                })
            })
        };
        let digests = digests.map(|((_, name), column)| (&**name, column));
        digests
            .filter(is_telling)
            .map(|(_, column)| column)
            .collect()
    }

    /// The columns with the text of what this column has the digest of: its own, and those of its fields.
    fn texts(&self, digest: &str) -> HashSet<u32> {
        let Some(of) = digest.strip_suffix(DIGEST) else {
            return HashSet::new();
        };
        let (kind, of) = match of.strip_prefix("setting ") {
            Some(of) => (Kind::Setting, of),
            None => (Kind::Input, of),
        };
        let is_text = |(own, name): &(Kind, Rc<str>)| {
            let field = name.strip_prefix(of);
            *own == kind && field.is_some_and(|field| field.is_empty() || field.starts_with('.'))
        };
        let columns = self.all.iter().zip(0..);
        let texts = columns.filter(|(column, _)| is_text(column));
        texts.map(|(_, column)| column).collect()
    }

    /// The cells of results that are scalars, and of scalar fields of results.
    pub fn results(&mut self, entry: &Entry, cells: &mut Cells) {
        for saved in &entry.results {
            let Some(payload) = &saved.payload else {
                continue;
            };
            let type_name = text::type_name(payload.type_name());
            match payload.value(LONGEST) {
                Ok(value) => self.value(&saved.name, value, &type_name, cells),
                Err(_) => self.leave_out(&saved.name, &type_name, cells),
            }
        }
    }

    fn value(&mut self, name: &str, value: Decoded, type_name: &str, cells: &mut Cells) {
        let cell = match value {
            Decoded::Null => return,
            Decoded::Bool(truth) => Cell::Bool(truth),
            Decoded::Float(number) if type_name == "f32" => Cell::F32(number as f32),
            Decoded::Float(number) => Cell::F64(number),
            Decoded::Integer(integer) => match (u64::try_from(integer), i64::try_from(integer)) {
                (Ok(integer), _) => Cell::U64(integer),
                (_, Ok(integer)) => Cell::I64(integer),
                _ => Cell::Text(integer.to_string().into()),
            },
            Decoded::Text(text) if text.len() <= LONGEST_TEXT => Cell::Text(text.into()),
            // Nobody gave its length and mode.
            Decoded::Map(fields) if is_file(&fields) => match path(fields) {
                Some(path) => Cell::Text(path.into()),
                None => return self.leave_out(name, "OutputFile", cells),
            },
            Decoded::Map(fields) if python::tagged(&fields).is_some() => {
                return self.of_python(name, &fields, cells);
            }
            Decoded::Map(fields) => {
                for (field, value) in fields {
                    let name = format!("{name}.{}", json::name(&field));
                    self.value(&name, value, "", cells);
                }
                return;
            }
            // A list of any length has no columns.
            Decoded::List(items)
                if type_name.starts_with('(') || type_name.starts_with("Complex<") =>
            {
                for (at, value) in items.into_iter().enumerate() {
                    let field = match type_name.starts_with('(') {
                        true => format!("{name}.{at}"),
                        false => format!("{name}.{}", if at == 0 { "re" } else { "im" }),
                    };
                    self.value(&field, value, "", cells);
                }
                return;
            }
            _ => return self.leave_out(name, type_name, cells),
        };
        cells.push((self.column(Kind::Result, name), cell));
    }

    /// The cells of an object of Python.
    fn of_python(&mut self, name: &str, fields: &[(Decoded, Decoded)], cells: &mut Cells) {
        let Some((kind, of)) = python::tagged(fields) else {
            return;
        };
        if let Some(pairs) = python::pairs(kind, of) {
            for (key, value) in pairs {
                let field = format!("{name}.{}", json::name(key));
                self.value(&field, value.clone(), "", cells);
            }
        } else if let ("complex", Some([re, im])) = (kind, python::items(kind, of)) {
            self.value(&format!("{name}.re"), re.clone(), "", cells);
            self.value(&format!("{name}.im"), im.clone(), "", cells);
        } else if let ("tuple", Some(items)) = (kind, python::items(kind, of)) {
            for (at, value) in items.iter().enumerate() {
                self.value(&format!("{name}.{at}"), value.clone(), "", cells);
            }
        } else if let Some(value) = python::scalar(kind, of) {
            self.value(name, value, "", cells);
        } else {
            self.leave_out(name, kind, cells);
        }
    }

    fn leave_out(&mut self, name: &str, type_name: &str, cells: &mut Cells) {
        let of_type = match type_name {
            "" => String::new(),
            name => format!(" ({name})"),
        };
        let column = self.column(Kind::LeftOut, &format!("{name}{of_type}"));
        cells.push((column, Cell::Bool(false)));
    }

    /// The cell of the error of a run that failed.
    pub fn error(&mut self, error: String) -> (u32, Cell) {
        (self.column(Kind::Error, "error"), Cell::Text(error.into()))
    }

    /// The number of a column, which is made if there is none of this name.
    pub fn column(&mut self, kind: Kind, name: &str) -> u32 {
        let known = &mut self.known[kind as usize];
        if let Some(column) = known.get(name) {
            return *column;
        }
        let (name, column) = (Rc::from(name), self.all.len() as u32);
        known.insert(Rc::clone(&name), column);
        self.all.push((kind, name));
        column
    }

    /// These columns, by kind, with their titles: the name, with the kind if another kind or the key
    /// has the same name.
    pub fn titled(&self, columns: impl IntoIterator<Item = u32>) -> Vec<(u32, String)> {
        let columns = columns.into_iter();
        let columns = columns.map(|column| (self.kind(column), column));
        let columns: BTreeSet<(Kind, u32)> = columns.collect();
        let mut kinds: HashMap<&str, usize> = HashMap::from([("key", 1)]);
        for (kind, column) in &columns {
            *kinds.entry(self.name(*column)).or_default() += usize::from(*kind != Kind::LeftOut);
        }
        let title = |kind: Kind, column: u32| {
            let name = self.name(column);
            match (kinds[name], kind) {
                (1, _) | (_, Kind::Code | Kind::LeftOut) => name.to_owned(),
                (_, Kind::Digest) => format!("digest {name}"),
                (_, Kind::Input) => format!("input {name}"),
                (_, Kind::Setting) => format!("setting {name}"),
                (_, Kind::Result) => format!("result {name}"),
                (_, Kind::Error) => format!("failure {name}"),
            }
        };
        let columns = columns.into_iter();
        columns
            .map(|(kind, column)| (column, title(kind, column)))
            .collect()
    }

    /// The kind of a column.
    pub fn kind(&self, column: u32) -> Kind {
        self.all[column as usize].0
    }

    /// The name of a column, without its kind.
    pub fn name(&self, column: u32) -> &str {
        &self.all[column as usize].1
    }
}

/// The first digits of a digest.
pub fn short(digest: &Digest) -> String {
    digest.to_string().chars().take(DIGITS).collect()
}

/// A text or a path itself, where its short text has quotation marks around it.
fn plain(short: &str) -> &str {
    let file = short.strip_prefix("content of ");
    let quoted = file.filter(|file| file.starts_with('"')).unwrap_or(short);
    match quoted.strip_prefix('"') {
        Some(text) => text.strip_suffix('"').unwrap_or(text),
        None => short,
    }
}

/// The path of an output file, if it has a place.
fn path(fields: Vec<(Decoded, Decoded)>) -> Option<String> {
    fields
        .into_iter()
        .find_map(|field| match field {
            (Decoded::Text(name), Decoded::Text(path)) if name == "path" => Some(path),
            _ => None,
        })
        .filter(|path| !path.is_empty())
}

/// Whether these are the fields of an output file.
fn is_file(fields: &[(Decoded, Decoded)]) -> bool {
    let has = |name: &str| {
        let is_it = |(field, _): &(Decoded, Decoded)| matches!(field, Decoded::Text(field) if field == name);
        fields.iter().any(is_it)
    };
    ["digest", "length", "mode"].into_iter().all(has)
}

/// The cell as people and other programs read it: a number with enough digits to restore its bits.
pub fn text(cell: &Cell) -> String {
    match cell.bare() {
        Bare::Bool(truth) => truth.to_string(),
        Bare::Unsigned(integer) => integer.to_string(),
        Bare::Signed(integer) => integer.to_string(),
        Bare::F32(number) => format!("{number:?}"),
        Bare::F64(number) => format!("{number:?}"),
        Bare::Text(text) => text.into_owned(),
        _ => String::new(),
    }
}

/// As JSON.
pub fn json(cell: &Cell) -> Json {
    match cell.bare() {
        Bare::Bool(truth) => truth.into(),
        Bare::Text(text) => text.into(),
        _ => json::number(text(cell)),
    }
}
