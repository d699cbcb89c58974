//! Reading basis sets in NWChem's format.
//!
//! ```text
//! BASIS "ao basis" SPHERICAL PRINT
//! C    S
//!       71.6168370   0.15432897
//!       13.0450960   0.53532814
//! C    SP
//!        2.9412494  -0.09996723   0.15591627
//! END
//! ```
//!
//! A header names an element and the kind of shell; each row below is an exponent and one
//! coefficient a contraction. `SP` has two columns, of s and of p. `#` starts a comment. The
//! word SPHERICAL or CARTESIAN of the first line names the convention of the set; without
//! either, it is Cartesian, as in NWChem. Sets with effective core potentials
//! are refused, since without their potential the energies would be nonsense.

use super::{BasisError, BasisSet, Convention, MAX_ANGULAR, RawShell};
use crate::molecule::Element;
use crate::text::{number, quoted};
use std::collections::BTreeMap;

/// The letters of the angular momenta, from 0.
const LETTERS: &str = "SPDFGHI";

/// The most primitives and contractions in one shell; far beyond any published set.
const MOST_ROWS: usize = 200;

/// Reads a whole file.
pub(super) fn parse(name: &str, text: &str) -> Result<BasisSet, BasisError> {
    let mut reader = Reader::default();
    for (place, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        if !line.is_empty() {
            reader.line(line).map_err(|why| BasisError::BadLine {
                name: name.to_owned(),
                line: place + 1,
                why,
            })?;
        }
    }
    reader.close_shell().map_err(|why| BasisError::BadLine {
        name: name.to_owned(),
        line: text.lines().count(),
        why,
    })?;
    if reader.elements.is_empty() {
        return Err(BasisError::Empty {
            name: name.to_owned(),
        });
    }
    Ok(BasisSet {
        name: name.to_owned(),
        convention: reader.convention,
        elements: reader.elements,
    })
}

struct Reader {
    convention: Convention,
    elements: BTreeMap<Element, Vec<RawShell>>,
    open: Option<OpenShell>,
}

/// A shell whose rows are being read.
struct OpenShell {
    element: Element,
    kind: Kind,
    rows: Vec<Vec<f64>>,
}

#[derive(Clone, Copy)]
enum Kind {
    Sp,
    Pure(u8),
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            convention: Convention::Cartesian,
            elements: BTreeMap::new(),
            open: None,
        }
    }
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[0].to_ascii_uppercase().as_str() {
            "BASIS" => self.opening(line),
            "END" => self.close_shell(),
            "ECP" => Err("effective core potentials are not supported".into()),
            first if first.starts_with(|c: char| c.is_ascii_alphabetic()) => self.header(&words),
            _ => self.row(&words),
        }
    }

    fn opening(&mut self, line: &str) -> Result<(), String> {
        self.close_shell()?;
        // The name between the quotes may hold any word.
        let options = line.rsplit('"').next().unwrap_or(line).to_ascii_uppercase();
        self.convention = if options.split_whitespace().any(|word| word == "SPHERICAL") {
            Convention::Spherical
        } else {
            Convention::Cartesian
        };
        Ok(())
    }

    fn header(&mut self, words: &[&str]) -> Result<(), String> {
        self.close_shell()?;
        let [symbol, kind] = words else {
            return Err("a shell starts with an element and a letter, as \"C S\"".into());
        };
        let element = Element::from_symbol(symbol)
            .ok_or_else(|| format!("{} is no element from H to Xe", quoted(symbol)))?;
        self.open = Some(OpenShell {
            element,
            kind: kind_of(kind)?,
            rows: Vec::new(),
        });
        Ok(())
    }

    fn row(&mut self, words: &[&str]) -> Result<(), String> {
        let Some(open) = &mut self.open else {
            return Err("numbers stand before the first shell".into());
        };
        let row = words
            .iter()
            .map(|word| {
                number(word).ok_or_else(|| format!("{} is not a finite number", quoted(word)))
            })
            .collect::<Result<Vec<f64>, String>>()?;
        if row[0] <= 0.0 {
            return Err(format!("the exponent {} is not positive", row[0]));
        }
        if row.len() < 2 {
            return Err("the exponent has no coefficient beside it".into());
        }
        if open
            .rows
            .first()
            .is_some_and(|first| first.len() != row.len())
        {
            return Err("the rows of a shell must have equally many columns".into());
        }
        if matches!(open.kind, Kind::Sp) && row.len() != 3 {
            return Err("a row of an SP shell is an exponent and two coefficients".into());
        }
        if open.rows.len() == MOST_ROWS || row.len() > MOST_ROWS {
            return Err(format!(
                "the shell has more than {MOST_ROWS} rows or columns"
            ));
        }
        open.rows.push(row);
        Ok(())
    }

    fn close_shell(&mut self) -> Result<(), String> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        if open.rows.is_empty() {
            return Err("the shell above has no rows".into());
        }
        let columns = open.rows[0].len() - 1;
        let columns = (1..=columns)
            .map(|c| open.rows.iter().map(|row| row[c]).collect::<Vec<f64>>())
            .collect::<Vec<_>>();
        if columns
            .iter()
            .any(|column| column.iter().all(|&c| c == 0.0))
        {
            return Err("a contraction of the shell above has only zeros".into());
        }
        let angular = match open.kind {
            Kind::Sp => vec![0, 1],
            Kind::Pure(l) => vec![l; columns.len()],
        };
        self.elements
            .entry(open.element)
            .or_default()
            .push(RawShell {
                exponents: open.rows.iter().map(|row| row[0]).collect(),
                angular,
                columns,
            });
        Ok(())
    }
}

