//! Basis sets, and the Gaussian functions they put on a molecule.
//!
//! A [`BasisSet`] is a table by element, built in by name or read from a file. Put on a
//! molecule it gives a [`MolecularBasis`]: shells of contracted Gaussians at the nuclei.
//! Their coefficients carry all normalization, so that integrals need none.
//!
//! A [`Shell`] here is everything on one atom that shares one list of exponents: the s and p
//! functions of a Pople set, or the several contractions of a correlation-consistent one.
//! Treating them at once saves most of the work of the integrals.
//!
//! The functions are ordered by atom, then as in the set's table; inside a [`Part`] as
//! x, y, z for p, and from d on either by m from -l to l (spherical) or xx, xy, xz, yy, yz, zz
//! and so on (Cartesian). Every function has the norm 1, the Cartesian xx and xy alike.

mod error;
mod harmonics;
mod library;
mod nwchem;

pub use error::BasisError;
pub use harmonics::{cartesian_powers, components};

use crate::molecule::{Element, Molecule};
use crate::text::quoted;
use sde::Fingerprint;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// The highest angular momentum supported: 6, i functions.
pub const MAX_ANGULAR: u8 = 6;

/// The largest basis set file read, in bytes.
const LARGEST: u64 = 64 << 20;

/// Which real functions stand for an angular momentum of 2 and more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, Fingerprint)]
#[non_exhaustive]
pub enum Harmonics {
    /// As the set was published.
    #[default]
    Published,
    /// 2l+1 spherical harmonics: five d functions.
    Spherical,
    /// All (l+1)(l+2)/2 Cartesian functions: six d functions.
    Cartesian,
}

/// The convention that a set was published with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Fingerprint)]
enum Convention {
    Spherical,
    Cartesian,
    /// Cartesian d and spherical f functions.
    CartesianD,
}

impl Convention {
    fn is_spherical(self, l: u8, choice: Harmonics) -> bool {
        match choice {
            Harmonics::Spherical => true,
            Harmonics::Cartesian => false,
            Harmonics::Published => match self {
                Self::Spherical => true,
                Self::Cartesian => false,
                Self::CartesianD => l > 2,
            },
        }
    }
}

/// A table of contracted Gaussians by element.
///
/// ```
/// use sde_apps::{basis::{BasisSet, Harmonics}, molecule::Molecule};
/// let water = Molecule::from_xyz("3\n\nO 0 0 0.1173\nH 0 0.7572 -0.4692\nH 0 -0.7572 -0.4692", 0)?;
/// let basis = BasisSet::named("6-31g*")?.on(&water, Harmonics::Published)?;
/// assert_eq!(basis.functions(), 19);
/// let basis = BasisSet::named("6-31g*")?.on(&water, Harmonics::Spherical)?;
/// assert_eq!(basis.functions(), 18);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Fingerprint)]
pub struct BasisSet {
    name: String,
    convention: Convention,
    elements: BTreeMap<Element, Vec<RawShell>>,
}

/// A shell as the table has it: coefficients of normalized primitives.
#[derive(Clone, Debug, Fingerprint)]
struct RawShell {
    exponents: Vec<f64>,
    /// The angular momentum of each column.
    angular: Vec<u8>,
    /// One contraction a column.
    columns: Vec<Vec<f64>>,
}

impl BasisSet {
    /// The built-in set of this name, in letters of any case.
    ///
    /// # Errors
    /// [`BasisError::UnknownName`], which lists the sets.
    pub fn named(name: &str) -> Result<Self, BasisError> {
        library::find(name)
    }

    /// The names of the built-in sets.
    #[must_use]
    pub fn names() -> Vec<&'static str> {
        library::names()
    }

    /// Reads a file in NWChem's format; the set is called by the file's name.
    ///
    /// # Errors
    /// The file cannot be read or is not in that format.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, BasisError> {
        let path = path.as_ref();
        let unreadable = |cause| BasisError::Unreadable {
            path: path.to_owned(),
            cause,
        };
        let file = std::fs::File::open(path).map_err(unreadable)?;
        let mut bytes = Vec::new();
        file.take(LARGEST + 1)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        let text = String::from_utf8(bytes)
            .ok()
            .filter(|text| text.len() as u64 <= LARGEST)
            .ok_or_else(|| BasisError::NotText {
                path: path.to_owned(),
                limit: LARGEST,
            })?;
        let name = path.file_stem().unwrap_or(path.as_os_str());
        Self::from_nwchem(&name.to_string_lossy(), &text)
    }

    /// Reads a text in NWChem's format and calls the set `name`.
    ///
    /// # Errors
    /// The text is not in that format.
    pub fn from_nwchem(name: &str, text: &str) -> Result<Self, BasisError> {
        nwchem::parse(name, text)
    }

    /// The name of the set.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The elements it has functions for, by atomic number.
    #[must_use]
    pub fn elements(&self) -> Vec<Element> {
        self.elements.keys().copied().collect()
    }

    /// Puts the functions of this set on the atoms of `molecule`.
    ///
    /// # Errors
    /// [`BasisError::MissingElement`], which lists the elements the set has.
    pub fn on(&self, molecule: &Molecule, choice: Harmonics) -> Result<MolecularBasis, BasisError> {
        let mut basis = MolecularBasis::default();
        let places = molecule.positions_bohr();
        for (atom, (at, center)) in molecule.atoms().iter().zip(places).enumerate() {
            let shells =
                self.elements
                    .get(&at.element)
                    .ok_or_else(|| BasisError::MissingElement {
                        name: self.name.clone(),
                        element: at.element.symbol(),
                        known: self.elements.keys().map(|e| e.symbol()).collect(),
                    })?;
            for raw in shells {
                basis.push(raw, atom, center, |l| {
                    self.convention.is_spherical(l, choice)
                });
            }
        }
        Ok(basis)
    }
}

