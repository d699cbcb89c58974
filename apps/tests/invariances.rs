//! What must hold for any molecule: energies do not depend on where it lies, results not on
//! the number of threads, nor on whether the iterations were interrupted.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use sde::ResultMap;
use sde_apps::basis::{BasisSet, Harmonics, MolecularBasis};
use sde_apps::hartree_fock::Rhf;
use sde_apps::integrals::{
    DEFAULT_MEMORY_LIMIT, IntegralError, Repulsion, dipole, kinetic, nuclear_attraction, overlap,
};
use sde_apps::matrix::Matrix;
use sde_apps::molecule::{Atom, Molecule, MoleculeError};
use sde_apps::scf::{
    Convergence, DipoleMoment, History, PATIENCE, ScfError, ScfState, System, damped, diis, guess,
    step,
};

mod support;
use support::{cause, number, rhf, try_rhf};

const WATER: &str = "3\n\nO 0 0 0.1173\nH 0 0.7572 -0.4692\nH 0 -0.7572 -0.4692\n";

/// A set of one function of each of these kinds on hydrogen.
fn kinds(letters: &str) -> BasisSet {
    let mut text = String::from("BASIS \"kinds\" SPHERICAL\nH S\n 1.2 0.4\n 0.3 0.7\n");
    for letter in letters.chars() {
        text += &format!("H {letter}\n 1.1 1\n");
    }
    BasisSet::from_nwchem("kinds", &text).unwrap()
}

fn water() -> Molecule {
    Molecule::from_xyz(WATER, 0).unwrap()
}

fn on(molecule: &Molecule, set: &str, harmonics: Harmonics) -> MolecularBasis {
    named(set).on(molecule, harmonics).unwrap()
}

fn named(set: &str) -> BasisSet {
    BasisSet::named(set).unwrap()
}

fn energy(molecule: &Molecule, set: &BasisSet, harmonics: Harmonics) -> f64 {
    number(&rhf(molecule, set, harmonics), "energy")
}

/// The molecule turned about two axes and shifted.
fn moved(molecule: &Molecule) -> Molecule {
    let (s, c) = 0.7f64.sin_cos();
    let (t, d) = 1.9f64.sin_cos();
    let atoms = molecule.atoms().iter().map(|atom| {
        let [x, y, z] = atom.position;
        let (x, y) = (c * x - s * y, s * x + c * y);
        let (y, z) = (d * y - t * z, t * y + d * z);
        Atom {
            element: atom.element,
            position: [x + 1.5, y - 3.25, z + 0.125],
        }
    });
    Molecule::new(atoms.collect(), molecule.charge()).unwrap()
}

#[test]
fn the_energy_does_not_depend_on_the_place() {
    let water = water();
    let elsewhere = moved(&water);
    for (set, harmonics) in [
        ("STO-3G", Harmonics::Published),
        ("6-31G*", Harmonics::Cartesian),
        ("cc-pVDZ", Harmonics::Spherical),
        ("cc-pVTZ", Harmonics::Spherical),
        ("def2-TZVP", Harmonics::Cartesian),
    ] {
        let here = energy(&water, &named(set), harmonics);
        let there = energy(&elsewhere, &named(set), harmonics);
        assert!((here - there).abs() < 1e-10, "{set}: {here} {there}");
    }
}

#[test]
fn functions_up_to_i_turn_with_the_molecule() {
    let hydrogen = Molecule::from_xyz("2\n\nH 0.1 0 0\nH 0 0.2 0.74\n", 0).unwrap();
    let elsewhere = moved(&hydrogen);
    for (letters, functions) in [("PDFG", 25), ("H", 12), ("I", 14)] {
        let [here, there] = [&hydrogen, &elsewhere].map(|molecule| {
            let set = kinds(letters);
            let basis = set.on(molecule, Harmonics::Published).unwrap();
            assert_eq!(basis.functions(), 2 * functions);
            energy(molecule, &set, Harmonics::Published)
        });
        assert!((here - there).abs() < 1e-10, "{letters}: {here} {there}");
    }
}

