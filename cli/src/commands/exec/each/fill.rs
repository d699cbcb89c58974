//! `{column}` in a command line, and the command line of a row.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::super::Exec;
use super::rows::{Row, Rows, refused};
use crate::failure::Failure;

/// A text with columns in it.
enum Part {
    Text(String),
    Column(usize),
}

/// What a value may not have, since it would say something else there than the command line does.
fn forbidden(option: &str) -> &'static [char] {
    match option {
        "-i" => &['='],
        "-o" | "--compare" => &['=', '*', '?', '['],
        _ => &['\0'],
    }
}

impl Exec {
    /// The texts in which columns stand, with the options that they are of.
    ///
    /// Rules are not among them: braces count in expressions, and all runs of an app are judged by the same rules.
    fn texts(&mut self) -> impl Iterator<Item = (&'static str, &mut String)> {
        let of = |option: &'static str| move |text| (option, text);
        self.line
            .iter_mut()
            .map(of("the command"))
            .chain(self.input.iter_mut().map(of("-i")))
            .chain(self.output.iter_mut().map(of("-o")))
            .chain(self.compare.iter_mut().map(of("--compare")))
            .chain(self.env.iter_mut().map(of("--env")))
            .chain(self.uses.iter_mut().map(of("--uses")))
            .chain(self.text.iter_mut().map(of("--text")))
            .chain(self.carry.iter_mut().map(of("--carry")))
    }

    fn paths(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        self.tree.iter_mut().chain(&mut self.stdin)
    }

    /// The command line of each row.
    pub fn filled(&self, rows: &Rows) -> Result<Vec<Self>, Failure> {
        let mut used = BTreeSet::new();
        let fill = |row: &Row| {
            let mut one = self.clone();
            let mut fill = |option: &str, text: &mut String| {
                *text = filled(option, text, rows, row, &mut used)?;
                Ok::<_, Failure>(())
            };
            for (option, text) in one.texts() {
                fill(option, text)?;
            }
            for path in one.paths() {
                // What is no text has no columns.
                if let Some(text) = path.to_str() {
                    let mut text = text.to_owned();
                    fill("a path", &mut text)?;
                    *path = text.into();
                }
            }
            Ok(one)
        };
        let all = rows
            .rows
            .iter()
            .map(fill)
            .collect::<Result<Vec<_>, Failure>>()?;
        let unused: Vec<&str> = (0..rows.columns.len())
            .filter(|at| !used.contains(at))
            .map(|at| &*rows.columns[at])
            .collect();
        if !unused.is_empty() && !rows.rows.is_empty() {
            crate::output::warn(format!(
                "no {{column}} uses {} of {}",
                unused.join(", "),
                rows.name
            ));
        }
        Ok(all)
    }
}

fn filled(
    option: &str,
    text: &str,
    rows: &Rows,
    row: &Row,
    used: &mut BTreeSet<usize>,
) -> Result<String, Failure> {
    let parts = parts(text, &rows.columns)
        .map_err(|why| Failure::told(format!("{text:?} is refused: {why}")))?;
    let mut all = String::new();
    for part in parts {
        match part {
            Part::Text(text) => all += &text,
            Part::Column(at) => {
                used.insert(at);
                let (column, value) = (&rows.columns[at], &row.fields[at]);
                if let Some(mark) = value.chars().find(|mark| forbidden(option).contains(mark)) {
                    let why = format!(
                        "the {column} {value:?} has {mark:?}, which means something in {option} {text}"
                    );
                    return Err(refused(&rows.name, row.line, &why));
                }
                all += value;
            }
        }
    }
    Ok(all)
}

fn parts(text: &str, columns: &[String]) -> Result<Vec<Part>, String> {
    let there = || format!("the columns are: {}", columns.join(", "));
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find(['{', '}']) {
        parts.push(Part::Text(rest[..at].to_owned()));
        let brace = &rest[at..=at];
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            parts.push(Part::Text(brace.to_owned()));
            rest = after;
            continue;
        }
        let (name, after) = match brace {
            "{" => rest.split_once('}'),
            _ => None,
        }
        .ok_or_else(|| {
            format!(
                "a {brace} by itself; {brace}{brace} is one that is meant; {}",
                there()
            )
        })?;
        let column = columns.iter().position(|column| column == name);
        let unknown = || {
            format!(
                "there is no column {name:?}; {}; {{{{ and }}}} are braces",
                there()
            )
        };
        parts.push(Part::Column(column.ok_or_else(unknown)?));
        rest = after;
    }
    parts.push(Part::Text(rest.to_owned()));
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled_with(option: &str, text: &str, fields: [&str; 2]) -> Result<String, String> {
        let fields = fields.map(str::to_owned).to_vec();
        let rows = Rows {
            name: "r.csv".to_owned(),
            columns: vec!["a".to_owned(), "b c".to_owned()],
            rows: Vec::new(),
        };
        let row = Row { line: 7, fields };
        filled(option, text, &rows, &row, &mut BTreeSet::new())
            .map_err(|failure| format!("{failure:?}"))
    }

    #[test]
    fn columns_take_their_values_and_double_braces_are_braces() {
        let fill = |text| filled_with("the command", text, ["1", "{a}"]).unwrap();
        assert_eq!(fill("{a}-{b c}.{a}"), "1-{a}.1");
        assert_eq!(fill("{{print $1}} {{{a}}}"), "{print $1} {1}");
        assert_eq!(fill("no column"), "no column");
        assert_eq!(fill(""), "");
    }

    #[test]
    fn what_names_no_column_is_refused() {
        for (text, why) in [
            (
                "{x}",
                "there is no column \\\"x\\\"; the columns are: a, b c",
            ),
            ("{}", "there is no column"),
            ("{a", "a { by itself"),
            ("a}", "a } by itself"),
        ] {
            let error = filled_with("the command", text, ["1", "2"]).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    /// A value that is a pattern, or has the mark between a name and its place, would name something else.
    #[test]
    fn a_value_with_a_mark_of_the_option_is_refused() {
        for value in ["x=y", "[x]", "x*", "?x"] {
            let error = filled_with("-o", "{a}.out", [value, ""]).unwrap_err();
            assert!(error.contains("line 7, is refused"), "{error}");
        }
        assert!(filled_with("-i", "f={a}", ["x=y", ""]).is_err());
        assert_eq!(filled_with("-i", "{a}", ["x*", ""]).unwrap(), "x*");
        assert_eq!(filled_with("--env", "V={a}", ["x=y", ""]).unwrap(), "V=x=y");
    }
}
