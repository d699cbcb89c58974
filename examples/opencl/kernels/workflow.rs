//! What is computed, and how far it is from what the processor computes.

use sde::{Sde, Value, inputs};
use sde_apps::basis::{BasisSet, Harmonics, MolecularBasis};
use sde_apps::hartree_fock::{Rhf, electron_repulsion, overlap};
use sde_apps::integrals::Repulsion;
use sde_apps::matrix::Matrix;
use sde_apps::molecule::Molecule;
use serde::{Deserialize, Serialize};

use crate::device::Gpu;
use crate::failure::Failure;
use crate::product::device_product;
use crate::repulsion::DeviceRepulsion;
use crate::source::Element;

/// How far numbers of the device may be from those of the processor. Single precision has 7 digits of
/// numbers up to 5, of which sums of thousands lose one or two.
const fn tolerance(what: What, element: Element) -> f64 {
    match (what, element) {
        (What::Integrals | What::Products, Element::Double) => 1e-12,
        (What::Integrals | What::Products, Element::Float) => 1e-5,
        // The sum of all, each with the density.
        (What::Energy, Element::Double) => 1e-9,
        (What::Energy, Element::Float) => 1e-3,
    }
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// Repulsion integrals, in hartree.
    Integrals,
    /// The total energy, in hartree.
    Energy,
    /// Elements of matrix products.
    Products,
}

/// The largest difference between a device and the processor.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Check {
    pub what: What,
    pub element: Element,
    pub compared: usize,
    pub difference: f64,
    pub tolerance: f64,
}

impl Check {
    fn new(what: What, element: Element, pairs: impl Iterator<Item = (f64, f64)>) -> Self {
        let mut check = Self {
            what,
            element,
            compared: 0,
            difference: 0.0,
            tolerance: tolerance(what, element),
        };
        for (found, expected) in pairs {
            check.compared += 1;
            let difference = (found - expected).abs();
            // A NaN is as far as can be.
            check.difference = match difference.is_nan() {
                true => f64::INFINITY,
                false => check.difference.max(difference),
            };
        }
        check
    }

    pub fn agrees(&self) -> bool {
        self.compared > 0 && self.difference <= self.tolerance
    }
}

/// A molecule, with what the processor computes for it.
pub struct Problem {
    molecule: Molecule,
    set: BasisSet,
    basis: Value<MolecularBasis>,
    repulsion: Value<Repulsion>,
    energy: f64,
    /// Density times overlap: a matrix that is not symmetric, and whose square is twice itself.
    projector: Value<Matrix>,
}

impl Problem {
    pub fn new(molecule: Molecule, set: &BasisSet) -> Result<Self, Failure> {
        let sde = Sde::new();
        let basis = set.on(&molecule, Harmonics::Cartesian);
        let basis = Value::new(basis.map_err(Failure::of_input)?);
        let results = sde.run(&Rhf::app(), &of(&molecule, set))?;
        let density = results.get::<Matrix>("density")?;
        let overlaps = overlap.call(&sde, &basis)?;
        let size = basis.functions();
        let projector = Matrix::from_fn(size, size, |i, j| {
            (0..size).map(|k| density[(i, k)] * overlaps[(k, j)]).sum()
        });
        Ok(Self {
            repulsion: electron_repulsion.call(&sde, &basis)?,
            energy: *results.get::<f64>("energy")?,
            projector: Value::new(projector),
            molecule,
            set: set.clone(),
            basis,
        })
    }

    /// Computes it with the device, and compares.
    pub fn on(&self, sde: &Sde, gpu: &Gpu, tiles: &[usize]) -> Result<Vec<Check>, Failure> {
        let mut checks = Vec::new();
        for element in gpu.elements() {
            let integrals = DeviceRepulsion {
                gpu: gpu.clone(),
                element: *element,
            };
            // The same method with other integrals: they stand in a slot.
            let method = Rhf::app().repulsion(integrals.clone());
            let results = sde.run(&method, &of(&self.molecule, &self.set))?;
            let energy = *results.get::<f64>("energy")?;
            let energies = [(energy, self.energy)].into_iter();
            checks.push(Check::new(What::Energy, *element, energies));
            // They are remembered from the run above.
            let found = sde.run(&integrals, &inputs! { basis: self.basis.clone() })?;
            let found = found.get::<Repulsion>("result")?;
            let values = found.values().iter().copied();
            let values = values.zip(self.repulsion.values().iter().copied());
            checks.push(Check::new(What::Integrals, *element, values));
            checks.push(self.products(sde, gpu, *element, tiles)?);
        }
        Ok(checks)
    }

    fn products(
        &self,
        sde: &Sde,
        gpu: &Gpu,
        element: Element,
        tiles: &[usize],
    ) -> Result<Check, Failure> {
        let plain = &*self.projector;
        let turned = Matrix::from_fn(plain.rows(), plain.rows(), |i, j| plain[(j, i)]);
        let turned = Value::new(turned);
        let mut pairs = Vec::new();
        for tile in tiles {
            for transposed in [[false, false], [false, true], [true, false], [true, true]] {
                let [a, b] = transposed.map(|yes| if yes { &turned } else { &self.projector });
                let found = device_product.call(sde, gpu, element, *tile, transposed, a, b)?;
                let values = found.values().iter().copied();
                pairs.extend(values.zip(plain.values().iter().map(|x| 2.0 * x)));
            }
        }
        Ok(Check::new(What::Products, element, pairs.into_iter()))
    }
}

fn of(molecule: &Molecule, set: &BasisSet) -> sde::Inputs {
    inputs! {
        molecule: molecule.clone(),
        basis: set.clone(),
        harmonics: Harmonics::Cartesian,
    }
}