#[test]
fn the_dipole_turns_with_the_molecule_and_keeps_its_size() {
    let (water, elsewhere) = (water(), moved(&water()));
    let [here, there] = [&water, &elsewhere].map(|molecule| {
        let results = rhf(molecule, &named("6-31G*"), Harmonics::Published);
        results.get::<DipoleMoment>("dipole").unwrap()
    });
    assert!((here.magnitude_debye() - there.magnitude_debye()).abs() < 1e-6);
    // Towards the hydrogens, which are positive.
    assert!(here.atomic_units[2] < -0.8 && here.atomic_units[0].abs() < 1e-10);
}

#[test]
fn every_function_has_norm_one_and_every_matrix_is_symmetric() {
    let molecule =
        Molecule::from_xyz("4\n\nFe 0 0 0\nS 0 0.3 2.2\nC 1.9 0 0\nH 2.5 0.8 0\n", 0).unwrap();
    for name in BasisSet::names() {
        for harmonics in [
            Harmonics::Published,
            Harmonics::Spherical,
            Harmonics::Cartesian,
        ] {
            let Ok(basis) = BasisSet::named(name).unwrap().on(&molecule, harmonics) else {
                continue; // no iron in this set
            };
            let overlap = overlap(&basis);
            for i in 0..basis.functions() {
                assert!(
                    (overlap[(i, i)] - 1.0).abs() < 1e-12,
                    "{name} {i}: {}",
                    overlap[(i, i)]
                );
            }
            symmetric(&overlap);
        }
    }
    let basis = on(&molecule, "6-31G*", Harmonics::Published);
    symmetric(&kinetic(&basis));
    symmetric(&nuclear_attraction(&basis, &molecule));
    dipole(&basis).iter().for_each(symmetric);
}

fn symmetric(matrix: &Matrix) {
    for i in 0..matrix.rows() {
        for j in 0..i {
            assert_eq!(matrix[(i, j)].to_bits(), matrix[(j, i)].to_bits());
        }
    }
}

/// The repulsion integrals of a molecule do not care in which order its atoms are listed,
/// while the code computes each from another side then.
#[test]
fn repulsion_integrals_do_not_depend_on_the_order_of_the_atoms() {
    let forward = Molecule::from_xyz("2\n\nO 0.1 0 0\nH 0.2 0.5 0.8\n", -1).unwrap();
    let backward = Molecule::from_xyz("2\n\nH 0.2 0.5 0.8\nO 0.1 0 0\n", -1).unwrap();
    for set in ["6-31G*", "cc-pVDZ"] {
        let [one, two] = [&forward, &backward].map(|m| {
            let basis = on(m, set, Harmonics::Published);
            Repulsion::compute(&basis, DEFAULT_MEMORY_LIMIT).unwrap()
        });
        let n = one.functions();
        let hydrogen = on(
            &Molecule::from_xyz("1\n\nH 0 0 0\n", 0).unwrap(),
            set,
            Harmonics::Published,
        )
        .functions();
        let other = |i: usize| (i + hydrogen) % n;
        for i in 0..n {
            for j in 0..=i {
                for k in 0..=i {
                    for l in 0..=k {
                        let a = one.get(i, j, k, l);
                        let b = two.get(other(l), other(k), other(i), other(j));
                        assert!((a - b).abs() < 1e-13, "{set} ({i} {j}|{k} {l}): {a} {b}");
                    }
                }
            }
        }
    }
}

#[test]
fn the_same_bits_for_any_number_of_threads() {
    let molecule =
        moved(&Molecule::from_xyz("3\n\nS 0 0 0.1\nH 0 0.96 -0.82\nC 0 -1.5 -0.9\n", 1).unwrap());
    let basis = on(&molecule, "6-31G*", Harmonics::Published);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| {
            let repulsion = Repulsion::compute(&basis, DEFAULT_MEMORY_LIMIT).unwrap();
            let bits: Vec<u64> = repulsion.values().iter().map(|x| x.to_bits()).collect();
            (bits, rhf(&molecule, &named("6-31G*"), Harmonics::Published))
        })
    };
    let one = run(1);
    for threads in [2, 3, 4] {
        let many = run(threads);
        assert!(one.0 == many.0, "integrals with {threads} threads");
        assert_same_bits(&one.1, &many.1);
    }
}