impl std::fmt::Display for BasisSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&quoted(&self.name))
    }
}

/// All functions of one atom that share one list of exponents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Fingerprint)]
#[non_exhaustive]
pub struct Shell {
    /// The atom, from 0.
    pub atom: usize,
    /// Its place in bohr.
    pub center: [f64; 3],
    /// The exponents in 1/bohr².
    pub exponents: Vec<f64>,
    /// The contractions.
    pub parts: Vec<Part>,
    /// The place of the first function among all of the molecule.
    pub first: usize,
}

/// One contraction of a shell: the functions of one angular momentum.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Fingerprint)]
#[non_exhaustive]
pub struct Part {
    /// The angular momentum.
    pub l: u8,
    /// Whether the functions are spherical harmonics (of no meaning below l = 2).
    pub spherical: bool,
    /// One coefficient an exponent, of x^l exp(-αr²), all normalization included.
    pub coefficients: Vec<f64>,
}

impl Part {
    /// The number of functions.
    #[must_use]
    pub fn functions(&self) -> usize {
        let l = usize::from(self.l);
        if self.spherical {
            2 * l + 1
        } else {
            (l + 1) * (l + 2) / 2
        }
    }
}

impl Shell {
    /// The number of functions of all contractions.
    #[must_use]
    pub fn functions(&self) -> usize {
        self.parts.iter().map(Part::functions).sum()
    }

    /// The highest angular momentum in it.
    #[must_use]
    pub fn max_angular(&self) -> usize {
        self.parts
            .iter()
            .map(|part| usize::from(part.l))
            .max()
            .unwrap_or(0)
    }
}

/// The Gaussian functions on a molecule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Fingerprint)]
pub struct MolecularBasis {
    shells: Vec<Shell>,
    functions: usize,
}

impl MolecularBasis {
    /// The shells, in the order of their functions.
    #[must_use]
    pub fn shells(&self) -> &[Shell] {
        &self.shells
    }

    /// The number of functions.
    #[must_use]
    pub fn functions(&self) -> usize {
        self.functions
    }

    /// A basis of these shells; sets where each begins.
    pub(crate) fn from_shells(shells: impl IntoIterator<Item = Shell>) -> Self {
        let mut basis = Self::default();
        for mut shell in shells {
            shell.first = basis.functions;
            basis.functions += shell.functions();
            basis.shells.push(shell);
        }
        basis
    }

    fn push(
        &mut self,
        raw: &RawShell,
        atom: usize,
        center: [f64; 3],
        is_spherical: impl Fn(u8) -> bool,
    ) {
        let parts = raw
            .angular
            .iter()
            .zip(&raw.columns)
            .map(|(&l, column)| Part {
                l,
                // s and p are the same either way; x, y, z is the order people expect of p.
                spherical: l > 1 && is_spherical(l),
                coefficients: harmonics::normalized(l, &raw.exponents, column),
            });
        let shell = Shell {
            atom,
            center,
            exponents: raw.exponents.clone(),
            parts: parts.collect(),
            first: self.functions,
        };
        self.functions += shell.functions();
        self.shells.push(shell);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(name: &str, xyz: &str, choice: Harmonics) -> usize {
        let molecule = Molecule::from_xyz(xyz, 0).unwrap();
        let set = BasisSet::named(name).unwrap();
        set.on(&molecule, choice).unwrap().functions()
    }

    #[test]
    fn counts_of_functions() {
        let carbon = "1\n\nC 0 0 0\n";
        let iron = "1\n\nFe 0 0 0\n";
        for (name, published, spherical, cartesian) in [
            ("STO-3G", 5, 5, 5),
            ("6-31G*", 15, 14, 15),
            ("6-311G**", 18, 18, 19),
            ("cc-pVDZ", 14, 14, 15),
            ("cc-pVTZ", 30, 30, 35),
        ] {
            assert_eq!(
                count(name, carbon, Harmonics::Published),
                published,
                "{name}"
            );
            assert_eq!(
                count(name, carbon, Harmonics::Spherical),
                spherical,
                "{name}"
            );
            assert_eq!(
                count(name, carbon, Harmonics::Cartesian),
                cartesian,
                "{name}"
            );
        }
        // 5s, 4p (SP shells), two d and an f: six d functions but seven f.
        assert_eq!(count("6-31G*", iron, Harmonics::Published), 5 + 12 + 12 + 7);
    }

    #[test]
    fn a_missing_element_is_told() {
        let molecule = Molecule::from_xyz("2\n\nRb 0 0 0\nH 0 0 2.4\n", 0).unwrap();
        let set = BasisSet::named("cc-pVDZ").unwrap();
        let message = set
            .on(&molecule, Harmonics::Published)
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("no functions for Rb") && message.contains("H He Li"),
            "{message}"
        );
    }
}
