//! Reading XYZ files.
//!
//! The format: the number of atoms, a comment line, then one line an atom with its element
//! (symbol in any case, or atomic number) and three coordinates in ångström. Common
//! variations are accepted: a byte order mark, CR LF, blank lines at the end, more columns
//! (which are ignored), Fortran's `D` exponents. Text of doubtful meaning is refused:
//! a count that is not the number of lines, several geometries in one file.

use super::{Atom, Element, Molecule, MoleculeError};
use std::io::Read;
use std::path::Path;

/// The largest XYZ file read, in bytes; nothing that long can be computed here.
const LARGEST: u64 = 16 << 20;

impl Molecule {
    /// Reads the file at `path`, which holds one molecule in XYZ format.
    ///
    /// # Errors
    /// The file cannot be read or is not a sensible molecule; every message names the file,
    /// and the line where there is one.
    pub fn read_xyz(path: impl AsRef<Path>, charge: i32) -> Result<Self, MoleculeError> {
        let path = path.as_ref();
        let text = read_text(path)?;
        Self::from_xyz(&text, charge).map_err(|error| error.in_file(path))
    }

    /// The molecule in `text`, which is in XYZ format.
    ///
    /// # Errors
    /// As [`Molecule::read_xyz`], without the file.
    ///
    /// ```
    /// use sde_apps::molecule::Molecule;
    /// let hydrogen = Molecule::from_xyz("2\nhydrogen\nH 0 0 0\nH 0 0 0.74\n", 0)?;
    /// assert_eq!(hydrogen.electron_pairs()?, 1);
    /// # Ok::<(), sde_apps::molecule::MoleculeError>(())
    /// ```
    pub fn from_xyz(text: &str, charge: i32) -> Result<Self, MoleculeError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.trim().is_empty() {
            return Err(MoleculeError::Empty);
        }
        let lines: Vec<&str> = text.trim_end().lines().collect();
        let announced = count(lines[0])?;
        let body = lines.get(2..).unwrap_or(&[]);
        if announced != body.len() as u64 {
            return Err(MoleculeError::WrongCount {
                announced,
                found: body.len() as u64,
            });
        }
        let atoms = body
            .iter()
            .enumerate()
            .map(|(place, line)| atom(line, place + 3))
            .collect::<Result<_, _>>()?;
        Self::new(atoms, charge)
    }
}

fn read_text(path: &Path) -> Result<String, MoleculeError> {
    let unreadable = |cause| MoleculeError::Unreadable {
        path: path.to_owned(),
        cause,
    };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    // One byte more than the limit, so that an endless file is noticed and not followed.
    file.take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > LARGEST {
        return Err(MoleculeError::TooLarge {
            path: path.to_owned(),
            limit: LARGEST,
        });
    }
    String::from_utf8(bytes).map_err(|_| MoleculeError::NotText {
        path: path.to_owned(),
    })
}

fn count(line: &str) -> Result<u64, MoleculeError> {
    match line.trim().parse::<u64>() {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(MoleculeError::BadCount {
            found: line.trim().to_owned(),
        }),
    }
}

fn atom(text: &str, line: usize) -> Result<Atom, MoleculeError> {
    let columns: Vec<&str> = text.split_whitespace().take(4).collect();
    let [symbol, x, y, z] = columns[..] else {
        return Err(MoleculeError::ShortLine {
            line,
            found: text.to_owned(),
        });
    };
    let element = Element::from_symbol(symbol)
        .or_else(|| symbol.parse().ok().and_then(Element::from_atomic_number))
        .ok_or_else(|| MoleculeError::UnknownElement {
            line,
            found: symbol.to_owned(),
        })?;
    let position = [
        coordinate(x, line)?,
        coordinate(y, line)?,
        coordinate(z, line)?,
    ];
    Ok(Atom { element, position })
}

fn coordinate(text: &str, line: usize) -> Result<f64, MoleculeError> {
    crate::text::number(text).ok_or_else(|| MoleculeError::BadCoordinate {
        line,
        found: text.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(text: &str) -> MoleculeError {
        Molecule::from_xyz(text, 0).unwrap_err()
    }

    #[test]
    fn variations_that_mean_the_same() {
        let plain = Molecule::from_xyz("2\n\nO 0 0 0\nC 0 0 1.128\n", 0).unwrap();
        for text in [
            "\u{feff}2\r\ncomment\r\no 0 0 0\r\nc 0 0 1.128\r\n\r\n",
            " 2 \n\n 8 0 0 0 0.1 0.2\n6 0 0 1.128D+00 extra",
            "2\n\nO\t0\t0\t0\nC 0.0 0e0 1128e-3",
        ] {
            assert_eq!(Molecule::from_xyz(text, 0).unwrap(), plain, "{text:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_told() {
        use MoleculeError as E;
        assert!(matches!(fails(""), E::Empty));
        assert!(matches!(fails(" \n\n"), E::Empty));
        for first in ["x", "0", "-1", "2.5", "99999999999999999999999"] {
            let text = format!("{first}\n\nO 0 0 0\n");
            assert!(matches!(fails(&text), E::BadCount { .. }), "{first}");
        }
        assert!(matches!(
            fails("2\n\nO 0 0 0\n"),
            E::WrongCount {
                announced: 2,
                found: 1
            }
        ));
        assert!(matches!(
            fails("1\n\nO 0 0 0\nH 0 0 1\n"),
            E::WrongCount {
                announced: 1,
                found: 2
            }
        ));
        assert!(matches!(
            fails("4000000000\n"),
            E::WrongCount { found: 0, .. }
        ));
        assert!(matches!(
            fails("1\n\nO 0 0\n"),
            E::ShortLine { line: 3, .. }
        ));
        for element in ["Xx", "119", "0", "-1", "\u{1b}[2J"] {
            let text = format!("1\n\n{element} 0 0 0\n");
            assert!(matches!(fails(&text), E::UnknownElement { line: 3, .. }));
        }
        for number in ["nan", "inf", "-infinity", "1.0.0", "1e999", "one", "0x1"] {
            let text = format!("1\n\nO 0 {number} 0\n");
            assert!(matches!(fails(&text), E::BadCoordinate { .. }), "{number}");
        }
        assert!(matches!(
            fails("1\n\nO 0 0 1e300\n"),
            E::FarAway { atom: 1, .. }
        ));
        assert!(matches!(
            fails("3\n\nO 0 0 0\nH 0 0 1\nH 0 0 1.01\n"),
            E::OnTop {
                first: 2,
                second: 3,
                ..
            }
        ));
    }

    #[test]
    fn messages_carry_no_control_characters() {
        let text = "1\n\n\u{1b}]0;evil\u{7} 0 0 0\n";
        let message = fails(text).to_string();
        assert!(!message.chars().any(char::is_control), "{message}");
    }

    #[test]
    fn files_that_cannot_be_read() {
        let folder = std::env::temp_dir();
        assert!(matches!(
            Molecule::read_xyz(folder.join("no such file.xyz"), 0),
            Err(MoleculeError::Unreadable { .. })
        ));
        assert!(matches!(
            Molecule::read_xyz(&folder, 0),
            Err(MoleculeError::Unreadable { .. })
        ));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [0xff, 0xfe, 0]).unwrap();
        assert!(matches!(
            Molecule::read_xyz(file.path(), 0),
            Err(MoleculeError::NotText { .. })
        ));
    }
}
