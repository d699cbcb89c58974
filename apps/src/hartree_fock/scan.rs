//! Energies along a scan of one coordinate.

use sde::{
    AppError, AppInfo, ConfiguredApp, Handle, Inputs, Prepared, ResultMap, ResultSpec, Value,
    inputs,
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
/// The points are computed on as many threads as the engine has, and on all ranks of the process
/// set: it is a distributed app. Each point is remembered on its own, so a longer scan computes only its new points.
#[derive(Clone, Debug, sde::Settings)]
pub struct Scan {
    /// molecule, basis, harmonics -> energy, dipole
    #[slot(default = Rhf::app())]
    energy: Prepared,
}

/// One point of a scan could not be computed.
#[derive(thiserror::Error)]
#[error("the point {value} of the scan failed")]
#[non_exhaustive]
pub struct PointFailed {
    /// The value of the coordinate.
    pub value: f64,
    /// The error of the point.
    pub source: sde::Error,
}

sde::debug_as_said!(PointFailed);

impl ConfiguredApp for Scan {
    fn info() -> AppInfo {
        AppInfo::new("Scan", "1")
            .about("Energies along a bond length or angle")
            .distributed()
            .input::<Molecule>("molecule")
            .input::<BasisSet>("basis")
            .input::<Harmonics>("harmonics")
            .input::<molecule::Scan>("scan")
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
        let results = sde.par_map(&self.energy, &points);
        let mut energies = Vec::with_capacity(points.len());
        let mut dipoles = Vec::with_capacity(points.len());
        for (place, point) in results.into_iter().enumerate() {
            let point = point.map_err(|source| match values.get(place) {
                Some(&value) => AppError::from(PointFailed { value, source }),
                None => source.into(),
            })?;
            energies.push(*point.get::<f64>("energy")?);
            dipoles.push(*point.get::<DipoleMoment>("dipole")?);
        }
        Ok(ResultMap::new()
            .with("values", values)
            .with("energies", energies)
            .with("dipoles", dipoles))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sde::Sde;

    #[sde::app(name = "scan.fails")]
    #[allow(
        unused_variables,
        reason = "it takes the inputs of any app in the slot"
    )]
    fn fails(molecule: &Molecule, basis: &BasisSet, harmonics: Harmonics) -> Result<f64, AppError> {
        Err(AppError::message("it does not converge"))
    }

    fn failure(scan: molecule::Scan) -> String {
        let app = Scan::app().energy(fails);
        let inputs = inputs! {
            molecule: Molecule::from_xyz("2\n\nH 0 0 0\nH 0 0 0.74\n", 0).unwrap(),
            scan: scan,
            basis: BasisSet::named("STO-3G").unwrap(),
            harmonics: Harmonics::Spherical,
        };
        format!("{:?}", Sde::new().run(&app, &inputs).unwrap_err())
    }

    /// Regression test: a single point was called "the point 0 of the scan".
    #[test]
    fn the_point_that_failed_is_named_where_there_are_several() {
        let single = failure(molecule::Scan::None);
        assert!(single.contains("it does not converge"), "{single}");
        assert!(!single.contains("point"), "{single}");
        let scan = "bond 1 2 0.7 0.8 2".parse::<molecule::Scan>().unwrap();
        let several = failure(scan);
        assert!(several.contains("the point 0.7 of the scan"), "{several}");
    }
}
