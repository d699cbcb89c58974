//! `sde table`: the runs of an app, with inputs and results.

mod code;
mod commands;

use std::cmp::Ordering;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use sde::key::Bare;
use sde_archives::inspect::{Decoded, Entry};
use serde_json::Map;

use crate::args::Place;
use crate::columns::{self, Cell, Columns, Kind};
use crate::failed::FailedLine;
use crate::failure::Failure;
use crate::listing::Choice;
use crate::npy::{self, Array};
use crate::output::{Output, warn};
use crate::rows::{Row, Rows};
use crate::runs::Run;
use crate::table::TextTable;
use crate::{file, store, text};
use code::CodeChoice;

/// The runs of an app, a row each: what they were given, and what came of them
///
/// All rows are of one code, the one that was used last; --all-code has the others too.
/// Columns are inputs, fields and parameters of the app, and the results that are numbers, truth values or short texts, or
/// have fields that are. A run that failed, and has had no result since, has a row without results: its error is in a column `error`. Numbers have all digits that it takes to have their bits again.
#[derive(Args)]
pub struct Table {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    code: CodeChoice,
    /// Also the runs that other runs of this store called, where no --app says of which app
    #[arg(long)]
    nested: bool,
    /// In the order of this column, in place of that in which the runs were made
    #[arg(long, value_name = "COLUMN")]
    sort: Option<String>,
    /// Only the last N rows
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<usize>,
    /// A value that is taken out of what a command's run wrote, in place of those of the rules that are kept; several
    #[arg(long, value_name = "NAME=[FILE:]REGEX")]
    get: Vec<String>,
    /// As comma-separated values
    #[arg(long, conflicts_with_all = ["json", "npz"])]
    csv: bool,
    /// To a file for numpy.load, an array for each column; `-` is standard output
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "json")]
    npz: Option<PathBuf>,
    /// FILE may be there already, and is replaced
    #[arg(long, requires = "npz")]
    force: bool,
}

impl Table {
    pub fn run(&self, out: &mut Output) -> Result<(), Failure> {
        let (store, rows) = store::read(&self.place.only()?, |store| {
            let keep = |entry: &Entry, run: Option<&Run>, columns: &mut Columns| {
                let mut cells = match run {
                    Some(run) => run.given(entry, columns),
                    None => columns.given(entry),
                };
                if let Some(failed) = FailedLine::of(&entry.record) {
                    cells.push(columns.error(failed.error));
                } else if run.is_none() {
                    columns.results(entry, &mut cells);
                }
                cells
            };
            // Which code is current only all of them tell.
            let mut rows = Rows::of(store, &self.choice, self.nested, &keep)?;
            let mut told = self.code.choose(&mut rows)?;
            rows.drop_failures_with_results();
            if rows.called > 0 {
                let runs = text::count(rows.called, "run", "runs");
                told.push(format!("{runs} of other apps that these called: --app"));
            }
            commands::judge(store, &mut rows, &self.get)?;
            Ok((rows, told))
        })?;
        let (rows, told) = rows;
        let rows = Shown::of(rows, self)?;
        if let Some(path) = &self.npz {
            file::write(path, self.force, out, |mut to| {
                npy::write_npz(rows.arrays(), &mut to)
            })?;
        } else if self.csv {
            rows.csv(out)?;
        } else if out.json {
            rows.objects(out)?;
        } else {
            rows.print(out)?;
            told.iter().try_for_each(|one| out.wrapped(one, 2))?;
        }
        out.flush()?;
        if self.csv || self.npz.is_some() || out.json {
            told.iter().for_each(warn);
        }
        if !rows.left_out.is_empty() {
            let names = rows.left_out.iter().map(|(_, name)| name.as_str());
            let mut names: Vec<&str> = names.take(TOLD).collect();
            names.extend((rows.left_out.len() > TOLD).then_some("…"));
            let names = names.join(", ");
            warn(format!(
                "left out, as they are no numbers, truth values or short texts: {names}; `sde export` writes them"
            ));
        }
        store::conclude(&store, out)
    }
}

/// The most results without a column that are named.
const TOLD: usize = 20;

/// The width to which a text may be cut in a terminal.
const LEAST: usize = 16;

