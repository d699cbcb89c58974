//! The density at which the iterations begin.
//!
//! A self-consistent field may have several solutions, and iterations end in one near their
//! beginning. The best simple beginning is the sum of the densities of the free atoms,
//! [`atoms`]: electrons are about where they belong, also for heavy atoms, where the orbitals
//! of the bare nuclei are far too small.
//!
//! A free atom is computed in the molecule's own basis set, with its electrons spread evenly
//! over the orbitals of a shell, so that it is round. J. H. Van Lenthe et al., J. Comput.
//! Chem. 27 (2006) 926, call for about that.

use super::accelerate::{History, Iterate, diis};
use super::linalg::{congruent, eigen, product, product_of_transposed, product_with_transposed};
use super::system::orthogonalizer;
use super::{ScfError, coulomb_exchange};
use crate::basis::{MolecularBasis, Part, Shell, components};
use crate::integrals::{Repulsion, kinetic, nuclear_attraction, overlap};
use crate::matrix::Matrix;
use crate::molecule::{Atom, Element, Molecule};
use std::collections::BTreeMap;

/// The most rounds of an atom's own iterations; an unsettled density is good enough to begin with.
const ROUNDS: usize = 40;

/// The sum of the densities of the free, neutral, round atoms.
///
/// It takes as long as one Hartree-Fock calculation of each kind of atom.
///
/// # Errors
/// Matrices that are not finite.
pub fn atoms(basis: &MolecularBasis, molecule: &Molecule) -> Result<Matrix, ScfError> {
    let mut known: BTreeMap<Element, Matrix> = BTreeMap::new();
    let mut density = Matrix::zeros(basis.functions(), basis.functions());
    for (place, atom) in molecule.atoms().iter().enumerate() {
        let shells: Vec<&Shell> = basis.shells().iter().filter(|s| s.atom == place).collect();
        let Some(first) = shells.first().map(|shell| shell.first) else {
            continue;
        };
        let own = match known.entry(atom.element) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(free_atom(atom.element, &shells)?)
            }
        };
        for i in 0..own.rows() {
            for j in 0..own.rows() {
                density[(first + i, first + j)] = own[(i, j)];
            }
        }
    }
    Ok(density)
}

/// The density of a free atom over the functions of its shells.
fn free_atom(element: Element, shells: &[&Shell]) -> Result<Matrix, ScfError> {
    let round = spherical(shells);
    let density = iterate(element, &round)?;
    let turn = to_functions_of(shells);
    Ok(product(&turn, &product_with_transposed(&density, &turn)))
}

/// These shells at the origin, all with spherical harmonics.
fn spherical(shells: &[&Shell]) -> MolecularBasis {
    MolecularBasis::from_shells(shells.iter().map(|shell| {
        Shell {
            atom: 0,
            center: [0.0; 3],
            parts: shell
                .parts
                .iter()
                .map(|part| Part {
                    spherical: part.l > 1,
                    ..part.clone()
                })
                .collect(),
            ..(*shell).clone()
        }
    }))
}

/// The functions of `shells` (rows) that make up the spherical ones (columns).
fn to_functions_of(shells: &[&Shell]) -> Matrix {
    let parts = || shells.iter().flat_map(|shell| &shell.parts);
    let rows = parts().map(Part::functions).sum();
    let columns = parts().map(|part| 2 * usize::from(part.l) + 1).sum();
    let mut turn = Matrix::zeros(rows, columns);
    let (mut row, mut column) = (0, 0);
    for part in parts() {
        let l = usize::from(part.l);
        let block = if part.spherical || l < 2 {
            Matrix::from_fn(2 * l + 1, 2 * l + 1, |i, j| f64::from(u8::from(i == j)))
        } else {
            let (round, flat) = (components(l, true), components(l, false));
            Matrix::from_fn(flat.len(), round.len(), |i, j| round[j][i] / flat[i][i])
        };
        for i in 0..block.rows() {
            for j in 0..block.columns() {
                turn[(row + i, column + j)] = block[(i, j)];
            }
        }
        row += block.rows();
        column += block.columns();
    }
    turn
}

