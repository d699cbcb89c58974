//! Changing one bond length or one angle.
//!
//! The part of the molecule that hangs on the last named atom moves with it, so that a
//! scanned methanol keeps its methyl group in shape. Bonds are decided
//! by distance: two atoms are bonded when they are nearer than the sum of their covalent
//! radii plus [`BOND_TOLERANCE`], in the geometry before the move.
//!
//! - Bond I J: J and all that is connected to J without crossing the bond I-J move along the
//!   line from I to J. If I itself can be reached that way (I-J is part of a ring, or I and J
//!   are two arms of one atom), only J moves.
//! - Angle I J K: K and all that is connected to K without passing J turn about J in the
//!   plane of the three atoms. If I can be reached that way, only K turns.
//!
//! Atoms that do not move keep their bits.

use super::{Atom, FARTHEST, LEAST_DISTANCE, Molecule, MoleculeError};

/// The length by which a bond may exceed the sum of the covalent radii, in ångström.
pub const BOND_TOLERANCE: f64 = 0.45;

/// The distance of two points.
pub(crate) fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    length(difference(a, b))
}

impl Molecule {
    /// The distance of two atoms (counted from 1) in ångström.
    ///
    /// # Errors
    /// An atom that is not there, or the same atom twice.
    pub fn bond_length(&self, i: usize, j: usize) -> Result<f64, MoleculeError> {
        self.check_atoms(&[i, j], "bond")?;
        Ok(distance(self.place(i), self.place(j)))
    }

    /// The angle I-J-K (atoms counted from 1) in degrees, from 0 to 180.
    ///
    /// # Errors
    /// An atom that is not there or is named twice.
    pub fn angle(&self, i: usize, j: usize, k: usize) -> Result<f64, MoleculeError> {
        self.check_atoms(&[i, j, k], "angle")?;
        let u = difference(self.place(i), self.place(j));
        let v = difference(self.place(k), self.place(j));
        Ok(length(cross(u, v)).atan2(dot(u, v)).to_degrees())
    }

    /// This molecule with the atoms I and J (counted from 1) at `bond` ångström from one
    /// another; I stays, J moves with what hangs on it.
    ///
    /// # Errors
    /// An atom that is not there or is named twice, a length that makes no sense, or a
    /// geometry in which atoms come to lie on top of each other.
    ///
    /// ```
    /// use sde_apps::molecule::Molecule;
    /// let carbon_monoxide = Molecule::from_xyz("2\n\nC 0 0 0\nO 0 0 1.13\n", 0)?;
    /// let stretched = carbon_monoxide.with_bond_length(1, 2, 1.5)?;
    /// assert_eq!(stretched.atoms()[1].position, [0.0, 0.0, 1.5]);
    /// # Ok::<(), sde_apps::molecule::MoleculeError>(())
    /// ```
    pub fn with_bond_length(&self, i: usize, j: usize, bond: f64) -> Result<Self, MoleculeError> {
        self.check_atoms(&[i, j], "bond")?;
        check_range("bond length", bond, "angstrom", LEAST_DISTANCE, FARTHEST)?;
        let (from, to) = (self.place(i), self.place(j));
        let now = distance(from, to);
        let shift = difference(to, from).map(|x| x * (bond - now) / now);
        let moving = self.hanging_on(j - 1, i - 1, Crossing::Bond);
        self.moved(&moving, |place| {
            std::array::from_fn(|a| place[a] + shift[a])
        })
    }

    /// This molecule with the angle I-J-K (atoms counted from 1) at `degrees`; I and J stay,
    /// K turns with what hangs on it.
    ///
    /// With the three atoms on a line the plane is not determined; then the one that holds
    /// the coordinate axis farthest from that line is taken.
    ///
    /// # Errors
    /// As [`Molecule::with_bond_length`].
    pub fn with_angle(
        &self,
        i: usize,
        j: usize,
        k: usize,
        degrees: f64,
    ) -> Result<Self, MoleculeError> {
        let now = self.angle(i, j, k)?;
        check_range("angle", degrees, "degrees", 0.0, 180.0)?;
        let centre = self.place(j);
        let u = difference(self.place(i), centre);
        let v = difference(self.place(k), centre);
        let axis = normal(u, v);
        let (sin, cos) = (degrees - now).to_radians().sin_cos();
        let moving = self.hanging_on(k - 1, i - 1, Crossing::Atom(j - 1));
        self.moved(&moving, |place| {
            turned(difference(place, centre), axis, sin, cos, centre)
        })
    }