/// Numbers and titles of columns.
type Titles = Vec<(u32, String)>;

/// The rows, in order.
struct Shown {
    rows: Rows,
    titles: Titles,
    left_out: Titles,
}

impl Shown {
    fn of(mut rows: Rows, asked: &Table) -> Result<Self, Failure> {
        let apps = rows.apps();
        if apps.len() > 1 {
            let apps: Vec<&str> = apps.into_iter().collect();
            return Err(Failure::told(format!(
                "a table is of one app; say which with --app: {}",
                apps.join(", ")
            )));
        }
        if let Some(by) = &asked.sort {
            let (known, _) = titles(&rows);
            let column = known.iter().find(|(_, title)| title == by);
            match column {
                Some((by, _)) => rows.sort(|rows, a, b| {
                    compare(rows.cell(a, *by).as_ref(), rows.cell(b, *by).as_ref())
                }),
                None if by == "key" => rows.sort(|_, a, b| a.key.cmp(&b.key)),
                None => {
                    let titles: Vec<&str> = known.iter().map(|(_, title)| &**title).collect();
                    let titles = titles.join(", ");
                    let why = format!("there is no column {by:?}; there are: {titles}, key");
                    return Err(Failure::told(why));
                }
            }
        }
        let count = rows.all.len();
        rows.all
            .drain(..count - count.min(asked.limit.unwrap_or(count)));
        let (titles, left_out) = titles(&rows);
        Ok(Self {
            rows,
            titles,
            left_out,
        })
    }

    fn cells(&self, column: u32) -> impl Iterator<Item = Option<Cell>> + Clone {
        let rows = self.rows.all.iter();
        rows.map(move |row| self.rows.cell(row, column))
    }

    fn print(&self, out: &mut Output) -> Result<(), Failure> {
        if self.rows.all.is_empty() {
            return out.line("no entries");
        }
        let count = self.titles.len();
        let mut table = TextTable::of(&self.rows.all);
        for (at, (column, title)) in self.titles.iter().enumerate() {
            let mut cells = self.cells(*column);
            let first = cells.next().flatten();
            let is_same = self.rows.all.len() > 1 && cells.clone().all(|other| other == first);
            let is_text = |cell: Option<Cell>| matches!(cell, Some(Cell::Text(_)));
            // Columns that are the same in all rows tell the least, and keys tell all rows apart. Results are what is asked for.
            let rank = match (is_same, self.rows.columns.kind(*column)) {
                (true, Kind::Result) => 2,
                (true, _) => 1,
                (false, Kind::Result | Kind::Error) => 5,
                (false, Kind::Setting) => 3,
                (false, _) => 4,
            };
            let rank = rank * (count + 1) - at;
            let text = |row: &Row| shown(self.rows.cell(row, *column));
            table = match is_text(first) || cells.any(is_text) {
                true => table.left(title, rank, text).least(LEAST),
                false => table.right(title, rank, text),
            };
        }
        let left_out = table
            .left("key", usize::MAX, |row| row.key.short())
            .write(out)?;
        if !left_out.is_empty() {
            let names = left_out.join(", ");
            out.wrapped(format!("no room for: {names}; --csv or --json has all"), 2)?;
        }
        out.line(text::count(self.rows.all.len(), "run", "runs"))
    }

    fn csv(&self, out: &mut Output) -> Result<(), Failure> {
        let mut csv = csv::Writer::from_writer(out.raw());
        let clean = |texts: Vec<String>| texts.into_iter().map(|one| text::clean(&one));
        let titles = self.titles.iter().map(|(_, title)| title.clone());
        csv.write_record(clean(titles.chain(["key".to_owned()]).collect()).collect::<Vec<_>>())?;
        for row in &self.rows.all {
            csv.write_record(clean(self.row(row)).collect::<Vec<_>>())?;
        }
        Ok(csv.flush()?)
    }

    fn objects(&self, out: &mut Output) -> Result<(), Failure> {
        self.rows.all.iter().try_for_each(|row| {
            let members = self.titles.iter().map(|(column, title)| {
                let value = self.rows.cell(row, *column);
                let value = value.as_ref().map(columns::json);
                (title.clone(), value.unwrap_or_default())
            });
            let key = ("key".to_owned(), row.key.to_string().into());
            out.object(&members.chain([key]).collect::<Map<_, _>>())
        })
    }

