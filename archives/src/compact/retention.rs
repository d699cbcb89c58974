//! What is given up so that a store does not grow for ever.

use std::collections::HashSet;
use std::time::Duration;

use sde::Key;
use sde::key::BuildKeyHasher;

use super::live::Live;
use super::survey::Candidate;
use crate::class::Class;
use crate::uses::UsesOf;

/// Which entries go first if there is not room for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Those that were not asked for the longest. What counts are uses that a store was told
    /// to [record](crate::Options::record_uses), and the time of saving.
    #[default]
    LeastRecentlyUsed,
    /// Those that were saved first.
    FirstIn,
}

/// The keys of which something is given up.
pub(crate) type GivenUp = HashSet<Key, BuildKeyHasher>;

/// What a compaction gives up. With nothing said, only what is of no use to anybody.
///
/// Results stay unless [`results`](Self::results) is said: limits are for intermediates
/// and scratch states, which a calculation can be without.
///
/// ```
/// use std::time::Duration;
/// use sde_archives::{Order, Retention};
///
/// let a_week = Duration::from_secs(7 * 24 * 3600);
/// let retention = Retention::new().max_age(a_week).max_bytes(1 << 30).order(Order::FirstIn);
/// # let _ = retention;
/// ```
#[derive(Clone, Debug, Default)]
pub struct Retention {
    max_bytes: Option<u64>,
    max_age: Option<Duration>,
    order: Order,
    results: bool,
    pub(crate) dry_run: bool,
}

impl Retention {
    /// Gives up nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// At most so many bytes of entries stay.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// What was last used, or else saved, longer ago than this goes.
    #[must_use]
    pub fn max_age(mut self, age: Duration) -> Self {
        self.max_age = Some(age);
        self
    }

    /// Which go first for [`max_bytes`](Self::max_bytes).
    #[must_use]
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// The limits hold for results too, archived or not: for a store that is a cache and
    /// nothing else.
    #[must_use]
    pub fn results(mut self) -> Self {
        self.results = true;
        self
    }

    /// Nothing is changed; what would be is told.
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }

    /// Whether something of this class may be given up.
    pub(crate) fn limits(&self, class: Class) -> bool {
        class != Class::Result || self.results
    }

    /// The keys of which something is given up.
    pub(crate) fn given_up(
        &self,
        candidates: &[Candidate],
        live: &Live,
        uses: &UsesOf,
        now: u64,
    ) -> GivenUp {
        if self.max_bytes.is_none() && self.max_age.is_none() {
            return GivenUp::default();
        }
        let mut keys = Vec::new();
        for (key, kept) in &live.keys {
            let of_class = |at: &&(usize, usize)| self.limits(candidates[at.0].class());
            let limited = kept.frames.iter().filter(of_class);
            let bytes: u64 = limited
                .map(|at| candidates[at.0].frames[at.1].bytes())
                .sum();
            if bytes > 0 {
                let used = match self.order {
                    Order::LeastRecentlyUsed => uses.get(key).map_or(0, |one| one.last),
                    Order::FirstIn => 0,
                };
                keys.push((kept.saved_at.max(used), *key, bytes));
            }
        }
        self.choose(keys, now)
    }

    /// Takes from what is live what is given up.
    pub(crate) fn apply(&self, given_up: &GivenUp, candidates: &[Candidate], live: &mut Live) {
        for key in given_up {
            if let Some(kept) = live.keys.get_mut(key) {
                kept.frames
                    .retain(|at| !self.limits(candidates[at.0].class()));
            }
        }
    }

    fn choose(&self, mut keys: Vec<(u64, Key, u64)>, now: u64) -> GivenUp {
        keys.sort_unstable_by_key(|(used, key, _)| (*used, *key.as_bytes()));
        let too_old = |used: u64| {
            let age = Duration::from_nanos(now.saturating_sub(used));
            self.max_age.is_some_and(|limit| age > limit)
        };
        let mut left: u64 = keys.iter().map(|(.., bytes)| bytes).sum();
        let mut given_up = GivenUp::default();
        for (used, key, bytes) in keys {
            if too_old(used) || self.max_bytes.is_some_and(|limit| left > limit) {
                left -= bytes;
                given_up.insert(key);
            }
        }
        given_up
    }
}