    fn place(&self, atom: usize) -> [f64; 3] {
        self.atoms[atom - 1].position
    }

    fn check_atoms(&self, named: &[usize], what: &'static str) -> Result<(), MoleculeError> {
        let count = self.atoms.len();
        for (place, &atom) in named.iter().enumerate() {
            if atom == 0 || atom > count {
                return Err(MoleculeError::NoSuchAtom { atom, count });
            }
            if named[..place].contains(&atom) {
                return Err(MoleculeError::SameAtom { atom, what });
            }
        }
        Ok(())
    }

    /// The atoms that move with `start` when `fixed` stays, by place from 0.
    fn hanging_on(&self, start: usize, fixed: usize, crossing: Crossing) -> Vec<bool> {
        let count = self.atoms.len();
        let mut reached = vec![false; count];
        reached[start] = true;
        let mut open = vec![start];
        while let Some(atom) = open.pop() {
            for (next, other) in self.atoms.iter().enumerate() {
                let forbidden = match crossing {
                    Crossing::Bond => atom == start && next == fixed,
                    Crossing::Atom(centre) => next == centre,
                };
                if !reached[next] && !forbidden && bonded(&self.atoms[atom], other) {
                    reached[next] = true;
                    open.push(next);
                }
            }
        }
        if reached[fixed] {
            reached = vec![false; count];
            reached[start] = true;
        }
        reached
    }

    fn moved(
        &self,
        moving: &[bool],
        to: impl Fn([f64; 3]) -> [f64; 3],
    ) -> Result<Self, MoleculeError> {
        let mut atoms = self.atoms.clone();
        for (atom, _) in atoms.iter_mut().zip(moving).filter(|(_, moves)| **moves) {
            atom.position = to(atom.position);
        }
        Self::new(atoms, self.charge)
    }
}

/// The part of the molecule that a walk along the bonds may not cross.
#[derive(Clone, Copy)]
enum Crossing {
    /// The bond between the start and the fixed atom.
    Bond,
    /// This atom.
    Atom(usize),
}

fn bonded(a: &Atom, b: &Atom) -> bool {
    let radii = a.element.covalent_radius() + b.element.covalent_radius();
    distance(a.position, b.position) <= radii + BOND_TOLERANCE
}

fn check_range(
    what: &'static str,
    value: f64,
    unit: &'static str,
    least: f64,
    most: f64,
) -> Result<(), MoleculeError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(MoleculeError::BadValue {
        what,
        value,
        unit,
        least,
        most,
    })
}

/// A unit vector about which turning `u` by a positive angle leads to `v`.
fn normal(u: [f64; 3], v: [f64; 3]) -> [f64; 3] {
    let mut axis = cross(u, v);
    // Below this share of their lengths the direction of the product is rounding noise.
    if length(axis) < 1e-8 * length(u) * length(v) {
        let mut unit = [0.0; 3];
        let farthest = (1..3).fold(
            0,
            |best, a| {
                if u[a].abs() < u[best].abs() { a } else { best }
            },
        );
        unit[farthest] = 1.0;
        axis = cross(u, unit);
    }
    let long = length(axis);
    axis.map(|x| x / long)
}

/// Rodrigues' formula: `arm` turned about `axis`, put back at `centre`.
fn turned(arm: [f64; 3], axis: [f64; 3], sin: f64, cos: f64, centre: [f64; 3]) -> [f64; 3] {
    let across = cross(axis, arm);
    let along = dot(axis, arm) * (1.0 - cos);
    std::array::from_fn(|a| centre[a] + arm[a] * cos + across[a] * sin + axis[a] * along)
}

