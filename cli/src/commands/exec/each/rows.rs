//! The rows of a CSV file, as RFC 4180 has them.
//!
//! A quote that is never closed would make a row of all that follows, so this reads more strictly than libraries do, and knows the line of
//! each row.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::iter::Peekable;
use std::path::Path;
use std::str::Chars;

use crate::failure::Failure;

/// A file with a row for each run.
pub struct Rows {
    /// How messages name the file.
    pub name: String,
    pub columns: Vec<String>,
    pub rows: Vec<Row>,
}

/// A row, and the line of the file in which it begins.
pub struct Row {
    pub line: usize,
    pub fields: Vec<String>,
}

impl Rows {
    /// Reads a file, or standard input for `-`.
    pub fn read(file: &Path) -> Result<Self, Failure> {
        let is_input = file == Path::new("-");
        let name = match is_input {
            true => "standard input".to_owned(),
            false => file.display().to_string(),
        };
        let mut bytes = Vec::new();
        let read = match is_input {
            true => std::io::stdin().lock().read_to_end(&mut bytes).map(drop),
            false => fs::read(file).map(|read| bytes = read),
        };
        read.map_err(|error| Failure::told(format!("reading the rows of {name}: {error}")))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
            refused(&name, line, "it is no UTF-8; save the file as UTF-8")
        })?;
        Self::of(name, &text)
    }

    fn of(name: String, text: &str) -> Result<Self, Failure> {
        let refused = |line, why: &str| refused(&name, line, why);
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut reader = Reader {
            rest: text.chars().peekable(),
            line: 1,
        };
        let mut rows = Vec::new();
        while let Some(row) = reader.row().map_err(|(line, why)| refused(line, why))? {
            // An empty line is no row.
            if row.fields != [""] {
                rows.push(row);
            }
        }
        if rows.is_empty() {
            return Err(refused(1, "it is empty; its first line names the columns"));
        }
        let Row { line, fields } = rows.remove(0);
        let mut seen = HashMap::new();
        for (at, column) in fields.iter().enumerate() {
            if column.trim().is_empty() {
                return Err(refused(line, &format!("column {} has no name", at + 1)));
            }
            if seen.insert(column, at).is_some() {
                return Err(refused(line, &format!("two columns are called {column:?}")));
            }
        }
        if let Some(row) = rows.iter().find(|row| row.fields.len() != fields.len()) {
            let (has, columns) = (row.fields.len(), fields.len());
            let why = format!("{has} fields for {columns} columns");
            return Err(refused(row.line, &why));
        }
        Ok(Self {
            columns: fields,
            name,
            rows,
        })
    }
}

pub fn refused(name: &str, line: usize, why: &str) -> Failure {
    Failure::told(format!("{name}, line {line}, is refused: {why}"))
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    line: usize,
}

/// The line, and what is wrong there.
type Wrong = (usize, &'static str);

impl Reader<'_> {
    fn row(&mut self) -> Result<Option<Row>, Wrong> {
        if self.rest.peek().is_none() {
            return Ok(None);
        }
        let (line, mut fields) = (self.line, Vec::new());
        loop {
            fields.push(match self.rest.next_if_eq(&'"') {
                Some(_) => self.quoted()?,
                None => self.plain()?,
            });
            match self.rest.next() {
                Some(',') => {}
                Some('\r') if self.rest.next_if_eq(&'\n').is_none() => {
                    return Err((self.line, "a carriage return is no end of a line; quote it"));
                }
                None => return Ok(Some(Row { line, fields })),
                Some('\r' | '\n') => {
                    self.line += 1;
                    return Ok(Some(Row { line, fields }));
                }
                Some(_) => return Err((self.line, "text follows a closing quote")),
            }
        }
    }

    fn plain(&mut self) -> Result<String, Wrong> {
        let mut field = String::new();
        while let Some(next) = self.rest.next_if(|next| !",\r\n".contains(*next)) {
            if next == '"' {
                return Err((
                    self.line,
                    "a quote in a field that does not begin with one; quote the field and double it",
                ));
            }
            field.push(next);
        }
        Ok(field)
    }

    /// A quoted field, after its quote.
    fn quoted(&mut self) -> Result<String, Wrong> {
        let (line, mut field) = (self.line, String::new());
        loop {
            match self.rest.next() {
                None => return Err((line, "a quote is never closed")),
                Some('"') if self.rest.next_if_eq(&'"').is_none() => return Ok(field),
                Some(next) => {
                    self.line += usize::from(next == '\n');
                    field.push(next);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Result<Vec<(usize, Vec<String>)>, String> {
        let rows = Rows::of("r.csv".to_owned(), text);
        let of = |rows: Rows| {
            rows.rows
                .into_iter()
                .map(|row| (row.line, row.fields))
                .collect()
        };
        rows.map(of).map_err(|failure| match failure {
            Failure::Told(message) => message,
            other => panic!("{other:?}"),
        })
    }

    fn row(line: usize, fields: &[&str]) -> (usize, Vec<String>) {
        (
            line,
            fields.iter().map(|field| (*field).to_owned()).collect(),
        )
    }

    #[test]
    fn rows_are_read_as_the_standard_has_them() {
        let text = "\u{feff}a,b\r\n1,\"x, \"\"y\"\"\r\nz\"\r\n\r\n,\r\n 2 ,3";
        let expected = [
            row(2, &["1", "x, \"y\"\r\nz"]),
            row(5, &["", ""]),
            row(6, &[" 2 ", "3"]),
        ];
        assert_eq!(rows(text).unwrap(), expected);
        assert_eq!(rows("a\n\n\nx\n\n").unwrap(), [row(4, &["x"])]);
        assert_eq!(rows("a\n\"\"\n").unwrap(), []);
        assert_eq!(rows("a,b\n").unwrap(), []);
    }

    #[test]
    fn what_is_no_table_is_refused_with_its_line() {
        for (text, why) in [
            ("", "line 1, is refused: it is empty"),
            (
                "a,b\n\n1,\"2\n3\"\n4\n",
                "line 5, is refused: 1 fields for 2 columns",
            ),
            ("a\n1,2\n", "line 2, is refused: 2 fields for 1 columns"),
            ("a,\n", "line 1, is refused: column 2 has no name"),
            ("a,b,a\n", "two columns are called \"a\""),
            (
                "a\n1\n\"2\n3\n",
                "line 3, is refused: a quote is never closed",
            ),
            ("a\n\"1\"2\n", "line 2, is refused: text follows"),
            ("a\n1\"2\n", "line 2, is refused: a quote in a field"),
            ("a\r1\r", "a carriage return is no end"),
        ] {
            let error = rows(text).unwrap_err();
            assert!(error.contains(why), "{text:?}: {error}");
        }
    }
}
