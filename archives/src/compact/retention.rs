//! What is given up so that a store does not grow for ever.

use std::collections::HashSet;
use std::time::Duration;

use sde::Key;
use sde::key::BuildKeyHasher;

use super::live::Live;
use super::survey::Candidate;
use crate::format::class::Class;
use crate::store::uses::UsesOf;

/// Which entries go first if there is not room for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Those that were not asked for the longest. What counts are uses that a store was told
    /// to [record](crate::Options::record_uses), and the time of saving: where no uses were
    /// recorded, which is so unless it was asked for, this is [`FirstIn`](Self::FirstIn).
    #[default]
    LeastRecentlyUsed,
    /// Those that were saved first.
    FirstIn,
}

/// The keys of which something is given up.
pub(crate) type GivenUp = HashSet<Key, BuildKeyHasher>;

/// A key that the limits hold for. Times are in nanoseconds since 1970.
struct Limited {
    /// Which goes first.
    turn: u64,
    key: Key,
    /// When it was last saved or used.
    used: u64,
    bytes: u64,
}

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

    /// Of what the limits hold for at most so many bytes stay.
    ///
    /// What counts are the frames of intermediates and scratch states, and of results if
    /// [`results`](Self::results) is said, in the segments that a compaction looks at: not in those
    /// that somebody is writing. The store may be larger than this, also by what is of no use and
    /// too little of a segment to make the segment worth copying.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// What was last saved, and last used, longer ago than this goes, whatever the
    /// [`order`](Self::order). Only [recorded](crate::Options::record_uses) uses count.
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
            let of_class =
                |at: &&(usize, usize)| self.limits(candidates[at.0].frames[at.1].header.class());
            let limited = kept.frames.iter().filter(of_class);
            let bytes: u64 = limited
                .map(|at| candidates[at.0].frames[at.1].bytes())
                .sum();
            if bytes > 0 {
                let used = uses.get(key).map_or(0, |one| one.last);
                let used = kept.saved_at.max(used);
                let turn = match self.order {
                    Order::LeastRecentlyUsed => used,
                    Order::FirstIn => kept.saved_at,
                };
                keys.push(Limited {
                    turn,
                    key: *key,
                    used,
                    bytes,
                });
            }
        }
        self.choose(keys, now)
    }

    /// Takes from what is live what is given up.
    pub(crate) fn apply(&self, given_up: &GivenUp, candidates: &[Candidate], live: &mut Live) {
        for key in given_up {
            if let Some(kept) = live.keys.get_mut(key) {
                kept.frames
                    .retain(|at| !self.limits(candidates[at.0].frames[at.1].header.class()));
            }
        }
    }

    fn choose(&self, mut keys: Vec<Limited>, now: u64) -> GivenUp {
        keys.sort_unstable_by_key(|one| (one.turn, *one.key.as_bytes()));
        let too_old = |used: u64| {
            let age = Duration::from_nanos(now.saturating_sub(used));
            self.max_age.is_some_and(|limit| age > limit)
        };
        let mut left: u64 = keys.iter().map(|one| one.bytes).sum();
        let mut given_up = GivenUp::default();
        // What is too old first, wherever its turn is: nothing else goes for the room it takes.
        let (old, others): (Vec<_>, Vec<_>) = keys.into_iter().partition(|one| too_old(one.used));
        for one in &old {
            left -= one.bytes;
            given_up.insert(one.key);
        }
        for one in &others {
            if self.max_bytes.is_some_and(|limit| left > limit) {
                left -= one.bytes;
                given_up.insert(one.key);
            }
        }
        given_up
    }
}
