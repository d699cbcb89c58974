//! A scan: one bond length or angle over a range of values.

use super::{Molecule, MoleculeError};
use sde::Fingerprint;
use serde::{Deserialize, Serialize};

/// The most points of a scan.
const MOST_POINTS: usize = 100_000;

/// The coordinate of a scan; atoms are counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Fingerprint)]
pub enum Coordinate {
    /// The distance of two atoms, in ångström; the second moves.
    Bond(usize, usize),
    /// The angle at the middle atom, in degrees; the third turns.
    Angle(usize, usize, usize),
}

/// A coordinate and the values it takes; or nothing, for a single point.
///
/// ```
/// use sde_apps::molecule::Scan;
/// let scan: Scan = "bond 1 2 0.9 1.1 3".parse()?;
/// assert_eq!(scan.values(), [0.9, 1.0, 1.1]);
/// # Ok::<(), sde_apps::molecule::MoleculeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Fingerprint)]
pub enum Scan {
    /// The geometry as it is.
    None,
    /// `points` values from `from` to `to`, both included, evenly spaced.
    Range {
        /// The coordinate that changes.
        coordinate: Coordinate,
        /// The first value.
        from: f64,
        /// The last value.
        to: f64,
        /// How many values.
        points: usize,
    },
}

impl Scan {
    /// The values, in order; empty for [`Scan::None`].
    #[must_use]
    pub fn values(&self) -> Vec<f64> {
        match *self {
            Self::None => Vec::new(),
            Self::Range {
                from, to, points, ..
            } => (0..points).map(|i| value(from, to, points, i)).collect(),
        }
    }

    /// Checks that every point of the scan makes a sensible molecule, before the first is computed.
    ///
    /// # Errors
    /// Those of [`Scan::at`], for the first value that fails.
    pub fn check(&self, molecule: &Molecule) -> Result<(), MoleculeError> {
        self.values()
            .into_iter()
            .try_for_each(|value| self.at(molecule, value).map(drop))
    }

    /// The molecule at one value of the scan; the molecule itself for [`Scan::None`].
    ///
    /// # Errors
    /// Those of [`Molecule::with_bond_length`] and [`Molecule::with_angle`].
    pub fn at(&self, molecule: &Molecule, value: f64) -> Result<Molecule, MoleculeError> {
        match *self {
            Self::None => Ok(molecule.clone()),
            Self::Range { coordinate, .. } => match coordinate {
                Coordinate::Bond(i, j) => molecule.with_bond_length(i, j, value),
                Coordinate::Angle(i, j, k) => molecule.with_angle(i, j, k, value),
            },
        }
    }
}

/// The ends are exact, whatever the rounding between.
fn value(from: f64, to: f64, points: usize, i: usize) -> f64 {
    if i == 0 {
        from
    } else if i + 1 == points {
        to
    } else {
        from + (to - from) * (i as f64) / ((points - 1) as f64)
    }
}

impl std::str::FromStr for Scan {
    type Err = MoleculeError;

    /// Reads `bond I J FROM TO N`, `angle I J K FROM TO N` or `none`.
    fn from_str(text: &str) -> Result<Self, MoleculeError> {
        parse(text).map_err(|why| MoleculeError::BadScan {
            text: text.to_owned(),
            why,
        })
    }
}

fn parse(text: &str) -> Result<Scan, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let kind = words.first().map(|word| word.to_ascii_lowercase());
    match (kind.as_deref(), words.get(1..).unwrap_or(&[])) {
        (Some("none"), []) => Ok(Scan::None),
        (Some("bond"), [i, j, range @ ..]) => range_of(Coordinate::Bond(atom(i)?, atom(j)?), range),
        (Some("angle"), [i, j, k, range @ ..]) => {
            range_of(Coordinate::Angle(atom(i)?, atom(j)?, atom(k)?), range)
        }
        (Some("none" | "bond" | "angle"), _) => Err("it has the wrong number of words".into()),
        _ => Err("it starts with none of the words bond, angle, none".into()),
    }
}

fn range_of(coordinate: Coordinate, words: &[&str]) -> Result<Scan, String> {
    let [from, to, points] = words else {
        return Err("it has the wrong number of words".into());
    };
    let (from, to) = (number(from)?, number(to)?);
    let points: usize = points
        .parse()
        .ok()
        .filter(|n| (1..=MOST_POINTS).contains(n))
        .ok_or(format!(
            "the number of points must be a whole number from 1 to {MOST_POINTS}"
        ))?;
    if points == 1 && from != to {
        return Err(
            "one point cannot be at both FROM and TO; make them equal or take more points".into(),
        );
    }
    if points > 1 && from == to {
        return Err("FROM and TO are equal; take 1 point or make them differ".into());
    }
    Ok(Scan::Range {
        coordinate,
        from,
        to,
        points,
    })
}

fn atom(word: &str) -> Result<usize, String> {
    word.parse()
        .ok()
        .filter(|&n| n > 0)
        .ok_or_else(|| format!("{} is not the number of an atom", crate::text::quoted(word)))
}

fn number(word: &str) -> Result<f64, String> {
    crate::text::number(word)
        .ok_or_else(|| format!("{} is not a finite number", crate::text::quoted(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scans_that_make_sense() {
        assert_eq!("none".parse::<Scan>().unwrap().values(), [0.0; 0]);
        let scan: Scan = " Angle 2 1 3  90 180 4".parse().unwrap();
        assert_eq!(scan.values(), [90.0, 120.0, 150.0, 180.0]);
        let scan: Scan = "bond 1 2 1.3 0.7 7".parse().unwrap();
        assert_eq!(scan.values()[6].to_bits(), 0.7f64.to_bits());
        assert_eq!("bond 1 2 1 1 1".parse::<Scan>().unwrap().values(), [1.0]);
    }

    #[test]
    fn scans_that_make_none() {
        for text in [
            "",
            "bond",
            "none 1",
            "bond 1 2 0.9 1.1",
            "bond 1 2 0.9 1.1 3 4",
            "bond 0 2 0.9 1.1 3",
            "bond 1 -2 0.9 1.1 3",
            "bond 1 2 nan 1.1 3",
            "bond 1 2 0.9 1.1 0",
            "bond 1 2 0.9 1.1 2.5",
            "bond 1 2 0.9 1.1 99999999999",
            "bond 1 2 0.9 1.1 1",
            "bond 1 2 1 1 3",
            "angle 1 2 90 100 3",
            "dihedral 1 2 3 4 0 180 10",
            "\u{1b}[2J",
        ] {
            let error = text.parse::<Scan>().unwrap_err().to_string();
            assert!(error.contains("bond I J FROM TO N"), "{error}");
            assert!(!error.chars().any(char::is_control));
        }
    }

    #[test]
    fn a_scan_is_checked_as_a_whole() {
        let water = Molecule::from_xyz(
            "3\n\nO 0 0 0.1173\nH 0 0.7572 -0.4692\nH 0 -0.7572 -0.4692\n",
            0,
        )
        .unwrap();
        let good: Scan = "bond 1 2 0.7 1.3 7".parse().unwrap();
        good.check(&water).unwrap();
        for text in [
            "bond 1 2 0.0 1.3 7",
            "bond 1 4 0.7 1.3 7",
            "angle 2 1 3 0 90 2",
        ] {
            assert!(text.parse::<Scan>().unwrap().check(&water).is_err());
        }
    }
}
