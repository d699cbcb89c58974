//! The command line: read and checked before anything is built.

use std::path::PathBuf;

use lexopt::prelude::*;
use sde_apps::basis::{BasisSet, Harmonics, MolecularBasis};
use sde_apps::molecule::Molecule;

use crate::failure::Failure;

pub const HELP: &str = "\
Electron repulsion integrals and matrix products on a device of OpenCL, by many
generated kernels; what it costs to have them in a process that never saw them, at the
next geometry, and in a new process. The numbers are compared with the processor's.

usage: kernels [options]

  --molecule FILE.xyz   the molecule, a closed shell (default: water)
  --basis NAME          a published basis set with s, p and d functions
                        (default: 6-31G*); they are taken as Cartesian
  --tiles LIST          the tiles of the matrix products (default: 4,8,16)
  --device N            which device (default: 0, the first)
  --devices             list the devices, and do nothing else
  --cache DIR           keep binaries there (default: a directory that goes away); what
                        is there already is not built
  --json                one JSON object on standard output in place of the table
  --help                this text

Caches of the driver itself are left out of it: each process has an empty directory
for it, as far as the driver can be told so.
";

/// Above this the integrals are too many for an example.
const MOST_FUNCTIONS: usize = 80;

const WATER: &str = "3\nwater\nO 0 0 0.1173\nH 0 0.7572 -0.4692\nH 0 -0.7572 -0.4692\n";

pub enum Asked {
    Help,
    Devices,
    Run(Box<Options>),
    /// To be one of the processes whose start is looked at.
    Start(String, Box<Options>),
}

/// What is to be computed, checked.
pub struct Options {
    pub molecule: Molecule,
    pub set: BasisSet,
    pub tiles: Vec<usize>,
    pub device: usize,
    pub cache: Option<PathBuf>,
    pub json: bool,
    /// What another process has to be told to be of the same mind.
    pub said: Vec<String>,
}

#[derive(Default)]
struct Said {
    molecule: Option<PathBuf>,
    basis: Option<String>,
    tiles: Option<String>,
    device: usize,
    cache: Option<PathBuf>,
    json: bool,
    start: Option<String>,
}

pub fn parse(mut parser: lexopt::Parser) -> Result<Asked, Failure> {
    let usage =
        |error: lexopt::Error| Failure::of_input(format!("{error}; --help lists the options"));
    let mut said = Said::default();
    let mut devices = false;
    while let Some(argument) = parser.next().map_err(usage)? {
        match argument {
            Short('h') | Long("help") => return Ok(Asked::Help),
            Long("devices") => devices = true,
            Long("molecule") => said.molecule = Some(parser.value().map_err(usage)?.into()),
            Long("basis") => {
                said.basis = Some(parser.value().and_then(|v| v.parse()).map_err(usage)?);
            }
            Long("tiles") => {
                said.tiles = Some(parser.value().and_then(|v| v.parse()).map_err(usage)?);
            }
            Long("device") => {
                said.device = parser.value().and_then(|v| v.parse()).map_err(usage)?;
            }
            Long("cache") => said.cache = Some(parser.value().map_err(usage)?.into()),
            Long("json") => said.json = true,
            // What this program says to itself.
            Long("start") => {
                said.start = Some(parser.value().and_then(|v| v.parse()).map_err(usage)?);
            }
            _ => return Err(usage(argument.unexpected())),
        }
    }
    if devices {
        return Ok(Asked::Devices);
    }
    let start = said.start.take();
    let options = Box::new(said.check()?);
    Ok(match start {
        Some(name) => Asked::Start(name, options),
        None => Asked::Run(options),
    })
}

impl Said {
    fn check(self) -> Result<Options, Failure> {
        let molecule = match &self.molecule {
            Some(path) => Molecule::read_xyz(path, 0),
            None => Molecule::from_xyz(WATER, 0),
        };
        let molecule = molecule.map_err(Failure::of_input)?;
        molecule.electron_pairs().map_err(Failure::of_input)?;
        if molecule.atoms().len() < 2 {
            return Err(Failure::of_input(
                "the second geometry moves an atom away from another; give a molecule of two atoms or more",
            ));
        }
        if self
            .cache
            .as_ref()
            .is_some_and(|cache| cache.as_os_str().is_empty())
        {
            return Err(Failure::of_input(
                "--cache needs the name of a directory, and was given none",
            ));
        }
        let name = self.basis.as_deref().unwrap_or("6-31G*");
        let set = BasisSet::named(name).map_err(Failure::of_input)?;
        check_basis(
            &set.on(&molecule, Harmonics::Cartesian)
                .map_err(Failure::of_input)?,
        )?;
        let mut said = vec!["--basis".to_owned(), name.to_owned()];
        said.extend(["--device".to_owned(), self.device.to_string()]);
        let list = self.tiles.as_deref().unwrap_or("4,8,16");
        said.extend(["--tiles".to_owned(), list.to_owned()]);
        if let Some(path) = &self.molecule {
            let path = path.to_str().ok_or_else(|| {
                Failure::of_input(format!("the name {} is not UTF-8 text", path.display()))
            })?;
            said.extend(["--molecule".to_owned(), path.to_owned()]);
        }
        Ok(Options {
            molecule,
            set,
            tiles: tiles(list)?,
            device: self.device,
            cache: self.cache,
            json: self.json,
            said,
        })
    }
}

fn tiles(list: &str) -> Result<Vec<usize>, Failure> {
    let tiles = list.split(',').map(|tile| match tile.trim().parse() {
        Ok(tile @ 1..=32) => Ok(tile),
        _ => Err(Failure::of_input(format!(
            "--tiles {list}: \"{tile}\" is not a number from 1 to 32; give some, as 4,8,16"
        ))),
    });
    let mut tiles = tiles.collect::<Result<Vec<_>, _>>()?;
    tiles.sort_unstable();
    tiles.dedup();
    Ok(tiles)
}

fn check_basis(basis: &MolecularBasis) -> Result<(), Failure> {
    if basis.shells().iter().any(|shell| shell.max_angular() > 2) {
        return Err(Failure::of_input(
            "the basis set has f functions here, and these kernels go up to d; take 6-31G* or cc-pVDZ",
        ));
    }
    if basis.functions() > MOST_FUNCTIONS {
        return Err(Failure::of_input(format!(
            "{} functions are too many for this example, which takes up to {MOST_FUNCTIONS}; take a smaller \
             molecule or basis set",
            basis.functions()
        )));
    }
    Ok(())
}
