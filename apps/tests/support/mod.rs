//! Hartree-Fock as its users run it: the app, through an engine.

use sde::{ErrorKind, Instance, ResultMap, Sde, inputs};
use sde_apps::basis::{BasisSet, Harmonics};
use sde_apps::hartree_fock::Rhf;
use sde_apps::molecule::Molecule;

/// All results of a molecule in a basis set, by an engine of its own.
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
pub fn rhf(molecule: &Molecule, set: &BasisSet, harmonics: Harmonics) -> ResultMap {
    try_rhf(&Rhf::app().into(), molecule, set, harmonics).unwrap()
}

/// The same with parameters and slots set, which may fail.
pub fn try_rhf(
    app: &Instance,
    molecule: &Molecule,
    set: &BasisSet,
    harmonics: Harmonics,
) -> Result<ResultMap, sde::Error> {
    let inputs = inputs! {
        molecule: molecule.clone(),
        basis: set.clone(),
        harmonics: harmonics,
    };
    let all: Vec<_> = app
        .info()
        .results()
        .iter()
        .map(|spec| spec.name())
        .collect();
    Sde::new()
        .request(app, &inputs)
        .names(&all)
        .run()
        .map(|outcome| outcome.results)
}

#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
pub fn number(results: &ResultMap, name: &str) -> f64 {
    *results.get::<f64>(name).unwrap()
}

/// What the body of an app failed with.
#[allow(dead_code, reason = "not every test looks at failures")]
pub fn cause<E: std::error::Error + Send + Sync + 'static>(error: &sde::Error) -> Option<&E> {
    match error.kind() {
        ErrorKind::App { cause, .. } => cause.downcast_ref(),
        _ => None,
    }
}
