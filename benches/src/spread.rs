//! The middle of many numbers, and how far apart they lie.

/// Median and quartiles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// A quarter of the numbers are below.
    pub low: f64,
    /// Half of the numbers are below.
    pub median: f64,
    /// A quarter of the numbers are above.
    pub high: f64,
}

impl Spread {
    /// The spread of `numbers`; `None` if there are none.
    pub fn of(mut numbers: Vec<f64>) -> Option<Self> {
        let last = numbers.len().checked_sub(1)?;
        numbers.sort_by(f64::total_cmp);
        let at = |quarter: usize| numbers[(last * quarter + 2) / 4];
        Some(Self {
            low: at(1),
            median: at(2),
            high: at(3),
        })
    }
}

/// With two decimals: `1.20 (1.11-1.32)`.
impl std::fmt::Display for Spread {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{:.2} ({:.2}-{:.2})", self.median, self.low, self.high)
    }
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn median_and_quartiles() {
        assert_eq!(Spread::of(vec![]), None);
        let one = Spread::of(vec![7.0]).unwrap();
        assert_eq!((one.low, one.median, one.high), (7.0, 7.0, 7.0));
        let five = Spread::of(vec![5.0, 1.0, 4.0, 2.0, 3.0]).unwrap();
        assert_eq!((five.low, five.median, five.high), (2.0, 3.0, 4.0));
    }
}
