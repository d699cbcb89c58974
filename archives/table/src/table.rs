//! The runs of an app as a table.

use std::cmp::Ordering;

use sde::key::Bare;
use sde_archives::inspect::{Decoded, Entry, Snapshot};

use crate::code_choice::{CodeChoice, Unseen};
use crate::columns::{self, Cell, Cells, Columns, Kind};
use crate::error::Error;
use crate::failed::FailedLine;
use crate::judged;
use crate::listing::Choice;
use crate::rows::{Row, Rows};
use crate::runs::Run;
use crate::text_table::{Lines, TextTable};

/// The width to which a text may be cut in a terminal.
const LEAST: usize = 16;

/// Numbers and titles of columns.
pub type Titles = Vec<(u32, String)>;

/// A table: the runs of an app that count, in order, and those that failed and have had no result since.
#[derive(Debug)]
pub struct Table {
    /// The rows, with the cells of all their columns.
    pub rows: Rows,
    /// The columns that are shown; the key of each row comes after them.
    pub titles: Titles,
    /// Results that are no numbers, truth values or short texts.
    pub left_out: Titles,
    /// What the table does not show.
    pub unseen: Unseen,
}

/// What a table is to be of.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// Which runs.
    pub choice: Choice,
    /// Of which code.
    pub code: CodeChoice,
    /// Also runs that other runs of the store called, where no app is chosen.
    pub nested: bool,
    /// The column that the order is by, in place of that in which the runs were made.
    pub sort: Option<String>,
    /// Only so many rows, the last ones.
    pub limit: Option<usize>,
    /// Values that are taken out of what a command's run wrote, in place of those of the rules that are kept: names
    /// and expressions.
    pub gets: Vec<(String, String)>,
}

impl Table {
    /// Reads the table out of a store: of all its entries the records and small results.
    ///
    /// # Errors
    ///
    /// The runs are of several apps, no app or code has the name, there is no such column, or the rules of a command
    /// can't be read.
    pub fn read(store: &mut Snapshot, asked: &Asked) -> Result<Self, Error> {
        // Which code is current only all of them tell.
        let mut rows = Rows::of(store, &asked.choice, asked.nested, &keep)?;
        let mut unseen = asked.code.choose(&mut rows)?;
        rows.drop_failures_with_results();
        unseen.called = rows.called;
        judged::judge(store, &mut rows, &asked.gets)?;
        Self::of(rows, unseen, asked)
    }

    fn of(mut rows: Rows, unseen: Unseen, asked: &Asked) -> Result<Self, Error> {
        let apps = rows.apps();
        if apps.len() > 1 {
            let apps: Vec<&str> = apps.into_iter().collect();
            return Err(Error::told(format!(
                "a table is of one app; say which: {}",
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
                    return Err(Error::told(why));
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
            unseen,
        })
    }

    /// The cells of a column, of each row.
    pub fn cells(&self, column: u32) -> impl Iterator<Item = Option<Cell>> + Clone {
        let rows = self.rows.all.iter();
        rows.map(move |row| self.rows.cell(row, column))
    }

    /// Writes the first rows, at most so many, with as many columns as there is room for; gives the titles of those left
    /// out.
    ///
    /// # Errors
    ///
    /// They can't be written.
    pub fn write<L: Lines>(&self, most: usize, out: &mut L) -> Result<Vec<&str>, L::Error> {
        let count = self.titles.len();
        let mut table = TextTable::of(&self.rows.all[..most.min(self.rows.all.len())]);
        for (at, (column, title)) in self.titles.iter().enumerate() {
            let mut cells = self.cells(*column);
            let first = cells.next().flatten();
            let is_same = self.rows.all.len() > 1 && cells.clone().all(|other| other == first);
            let is_text = |cell: Option<Cell>| matches!(cell, Some(Cell::Text(_)));
            // Columns of one value tell the least, and keys tell all rows apart. Results are what is asked for.
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
        table
            .left("key", usize::MAX, |row| row.key.short())
            .write(out)
    }
}

/// What is kept of an entry: what it was given, and what came of it.
fn keep(entry: &Entry, run: Option<&Run>, columns: &mut Columns) -> Cells {
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
}

/// The value of a cell; that of none is null.
pub fn value(cell: Option<&Cell>) -> Decoded {
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
pub fn shown(cell: Option<Cell>) -> String {
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