    fn row(&self, row: &Row) -> Vec<String> {
        let columns = self.titles.iter();
        let texts = columns.map(|(column, _)| shown(self.rows.cell(row, *column)));
        texts.chain([row.key.short()]).collect()
    }

    fn arrays(&self) -> impl Iterator<Item = (String, Array)> {
        let columns = self.titles.iter();
        let columns = columns.map(|(column, title)| (title.clone(), self.array(*column)));
        let keys = Array::texts(self.rows.all.iter().map(|row| row.key.short()));
        columns.chain([("key".to_owned(), keys)])
    }

    /// Numbers as numbers, as floats with NaN if there are gaps; truth values; all else as texts.
    fn array(&self, column: u32) -> Array {
        let cells = self.cells(column);
        let values: Vec<Decoded> = cells.clone().map(|cell| value(cell.as_ref())).collect();
        let float = |value: &Decoded| match value {
            Decoded::Null => Some(f64::NAN),
            Decoded::Float(number) => Some(*number),
            // A larger integer may lose digits.
            Decoded::Integer(integer) if integer.unsigned_abs() <= 1 << 53 => Some(*integer as f64),
            _ => None,
        };
        let truth = |value: &Decoded| match value {
            Decoded::Bool(truth) => Some(u8::from(*truth)),
            _ => None,
        };
        let as_floats = || values.iter().map(float).collect::<Option<Vec<_>>>();
        if let Some(numbers) = npy::of_list(&values) {
            numbers
        } else if let Some(numbers) = as_floats() {
            let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
            Array::line("<f8", numbers.len(), bytes.collect())
        } else if let Some(truths) = values.iter().map(truth).collect::<Option<Vec<_>>>() {
            Array::line("|b1", truths.len(), truths)
        } else {
            Array::texts(cells.map(shown))
        }
    }
}

fn value(cell: Option<&Cell>) -> Decoded {
    match cell.map(Cell::bare) {
        Some(Bare::Bool(truth)) => Decoded::Bool(truth),
        Some(Bare::Unsigned(integer)) => Decoded::Integer(integer.into()),
        Some(Bare::Signed(integer)) => Decoded::Integer(integer.into()),
        Some(Bare::F32(number)) => Decoded::Float(number.into()),
        Some(Bare::F64(number)) => Decoded::Float(number),
        Some(Bare::Text(text)) => Decoded::Text(text.into_owned()),
        _ => Decoded::Null,
    }
}

/// The text of a cell.
fn shown(cell: Option<Cell>) -> String {
    cell.as_ref().map(columns::text).unwrap_or_default()
}

/// The columns that are shown, and those left out.
fn titles(rows: &Rows) -> (Titles, Titles) {
    let (columns, places) = (&rows.columns, rows.all.iter().map(|row| row.cells));
    let telling = columns.telling(places.clone().map(|row| rows.cells.cells(row)));
    let mut titles = columns.titled(rows.cells.columns(places));
    titles.retain(|(column, _)| columns.kind(*column) != Kind::Digest || telling.contains(column));
    let is_left_out = |(column, _): &(u32, String)| columns.kind(*column) == Kind::LeftOut;
    titles.into_iter().partition(|one| !is_left_out(one))
}

/// Numbers come by size and before texts; gaps come last.
fn compare(one: Option<&Cell>, other: Option<&Cell>) -> Ordering {
    let number = |cell: Option<&Cell>| cell.and_then(number);
    match (number(one), number(other)) {
        (Some(one), Some(other)) => one.total_cmp(&other),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => {
            let text = |cell: Option<&Cell>| (cell.is_none(), cell.map(columns::text));
            text(one).cmp(&text(other))
        }
    }
}

fn number(cell: &Cell) -> Option<f64> {
    match value(Some(cell)) {
        Decoded::Bool(truth) => Some(f64::from(u8::from(truth))),
        Decoded::Integer(integer) => Some(integer as f64),
        Decoded::Float(number) => Some(number),
        _ => None,
    }
}
