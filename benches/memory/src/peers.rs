//! The policies to compare with.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, DefaultHasher};

use super::traces::Item;

/// A cache of some policy.
pub trait Cache {
    /// Whether an item is in the cache; counts as a use of it.
    fn get(&mut self, number: u32, item: Item) -> bool;
    /// Offers an item that was computed.
    fn put(&mut self, number: u32, item: Item);
}

/// A hasher that is the same in each run.
type Fixed = BuildHasherDefault<DefaultHasher>;

/// Least recently used, and greedy dual size frequency (Cherkasova, 1998). The item of lowest priority is evicted.
/// GDSF adds the priority of the last evicted item to that of each used one.
pub struct Greedy {
    is_lru: bool,
    budget: u64,
    bytes: u64,
    /// For LRU the time, for GDSF the priority of the last evicted item.
    level: f64,
    order: BTreeSet<(u64, u32)>,
    there: HashMap<u32, (u64, f64, u64), Fixed>,
}

impl Greedy {
    pub fn lru(budget: u64) -> Self {
        Self {
            is_lru: true,
            budget,
            bytes: 0,
            level: 0.0,
            order: BTreeSet::new(),
            there: HashMap::default(),
        }
    }

    pub fn gdsf(budget: u64) -> Self {
        Self {
            is_lru: false,
            ..Self::lru(budget)
        }
    }

    fn priority(&mut self, item: Item, uses: f64) -> u64 {
        let priority = match self.is_lru {
            true => {
                self.level += 1.0;
                self.level
            }
            false => self.level + uses * item.cost as f64 / item.bytes as f64,
        };
        // The bits of positive floats sort like the floats.
        priority.to_bits()
    }
}

impl Cache for Greedy {
    fn get(&mut self, number: u32, item: Item) -> bool {
        let Some((before, uses, bytes)) = self.there.get(&number).copied() else {
            return false;
        };
        self.order.remove(&(before, number));
        let priority = self.priority(item, uses + 1.0);
        self.order.insert((priority, number));
        self.there.insert(number, (priority, uses + 1.0, bytes));
        true
    }

    fn put(&mut self, number: u32, item: Item) {
        if item.bytes > self.budget {
            return;
        }
        let priority = self.priority(item, 1.0);
        self.order.insert((priority, number));
        self.there.insert(number, (priority, 1.0, item.bytes));
        self.bytes += item.bytes;
        while self.bytes > self.budget
            && let Some((priority, number)) = self.order.pop_first()
        {
            self.bytes -= self.there.remove(&number).map_or(0, |(_, _, bytes)| bytes);
            if !self.is_lru {
                self.level = f64::from_bits(priority);
            }
        }
    }
}

/// W-TinyLFU. Moka's periodic maintenance runs after each call here.
pub struct Moka(moka::sync::Cache<u32, u32, Fixed>);

impl Moka {
    pub fn new(budget: u64) -> Self {
        let cache = moka::sync::Cache::builder()
            .max_capacity(budget)
            .weigher(|_, bytes| *bytes);
        Self(cache.build_with_hasher(Fixed::default()))
    }
}

impl Cache for Moka {
    fn get(&mut self, number: u32, _: Item) -> bool {
        let is_there = self.0.get(&number).is_some();
        self.0.run_pending_tasks();
        is_there
    }

    fn put(&mut self, number: u32, item: Item) {
        self.0.insert(number, item.bytes as u32);
        self.0.run_pending_tasks();
    }
}

/// Like S3-FIFO.
pub struct QuickCache(quick_cache::unsync::Cache<u32, u32, Weighter, Fixed>);

#[derive(Clone)]
struct Weighter;

impl quick_cache::Weighter<u32, u32> for Weighter {
    fn weight(&self, _: &u32, bytes: &u32) -> u64 {
        u64::from(*bytes)
    }
}

impl QuickCache {
    pub fn new(budget: u64, items: usize) -> Self {
        let lifecycle = quick_cache::unsync::DefaultLifecycle::default();
        Self(quick_cache::unsync::Cache::with(
            items,
            budget,
            Weighter,
            Fixed::default(),
            lifecycle,
        ))
    }
}

impl Cache for QuickCache {
    fn get(&mut self, number: u32, _: Item) -> bool {
        self.0.get(&number).is_some()
    }

    fn put(&mut self, number: u32, item: Item) {
        self.0.insert(number, item.bytes as u32);
    }
}