fn kind_of(word: &str) -> Result<Kind, String> {
    let word = word.to_ascii_uppercase();
    if word == "SP" || word == "L" {
        return Ok(Kind::Sp);
    }
    let place = LETTERS.find(&word).filter(|_| word.len() == 1);
    place
        .and_then(|place| u8::try_from(place).ok())
        .filter(|&l| l <= MAX_ANGULAR)
        .map(Kind::Pure)
        .ok_or_else(|| format!("{} is no shell of {LETTERS} or SP", quoted(&word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(text: &str) -> String {
        parse("test", text).unwrap_err().to_string()
    }

    #[test]
    fn a_small_file() {
        let text = "# a comment\nBASIS \"ao\" SPHERICAL\nC S # inner\n 70.0 0.15 0.1\n 13.0D+00 0.53 0\nc sp\n 2.9 -0.1 0.15\nEND\n";
        let set = parse("test", text).unwrap();
        assert_eq!(set.convention, Convention::Spherical);
        let carbon = &set.elements[&Element::from_symbol("C").unwrap()];
        assert_eq!(carbon.len(), 2);
        assert_eq!(carbon[0].exponents, [70.0, 13.0]);
        assert_eq!(carbon[0].columns, [[0.15, 0.53], [0.1, 0.0]]);
        assert_eq!(carbon[0].angular, [0, 0]);
        assert_eq!(carbon[1].angular, [0, 1]);
    }

    #[test]
    fn bad_files() {
        for (text, part) in [
            ("", "holds no functions"),
            ("C S\n", "has no rows"),
            ("1.0 2.0\n", "before the first shell"),
            ("C S\n 1.0\n", "no coefficient"),
            ("C S\n -1.0 1.0\n", "not positive"),
            ("C S\n nan 1.0\n", "before the first shell"),
            ("C S\n 1.0 nan\n", "not a finite number"),
            ("C S\n 1.0 1e999\n", "not a finite number"),
            ("C S\n 1.0 1.0\n 2.0 1.0 1.0\n", "equally many columns"),
            ("C S\n 1.0 0.0\n", "only zeros"),
            ("C SP\n 1.0 1.0\n", "two coefficients"),
            ("C Q\n 1.0 1.0\n", "no shell of"),
            ("Xx S\n 1.0 1.0\n", "no element"),
            ("C S\n 1.0 1.0\nEND\nECP\n", "core potentials"),
            ("C S S\n", "an element and a letter"),
        ] {
            let message = why(text);
            let expected = part.contains("before the first") && text.contains("nan");
            assert!(message.contains(part) || expected, "{text:?}: {message}");
        }
    }
}
