//! The angular parts of Gaussians, and their norms.
//!
//! A primitive function is a monomial x^a y^b z^c times exp(-αr²). The norm of x^l is put
//! into the contraction coefficients; what a function of a shell needs beyond it, its
//! mixture of monomials, is a row of [`components`]. The real solid harmonics are built by
//! the usual recurrence of the associated Legendre functions, as polynomials, and normalized
//! by the overlap of monomials at one centre, so no table of coefficients is needed.

use std::collections::BTreeMap;

/// A polynomial in x, y, z by powers.
type Polynomial = BTreeMap<[u8; 3], f64>;

/// The powers of x, y, z of the monomials of degree `l`: xx, xy, xz, yy, yz, zz for 2.
#[must_use]
pub fn cartesian_powers(l: usize) -> Vec<[usize; 3]> {
    let mut powers = Vec::with_capacity((l + 1) * (l + 2) / 2);
    for a in (0..=l).rev() {
        for b in (0..=l - a).rev() {
            powers.push([a, b, l - a - b]);
        }
    }
    powers
}

/// The functions of a shell: each row mixes the monomials of [`cartesian_powers`].
///
/// A row is scaled so that the function has the norm 1 when x^l with the same radial part
/// has. Spherical functions run over m from -l to l.
#[must_use]
pub fn components(l: usize, spherical: bool) -> Vec<Vec<f64>> {
    let powers = cartesian_powers(l);
    let rows: Vec<Vec<f64>> = if spherical {
        let degree = i64::try_from(l).unwrap_or(0);
        (-degree..=degree)
            .map(|m| coefficients(&solid_harmonic(l, m), &powers))
            .collect()
    } else {
        (0..powers.len())
            .map(|one| {
                (0..powers.len())
                    .map(|c| f64::from(u8::from(c == one)))
                    .collect()
            })
            .collect()
    };
    rows.into_iter().map(|row| scaled(row, &powers)).collect()
}

fn coefficients(polynomial: &Polynomial, powers: &[[usize; 3]]) -> Vec<f64> {
    let of = |power: &[usize; 3]| polynomial.get(&power.map(|n| n as u8)).copied();
    powers
        .iter()
        .map(|power| of(power).unwrap_or(0.0))
        .collect()
}

/// Scales a row to the norm of x^l. The overlap of two monomials with equal exponents is
/// the product of (n-1)!! over the sums n of their powers, or 0 when one is odd.
fn scaled(row: Vec<f64>, powers: &[[usize; 3]]) -> Vec<f64> {
    let mut norm = 0.0;
    for (c, p) in row.iter().zip(powers) {
        for (d, q) in row.iter().zip(powers) {
            norm += c * d * (0..3).map(|a| moment(p[a] + q[a])).product::<f64>();
        }
    }
    let of_x = moment(2 * powers[0][0]);
    let factor = (of_x / norm).sqrt();
    row.into_iter().map(|c| c * factor).collect()
}

/// (n-1)!! for even n, 0 for odd.
fn moment(n: usize) -> f64 {
    if n % 2 == 1 {
        return 0.0;
    }
    (1..n).step_by(2).map(|k| k as f64).product()
}

/// An unnormalized real solid harmonic of degree `l` and order `m`.
fn solid_harmonic(l: usize, m: i64) -> Polynomial {
    let order = usize::try_from(m.unsigned_abs()).unwrap_or(0);
    multiply(&legendre(l, order), &azimuthal(order, m < 0))
}

/// r^(l-m) times the m-th derivative of a Legendre polynomial, up to a factor.
fn legendre(l: usize, m: usize) -> Polynomial {
    let z = Polynomial::from([([0, 0, 1], 1.0)]);
    let r2 = Polynomial::from([([2, 0, 0], 1.0), ([0, 2, 0], 1.0), ([0, 0, 2], 1.0)]);
    let mut before = Polynomial::new();
    let mut now = Polynomial::from([([0, 0, 0], 1.0)]);
    for degree in m..l {
        let (up, down) = ((2 * degree + 1) as f64, (degree + m) as f64);
        let below = (degree + 1 - m) as f64;
        let mut next = scale(&multiply(&z, &now), up / below);
        for (power, c) in scale(&multiply(&r2, &before), -down / below) {
            *next.entry(power).or_insert(0.0) += c;
        }
        before = std::mem::replace(&mut now, next);
    }
    now
}

