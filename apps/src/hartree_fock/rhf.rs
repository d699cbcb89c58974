//! The energy of one molecule.

use sde::{
    App, AppError, AppInfo, Fingerprint, Handle, Inputs, Parameter, ResultMap, ResultSpec, Slot,
    Tag, Value, inputs,
};

use super::{diis, dipole_integrals, electron_repulsion, kinetic, nuclear_attraction, overlap};
use crate::basis::{BasisSet, Harmonics, MolecularBasis};
use crate::integrals::Repulsion;
use crate::matrix::Matrix;
use crate::molecule::Molecule;
use crate::scf::{Convergence, DipoleMoment, ScfState, System, guess, step};

/// Restricted Hartree-Fock of a closed shell.
///
/// Inputs: `molecule` ([`Molecule`]), `basis` ([`BasisSet`]), `harmonics`
/// ([`Harmonics`]).
///
/// | result | type | unit |
/// |---|---|---|
/// | `energy` | `f64` | hartree |
/// | `dipole` | [`DipoleMoment`] | e bohr |
/// | `orbital_energies` | `Vec<f64>` | hartree |
/// | `orbitals` | [`Matrix`], an orbital a column | |
/// | `iterations` | `u64` | |
/// | `density` (expendable) | [`Matrix`] | |
///
/// Every iteration leaves its whole state in scratch, so a run that is interrupted
/// goes on there and ends in the same bits.
#[derive(Clone, Copy, Debug, Default, Fingerprint)]
pub struct Rhf;

impl App for Rhf {
    fn info(&self) -> AppInfo {
        let defaults = Convergence::default();
        AppInfo::new("Rhf", "2")
            .about("Restricted Hartree-Fock energy of a closed shell")
            .citation("C. C. J. Roothaan, Rev. Mod. Phys. 23, 69 (1951)")
            .citation("B. P. Pritchard et al., J. Chem. Inf. Model. 59, 4814 (2019)")
            .parameter(
                Parameter::new("energy_change", defaults.energy)
                    .about("converged when the energy changes by no more, in hartree")
                    .check(positive),
            )
            .parameter(
                Parameter::new("error", defaults.error)
                    .about("converged when no element of FDS - SDF is larger, in hartree")
                    .check(positive),
            )
            .parameter(
                Parameter::new("iterations", defaults.iterations)
                    .about("the iterations allowed")
                    .check(|most: &usize| match *most > 0 {
                        true => Ok(()),
                        false => Err("at least one iteration is needed".to_owned()),
                    }),
            )
            .slot(Slot::new("overlap", overlap).about("basis -> Matrix"))
            .slot(Slot::new("kinetic", kinetic).about("basis -> Matrix"))
            .slot(Slot::new("nuclear", nuclear_attraction).about("basis, molecule -> Matrix"))
            .slot(Slot::new("repulsion", electron_repulsion).about("basis -> Repulsion"))
            .slot(Slot::new("dipole", dipole_integrals).about("basis -> [Matrix; 3]"))
            .slot(Slot::new("convergence", diis).about("history -> Matrix"))
            .input::<Molecule>("molecule")
            .input::<BasisSet>("basis")
            .input::<Harmonics>("harmonics")
            .result(ResultSpec::new::<f64>("energy").about("total energy, in hartree"))
            .result(ResultSpec::new::<DipoleMoment>("dipole").about("in e bohr"))
            .result(ResultSpec::new::<Vec<f64>>("orbital_energies").about("in hartree, rising"))
            .result(ResultSpec::new::<Matrix>("orbitals").about("an orbital a column"))
            .result(ResultSpec::new::<u64>("iterations"))
            .result(ResultSpec::new::<Matrix>("density").tagged(Tag::Expendable))
    }

    fn run(&self, sde: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let molecule = inputs.value::<Molecule>("molecule")?;
        let set = inputs.get::<BasisSet>("basis")?;
        let pairs = molecule.electron_pairs()?;
        let basis = Value::new(set.on(&molecule, *inputs.get::<Harmonics>("harmonics")?)?);
        let ints = Integrals::of(sde, &basis, &molecule)?;
        let system = System::new(
            &ints.overlap,
            &ints.core,
            &ints.repulsion,
            pairs,
            molecule.nuclear_repulsion(),
        )?;
        let state = iterate(sde, &system, || Ok(guess::atoms(&basis, &molecule)?))?;
        let dipole = DipoleMoment::new(&molecule, &ints.dipole, &state.density);
        Ok(ResultMap::new()
            .with("energy", state.energy)
            .with("dipole", dipole)
            .with("orbital_energies", state.orbital_energies)
            .with("orbitals", state.orbitals)
            .with("iterations", state.iteration as u64)
            .with("density", state.density))
    }
}

fn positive(value: &f64) -> Result<(), String> {
    match value.is_finite() && *value > 0.0 {
        true => Ok(()),
        false => Err("it must be a positive number".to_owned()),
    }
}

/// The integrals, from the apps in the slots.
struct Integrals {
    overlap: Value<Matrix>,
    core: Matrix,
    repulsion: Value<Repulsion>,
    dipole: Value<[Matrix; 3]>,
}

impl Integrals {
    fn of(
        sde: &Handle,
        basis: &Value<MolecularBasis>,
        molecule: &Value<Molecule>,
    ) -> Result<Self, sde::Error> {
        let of_basis = inputs! { basis: basis.clone() };
        let of_both = inputs! { basis: basis.clone(), molecule: molecule.clone() };
        let run = |slot, inputs| sde.run(&sde.sub_app(slot)?, inputs);
        let mut core = Matrix::clone(&*run("kinetic", &of_basis)?.get::<Matrix>("result")?);
        core.add_scaled(1.0, &*run("nuclear", &of_both)?.get::<Matrix>("result")?);
        Ok(Self {
            overlap: run("overlap", &of_basis)?.get("result")?,
            core,
            repulsion: run("repulsion", &of_basis)?.get("result")?,
            dipole: run("dipole", &of_basis)?.get("result")?,
        })
    }
}

/// The iterations, from the state that was saved last or else from the guess.
fn iterate(
    sde: &Handle,
    system: &System<'_>,
    guess: impl FnOnce() -> Result<Matrix, AppError>,
) -> Result<ScfState, AppError> {
    let convergence = Convergence {
        energy: *sde.parameter("energy_change")?,
        error: *sde.parameter("error")?,
        iterations: *sde.parameter("iterations")?,
    };
    let method = sde.sub_app("convergence")?;
    let scratch = sde.scratch::<ScfState>();
    let mut state = match scratch.load()? {
        Some(saved) => ScfState::clone(&saved),
        None => ScfState::start(system, &guess()?)?,
    };
    while !state.converged {
        if sde.is_cancelled() {
            return Err(AppError::message("cancelled between two iterations"));
        }
        state = step(system, &convergence, &state, |history| {
            let next = sde.run(&method, &inputs! { history: history.clone() })?;
            Ok::<_, AppError>(Matrix::clone(&*next.get::<Matrix>("result")?))
        })?;
        scratch.save(state.clone())?;
    }
    Ok(state)
}
