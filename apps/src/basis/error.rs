//! Errors of basis sets.

use crate::text::{quoted, quoted_path};
use std::path::PathBuf;

/// Why a basis set could not be found, read or put on a molecule.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum BasisError {
    /// No set of this name is built in.
    #[error("there is no basis set {} here; the sets are {}; or give a file in NWChem's format", quoted(.name), .known.join(", "))]
    UnknownName {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: Vec<&'static str>,
    },
    /// The set has no functions for an element of the molecule.
    #[error("the basis set {} has no functions for {element}; it has them for {}; take another set", quoted(.name), .known.join(" "))]
    MissingElement {
        /// The set.
        name: String,
        /// The symbol of the element.
        element: &'static str,
        /// The symbols of the elements it has.
        known: Vec<&'static str>,
    },
    /// The file could not be read.
    #[error("reading the basis set file {}: {cause}; check the path and its permissions", quoted_path(.path))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        cause: std::io::Error,
    },
    /// The file is no text of a sensible length.
    #[error("reading the basis set file {}: it is not UTF-8 text of at most {limit} bytes; give a file in NWChem's format", quoted_path(.path))]
    NotText {
        /// The file.
        path: PathBuf,
        /// The largest file read, in bytes.
        limit: u64,
    },
    /// A line of the file makes no sense.
    #[error("reading the basis set {}, line {line}: {why}; the format is NWChem's, as the Basis Set Exchange writes it", quoted(.name))]
    BadLine {
        /// The set.
        name: String,
        /// The line, from 1.
        line: usize,
        /// The reason.
        why: String,
    },
    /// The file holds no functions.
    #[error("reading the basis set {}: it holds no functions; the format is NWChem's, as the Basis Set Exchange writes it", quoted(.name))]
    Empty {
        /// The set.
        name: String,
    },
}

sde::debug_as_said!(BasisError);
