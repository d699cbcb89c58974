//! The elements from hydrogen to xenon: symbols and covalent radii.

use sde::Fingerprint;
use serde::{Deserialize, Serialize};

/// Symbol and covalent radius in ångström, by atomic number from 1.
///
/// Radii: B. Cordero et al., Dalton Trans. 2008, 2832 (sp3 carbon; low-spin Mn, Fe, Co).
const TABLE: [(&str, f64); 54] = [
    ("H", 0.31),
    ("He", 0.28),
    ("Li", 1.28),
    ("Be", 0.96),
    ("B", 0.84),
    ("C", 0.76),
    ("N", 0.71),
    ("O", 0.66),
    ("F", 0.57),
    ("Ne", 0.58),
    ("Na", 1.66),
    ("Mg", 1.41),
    ("Al", 1.21),
    ("Si", 1.11),
    ("P", 1.07),
    ("S", 1.05),
    ("Cl", 1.02),
    ("Ar", 1.06),
    ("K", 2.03),
    ("Ca", 1.76),
    ("Sc", 1.70),
    ("Ti", 1.60),
    ("V", 1.53),
    ("Cr", 1.39),
    ("Mn", 1.39),
    ("Fe", 1.32),
    ("Co", 1.26),
    ("Ni", 1.24),
    ("Cu", 1.32),
    ("Zn", 1.22),
    ("Ga", 1.22),
    ("Ge", 1.20),
    ("As", 1.19),
    ("Se", 1.20),
    ("Br", 1.20),
    ("Kr", 1.16),
    ("Rb", 2.20),
    ("Sr", 1.95),
    ("Y", 1.90),
    ("Zr", 1.75),
    ("Nb", 1.64),
    ("Mo", 1.54),
    ("Tc", 1.47),
    ("Ru", 1.46),
    ("Rh", 1.42),
    ("Pd", 1.39),
    ("Ag", 1.45),
    ("Cd", 1.44),
    ("In", 1.42),
    ("Sn", 1.39),
    ("Sb", 1.39),
    ("Te", 1.38),
    ("I", 1.39),
    ("Xe", 1.40),
];

/// A chemical element from hydrogen (1) to xenon (54).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Fingerprint,
)]
#[serde(try_from = "u8", into = "u8")]
pub struct Element(u8);

impl Element {
    /// The last element of the table: xenon.
    pub const LAST: u8 = 54;

    /// The element with this atomic number, or `None` outside 1 to [`Element::LAST`].
    #[must_use]
    pub fn from_atomic_number(number: u32) -> Option<Self> {
        let number = u8::try_from(number).ok()?;
        (1..=Self::LAST).contains(&number).then_some(Self(number))
    }

    /// The element with this symbol, whatever the case of its letters.
    ///
    /// ```
    /// use sde_apps::molecule::Element;
    /// assert_eq!(Element::from_symbol("CL").map(|e| e.atomic_number()), Some(17));
    /// assert_eq!(Element::from_symbol("Xx"), None);
    /// ```
    #[must_use]
    pub fn from_symbol(symbol: &str) -> Option<Self> {
        let place = TABLE
            .iter()
            .position(|(known, _)| known.eq_ignore_ascii_case(symbol))?;
        Self::from_atomic_number(u32::try_from(place + 1).ok()?)
    }

    /// The number of protons.
    #[must_use]
    pub fn atomic_number(self) -> u8 {
        self.0
    }

    /// The symbol, as "Cl".
    #[must_use]
    pub fn symbol(self) -> &'static str {
        TABLE[usize::from(self.0) - 1].0
    }

    /// The covalent radius in ångström.
    #[must_use]
    pub fn covalent_radius(self) -> f64 {
        TABLE[usize::from(self.0) - 1].1
    }
}

impl From<Element> for u8 {
    fn from(element: Element) -> u8 {
        element.0
    }
}

impl TryFrom<u8> for Element {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        Self::from_atomic_number(u32::from(number))
            .ok_or_else(|| format!("there is no element with the atomic number {number} here"))
    }
}

impl std::fmt::Display for Element {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.symbol())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_symbol_finds_its_element() {
        for number in 1..=u32::from(Element::LAST) {
            let element = Element::from_atomic_number(number).unwrap();
            assert_eq!(Element::from_symbol(element.symbol()), Some(element));
        }
        assert_eq!(Element::from_symbol("Kr").unwrap().atomic_number(), 36);
        assert_eq!(Element::from_atomic_number(0), None);
        assert_eq!(Element::from_atomic_number(55), None);
        assert_eq!(Element::from_atomic_number(1000), None);
    }
}
