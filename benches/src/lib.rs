//! Timing, as all benchmarks here do it: all cases that are compared, in one run, in turn.
//!
//! A machine does not hold still: clocks change, neighbours come and go. A time from a minute ago
//! says little about one from now; the *ratio* of two that were taken within milliseconds of each
//! other says a lot. So a [`Comparison`] runs its cases round after round, each for a fraction of a
//! millisecond, in an order that shifts from round to round. It reports the median of the
//! ratios within a round, with the quartiles beside it so that noise shows.
//!
//! ```
//! use sde_benches::{Comparison, Settings, repeat};
//!
//! let mut comparison = Comparison::new(Settings::quick());
//! comparison.case("add", 1, |run| repeat(run, |i| i + 1));
//! comparison.case("divide", 1, |run| repeat(run, |i| (i << 20) / (i + 1)));
//! let measured = comparison.run();
//! let ratio = measured.ratio("divide", "add").unwrap();
//! assert!(ratio.low <= ratio.median && ratio.median <= ratio.high);
//! ```

#![forbid(unsafe_code)]

mod measure;
mod spread;
pub mod table;
mod tries;

pub use measure::{Comparison, Measured, Run, Settings, repeat};
pub use spread::Spread;
pub use tries::Tries;
