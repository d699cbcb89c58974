//! The sources of the kernels.
//!
//! The files in `cl/` are written for any angular momentum, tile and type of numbers. What is put before them
//! makes a kernel of one kind: tables of powers and norms, and for the repulsion integrals the
//! recurrence of the Coulomb derivatives as straight statements, as generators of such libraries write it.

use std::fmt::Write as _;

use sde::Fingerprint;
use sde::opencl::ProgramSpec;
use sde_apps::basis::{cartesian_powers, components};
use serde::{Deserialize, Serialize};

/// The names of the angular momenta.
const LETTERS: [char; 3] = ['s', 'p', 'd'];

/// A type of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Fingerprint, Serialize, Deserialize)]
pub enum Element {
    Float,
    Double,
}

impl Element {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Float => "float",
            Self::Double => "double",
        }
    }

    /// A number as OpenCL C has it.
    fn literal(self, value: f64) -> String {
        match self {
            Self::Float => format!("{value:e}f"),
            Self::Double => format!("{value:e}"),
        }
    }

    /// The type and the constants of all sources.
    fn prelude(self) -> String {
        use std::f64::consts::PI;
        let enough = match self {
            Self::Float => 1e-9,
            Self::Double => 1e-18,
        };
        let mut text = format!("#define REAL {}\n", self.name());
        for (name, value) in [
            ("PI", PI),
            ("TWO_PI_TO_5_2", 2.0 * PI.powf(2.5)),
            ("ENOUGH", enough),
        ] {
            text += &format!("#define {name} {}\n", self.literal(value));
        }
        text
    }
}

/// Pairs of shells of these angular momenta.
pub fn pairs(element: Element, [a, b]: [usize; 2]) -> ProgramSpec {
    let triples = triples(a + b);
    let mut text = element.prelude();
    for (name, l) in [("A", a), ("B", b)] {
        let powers = cartesian_powers(l);
        text += &format!("#define FUNCTIONS_{name} {}\n", powers.len());
        text += &table("int", &format!("POWERS_{name}"), "[3]", &rows(&powers));
        let norms: Vec<String> = norms(l)
            .into_iter()
            .map(|norm| element.literal(norm))
            .collect();
        text += &table("REAL", &format!("NORMS_{name}"), "", &norms);
    }
    text += &table("int", "TRIPLES", "[3]", &rows(&triples));
    text += include_str!("cl/pairs.cl");
    ProgramSpec::source(text)
        .named(format!("pairs {} {}", letters(&[a, b]), element.name()))
        .define("LA", a)
        .define("LB", b)
        .define("HERMITES", triples.len())
        .define("FUNCTIONS", functions([a, b]))
}

/// Quartets of shells of these angular momenta.
pub fn repulsion(element: Element, bra: [usize; 2], ket: [usize; 2]) -> ProgramSpec {
    let (of_bra, of_ket) = (bra[0] + bra[1], ket[0] + ket[1]);
    let degree = of_bra + of_ket;
    let (bras, kets) = (triples(of_bra), triples(of_ket));
    let mut text = element.prelude();
    text += &format!("#define DEGREE {degree}\n");
    // The place of the sum of two triples.
    let sums = bras.iter().map(|h| {
        let row = kets
            .iter()
            .map(|k| place([h[0] + k[0], h[1] + k[1], h[2] + k[2]]).to_string());
        format!("{{{}}}", row.collect::<Vec<_>>().join(","))
    });
    text += &table(
        "int",
        "SUMS",
        &format!("[{}]", kets.len()),
        &sums.collect::<Vec<_>>(),
    );
    // Hermite Gaussians of odd degree change their sign where the other electron looks at them.
    let signs = kets
        .iter()
        .map(|k| 1.0 - 2.0 * (k.iter().sum::<usize>() % 2) as f64);
    let signs: Vec<String> = signs.map(|sign| element.literal(sign)).collect();
    text += &table("REAL", "SIGNS", "", &signs);
    text += include_str!("cl/boys.cl");
    text += &coulomb(degree);
    text += include_str!("cl/repulsion.cl");
    let name = format!(
        "repulsion {}|{} {}",
        letters(&bra),
        letters(&ket),
        element.name()
    );
    ProgramSpec::source(text)
        .named(name)
        .define("BRA", functions(bra))
        .define("KET", functions(ket))
        .define("BRA_HERMITES", bras.len())
        .define("KET_HERMITES", kets.len())
        .define("TRIPLE_COUNT", triples(degree).len())
}