fn difference(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|i| a[i] - b[i])
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn length(a: [f64; 3]) -> f64 {
    dot(a, a).sqrt()
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn water() -> Molecule {
        Molecule::from_xyz(
            "3\n\nO 0 0 0.1173\nH 0 0.7572 -0.4692\nH 0 -0.7572 -0.4692\n",
            0,
        )
        .unwrap()
    }

    /// H3C-OH, bent at the oxygen.
    fn methanol() -> Molecule {
        Molecule::from_xyz(
            "6\n\nC -0.7 0 0\nO 0.7 0.1 0\nH 1.0 -0.8 0\nH -1.1 -1.0 0\nH -1.0 0.5 0.9\nH -1.0 0.5 -0.9\n",
            0,
        )
        .unwrap()
    }

    #[test]
    fn a_bond_of_water() {
        for length in [0.5, 0.96, 3.0] {
            let moved = water().with_bond_length(1, 2, length).unwrap();
            assert!((moved.bond_length(1, 2).unwrap() - length).abs() < 1e-14);
            assert_eq!(moved.atoms()[2], water().atoms()[2]);
            assert!(
                (moved.angle(2, 1, 3).unwrap() - water().angle(2, 1, 3).unwrap()).abs() < 1e-10
            );
        }
    }

    #[test]
    fn a_fragment_moves_as_a_whole() {
        let before = methanol();
        let after = before.with_bond_length(1, 2, 2.0).unwrap();
        assert!((after.bond_length(1, 2).unwrap() - 2.0).abs() < 1e-14);
        let oxygen_hydrogen = before.bond_length(2, 3).unwrap();
        assert!((after.bond_length(2, 3).unwrap() - oxygen_hydrogen).abs() < 1e-14);
        for atom in [0, 3, 4, 5] {
            assert_eq!(after.atoms()[atom], before.atoms()[atom]);
        }
    }

    #[test]
    fn two_arms_of_one_atom_and_rings_move_one_atom() {
        let moved = water().with_bond_length(2, 3, 2.0).unwrap();
        assert_eq!(moved.atoms()[0], water().atoms()[0]);
        assert_eq!(moved.atoms()[1], water().atoms()[1]);
        assert!((moved.bond_length(2, 3).unwrap() - 2.0).abs() < 1e-14);
        let ring = Molecule::from_xyz("3\n\nC 0 0 0\nC 1.5 0 0\nC 0.75 1.3 0\n", 0).unwrap();
        let moved = ring.with_bond_length(1, 2, 1.7).unwrap();
        assert_eq!(moved.atoms()[2], ring.atoms()[2]);
    }

    #[test]
    fn an_angle_turns_what_hangs_on_the_last_atom() {
        for degrees in [10.0, 104.5, 180.0] {
            let moved = water().with_angle(2, 1, 3, degrees).unwrap();
            assert!((moved.angle(2, 1, 3).unwrap() - degrees).abs() < 1e-6);
            assert!(
                (moved.bond_length(1, 3).unwrap() - water().bond_length(1, 3).unwrap()).abs()
                    < 1e-14
            );
            assert_eq!(moved.atoms()[1], water().atoms()[1]);
        }
        // The methyl group turns with its carbon.
        let before = methanol();
        let after = before.with_angle(3, 2, 1, 120.0).unwrap();
        assert!((after.angle(3, 2, 1).unwrap() - 120.0).abs() < 1e-10);
        for hydrogen in [4, 5, 6] {
            let bond = before.bond_length(1, hydrogen).unwrap();
            assert!((after.bond_length(1, hydrogen).unwrap() - bond).abs() < 1e-14);
        }
    }

    #[test]
    fn a_straight_molecule_can_be_bent() {
        let straight = Molecule::from_xyz("3\n\nO 0 0 -1.16\nC 0 0 0\nO 0 0 1.16\n", 0).unwrap();
        let bent = straight.with_angle(1, 2, 3, 120.0).unwrap();
        assert!((bent.angle(1, 2, 3).unwrap() - 120.0).abs() < 1e-10);
    }

    #[test]
    fn moves_that_make_no_sense() {
        use MoleculeError as E;
        let water = water();
        assert!(matches!(
            water.with_bond_length(1, 4, 1.0),
            Err(E::NoSuchAtom { atom: 4, count: 3 })
        ));
        assert!(matches!(
            water.with_bond_length(0, 1, 1.0),
            Err(E::NoSuchAtom { atom: 0, .. })
        ));
        assert!(matches!(
            water.with_bond_length(2, 2, 1.0),
            Err(E::SameAtom { atom: 2, .. })
        ));
        assert!(matches!(
            water.with_angle(1, 2, 1, 90.0),
            Err(E::SameAtom { atom: 1, .. })
        ));
        for length in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert!(matches!(
                water.with_bond_length(1, 2, length),
                Err(E::BadValue { .. })
            ));
        }
        for degrees in [-1.0, 181.0, f64::NAN] {
            assert!(matches!(
                water.with_angle(2, 1, 3, degrees),
                Err(E::BadValue { .. })
            ));
        }
        assert!(matches!(
            water.with_angle(2, 1, 3, 0.0),
            Err(E::OnTop { .. })
        ));
    }
}
