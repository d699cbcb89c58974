//! Errors of molecules, their files and their scans.

use crate::text::{quoted, quoted_path};
use std::path::{Path, PathBuf};

/// Why a molecule could not be made, read or moved.
///
/// Atoms are counted from 1 in the messages and in the fields, as in the files people edit.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum MoleculeError {
    /// The file could not be read at all.
    #[error("reading the molecule file {}: {cause}; check the path and its permissions", quoted_path(.path))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        cause: std::io::Error,
    },
    /// The file is larger than any molecule this crate can treat.
    #[error("reading the molecule file {}: it is larger than {limit} bytes; give an XYZ file", quoted_path(.path))]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit in bytes.
        limit: u64,
    },
    /// The file is not text.
    #[error("reading the molecule file {}: it is not UTF-8 text; give an XYZ file", quoted_path(.path))]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// A file was read but what it holds is wrong.
    #[error("reading the molecule file {}: {cause}", quoted_path(.path))]
    InFile {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: Box<MoleculeError>,
    },
    /// There is nothing in the text.
    #[error(
        "the XYZ text is empty; its first line must be the number of atoms, its second a comment, \
         then one line an atom"
    )]
    Empty,
    /// The first line is not a number of atoms.
    #[error("line 1 must be the number of atoms (1 or more), but is {}", quoted(.found))]
    BadCount {
        /// The text that stands there.
        found: String,
    },
    /// The number of atoms announced is not the number of lines that follow.
    #[error(
        "line 1 announces {announced} atoms, but {found} lines of atoms follow; correct line 1 or the \
         list (one geometry a file)"
    )]
    WrongCount {
        /// The number on line 1.
        announced: u64,
        /// The lines found.
        found: u64,
    },
    /// A line of an atom has too few columns.
    #[error("line {line} must be an element and three coordinates in angstrom, but is {}", quoted(.found))]
    ShortLine {
        /// The line, from 1.
        line: usize,
        /// The text that stands there.
        found: String,
    },
    /// No element has this symbol or number.
    #[error("line {line}: {} is no element from H to Xe; write its symbol (as Cl) or its atomic number", quoted(.found))]
    UnknownElement {
        /// The line, from 1.
        line: usize,
        /// The text that stands there.
        found: String,
    },
    /// A coordinate is not a number.
    #[error("line {line}: {} is not a finite number; coordinates are in angstrom, as 0.7572", quoted(.found))]
    BadCoordinate {
        /// The line, from 1.
        line: usize,
        /// The text that stands there.
        found: String,
    },
    /// There are no atoms.
    #[error("a molecule needs at least one atom")]
    NoAtoms,
    /// A position is not finite or absurdly far away.
    #[error(
        "atom {atom} has a coordinate that is not finite or farther than {limit} angstrom from the origin; correct it"
    )]
    FarAway {
        /// The atom, from 1.
        atom: usize,
        /// The limit in ångström.
        limit: f64,
    },
    /// Two atoms are at the same place or nearly.
    #[error(
        "atoms {first} and {second} are {distance:.4} angstrom apart, on top of each other (the least \
         is {least}); correct the geometry, which must be in angstrom"
    )]
    OnTop {
        /// The first atom, from 1.
        first: usize,
        /// The second atom, from 1.
        second: usize,
        /// Their distance in ångström.
        distance: f64,
        /// The smallest distance accepted, in ångström.
        least: f64,
    },
    /// The charge takes away more electrons than there are.
    #[error(
        "a charge of {charge} leaves no electrons: the nuclei have {nuclear} charges in all; give a smaller charge"
    )]
    NoElectrons {
        /// The charge asked for.
        charge: i32,
        /// The sum of the atomic numbers.
        nuclear: i64,
    },
    /// Restricted Hartree-Fock needs pairs of electrons.
    #[error(
        "the molecule has an odd number of electrons ({electrons}) with the charge {charge}; restricted \
         Hartree-Fock needs an even number: give another charge, as {} or {}",
        .charge.saturating_sub(1), .charge.saturating_add(1)
    )]
    OddElectrons {
        /// The number of electrons.
        electrons: i64,
        /// The charge.
        charge: i32,
    },
    /// An atom named in a scan or a move does not exist.
    #[error("there is no atom {atom}: the molecule has atoms 1 to {count}")]
    NoSuchAtom {
        /// The atom asked for, from 1.
        atom: usize,
        /// The number of atoms.
        count: usize,
    },
    /// The atoms of a bond or an angle must differ.
    #[error(
        "atom {atom} is named twice; {} needs different atoms",
        with_article(what)
    )]
    SameAtom {
        /// The atom, from 1.
        atom: usize,
        /// "bond" or "angle".
        what: &'static str,
    },
    /// A bond length or angle out of range.
    #[error(
        "{} of {value} {unit} makes no sense; give a number from {least} to {most}",
        with_article(what)
    )]
    BadValue {
        /// "bond length" or "angle".
        what: &'static str,
        /// The value asked for.
        value: f64,
        /// The unit.
        unit: &'static str,
        /// The least accepted.
        least: f64,
        /// The most accepted.
        most: f64,
    },
    /// The description of a scan cannot be read.
    #[error(
        "the scan {} cannot be read: {why}; write \"bond I J FROM TO N\" (angstrom), \
         \"angle I J K FROM TO N\" (degrees) or \"none\", with atoms counted from 1", quoted(.text)
    )]
    BadScan {
        /// The description.
        text: String,
        /// The reason.
        why: String,
    },
}

sde::debug_as_said!(MoleculeError);

impl MoleculeError {
    /// Says in which file the error is.
    pub(crate) fn in_file(self, path: &Path) -> Self {
        Self::InFile {
            path: path.to_owned(),
            cause: Box::new(self),
        }
    }
}

/// "a bond length", "an angle".
fn with_article(noun: &str) -> String {
    match noun.starts_with(['a', 'e', 'i', 'o', 'u']) {
        true => format!("an {noun}"),
        false => format!("a {noun}"),
    }
}
