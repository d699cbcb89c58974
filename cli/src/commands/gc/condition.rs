//! Conditions on the columns of a table.

use std::cmp::Ordering;
use std::str::FromStr;

use sde_table::columns::{self, Cell, Columns, Kind};

/// What a column must be.
#[derive(Clone)]
pub struct Condition {
    /// The column's title.
    pub column: String,
    is: &'static str,
    value: String,
}

/// The comparisons; of two with one beginning the longer comes first.
const COMPARISONS: [&str; 6] = ["!=", "<=", ">=", "=", "<", ">"];

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\": write COLUMN=VALUE, or with !=, <, <=, > or >=");
        let at = text.find(['=', '!', '<', '>']).filter(|at| *at > 0);
        let (column, rest) = text.split_at(at.ok_or_else(wrong)?);
        let of = COMPARISONS
            .iter()
            .find_map(|is| Some((*is, rest.strip_prefix(is)?)));
        let (is, value) = of.ok_or_else(wrong)?;
        Ok(Self {
            column: column.trim().to_owned(),
            is,
            value: value.trim().to_owned(),
        })
    }
}

impl Condition {
    /// Whether the column is there, and all columns of this name are so: an input and a result may have one name.
    pub fn holds(&self, cells: &[(u32, Cell)], columns: &Columns) -> bool {
        let mut of_column = cells
            .iter()
            .filter(|(column, _)| is_called(columns, *column, &self.column))
            .peekable();
        of_column.peek().is_some() && of_column.all(|(_, cell)| self.is_so(cell))
    }

    /// Whether the column is of this name, with its kind or without.
    pub fn may_mean(&self, name: &str) -> bool {
        self.column == name || self.column.ends_with(&format!(" {name}"))
    }

    fn is_so(&self, cell: &Cell) -> bool {
        let text = columns::text(cell);
        let order = compare(&text, &self.value);
        match self.is {
            // Texts differ if their characters do; other comparisons of them are of numbers.
            "=" if matches!(cell, Cell::Text(_)) => text == self.value,
            "!=" if matches!(cell, Cell::Text(_)) => text != self.value,
            "=" => order == Some(Ordering::Equal),
            "!=" => order != Some(Ordering::Equal),
            "<" => order == Some(Ordering::Less),
            ">" => order == Some(Ordering::Greater),
            "<=" => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            _ => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        }
    }
}

/// Whether a user means this column, by its name alone or with its kind. Those that have no cells are not meant.
fn is_called(columns: &Columns, column: u32, title: &str) -> bool {
    let name = columns.name(column);
    let kind = match columns.kind(column) {
        Kind::LeftOut => return false,
        Kind::Input => "input ",
        Kind::Setting => "setting ",
        Kind::Result => "result ",
        Kind::Error => "failure ",
        _ => "",
    };
    title == name || title.strip_prefix(kind) == Some(name)
}

/// Numbers by their values, whatever their digits; other texts are equal or not.
fn compare(one: &str, other: &str) -> Option<Ordering> {
    if let (Ok(one), Ok(other)) = (one.parse::<i128>(), other.parse::<i128>()) {
        return Some(one.cmp(&other));
    }
    match (one.parse::<f64>(), other.parse::<f64>()) {
        _ if one == other => Some(Ordering::Equal),
        (Ok(one), Ok(other)) => one.partial_cmp(&other),
        _ => None,
    }
}
