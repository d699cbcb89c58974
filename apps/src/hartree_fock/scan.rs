//! Energies along a scan of one coordinate.

use sde::{
    App, AppError, AppInfo, Fingerprint, Handle, Inputs, ResultMap, ResultSpec, Slot, Value, inputs,
};

use super::Rhf;
use crate::basis::{BasisSet, Harmonics};
use crate::molecule::{self, Molecule};
use crate::scf::DipoleMoment;

/// The energy of a molecule at each value of one coordinate.
///
/// Inputs: `molecule`, `basis`, `harmonics` as of [`Rhf`], and `scan`
/// ([`molecule::Scan`]). Results, point by point: `values` (ångström or degrees; empty
/// for a single point), `energies` (hartree), `dipoles`. The app in the slot `energy`
/// takes the inputs of [`Rhf`] and returns its `energy` and `dipole`.
///
/// The points are computed on as many threads as the engine has. Each is remembered on
/// its own, so a longer scan computes only what is new in it.
#[derive(Clone, Copy, Debug, Default, Fingerprint)]
pub struct Scan;

/// One point of a scan could not be computed.
#[derive(Debug, thiserror::Error)]
#[error("the point {value} of the scan failed: {source}")]
pub struct PointFailed {
    /// The value of the coordinate.
    pub value: f64,
    /// Why.
    pub source: sde::Error,
}

impl App for Scan {
    fn info(&self) -> AppInfo {
        AppInfo::new("Scan", "1")
            .about("Energies along a bond length or angle")
            .slot(Slot::new("energy", Rhf).about("molecule, basis, harmonics -> energy, dipole"))
            .result(ResultSpec::new::<Vec<f64>>("values").about("ångström or degrees"))
            .result(ResultSpec::new::<Vec<f64>>("energies").about("hartree"))
            .result(ResultSpec::new::<Vec<DipoleMoment>>("dipoles").about("e bohr"))
    }

    fn run(&self, sde: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let molecule = inputs.get::<Molecule>("molecule")?;
        let scan = inputs.get::<molecule::Scan>("scan")?;
        let basis = inputs.value::<BasisSet>("basis")?;
        let harmonics = *inputs.get::<Harmonics>("harmonics")?;
        let values = scan.values();
        let geometries = match values.is_empty() {
            true => vec![molecule.clone()],
            false => values
                .iter()
                .map(|value| scan.at(molecule, *value))
                .collect::<Result<_, _>>()?,
        };
        let points: Vec<Inputs> = geometries
            .into_iter()
            .map(|molecule| inputs! { molecule: Value::new(molecule), basis: basis.clone(), harmonics: harmonics })
            .collect();
        let results = sde.par_map(&sde.sub_app("energy")?, &points);
        let mut energies = Vec::with_capacity(points.len());
        let mut dipoles = Vec::with_capacity(points.len());
        for (place, point) in results.into_iter().enumerate() {
            let value = values.get(place).copied().unwrap_or_default();
            let point = point.map_err(|source| PointFailed { value, source })?;
            energies.push(*point.get::<f64>("energy")?);
            dipoles.push(*point.get::<DipoleMoment>("dipole")?);
        }
        Ok(ResultMap::new()
            .with("values", values)
            .with("energies", energies)
            .with("dipoles", dipoles))
    }
}
