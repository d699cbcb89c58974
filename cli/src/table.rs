//! Tables that fit the terminal.

use crate::failure::Failure;
use crate::output::Output;
use crate::text::{clean, cut, width};

/// One column.
pub struct Column {
    title: &'static str,
    right: bool,
    /// It may be cut down to so many columns; if that is not enough it is left out.
    least: usize,
    /// What is left out first has the lowest.
    rank: u8,
}

impl Column {
    /// Cut only if nothing else helps.
    pub const fn new(title: &'static str, rank: u8) -> Self {
        Self {
            title,
            right: false,
            least: usize::MAX,
            rank,
        }
    }

    /// May be cut down to so many columns.
    pub const fn least(mut self, columns: usize) -> Self {
        self.least = columns;
        self
    }

    /// Numbers.
    pub const fn right(mut self) -> Self {
        self.right = true;
        self
    }
}

const GAP: usize = 2;

/// In a pipe nothing is cut, and one very long name does not make every line as long.
const PADDED: usize = 48;

/// Writes a table with as many of its columns as there is room for.
pub fn write(out: &mut Output, columns: &[Column], rows: &[Vec<String>]) -> Result<(), Failure> {
    let clean_rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| clean(cell)).collect())
        .collect();
    let longest = match out.width() {
        Some(_) => usize::MAX,
        None => PADDED,
    };
    let mut widths = widths(columns, &clean_rows, longest);
    if let Some(room) = out.width() {
        fit(columns, &mut widths, room);
    }
    let titles: Vec<String> = columns
        .iter()
        .map(|column| column.title.to_owned())
        .collect();
    for row in std::iter::once(&titles).chain(&clean_rows) {
        out.line(line(columns, &widths, row, out.width().is_some()))?;
    }
    Ok(())
}

/// The width of each column: of its widest cell that is not longer than this. One with nothing in it
/// is not shown: its width is 0.
fn widths(columns: &[Column], rows: &[Vec<String>], longest: usize) -> Vec<usize> {
    let of_column = |(at, column): (usize, &Column)| {
        let cells = rows.iter().filter_map(|row| row.get(at));
        let widths = || cells.clone().map(|cell| width(cell));
        let title = width(column.title);
        match rows.is_empty() || widths().any(|width| width > 0) {
            true => widths()
                .filter(|width| *width <= longest)
                .fold(title, usize::max),
            false => 0,
        }
    };
    columns.iter().enumerate().map(of_column).collect()
}

/// A row. A cell that is longer than its column is wide is cut, or moves what comes after it.
fn line(columns: &[Column], widths: &[usize], row: &[String], cuts: bool) -> String {
    let mut line = String::new();
    let shown = columns
        .iter()
        .zip(widths)
        .zip(row)
        .filter(|((_, width), _)| **width > 0);
    for ((column, room), cell) in shown {
        if !line.is_empty() {
            line.push_str(&" ".repeat(GAP));
        }
        let cell = match cuts {
            true => cut(cell, *room),
            false => cell.clone(),
        };
        let space = " ".repeat(room.saturating_sub(width(&cell)));
        match column.right {
            true => line.extend([space.as_str(), &cell]),
            false => line.extend([cell.as_str(), &space]),
        }
    }
    line
}

/// Cuts the widest that may be cut, one column at a time. If that is not enough, leaves out what
/// matters least, and begins again.
fn fit(columns: &[Column], widths: &mut [usize], room: usize) {
    loop {
        let mut cut = widths.to_vec();
        while taken(&cut) > room {
            let can = (0..columns.len()).filter(|at| cut[*at] > columns[*at].least);
            let Some(widest) = can.max_by_key(|at| cut[*at]) else {
                break;
            };
            cut[widest] -= 1;
        }
        let shown: Vec<usize> = (0..columns.len()).filter(|at| widths[*at] > 0).collect();
        if taken(&cut) <= room || shown.len() <= 1 {
            widths.copy_from_slice(&cut);
            return;
        }
        if let Some(least) = shown.into_iter().min_by_key(|at| columns[*at].rank) {
            widths[least] = 0;
        }
    }
}

fn taken(widths: &[usize]) -> usize {
    let shown = widths.iter().filter(|width| **width > 0);
    shown
        .map(|width| width + GAP)
        .sum::<usize>()
        .saturating_sub(GAP)
}