/// A matrix product.
pub fn product(element: Element, tile: usize, transposed: [bool; 2]) -> ProgramSpec {
    let text = element.prelude() + include_str!("cl/product.cl");
    let [a, b] = transposed.map(|yes| if yes { "t" } else { "n" });
    ProgramSpec::source(text)
        .named(format!("product {a}{b} {tile} {}", element.name()))
        .define("TILE", tile)
        .define("TRANSPOSED_A", u8::from(transposed[0]))
        .define("TRANSPOSED_B", u8::from(transposed[1]))
}

/// The derivatives of the Boys function up to a degree, by rising sum of the triples. Each step from
/// n to n - 1 reaches one degree higher; going from the last triple to the first, one array is enough.
fn coulomb(degree: usize) -> String {
    let mut text =
        "static void coulomb(REAL alpha, REAL x, REAL y, REAL z, REAL scale, REAL *r) {\n\
        REAL f[DEGREE + 1];\n\
        boys(alpha * (x * x + y * y + z * z), f);\n\
        for (int m = 0; m <= DEGREE; ++m) { f[m] *= scale; scale *= (REAL)-2 * alpha; }\n\
        r[0] = f[DEGREE];\n"
            .to_owned();
    for n in (0..degree).rev() {
        for (to, triple) in triples(degree - n).into_iter().enumerate().skip(1).rev() {
            let _ = writeln!(text, "r[{to}] = {};", step(triple));
        }
        let _ = writeln!(text, "r[0] = f[{n}];");
    }
    text + "}\n"
}

/// How one triple follows from two of lower degree: along the axis whose power is the least positive
/// one, where often no second term follows.
fn step(triple: [usize; 3]) -> String {
    let axes = (0..3).filter(|axis| triple[*axis] > 0);
    let axis = axes.min_by_key(|axis| triple[*axis]).unwrap_or(0);
    let lowered = |by: usize| {
        let mut lower = triple;
        lower[axis] = lower[axis].saturating_sub(by);
        place(lower)
    };
    let name = ["x", "y", "z"][axis];
    match triple[axis] {
        0 | 1 => format!("{name} * r[{}]", lowered(1)),
        2 => format!("{name} * r[{}] + r[{}]", lowered(1), lowered(2)),
        power => format!(
            "{name} * r[{}] + {} * r[{}]",
            lowered(1),
            power - 1,
            lowered(2)
        ),
    }
}

/// The triples with a sum of at most `degree`, by rising sum: a shorter list begins a longer one.
fn triples(degree: usize) -> Vec<[usize; 3]> {
    (0..=degree).flat_map(cartesian_powers).collect()
}

/// The place of a triple among them.
fn place([t, u, v]: [usize; 3]) -> usize {
    let (sum, rest) = (t + u + v, u + v);
    sum * (sum + 1) * (sum + 2) / 6 + rest * (rest + 1) / 2 + v
}

/// What each monomial is multiplied with to have the norm of the first.
fn norms(l: usize) -> Vec<f64> {
    let rows = components(l, false);
    rows.iter().enumerate().map(|(at, row)| row[at]).collect()
}

/// How many Cartesian functions a pair of shells has.
pub fn functions(pair: [usize; 2]) -> usize {
    let [a, b] = pair.map(|l| (l + 1) * (l + 2) / 2);
    a * b
}

/// How many numbers are kept for a pair of primitives: with the sum of exponents, and the centre.
pub fn pair_length(pair: [usize; 2]) -> usize {
    4 + triples(pair[0] + pair[1]).len() * functions(pair)
}

fn letters(all: &[usize]) -> String {
    all.iter()
        .map(|l| LETTERS.get(*l).copied().unwrap_or('?'))
        .collect()
}

fn rows(all: &[[usize; 3]]) -> Vec<String> {
    let rows = all.iter().map(|[x, y, z]| format!("{{{x},{y},{z}}}"));
    rows.collect()
}

fn table(of: &str, name: &str, inner: &str, rows: &[String]) -> String {
    let (count, rows) = (rows.len(), rows.join(","));
    format!("constant {of} {name}[{count}]{inner} = {{{rows}}};\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_triple() {
        for (at, triple) in triples(8).into_iter().enumerate() {
            assert_eq!(place(triple), at);
        }
    }

    #[test]
    fn steps_lower_one_axis() {
        assert_eq!(step([1, 0, 0]), "x * r[0]");
        assert_eq!(step([0, 2, 0]), "y * r[2] + r[0]");
        assert_eq!(step([0, 1, 3]), "y * r[19]");
        assert_eq!(step([0, 0, 3]), "z * r[9] + 2 * r[3]");
    }
}