/// The self-consistent density of a round atom.
fn iterate(element: Element, basis: &MolecularBasis) -> Result<Matrix, ScfError> {
    let position = [0.0; 3];
    let atom = Molecule::new(vec![Atom { element, position }], 0);
    let (Ok(atom), Ok(repulsion)) = (atom, Repulsion::compute(basis, u64::MAX)) else {
        // Too large for the memory; the molecule, which is larger, will fail with that error.
        return Ok(Matrix::zeros(basis.functions(), basis.functions()));
    };
    let metric = overlap(basis);
    let mut bare = kinetic(basis);
    bare.add_scaled(1.0, &nuclear_attraction(basis, &atom));
    let waves = waves(basis);
    let frame = orthogonalizer(&metric)?;
    let mut history = History::default();
    let mut density = fill(element, &waves, &bare, &metric)?;
    for _ in 0..ROUNDS {
        let (coulomb, exchange) = coulomb_exchange(&repulsion, &density);
        let mut fock = bare.clone();
        fock.add_scaled(1.0, &coulomb);
        fock.add_scaled(-0.5, &exchange);
        let fds = product(&product(&fock, &density), &metric);
        let error = Matrix::from_fn(fds.rows(), fds.columns(), |i, j| fds[(i, j)] - fds[(j, i)]);
        let error = congruent(&frame, &error);
        let settled = error.max_abs() < 1e-5;
        history.push(Iterate {
            energy: 0.5 * (density.dot(&bare) + density.dot(&fock)),
            occupied: congruent(&metric, &density),
            density,
            fock,
            error,
        });
        density = fill(element, &waves, &diis(&history)?, &metric)?;
        if settled {
            break;
        }
    }
    Ok(density)
}

/// By angular momentum, the first function of each contraction.
fn waves(basis: &MolecularBasis) -> BTreeMap<usize, Vec<usize>> {
    let mut waves: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for shell in basis.shells() {
        let mut first = shell.first;
        for part in &shell.parts {
            waves.entry(usize::from(part.l)).or_default().push(first);
            first += part.functions();
        }
    }
    waves
}

/// The density of the atom's electrons in the lowest orbitals of each angular momentum.
fn fill(
    element: Element,
    waves: &BTreeMap<usize, Vec<usize>>,
    fock: &Matrix,
    overlap: &Matrix,
) -> Result<Matrix, ScfError> {
    let electrons = configuration(element);
    let mut density = Matrix::zeros(fock.rows(), fock.rows());
    for (&l, firsts) in waves {
        let orbitals = 2 * l + 1;
        // All orders m are alike; the mean removes differences by rounding.
        let mean = |of: &Matrix| {
            Matrix::from_fn(firsts.len(), firsts.len(), |a, b| {
                let sum: f64 = (0..orbitals)
                    .map(|m| of[(firsts[a] + m, firsts[b] + m)])
                    .sum();
                sum / orbitals as f64
            })
        };
        let frame = orthogonalizer(&mean(overlap))?;
        let (_, vectors) = eigen(&product_of_transposed(
            &frame,
            &product(&mean(fock), &frame),
        ))?;
        let radial = product(&frame, &vectors);
        let mut left = electrons.get(l).copied().unwrap_or(0.0) / orbitals as f64;
        for orbital in 0..radial.columns() {
            let occupation = f64::min(left, 2.0);
            left -= occupation;
            for (a, &i) in firsts.iter().enumerate() {
                for (b, &j) in firsts.iter().enumerate() {
                    let share = occupation * radial[(a, orbital)] * radial[(b, orbital)];
                    (0..orbitals).for_each(|m| density[(i + m, j + m)] += share);
                }
            }
        }
    }
    Ok(density)
}

/// The electrons of s, p and d kind, filled in the order of the periodic table.
fn configuration(element: Element) -> [f64; 3] {
    let order = [0, 0, 1, 0, 1, 0, 2, 1, 0, 2, 1];
    let mut left = f64::from(element.atomic_number());
    let mut electrons = [0.0; 3];
    for l in order {
        let taken = f64::min(left, (4 * l + 2) as f64);
        electrons[l] += taken;
        left -= taken;
    }
    electrons
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::basis::{BasisSet, Harmonics};

    fn electrons(xyz: &str, set: &str, choice: Harmonics) -> f64 {
        let molecule = Molecule::from_xyz(xyz, 0).unwrap();
        let basis = BasisSet::named(set).unwrap().on(&molecule, choice).unwrap();
        atoms(&basis, &molecule).unwrap().dot(&overlap(&basis))
    }

    #[test]
    fn every_electron_is_placed() {
        // Atoms far apart, so that their densities do not overlap.
        let xyz = "3\n\nFe 0 0 0\nO 0 0 50\nH 0 50 0\n";
        for choice in [Harmonics::Spherical, Harmonics::Cartesian] {
            for set in ["STO-3G", "6-31G*"] {
                assert!(
                    (electrons(xyz, set, choice) - 35.0).abs() < 1e-9,
                    "{set} {choice:?}"
                );
            }
        }
    }

    #[test]
    fn configurations() {
        let of = |symbol| configuration(Element::from_symbol(symbol).unwrap());
        assert_eq!(of("H"), [1.0, 0.0, 0.0]);
        assert_eq!(of("Cl"), [6.0, 11.0, 0.0]);
        assert_eq!(of("Fe"), [8.0, 12.0, 6.0]);
        assert_eq!(of("Xe"), [10.0, 24.0, 20.0]);
    }
}
