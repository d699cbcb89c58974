//! The energy of one molecule.

use sde::{
    AppError, AppInfo, ConfiguredApp, Handle, Inputs, Prepared, ResultMap, ResultSpec, Tag, Value,
    inputs,
};

use super::{diis, dipole_integrals, electron_repulsion, kinetic, nuclear_attraction, overlap};
use crate::basis::{BasisSet, Harmonics};
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
#[derive(Clone, Debug, sde::Settings)]
pub struct Rhf {
    /// Converged when the energy changes by no more, in hartree.
    #[setting(default = Convergence::default().energy, check = positive)]
    energy_change: f64,
    /// Converged when no element of FDS - SDF is larger, in hartree.
    #[setting(default = Convergence::default().error, check = positive)]
    error: f64,
    /// The iterations allowed.
    #[setting(default = Convergence::default().iterations, check = at_least_one)]
    iterations: usize,
    /// basis -> Matrix
    #[slot(default = overlap)]
    overlap: Prepared,
    /// basis -> Matrix
    #[slot(default = kinetic)]
    kinetic: Prepared,
    /// basis, molecule -> Matrix
    #[slot(default = nuclear_attraction)]
    nuclear: Prepared,
    /// basis -> Repulsion
    #[slot(default = electron_repulsion)]
    repulsion: Prepared,
    /// basis -> [Matrix; 3]
    #[slot(default = dipole_integrals)]
    dipole: Prepared,
    /// history -> Matrix
    #[slot(default = diis)]
    convergence: Prepared,
}

impl ConfiguredApp for Rhf {
    fn info() -> AppInfo {
        AppInfo::new("Rhf", "2")
            .about("Restricted Hartree-Fock energy of a closed shell")
            .citation("C. C. J. Roothaan, Rev. Mod. Phys. 23, 69 (1951)")
            .citation("B. P. Pritchard et al., J. Chem. Inf. Model. 59, 4814 (2019)")
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
        let of_basis = inputs! { basis: basis.clone() };
        let of_both = inputs! { basis: basis.clone(), molecule: molecule.clone() };
        let overlaps = sde.run(&self.overlap, &of_basis)?.get("result")?;
        let kinetic_energy = sde.run(&self.kinetic, &of_basis)?.get("result")?;
        let attraction = sde.run(&self.nuclear, &of_both)?.get("result")?;
        let repulsion = sde.run(&self.repulsion, &of_basis)?.get("result")?;
        let dipole = sde.run(&self.dipole, &of_basis)?.get("result")?;
        let mut core = Matrix::clone(&kinetic_energy);
        core.add_scaled(1.0, &attraction);
        let nuclei = molecule.nuclear_repulsion();
        let system = System::new(&overlaps, &core, &repulsion, pairs, nuclei)?;
        let state = self.iterate(sde, &system, || Ok(guess::atoms(&basis, &molecule)?))?;
        let dipole = DipoleMoment::new(&molecule, &dipole, &state.density);
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

fn at_least_one(most: &usize) -> Result<(), String> {
    match *most > 0 {
        true => Ok(()),
        false => Err("at least one iteration is needed".to_owned()),
    }
}

impl Rhf {
    /// The iterations, from the state that was saved last or else from the guess.
    fn iterate(
        &self,
        sde: &Handle,
        system: &System<'_>,
        guess: impl FnOnce() -> Result<Matrix, AppError>,
    ) -> Result<ScfState, AppError> {
        let convergence = Convergence {
            energy: self.energy_change,
            error: self.error,
            iterations: self.iterations,
        };
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
                let next = sde.run(&self.convergence, &inputs! { history: history.clone() })?;
                Ok::<_, AppError>(Matrix::clone(&*next.get::<Matrix>("result")?))
            })?;
            scratch.save(state.clone())?;
        }
        Ok(state)
    }
}
