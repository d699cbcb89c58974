//! Tables that fit the terminal.

use std::collections::HashSet;
use std::fmt;

use console::{Alignment, measure_text_width, pad_str, truncate_str};

use crate::text::clean;

/// Where the lines of a table go.
pub trait Lines {
    /// Why a line can't be written.
    type Error;

    /// The columns of the terminal; `None` if lines may have any length.
    fn width(&self) -> Option<usize>;

    /// Writes a line of the table.
    ///
    /// # Errors
    ///
    /// It can't be written.
    fn line(&mut self, line: String) -> Result<(), Self::Error>;

    /// Notes that some texts look alike where they are cut.
    ///
    /// # Errors
    ///
    /// It can't be written.
    fn look_alike(&mut self) -> Result<(), Self::Error>;
}

/// A table of these rows.
pub struct TextTable<'a, R> {
    rows: &'a [R],
    columns: Vec<Column<'a, R>>,
}

struct Column<'a, R> {
    title: &'a str,
    cell: Box<dyn Fn(&R) -> String + 'a>,
    align: Alignment,
    /// The width to which it may be cut; if that is not enough it is left out.
    least: usize,
    /// Columns of the lowest rank are left out first.
    rank: usize,
}

impl<R> fmt::Debug for TextTable<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let titles = self.columns.iter().map(|column| column.title);
        f.debug_list().entries(titles).finish()
    }
}

impl<R> Column<'_, R> {
    fn clean(&self, row: &R) -> String {
        clean(&(self.cell)(row))
    }

    /// The width of its widest cell, in a pipe of those that are not too long; 0 if all cells are empty.
    fn width(&self, rows: &[R], longest: usize) -> usize {
        let widths = rows.iter().map(|row| measure_text_width(&self.clean(row)));
        let title = measure_text_width(self.title);
        let widest = |widest: usize, width: usize| match width {
            0 => widest,
            width if width > longest => widest.max(title),
            width => widest.max(title).max(width),
        };
        widths.fold(0, widest)
    }
}

const GAP: &str = "  ";

/// The longest cell that others are padded to in a pipe: nothing is cut there, and one very long name does not
/// widen every line.
const PADDED: usize = 48;

impl<'a, R> TextTable<'a, R> {
    /// A table of these rows, without columns yet.
    pub const fn of(rows: &'a [R]) -> Self {
        let columns = Vec::new();
        Self { rows, columns }
    }

    /// A column of texts. It is cut only if nothing else helps.
    pub fn left(self, title: &'a str, rank: usize, cell: impl Fn(&R) -> String + 'a) -> Self {
        self.column(title, rank, cell, Alignment::Left)
    }

    /// A column of numbers.
    pub fn right(self, title: &'a str, rank: usize, cell: impl Fn(&R) -> String + 'a) -> Self {
        self.column(title, rank, cell, Alignment::Right)
    }

    /// The last column may be cut down to so many columns of the terminal.
    pub fn least(mut self, columns: usize) -> Self {
        if let Some(last) = self.columns.last_mut() {
            last.least = columns;
        }
        self
    }

    fn column(
        mut self,
        title: &'a str,
        rank: usize,
        cell: impl Fn(&R) -> String + 'a,
        align: Alignment,
    ) -> Self {
        self.columns.push(Column {
            title,
            cell: Box::new(cell),
            align,
            least: usize::MAX,
            rank,
        });
        self
    }

    /// Writes the table with as many columns as fit; gives the titles of those left out.
    /// Cells are made anew when they are written: there may be millions.
    pub fn write<L: Lines>(self, out: &mut L) -> Result<Vec<&'a str>, L::Error> {
        let (columns, rows, room) = (&self.columns, self.rows, out.width());
        let longest = room.map_or(PADDED, |_| usize::MAX);
        let natural = columns.iter().map(|column| column.width(rows, longest));
        let natural: Vec<usize> = natural.collect();
        let mut widths = natural.clone();
        if let Some(room) = room {
            fit(columns, &mut widths, room);
        }
        let cut = room.map(|_| "…");
        let texts = columns.iter().zip(&widths).zip(&natural);
        let texts = texts.map(|((column, width), natural)| {
            let is_cut = cut.is_some() && (1..*natural).contains(width);
            Texts::of(rows.iter().filter(|_| is_cut).map(|row| column.clean(row)))
        });
        let texts: Vec<Texts> = texts.collect();
        let mut line = |cell: &dyn Fn(&Column<'a, R>) -> String| {
            let all = columns.iter().zip(&widths).zip(&texts);
            let shown = all.filter(|((_, width), _)| **width > 0);
            let cells = shown.map(|((column, width), texts)| {
                let cell = cell(column);
                let is_longer = measure_text_width(&cell) > *width;
                match cut {
                    None if is_longer => cell,
                    Some(_) if is_longer => {
                        let short = texts.shortened(&cell, *width);
                        pad_str(&short, *width, column.align, cut).into_owned()
                    }
                    _ => pad_str(&cell, *width, column.align, cut).into_owned(),
                }
            });
            out.line(cells.collect::<Vec<_>>().join(GAP))
        };
        if !rows.is_empty() {
            line(&|column| clean(column.title))?;
        }
        for row in rows {
            line(&|column| column.clean(row))?;
        }
        let mut shown = texts.iter().zip(&widths).filter(|(_, width)| **width > 0);
        if shown.any(|(texts, width)| texts.look_alike(*width)) {
            out.look_alike()?;
        }
        let left_out = (0..columns.len()).filter(|at| widths[*at] == 0 && natural[*at] > 0);
        Ok(left_out.map(|at| columns[at].title).collect())
    }
}

/// The texts of a column that is cut, sorted.
#[derive(Debug)]
struct Texts(Vec<String>);

impl Texts {
    fn of(texts: impl Iterator<Item = String>) -> Self {
        let mut texts: Vec<String> = texts.collect();
        texts.sort_unstable();
        texts.dedup();
        Self(texts)
    }

    /// A longer text without a part of its middle, if it begins as another does for as long as there is room: what is left
    /// shows where they differ. The end may still have to be cut off.
    fn shortened(&self, text: &str, width: usize) -> String {
        let at = self.0.partition_point(|other| **other < *text);
        let neighbours = [at.checked_sub(1), Some(at + 1)].into_iter().flatten();
        let common = |other: &String| {
            let pairs = text.chars().zip(other.chars());
            pairs.take_while(|(one, other)| one == other).count()
        };
        let neighbours = neighbours.filter_map(|at| self.0.get(at));
        let differs_at = neighbours.map(common).max().unwrap_or(0);
        if differs_at + 1 < width {
            return text.to_owned();
        }
        let first = width / 3;
        let room = width.saturating_sub(first + 1);
        let last = text.chars().count().saturating_sub(room);
        let from = last.min(differs_at.saturating_sub(room / 3));
        let first = text.chars().take(first).chain(['…']);
        first.chain(text.chars().skip(from)).collect()
    }

    /// Whether two of them look alike in a column of this width.
    fn look_alike(&self, width: usize) -> bool {
        let shown = self.0.iter().map(|text| {
            let short = self.shortened(text, width);
            truncate_str(&short, width, "…").into_owned()
        });
        shown.collect::<HashSet<_>>().len() < self.0.len()
    }
}

/// Cuts the widest column that may be cut, by one terminal column at a time. If that is not enough, leaves out the
/// column of the lowest rank, and begins again.
fn fit<R>(columns: &[Column<'_, R>], widths: &mut [usize], room: usize) {
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
    let with_gaps: usize = shown.map(|width| width + GAP.len()).sum();
    with_gaps.saturating_sub(GAP.len())
}
