//! The published sets that are built in.
//!
//! The data are files of the Basis Set Exchange (`data/basis/`, where a README tells how
//! they were made and what to cite), compiled in, so that a program needs no files.

use super::{BasisError, BasisSet, Convention, nwchem};

/// A built-in set: its name, its convention, its data.
struct Published {
    name: &'static str,
    convention: Convention,
    data: &'static str,
}

macro_rules! sets {
    ($($name:literal $convention:ident $file:literal,)*) => {
        &[$(Published {
            name: $name,
            convention: Convention::$convention,
            data: include_str!(concat!("../../data/basis/", $file)),
        },)*]
    };
}

// The conventions are those the sets were published with and Gaussian uses: six d functions
// for 3-21G and the 6-31G family (but seven f, on the transition metals), five elsewhere.
// The Basis Set Exchange agrees, except that it marks the d functions of sodium to argon in
// the polarized 6-311G sets as Cartesian and those of the other elements as spherical.
static SETS: &[Published] = sets! {
    "STO-3G" Spherical "sto-3g.nw",
    "STO-6G" Spherical "sto-6g.nw",
    "3-21G" CartesianD "3-21g.nw",
    "6-31G" CartesianD "6-31g.nw",
    "6-31G*" CartesianD "6-31gs.nw",
    "6-31G**" CartesianD "6-31gss.nw",
    "6-31+G*" CartesianD "6-31+gs.nw",
    "6-31++G**" CartesianD "6-31++gss.nw",
    "6-311G" Spherical "6-311g.nw",
    "6-311G**" Spherical "6-311gss.nw",
    "6-311++G**" Spherical "6-311++gss.nw",
    "cc-pVDZ" Spherical "cc-pvdz.nw",
    "cc-pVTZ" Spherical "cc-pvtz.nw",
    "aug-cc-pVDZ" Spherical "aug-cc-pvdz.nw",
    "def2-SVP" Spherical "def2-svp.nw",
    "def2-TZVP" Spherical "def2-tzvp.nw",
};

/// The names of the built-in sets.
pub(super) fn names() -> Vec<&'static str> {
    SETS.iter().map(|set| set.name).collect()
}

/// The built-in set of this name; letters of any case, and `(d)`, `(d,p)` for the stars.
pub(super) fn find(name: &str) -> Result<BasisSet, BasisError> {
    let wanted = canonical(name);
    let set = SETS
        .iter()
        .find(|set| canonical(set.name) == wanted)
        .ok_or_else(|| BasisError::UnknownName {
            name: name.to_owned(),
            known: names(),
        })?;
    let parsed = nwchem::parse(set.name, set.data)?;
    Ok(BasisSet {
        convention: set.convention,
        ..parsed
    })
}

fn canonical(name: &str) -> String {
    name.trim()
        .to_ascii_lowercase()
        .replace("(d,p)", "**")
        .replace("(d)", "*")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_is_read_and_has_hydrogen_to_argon() {
        for name in names() {
            let set = find(name).unwrap();
            assert_eq!(set.name(), name);
            let known = set.elements();
            let upto = if name == "6-311++G**" { 1 } else { 18 };
            assert!(
                known.iter().filter(|e| e.atomic_number() <= 18).count() >= upto,
                "{name}"
            );
        }
    }

    #[test]
    fn names_in_other_spellings() {
        assert_eq!(find("sto-3g").unwrap().name(), "STO-3G");
        assert_eq!(find("6-31G(d,p)").unwrap().name(), "6-31G**");
        assert_eq!(find("6-31g(D)").unwrap().name(), "6-31G*");
        let message = find("6-31G***").unwrap_err().to_string();
        assert!(message.contains("STO-3G, STO-6G"), "{message}");
    }
}