#[track_caller]
fn assert_same_bits(one: &ResultMap, many: &ResultMap) {
    let bits = |numbers: &[f64]| numbers.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    let energy = |results: &ResultMap| bits(&[number(results, "energy")]);
    assert_eq!(energy(one), energy(many));
    let levels = |results: &ResultMap| results.get::<Vec<f64>>("orbital_energies").unwrap();
    assert_eq!(bits(&levels(one)), bits(&levels(many)));
    for name in ["orbitals", "density"] {
        let matrix = |results: &ResultMap| results.get::<Matrix>(name).unwrap();
        // Not assert_eq, which would print all of them.
        assert!(
            bits(matrix(one).values()) == bits(matrix(many).values()),
            "{name}"
        );
    }
}

/// All that a system needs, kept in one place for the tests that iterate by hand.
struct Parts {
    molecule: Molecule,
    basis: MolecularBasis,
    overlap: Matrix,
    core: Matrix,
    repulsion: Repulsion,
}

impl Parts {
    fn new(molecule: Molecule, set: &str) -> Self {
        let basis = on(&molecule, set, Harmonics::Published);
        let mut core = kinetic(&basis);
        core.add_scaled(1.0, &nuclear_attraction(&basis, &molecule));
        Self {
            overlap: overlap(&basis),
            repulsion: Repulsion::compute(&basis, DEFAULT_MEMORY_LIMIT).unwrap(),
            molecule,
            basis,
            core,
        }
    }

    fn system(&self) -> System<'_> {
        let pairs = self.molecule.electron_pairs().unwrap();
        let nuclear = self.molecule.nuclear_repulsion();
        System::new(&self.overlap, &self.core, &self.repulsion, pairs, nuclear).unwrap()
    }
}

fn saved_and_loaded(state: &ScfState) -> ScfState {
    let mut bytes = Vec::new();
    ciborium::into_writer(state, &mut bytes).unwrap();
    ciborium::from_reader(&bytes[..]).unwrap()
}

type Method = fn(&History) -> Result<Matrix, ScfError>;

/// Pulay's method, damping, and the last matrix as it is.
const METHODS: [Method; 3] = [
    diis,
    |history| damped(history, 0.4),
    |history| damped(history, 0.0),
];

#[test]
fn going_on_from_any_saved_state_ends_in_the_same_bits() {
    let parts = Parts::new(water(), "6-31G");
    let convergence = Convergence::default();
    for method in METHODS {
        let next = |state: &ScfState| step(&parts.system(), &convergence, state, method).unwrap();
        let guess = guess::atoms(&parts.basis, &parts.molecule).unwrap();
        let mut states = vec![ScfState::start(&parts.system(), &guess).unwrap()];
        while !states[states.len() - 1].converged {
            states.push(next(&states[states.len() - 1]));
        }
        let last = &states[states.len() - 1];
        for saved in &states {
            let mut state = saved_and_loaded(saved);
            while !state.converged {
                state = saved_and_loaded(&next(&state));
            }
            // Not assert_eq, which would print all matrices.
            assert!(&state == last, "from iteration {}", saved.iteration);
            assert!(&next(&state) == last, "a converged state must stay");
        }
    }
}

#[test]
fn all_methods_and_guesses_end_at_the_same_energy() {
    let parts = Parts::new(water(), "STO-3G");
    let system = parts.system();
    let convergence = Convergence::default();
    let nowhere = Matrix::zeros(parts.basis.functions(), parts.basis.functions());
    for (which, method) in METHODS.into_iter().enumerate() {
        for guess in [
            guess::atoms(&parts.basis, &parts.molecule).unwrap(),
            nowhere.clone(),
        ] {
            let mut state = ScfState::start(&system, &guess).unwrap();
            while !state.converged {
                state = step(&system, &convergence, &state, method).unwrap();
            }
            let off = state.energy + 74.963_023_163;
            assert!(off.abs() < 1e-8, "method {which}: {off}");
        }
    }
}

