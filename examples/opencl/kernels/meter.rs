//! What it costs to have kernels, and to launch them.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// A family of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Family {
    /// Pairs of primitives.
    Pairs,
    /// Quartets of shells.
    Repulsion,
    /// Matrix products.
    Product,
}

impl Family {
    pub const ALL: [Self; 3] = [Self::Pairs, Self::Repulsion, Self::Product];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Pairs => "pairs",
            Self::Repulsion => "repulsion",
            Self::Product => "product",
        }
    }
}

/// What the kernels of a family cost in one start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    pub built: u64,
    pub loaded: u64,
    pub ready: u64,
    /// Seconds until they were had.
    pub having: f64,
    pub launches: u64,
    /// Seconds from a launch until it was finished: with what the driver compiles then.
    pub launching: f64,
}

impl Costs {
    pub fn kernels(&self) -> u64 {
        self.built + self.loaded + self.ready
    }

    pub fn add(&mut self, other: &Self) {
        self.built += other.built;
        self.loaded += other.loaded;
        self.ready += other.ready;
        self.having += other.having;
        self.launches += other.launches;
        self.launching += other.launching;
    }
}

/// Measures one start.
pub struct Meter {
    begun: Instant,
    costs: [Costs; Family::ALL.len()],
    first_launch: Option<Duration>,
}

impl Meter {
    pub fn since(begun: Instant) -> Self {
        Self {
            begun,
            costs: Default::default(),
            first_launch: None,
        }
    }

    /// So many kernels whose programs were built, loaded from a kept binary, and live.
    pub fn had(&mut self, family: Family, [built, loaded, ready]: [u64; 3], took: Duration) {
        let costs = &mut self.costs[family as usize];
        costs.built += built;
        costs.loaded += loaded;
        costs.ready += ready;
        costs.having += took.as_secs_f64();
    }

    pub fn launched(&mut self, family: Family, took: Duration) {
        let costs = &mut self.costs[family as usize];
        costs.launches += 1;
        costs.launching += took.as_secs_f64();
        self.first_launch
            .get_or_insert_with(|| self.begun.elapsed());
    }

    pub fn costs(&self) -> Vec<(Family, Costs)> {
        Family::ALL.into_iter().zip(self.costs).collect()
    }

    /// Seconds until the first launch was finished.
    pub fn first_launch(&self) -> f64 {
        self.first_launch.unwrap_or_default().as_secs_f64()
    }

    /// Seconds until now.
    pub fn total(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }
}
