//! The command line: read and checked before anything is opened or computed.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::prelude::*;
use sde_apps::basis::{BasisSet, Harmonics};
use sde_apps::molecule::{Molecule, Scan};
use sde_apps::scf::ScfError;

use super::Failure;

pub const HELP: &str = "\
Restricted Hartree-Fock energies of a molecule along a bond length or angle.

usage: water_scan [options]

  --molecule FILE.xyz   the molecule (default: water)
  --basis NAME          a published basis set (default: STO-3G), or a file in NWChem's
                        format
  --scan SPEC           what changes (default: none; for the built-in water molecule
                        \"bond 1 2 0.80 1.20 9\", the first O-H):
                          \"bond I J FROM TO N\"      a distance in angstrom; atoms from 1
                          \"angle I J K FROM TO N\"   the angle at J in degrees
                          none                      one point
  --charge Q            the charge of the molecule (default: 0)
  --spherical           spherical d and f functions, whatever the basis set's convention
  --cartesian           Cartesian ones
  --store DIR           save every point there, and go on from what is there
  --threads N           how many threads (default: all cores); the energies do not
                        depend on it
  --dry-run             say what would be computed, why, and about how long it takes;
                        compute and save nothing
  --verbose             say on standard error what is computed, loaded and saved
  --json                one JSON object on standard output in place of the table
  --help                this text
";

const WATER: &str = "3\nwater\nO 0 0 0.1173\nH 0 0.7572 -0.4692\nH 0 -0.7572 -0.4692\n";

pub enum Asked {
    Help,
    Run(Box<Options>),
}

/// What is to be computed, checked.
pub struct Options {
    pub molecule: Molecule,
    pub basis: BasisSet,
    pub harmonics: Harmonics,
    pub scan: Scan,
    pub store: Option<PathBuf>,
    pub threads: Option<usize>,
    pub dry_run: bool,
    pub verbose: bool,
    pub json: bool,
}

/// What was said, as it was said.
#[derive(Default)]
struct Said {
    molecule: Option<PathBuf>,
    basis: Option<String>,
    scan: Option<String>,
    charge: i32,
    harmonics: Option<Harmonics>,
    store: Option<PathBuf>,
    threads: Option<usize>,
    dry_run: bool,
    verbose: bool,
    json: bool,
}

pub fn parse(mut parser: lexopt::Parser) -> Result<Asked, Failure> {
    let usage =
        |error: lexopt::Error| Failure::of_input(format!("{error}; --help lists the options"));
    let mut said = Said::default();
    while let Some(argument) = parser.next().map_err(usage)? {
        match argument {
            Short('h') | Long("help") => return Ok(Asked::Help),
            Long("molecule") => said.molecule = Some(parser.value().map_err(usage)?.into()),
            Long("basis") => said.basis = Some(text(parser.value().map_err(usage)?)?),
            Long("scan") => said.scan = Some(text(parser.value().map_err(usage)?)?),
            Long("charge") => {
                said.charge = parser.value().and_then(|v| v.parse()).map_err(usage)?
            }
            Long("spherical") => said.choose(Harmonics::Spherical)?,
            Long("cartesian") => said.choose(Harmonics::Cartesian)?,
            Long("store") => said.store = Some(store(parser.value().map_err(usage)?)?),
            Long("threads") => {
                said.threads = Some(threads(
                    parser.value().and_then(|v| v.parse()).map_err(usage)?,
                )?);
            }
            Long("dry-run") => said.dry_run = true,
            Long("verbose") => said.verbose = true,
            Long("json") => said.json = true,
            _ => return Err(usage(argument.unexpected())),
        }
    }
    said.check().map(|options| Asked::Run(Box::new(options)))
}

fn text(value: OsString) -> Result<String, Failure> {
    value
        .into_string()
        .map_err(|value| Failure::of_input(format!("{value:?} is not UTF-8 text")))
}

fn store(directory: OsString) -> Result<PathBuf, Failure> {
    match directory.is_empty() {
        true => Err(Failure::of_input(
            "--store needs the name of a directory, and was given none",
        )),
        false => Ok(directory.into()),
    }
}

fn threads(count: usize) -> Result<usize, Failure> {
    match count {
        1..=1024 => Ok(count),
        _ => Err(Failure::of_input(format!(
            "--threads {count}: give a number from 1 to 1024"
        ))),
    }
}

impl Said {
    fn choose(&mut self, harmonics: Harmonics) -> Result<(), Failure> {
        match self.harmonics.replace(harmonics) {
            Some(other) if other != harmonics => Err(Failure::of_input(
                "--spherical and --cartesian exclude one another; give one of them",
            )),
            _ => Ok(()),
        }
    }

    /// Everything that can be found wrong without computing anything.
    fn check(self) -> Result<Options, Failure> {
        let molecule = match &self.molecule {
            Some(path) => Molecule::read_xyz(path, self.charge),
            None => Molecule::from_xyz(WATER, self.charge),
        }
        .map_err(Failure::of_input)?;
        let pairs = molecule.electron_pairs().map_err(Failure::of_input)?;
        let scan: Scan = match (&self.scan, &self.molecule) {
            (Some(scan), _) => scan.parse().map_err(Failure::of_input)?,
            (None, None) => "bond 1 2 0.80 1.20 9".parse().map_err(Failure::of_input)?,
            (None, Some(_)) => Scan::None,
        };
        scan.check(&molecule).map_err(Failure::of_input)?;
        let basis = basis(self.basis.as_deref().unwrap_or("STO-3G"))?;
        let harmonics = self.harmonics.unwrap_or_default();
        let functions = basis
            .on(&molecule, harmonics)
            .map_err(Failure::of_input)?
            .functions();
        if pairs > functions {
            return Err(Failure::of_input(ScfError::TooFewFunctions {
                pairs,
                orbitals: functions,
            }));
        }
        Ok(Options {
            molecule,
            basis,
            harmonics,
            scan,
            store: self.store,
            threads: self.threads,
            dry_run: self.dry_run,
            verbose: self.verbose,
            json: self.json,
        })
    }
}

/// A published set by its name, or else the file of that name.
fn basis(name: &str) -> Result<BasisSet, Failure> {
    let published = BasisSet::named(name);
    match std::fs::metadata(name) {
        Ok(found) if published.is_err() && found.is_file() => {
            BasisSet::read(name).map_err(Failure::of_input)
        }
        // It may never end, and can't be read twice.
        Ok(_) if published.is_err() => Err(Failure::of_input(format!(
            "--basis {name}: that is there, but it is no regular file; save the basis set in one, or \
             give the name of a published set"
        ))),
        _ => published.map_err(Failure::of_input),
    }
}
