//! Hartree-Fock as apps: the numerics of this crate, with remembered results.
//!
//! ```text
//! Scan ── energy ── Rhf ─┬─ overlap     ── Overlap
//!                        ├─ kinetic     ── Kinetic
//!                        ├─ nuclear     ── NuclearAttraction
//!                        ├─ repulsion   ── ElectronRepulsion
//!                        ├─ dipole      ── DipoleIntegrals
//!                        └─ convergence ── Diis, Damped
//! ```
//!
//! Each name between the lines is a sub-app slot: another app can be put there, and its results have other keys.
//! Integrals are `intermediate` (checkpointed, so that a calculation goes on quickly,
//! and not archived), energies and orbitals are results, and the matrices that the
//! convergence method makes are `no_cache`. The state of the iterations is in scratch.
//!
//! ```
//! use sde::{Sde, Value, inputs};
//! use sde_apps::basis::{BasisSet, Harmonics};
//! use sde_apps::hartree_fock::Rhf;
//! use sde_apps::molecule::Molecule;
//!
//! let molecule = Molecule::from_xyz("2\n\nH 0 0 0\nH 0 0 0.74", 0)?;
//! let sde = Sde::new();
//! let inputs = inputs! {
//!     molecule: Value::new(molecule),
//!     basis: Value::new(BasisSet::named("STO-3G")?),
//!     harmonics: Harmonics::Published,
//! };
//! let energy = *sde.run(&Rhf::app(), &inputs)?.get::<f64>("energy")?;
//! assert!((energy + 1.1167).abs() < 1e-4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod convergence;
mod integrals;
mod rhf;
mod scan;

pub use convergence::{Damped, DampedApp, diis};
pub use integrals::{dipole_integrals, electron_repulsion, kinetic, nuclear_attraction, overlap};
pub use rhf::{Rhf, RhfApp};
pub use scan::{PointFailed, Scan, ScanApp};

sde::link_app!(Rhf::app(), Scan::app(), Damped::app());