/// Here Pulay's method alone jumps between two sets of orbitals without end.
#[test]
fn a_bond_stretched_far_converges_to_the_lowest_solution() {
    let stretched = Molecule::from_xyz("2\n\nH 0 0 0\nF 0 0 3\n", 0).unwrap();
    let results = rhf(&stretched, &named("STO-3G"), Harmonics::Published);
    let energy = number(&results, "energy");
    // By PySCF's second-order method, followed along its instabilities.
    assert!((energy + 98.116_039_975).abs() < 1e-8, "{energy}");
    assert!(*results.get::<u64>("iterations").unwrap() > PATIENCE);
}

/// The field of two atoms that do not touch gives two orbitals of one energy. The eigenvalue solver
/// gave the one on a single atom at 12 and 15 ångström, and the iterations stayed with H- and H+:
/// -0.2027 hartree, a dipole moment of 72 debye.
#[test]
fn two_atoms_far_apart_share_their_electrons() {
    for distance in [8.0_f64, 10.0, 11.0, 12.0, 13.0, 15.0, 20.0, 50.0] {
        for turned in [[0.0, 0.0, 1.0], [0.6, 0.0, 0.8]] {
            let [x, y, z] = turned.map(|part: f64| part * distance);
            let xyz = format!("2\n\nH 0 0 0\nH {x} {y} {z}\n");
            let stretched = Molecule::from_xyz(&xyz, 0).unwrap();
            let results = rhf(&stretched, &named("STO-3G"), Harmonics::Published);
            // Each electron alone, and half of the time both on one atom: 0.774606 hartree for
            // that, and as much less as two at that distance would repel each other.
            let bohr = distance / 0.529_177_210_92;
            let expected = 2.0 * -0.466_581_849_6 + 0.5 * (0.774_605_930_4 - 1.0 / bohr);
            let energy = number(&results, "energy");
            assert!(
                (energy - expected).abs() < 2e-6,
                "{distance}: {energy} {expected}"
            );
            let dipole = results.get::<DipoleMoment>("dipole").unwrap();
            assert!(dipole.magnitude_debye() < 1e-5, "{distance}: {dipole:?}");
        }
    }
}

#[test]
fn what_cannot_be_computed_is_an_error() {
    let water = water();
    let few = Rhf::app().iterations(2).into();
    let failure = |molecule: &Molecule| {
        try_rhf(&few, molecule, &named("STO-3G"), Harmonics::Published).unwrap_err()
    };
    assert!(matches!(
        cause(&failure(&water)),
        Some(ScfError::NotConverged { iterations: 2, .. })
    ));
    // Eight pairs in seven functions.
    let charged = water.with_charge(-6).unwrap();
    assert!(matches!(
        cause(&failure(&charged)),
        Some(ScfError::TooFewFunctions {
            pairs: 8,
            orbitals: 7
        })
    ));
    let odd = water.with_charge(1).unwrap();
    assert!(cause::<MoleculeError>(&failure(&odd)).is_some());
    let basis = on(&water, "STO-3G", Harmonics::Published);
    assert!(matches!(
        Repulsion::compute(&basis, 100),
        Err(IntegralError::Memory {
            functions: 7,
            bytes: 3248,
            limit: 100
        })
    ));
    let parts = Parts::new(water, "STO-3G");
    let wrong = Matrix::zeros(8, 8);
    assert!(matches!(
        System::new(&wrong, &parts.core, &parts.repulsion, 5, 0.0),
        Err(ScfError::Shape {
            found: 8,
            expected: 7,
            ..
        })
    ));
    assert!(ScfState::start(&parts.system(), &wrong).is_err());
}

#[test]
fn nearly_dependent_functions_are_left_out() {
    // The two widest functions are a million times wider than their distance.
    let close = Molecule::from_xyz("2\n\nH 0 0 0\nH 0 0 0.1001\n", 0).unwrap();
    let wide = BasisSet::from_nwchem("wide", "H S\n 0.0000001 1\nH S\n 1.0 1\n").unwrap();
    let results = rhf(&close, &wide, Harmonics::Published);
    let levels = results.get::<Vec<f64>>("orbital_energies").unwrap();
    assert_eq!(levels.len(), 3);
    assert!(number(&results, "energy").is_finite());
}