/// The imaginary (sine) or real (cosine) part of (x + iy)^m.
fn azimuthal(m: usize, sine: bool) -> Polynomial {
    let mut part = Polynomial::new();
    let mut binomial = 1.0;
    for k in 0..=m {
        let sign = if k % 4 < 2 { 1.0 } else { -1.0 };
        if (k % 2 == 1) == sine {
            part.insert([(m - k) as u8, k as u8, 0], sign * binomial);
        }
        binomial = binomial * (m - k) as f64 / (k + 1) as f64;
    }
    part
}

fn multiply(a: &Polynomial, b: &Polynomial) -> Polynomial {
    let mut product = Polynomial::new();
    for (p, c) in a {
        for (q, d) in b {
            let power = std::array::from_fn(|i| p[i] + q[i]);
            *product.entry(power).or_insert(0.0) += c * d;
        }
    }
    product
}

fn scale(a: &Polynomial, factor: f64) -> Polynomial {
    a.iter().map(|(power, c)| (*power, c * factor)).collect()
}

/// Turns coefficients of normalized primitives into coefficients of x^l exp(-αr²), scaled so
/// that the contracted function has the norm 1.
pub(super) fn normalized(l: u8, exponents: &[f64], column: &[f64]) -> Vec<f64> {
    let l = usize::from(l);
    let raw: Vec<f64> = exponents
        .iter()
        .zip(column)
        .map(|(&alpha, c)| c / self_overlap(l, 2.0 * alpha).sqrt())
        .collect();
    let mut norm = 0.0;
    for (c, alpha) in raw.iter().zip(exponents) {
        for (d, beta) in raw.iter().zip(exponents) {
            norm += c * d * self_overlap(l, alpha + beta);
        }
    }
    raw.into_iter().map(|c| c / norm.sqrt()).collect()
}

/// The integral of x^2l exp(-p r²).
fn self_overlap(l: usize, p: f64) -> f64 {
    let l_power = i32::try_from(l).unwrap_or(0);
    moment(2 * l) * (std::f64::consts::PI / p).powf(1.5) / (2.0 * p).powi(l_power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlap(a: &[f64], b: &[f64], powers: &[[usize; 3]]) -> f64 {
        let mut sum = 0.0;
        for (c, p) in a.iter().zip(powers) {
            for (d, q) in b.iter().zip(powers) {
                sum += c * d * (0..3).map(|i| moment(p[i] + q[i])).product::<f64>();
            }
        }
        sum / moment(2 * powers[0][0])
    }

    #[test]
    fn solid_harmonics_are_orthonormal() {
        for l in 0..=6 {
            let rows = components(l, true);
            let powers = cartesian_powers(l);
            assert_eq!(rows.len(), 2 * l + 1);
            for (i, a) in rows.iter().enumerate() {
                for (j, b) in rows.iter().enumerate() {
                    let expected = f64::from(u8::from(i == j));
                    assert!(
                        (overlap(a, b, &powers) - expected).abs() < 1e-13,
                        "{l} {i} {j}"
                    );
                }
            }
        }
    }

    #[test]
    fn solid_harmonics_solve_laplaces_equation() {
        for l in 2..=6usize {
            for m in -(l as i64)..=l as i64 {
                let mut laplacian = Polynomial::new();
                for (power, c) in solid_harmonic(l, m) {
                    for axis in (0..3).filter(|&axis| power[axis] > 1) {
                        let n = f64::from(power[axis]);
                        let mut lower = power;
                        lower[axis] -= 2;
                        *laplacian.entry(lower).or_insert(0.0) += c * n * (n - 1.0);
                    }
                }
                assert!(laplacian.values().all(|c| c.abs() < 1e-10), "{l} {m}");
            }
        }
    }

    #[test]
    fn cartesian_functions_have_norm_one() {
        for l in 0..=4 {
            let powers = cartesian_powers(l);
            for row in components(l, false) {
                assert!((overlap(&row, &row, &powers) - 1.0).abs() < 1e-14);
            }
        }
    }

    #[test]
    fn a_contraction_has_norm_one() {
        let exponents = [3.0, 0.5];
        for l in 0..=3 {
            let c = normalized(l, &exponents, &[0.4, 0.7]);
            let mut norm = 0.0;
            for i in 0..2 {
                for j in 0..2 {
                    norm += c[i] * c[j] * self_overlap(usize::from(l), exponents[i] + exponents[j]);
                }
            }
            assert!((norm - 1.0).abs() < 1e-14);
        }
    }
}
