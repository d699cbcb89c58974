//! What a user allows a store to keep.

mod variables;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::format::about::Capacity;
use crate::format::class::Class;

pub use variables::LimitError;

/// Which entries go first if there is not room for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Those that were not asked for the longest. What counts are [recorded](crate::Options::record_uses)
    /// uses, and the time of saving: where no uses were recorded this is [`FirstIn`](Self::FirstIn).
    #[default]
    LeastRecentlyUsed,
    /// Those that were saved first.
    FirstIn,
}

/// What was said of all apps, or of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) max_bytes: Option<u64>,
    pub(crate) max_age: Option<Duration>,
    pub(crate) order: Option<Order>,
    pub(crate) min_entry: Option<u64>,
    pub(crate) max_entry: Option<u64>,
    pub(crate) results: Option<bool>,
}

/// How far a capacity is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Aim {
    /// To the brim.
    #[default]
    Limit,
    /// To seven eighths, so that the next save does not begin again: a store that keeps its limits itself.
    Below,
    /// On a full disk: to so many eighths of what there is.
    Eighths(u64),
}

/// What a store gives up. With nothing said, only what is of no use to anybody.
///
/// Results stay unless [`results`](Self::results) is said: limits are for intermediates
/// and scratch states, which a calculation can be without.
///
/// ```
/// use std::time::Duration;
/// use sde_archives::{Order, Retention};
///
/// let a_week = Duration::from_secs(7 * 24 * 3600);
/// let retention = Retention::new().max_age(a_week).max_bytes(50 << 30).order(Order::FirstIn);
/// // The results of one app can be computed again, and have at most 5 GiB.
/// let retention = retention.app("render", Retention::new().max_bytes(5 << 30).results());
/// # let _ = retention;
/// ```
#[derive(Clone, Debug, Default)]
pub struct Retention {
    pub(crate) all: Limits,
    pub(crate) apps: BTreeMap<Arc<str>, Limits>,
    pub(crate) dry_run: bool,
    pub(crate) aim: Aim,
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
    /// that somebody is writing. What the output files of an entry hold counts too, divided by the entries that
    /// need it. The store may be larger than this, also by what is of no use and
    /// too little of a segment to make the segment worth copying.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.all.max_bytes = Some(bytes);
        self
    }

    /// What was made, and last used, longer ago than this goes, whatever the
    /// [`order`](Self::order). Only [recorded](crate::Options::record_uses) uses count.
    #[must_use]
    pub fn max_age(mut self, age: Duration) -> Self {
        self.all.max_age = Some(age);
        self
    }

    /// What [`max_bytes`](Self::max_bytes) said; `None` if nothing did.
    ///
    /// ```
    /// use sde_archives::Retention;
    ///
    /// let room = Retention::new().max_bytes(50 << 30).room();
    /// assert!(room.is_some_and(|room| room.bytes == 50 << 30 && !room.results));
    /// ```
    #[must_use]
    pub fn room(&self) -> Option<Capacity> {
        let results = self.all.results.unwrap_or(false);
        let capacity = |bytes| Capacity { bytes, results };
        self.all.max_bytes.map(capacity)
    }

    /// Which go first for [`max_bytes`](Self::max_bytes).
    #[must_use]
    pub fn order(mut self, order: Order) -> Self {
        self.all.order = Some(order);
        self
    }

    /// An entry whose values have fewer bytes is not kept: it is quicker computed than read. Results and intermediates of
    /// an entry count apart; scratch states, and entries with output files, are kept in any case.
    #[must_use]
    pub fn min_entry(mut self, bytes: u64) -> Self {
        self.all.min_entry = Some(bytes);
        self
    }

    /// An entry whose values have more bytes is not kept; see [`min_entry`](Self::min_entry).
    #[must_use]
    pub fn max_entry(mut self, bytes: u64) -> Self {
        self.all.max_entry = Some(bytes);
        self
    }

    /// The limits hold for results too, archived or not: for a store that is a cache and
    /// nothing else.
    #[must_use]
    pub fn results(mut self) -> Self {
        self.all.results = Some(true);
        self
    }

    /// The limits hold for the results of this app too.
    #[must_use]
    pub fn results_of(mut self, app: &str) -> Self {
        self.apps.entry(Arc::from(app)).or_default().results = Some(true);
        self
    }

    /// What is to hold for one app, by its name. What is said here takes the place of what is said for all, but for
    /// [`max_bytes`](Self::max_bytes): that is of this app alone, and what it has counts among all too.
    ///
    /// Of `limits` only what it says of all apps is taken, not what it says of single apps, nor
    /// [`dry_run`](Self::dry_run). It takes the place of all that was said of this app before.
    #[must_use]
    pub fn app(mut self, name: &str, limits: Retention) -> Self {
        self.apps.insert(Arc::from(name), limits.all);
        self
    }

    /// Nothing is changed; what would be is told.
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }

    /// These limits with another aim.
    pub(crate) fn with_aim(&self, aim: Aim) -> Self {
        Self {
            aim,
            ..self.clone()
        }
    }

    /// What is said of an app, or else of all.
    pub(crate) fn said<T>(&self, app: &str, what: impl Fn(&Limits) -> Option<T>) -> Option<T> {
        let of_app = self.apps.get(app).and_then(&what);
        of_app.or_else(|| what(&self.all))
    }

    /// Whether something of this class may be given up.
    pub(crate) fn limits(&self, app: &str, class: Class) -> bool {
        class != Class::Result || self.said(app, |one| one.results).unwrap_or(false)
    }

    /// Whether an entry is kept whose values of one class have so many bytes.
    pub(crate) fn accepts(&self, app: &str, class: Class, bytes: u64) -> bool {
        let too_small = || {
            self.said(app, |one| one.min_entry)
                .is_some_and(|min| bytes < min)
        };
        let too_large = || {
            self.said(app, |one| one.max_entry)
                .is_some_and(|max| bytes > max)
        };
        class == Class::Scratch || !self.limits(app, class) || !(too_small() || too_large())
    }

    fn each<T>(&self, what: impl Fn(&Limits) -> Option<T>) -> impl Iterator<Item = T> {
        [&self.all]
            .into_iter()
            .chain(self.apps.values())
            .filter_map(what)
    }

    /// The smallest of its capacities.
    pub(crate) fn capacity(&self) -> Option<u64> {
        self.each(|one| one.max_bytes).min()
    }

    /// The shortest of its ages.
    pub(crate) fn age(&self) -> Option<Duration> {
        self.each(|one| one.max_age).min()
    }

    /// Whether it gives up anything.
    pub(crate) fn gives_up_anything(&self) -> bool {
        let of_size = |one: &Limits| one.min_entry.or(one.max_entry);
        self.has_limits() || self.each(of_size).next().is_some()
    }

    /// Whether it gives up more than entries of some sizes.
    pub(crate) fn has_limits(&self) -> bool {
        self.capacity().is_some() || self.age().is_some()
    }

    /// Whether it depends on when entries were used.
    pub(crate) fn goes_by_uses(&self) -> bool {
        let is_by_use = |one: &Limits| {
            let order = one.order.or(self.all.order).unwrap_or_default();
            (one.max_bytes.is_some() && order == Order::LeastRecentlyUsed).then_some(())
        };
        self.age().is_some() || self.each(is_by_use).next().is_some()
    }

    /// Takes from another what is not said here.
    pub(crate) fn or(mut self, other: Self) -> Self {
        self.all = self.all.or(other.all);
        for (app, limits) in other.apps {
            let own = self.apps.remove(&app).unwrap_or_default();
            self.apps.insert(app, own.or(limits));
        }
        self
    }
}

impl Limits {
    fn or(self, other: Self) -> Self {
        Self {
            max_bytes: self.max_bytes.or(other.max_bytes),
            max_age: self.max_age.or(other.max_age),
            order: self.order.or(other.order),
            min_entry: self.min_entry.or(other.min_entry),
            max_entry: self.max_entry.or(other.max_entry),
            results: self.results.or(other.results),
        }
    }
}

impl Aim {
    /// How many bytes stay of so many.
    pub(crate) fn target(self, limit: u64, present: u64) -> u64 {
        match self {
            Self::Limit => limit,
            Self::Below => limit - limit / 8,
            Self::Eighths(eighths) => limit.min(present / 8 * eighths),
        }
    }
}
