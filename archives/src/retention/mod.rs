//! Retention: the limits that a user sets for a store.

mod variables;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::format::about::Capacity;
use crate::format::class::Class;

pub use variables::LimitError;

/// Selects the entries that go first if there is not room for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Removal {
    /// The entries that were not asked for the longest go first. Only [recorded](crate::StoreOptions::without_uses) uses
    /// and the time of saving count: without recorded uses this is [`FirstIn`](Self::FirstIn).
    #[default]
    LeastRecentlyUsed,
    /// The entries that were saved first go first.
    FirstIn,
}

/// The limits set for all apps, or for one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) capacity: Option<u64>,
    pub(crate) max_age: Option<Duration>,
    pub(crate) order: Option<Removal>,
    pub(crate) min_entry: Option<u64>,
    pub(crate) max_entry: Option<u64>,
    pub(crate) results: Option<bool>,
}

/// To which part a capacity is filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Aim {
    /// To the brim.
    #[default]
    Limit,
    /// To seven eighths, so that the next save does not exceed it again: for a store that keeps its limits itself.
    Below,
    /// On a full disk: to this many eighths of the present size.
    Eighths(u64),
}

/// Limits what a store keeps: without limits only frames that nobody needs are given up.
///
/// Results stay unless [`results`](Self::results) is set: limits are for intermediates and scratch states, which a
/// calculation can do without.
///
/// ```
/// use std::time::Duration;
/// use sde_archives::{Removal, Retention};
///
/// let a_week = Duration::from_secs(7 * 24 * 3600);
/// let retention = Retention::new().max_age(a_week).capacity(50 << 30).order(Removal::FirstIn);
/// // The results of one app can be computed again, and have at most 5 GiB.
/// let retention = retention.app("render", Retention::new().capacity(5 << 30).results());
/// # let _ = retention;
/// ```
#[derive(Clone, Debug, Default)]
pub struct Retention {
    pub(crate) all: Limits,
    pub(crate) apps: BTreeMap<Arc<str>, Limits>,
    pub(crate) aim: Aim,
}

impl Retention {
    /// Makes limits that give up nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps at most this many bytes of the frames that the limits apply to.
    ///
    /// The limits apply to the frames of intermediates and scratch states, and of results if
    /// [`results`](Self::results) is set, in the segments that a compaction looks at: not in those being written.
    /// The output files of an entry count too, divided by the number of entries that need them. The store may be
    /// larger, also by useless frames that are too few in a segment to make copying it worthwhile.
    #[must_use]
    pub fn capacity(mut self, bytes: u64) -> Self {
        self.all.capacity = Some(bytes);
        self
    }

    /// Limits the age of entries: those made, and last used, longer ago than this are given up, whatever the
    /// [`order`](Self::order). Only [recorded](crate::StoreOptions::without_uses) uses count.
    #[must_use]
    pub fn max_age(mut self, age: Duration) -> Self {
        self.all.max_age = Some(age);
        self
    }

    /// The limit set by [`capacity`](Self::capacity); `None` if there is none.
    ///
    /// ```
    /// use sde_archives::Retention;
    ///
    /// let allowed = Retention::new().capacity(50 << 30).allowed();
    /// assert!(allowed.is_some_and(|allowed| allowed.bytes == 50 << 30 && !allowed.results));
    /// ```
    #[must_use]
    pub fn allowed(&self) -> Option<Capacity> {
        let results = self.all.results.unwrap_or(false);
        let allowed = |bytes| Capacity { bytes, results };
        self.all.capacity.map(allowed)
    }

    /// Selects the entries that go first for [`capacity`](Self::capacity).
    #[must_use]
    pub fn order(mut self, order: Removal) -> Self {
        self.all.order = Some(order);
        self
    }

    /// Gives up entries whose values have fewer bytes than this: computing them is quicker than reading. Results and
    /// intermediates of an entry count apart; scratch states, and entries with output files, are always kept.
    #[must_use]
    pub fn min_entry(mut self, bytes: u64) -> Self {
        self.all.min_entry = Some(bytes);
        self
    }

    /// Gives up entries whose values have more bytes than this; see [`min_entry`](Self::min_entry).
    #[must_use]
    pub fn max_entry(mut self, bytes: u64) -> Self {
        self.all.max_entry = Some(bytes);
        self
    }

    /// Applies the limits to results too, archived or not: for a store that is only a cache.
    #[must_use]
    pub fn results(mut self) -> Self {
        self.all.results = Some(true);
        self
    }

    /// Applies the limits to the results of this app too.
    #[must_use]
    pub fn results_of(mut self, app: &str) -> Self {
        self.apps.entry(Arc::from(app)).or_default().results = Some(true);
        self
    }

    /// Sets the limits of one app, by its name. They take the place of those for all apps, except
    /// [`capacity`](Self::capacity): the app's own limit holds besides, and its entries count towards the limit
    /// for all too.
    ///
    /// Of `limits` only those for all apps are taken, not those for single apps.
    /// They take the place of all limits set for this app before.
    #[must_use]
    pub fn app(mut self, name: &str, limits: Retention) -> Self {
        self.apps.insert(Arc::from(name), limits.all);
        self
    }

    /// These limits with another aim.
    pub(crate) fn with_aim(&self, aim: Aim) -> Self {
        Self {
            aim,
            ..self.clone()
        }
    }

    /// A setting of an app, or else that for all apps.
    pub(crate) fn said<T>(&self, app: &str, what: impl Fn(&Limits) -> Option<T>) -> Option<T> {
        let of_app = self.apps.get(app).and_then(&what);
        of_app.or_else(|| what(&self.all))
    }

    /// Whether frames of this class may be given up.
    pub(crate) fn limits(&self, app: &str, class: Class) -> bool {
        class != Class::Result || self.said(app, |one| one.results).unwrap_or(false)
    }

    /// Whether an entry is kept whose values of one class have this many bytes.
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

    /// The smallest capacity.
    pub(crate) fn smallest(&self) -> Option<u64> {
        self.each(|one| one.capacity).min()
    }

    /// The shortest age.
    pub(crate) fn age(&self) -> Option<Duration> {
        self.each(|one| one.max_age).min()
    }

    /// Whether any limit is set.
    pub(crate) fn gives_up_anything(&self) -> bool {
        let of_size = |one: &Limits| one.min_entry.or(one.max_entry);
        self.has_limits() || self.each(of_size).next().is_some()
    }

    /// Whether there are limits other than the sizes of entries.
    pub(crate) fn has_limits(&self) -> bool {
        self.smallest().is_some() || self.age().is_some()
    }

    /// Whether the limits depend on when entries were used.
    pub(crate) fn goes_by_uses(&self) -> bool {
        let is_by_use = |one: &Limits| {
            let order = one.order.or(self.all.order).unwrap_or_default();
            (one.capacity.is_some() && order == Removal::LeastRecentlyUsed).then_some(())
        };
        self.age().is_some() || self.each(is_by_use).next().is_some()
    }

    /// Takes settings that are missing here from another.
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
            capacity: self.capacity.or(other.capacity),
            max_age: self.max_age.or(other.max_age),
            order: self.order.or(other.order),
            min_entry: self.min_entry.or(other.min_entry),
            max_entry: self.max_entry.or(other.max_entry),
            results: self.results.or(other.results),
        }
    }
}

impl Aim {
    /// The number of bytes to keep.
    pub(crate) fn target(self, limit: u64, present: u64) -> u64 {
        match self {
            Self::Limit => limit,
            Self::Below => limit - limit / 8,
            Self::Eighths(eighths) => limit.min(present / 8 * eighths),
        }
    }
}
