//! The attraction of an electron by the nuclei.

use super::hermite::{Coulomb, triple_count};
use super::one_electron::mirror;
use super::pairs::ShellPair;
use crate::basis::MolecularBasis;
use crate::matrix::Matrix;
use crate::molecule::Molecule;
use std::f64::consts::{PI, SQRT_2};

/// The potential of the nuclei of `molecule` for one electron, in hartree. Symmetric.
///
/// The potentials of all nuclei are first summed for each Hermite Gaussian, so the cost of
/// the later steps does not depend on their number.
#[must_use]
pub fn nuclear_attraction(basis: &MolecularBasis, molecule: &Molecule) -> Matrix {
    let nuclei = nuclei(molecule);
    let mut matrix = Matrix::zeros(basis.functions(), basis.functions());
    for a in 0..basis.shells().len() {
        for b in 0..=a {
            add_pair(&mut matrix, &ShellPair::new(basis, a, b), &nuclei);
        }
    }
    mirror(&mut matrix);
    matrix
}

/// The charges and places of the nuclei.
fn nuclei(molecule: &Molecule) -> Vec<(f64, [f64; 3])> {
    molecule
        .atoms()
        .iter()
        .map(|atom| f64::from(atom.element.atomic_number()))
        .zip(molecule.positions_bohr())
        .collect()
}

fn add_pair(matrix: &mut Matrix, pair: &ShellPair, nuclei: &[(f64, [f64; 3])]) {
    // The pairs carry √2 π^(5/4)/p, for two electrons; a point charge needs 2π/p.
    let prefactor = SQRT_2 / PI.powf(0.25);
    let coulomb = Coulomb::new(pair.degree);
    let mut one = vec![0.0; triple_count(pair.degree)];
    let mut block = vec![0.0; pair.functions()];
    for primitive in &pair.primitives {
        let mut potential = vec![0.0; one.len()];
        for (charge, place) in nuclei {
            let r = std::array::from_fn(|x| primitive.center[x] - place[x]);
            coulomb.fill(primitive.exponent, r, -charge * prefactor, &mut one);
            potential
                .iter_mut()
                .zip(&one)
                .for_each(|(sum, x)| *sum += x);
        }
        for (row, factor) in primitive.matrix.chunks(block.len()).zip(&potential) {
            block
                .iter_mut()
                .zip(row)
                .for_each(|(sum, x)| *sum += factor * x);
        }
    }
    let (first, second) = (pair.first, pair.second);
    for (i, row) in block.chunks(second.functions).enumerate() {
        for (j, value) in row.iter().enumerate() {
            matrix[(first.start + i, second.start + j)] = *value;
        }
    }
}
