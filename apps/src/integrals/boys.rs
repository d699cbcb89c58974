//! The Boys function F_m(T) = ∫₀¹ u^2m exp(-T u²) du.
//!
//! Every Coulomb integral over Gaussians ends in it, so it is called once a pair of
//! primitive pairs and must be fast and good to the last few bits. Three ranges:
//!
//! - T below 36: a table at steps of 1/20 gives the highest order by a Taylor series (the
//!   derivative of F_m is -F_m+1), seven terms of which leave less than 1e-16; the lower
//!   orders follow downwards, where the recurrence loses nothing.
//! - T from 36: erf(√T) is 1 to the last bit, which gives F_0; the higher orders follow
//!   upwards, which is stable while T is well above the order (the highest is 24).

use std::sync::LazyLock;

/// The highest order: a quartet of i functions.
pub(super) const MAX_ORDER: usize = 24;

/// Terms of the Taylor series.
const TERMS: usize = 7;
const STEPS_PER_UNIT: f64 = 20.0;
const TABLE_END: f64 = 36.0;
const POINTS: usize = 722;
const WIDTH: usize = MAX_ORDER + TERMS;

/// 1/k.
const RECIPROCALS: [f64; TERMS] = {
    let mut values = [0.0; TERMS];
    let mut k = 1;
    while k < TERMS {
        values[k] = 1.0 / k as f64;
        k += 1;
    }
    values
};

/// 1/(2m+1).
const ODD_RECIPROCALS: [f64; MAX_ORDER] = {
    let mut values = [0.0; MAX_ORDER];
    let mut m = 0;
    while m < MAX_ORDER {
        values[m] = 1.0 / (2 * m + 1) as f64;
        m += 1;
    }
    values
};

/// F of all orders at the points of the grid, one point after the other, and exp(-T) there.
struct Table {
    values: Vec<[f64; WIDTH]>,
    exponentials: Vec<f64>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let points = (0..POINTS).map(|i| i as f64 / STEPS_PER_UNIT);
    Table {
        values: points.clone().map(by_series).collect(),
        exponentials: points.map(|t| (-t).exp()).collect(),
    }
});

/// All orders at one argument, by the convergent series of the highest.
fn by_series(t: f64) -> [f64; WIDTH] {
    let top = WIDTH - 1;
    let exponential = (-t).exp();
    let mut term = 1.0 / (2 * top + 1) as f64;
    let mut sum = term;
    let mut odd = (2 * top + 3) as f64;
    while term > 1e-18 * sum {
        term *= 2.0 * t / odd;
        sum += term;
        odd += 2.0;
    }
    let mut values = [0.0; WIDTH];
    values[top] = exponential * sum;
    for m in (0..top).rev() {
        values[m] = (2.0 * t * values[m + 1] + exponential) / (2 * m + 1) as f64;
    }
    values
}

/// Fills `out` with F_0 to F_m, where m is its length less 1.
///
/// `t` must not be negative and `out` hold 1 to [`MAX_ORDER`] + 1 values.
#[inline]
pub(super) fn boys(t: f64, out: &mut [f64]) {
    let top = out.len() - 1;
    if t >= TABLE_END {
        upwards(t, out);
        return;
    }
    let point = (t * STEPS_PER_UNIT + 0.5) as usize;
    let d = point as f64 / STEPS_PER_UNIT - t;
    let row = &TABLE.values[point][top..top + TERMS];
    let mut series = row[TERMS - 1];
    for k in (0..TERMS - 1).rev() {
        series = row[k] + series * d * RECIPROCALS[k + 1];
    }
    out[top] = series;
    if top > 0 {
        let mut exponential = 1.0;
        for k in (0..TERMS - 1).rev() {
            exponential = 1.0 + exponential * d * RECIPROCALS[k + 1];
        }
        exponential *= TABLE.exponentials[point];
        for m in (0..top).rev() {
            out[m] = (2.0 * t * out[m + 1] + exponential) * ODD_RECIPROCALS[m];
        }
    }
}

fn upwards(t: f64, out: &mut [f64]) {
    let half = 0.5 / t;
    let exponential = (-t).exp();
    out[0] = 0.5 * (std::f64::consts::PI / t).sqrt();
    for m in 1..out.len() {
        out[m] = ((2 * m - 1) as f64 * out[m - 1] - exponential) * half;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_series_everywhere() {
        for i in 0..6000 {
            let t = f64::from(i) * 0.0101;
            let exact = by_series(t);
            for top in [0, 1, 4, 12, MAX_ORDER] {
                let mut values = vec![0.0; top + 1];
                boys(t, &mut values);
                for (m, value) in values.iter().enumerate() {
                    let off = (value - exact[m]).abs();
                    assert!(
                        off <= 2e-14 * exact[m] + 1e-17,
                        "F_{m}({t}): {value} {}",
                        exact[m]
                    );
                }
            }
        }
    }

    #[test]
    fn known_values() {
        let mut values = [0.0; 3];
        boys(0.0, &mut values);
        for (m, value) in values.iter().enumerate() {
            assert!((value - 1.0 / (2 * m + 1) as f64).abs() < 1e-16);
        }
        // F_0(1) = √π/2 erf(1)
        boys(1.0, &mut values);
        assert!((values[0] - 0.746_824_132_812_427).abs() < 1e-15);
        boys(1e20, &mut values);
        assert!(values.iter().all(|v| v.is_finite() && *v > 0.0));
    }
}
