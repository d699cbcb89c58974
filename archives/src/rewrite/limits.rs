//! Chooses the entries and states that are given up for a [`Retention`].

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use sde::Key;
use sde::key::BuildKeyHasher;

use super::facts::{Facts, Group};
use crate::format::class::Class;
use crate::format::id::nanos;
use crate::format::index_block::prefix;
use crate::format::uses::UsesOf;
use crate::retention::{Limits, Removal, Retention};

/// Which frames of a key are given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// All frames that the limits apply to.
    All,
    /// The entries of a size that is not kept.
    OfSize,
}

/// The keys with frames to give up, by prefix.
pub(crate) struct GivenUp<'a> {
    retention: &'a Retention,
    keys: HashMap<u64, Extent, BuildKeyHasher>,
}

/// A key with frames that the limits apply to. Times are in nanoseconds since 1970.
pub(super) struct Limited {
    prefix: u64,
    app: Arc<str>,
    saved_at: u64,
    /// When it was made or last used, by the time of day.
    used: u64,
    pub(super) bytes: u64,
    /// The contents of its output files, of which it counts a share.
    pub(super) contents: Vec<Key>,
}

impl<'a> GivenUp<'a> {
    pub(super) fn nothing(retention: &'a Retention) -> Self {
        Self {
            retention,
            keys: HashMap::default(),
        }
    }

    /// Gives up only keys for which `goes` is true.
    pub(super) fn keep_unless(&mut self, goes: impl Fn(u64) -> bool) {
        self.keys.retain(|prefix, _| goes(*prefix));
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(super) fn has(&self, prefix: u64) -> bool {
        self.keys.contains_key(&prefix)
    }

    /// Drops the uses of keys that are given up.
    pub(crate) fn forget(&self, uses: &mut UsesOf) {
        uses.retain(|prefix, _| self.keys.get(prefix) != Some(&Extent::All));
    }

    /// Whether a frame of this class is given up, whatever its size.
    pub(super) fn gives_up(&self, prefix: u64, app: &str, class: Class) -> bool {
        self.keys.get(&prefix) == Some(&Extent::All) && self.retention.limits(app, class)
    }

    pub(super) fn gives_up_entry(&self, one: &Facts) -> bool {
        let prefix = prefix(&one.key);
        self.gives_up(prefix, &one.app, one.class)
            || self.keys.contains_key(&prefix) && self.refuses(one)
    }

    /// Whether an entry has a size that is not kept.
    fn refuses(&self, one: &Facts) -> bool {
        // Entries with output files, and failures, are kept: they cost more to make than the size of their values
        // tells.
        let has_values_only = one.contents.is_empty() && !one.is_failure;
        has_values_only && !self.retention.accepts(&one.app, one.class, one.values)
    }

    /// The frames of a group that the limits apply to.
    pub(super) fn limited(&mut self, group: &Group, used: impl Fn(u64) -> u64) -> Option<Limited> {
        let retention = self.retention;
        let entries = group.entries.iter();
        let entries: Vec<&Facts> = entries
            .filter(|one| retention.limits(&one.app, one.class))
            .collect();
        let states = group.states.iter();
        let states = states.filter(|one| retention.limits(&one.app, Class::Scratch));
        let (app, prefix) = {
            let of_entry = entries.first().map(|one| (&one.app, prefix(&one.key)));
            let mut of_states = states.clone().map(|one| (&one.app, prefix(&one.key)));
            of_entry.or_else(|| of_states.next())?
        };
        if entries.iter().any(|one| self.refuses(one)) {
            self.keys.insert(prefix, Extent::OfSize);
        }
        let taken = entries.iter().filter(|one| !self.refuses(one));
        let bytes = taken.clone().map(|one| one.bytes);
        let bytes = bytes.chain(states.clone().map(|one| one.bytes)).sum();
        let saved_at = |one: &Facts| one.member.row.saved_at;
        // Entries saved after a clock was ahead have later stamps, but are no younger for that.
        let made = |one: &&Facts| saved_at(one).min(nanos(one.precedence.made_at));
        let of_states = states.map(|one| one.member.row.saved_at);
        let made = entries.iter().map(made).chain(of_states.clone()).max();
        let saved = group.entries.iter().map(saved_at).chain(of_states).max();
        (bytes > 0).then(|| Limited {
            prefix,
            app: Arc::clone(app),
            saved_at: saved.unwrap_or(0),
            used: made.unwrap_or(0).max(used(prefix)),
            bytes,
            contents: taken.flat_map(|one| one.contents.clone()).collect(),
        })
    }

    pub(super) fn choose(&mut self, mut keys: Vec<Limited>, now: u64) {
        let retention = self.retention;
        // Entries that are too old go first, so that nothing else goes for the room that they take.
        keys.retain(|one| {
            let age = Duration::from_nanos(now.saturating_sub(one.used));
            let limit = retention.said(&one.app, |bounds| bounds.max_age);
            let is_old = limit.is_some_and(|limit| age > limit);
            if is_old {
                self.keys.insert(one.prefix, Extent::All);
            }
            !is_old
        });
        for (app, bounds) in &retention.apps {
            self.evict(&mut keys, |one| one.app == *app, bounds);
        }
        self.evict(&mut keys, |_| true, &retention.all);
    }

    fn evict(
        &mut self,
        keys: &mut Vec<Limited>,
        is_meant: impl Fn(&Limited) -> bool,
        bounds: &Limits,
    ) {
        let Some(limit) = bounds.capacity else {
            return;
        };
        let order = bounds
            .order
            .or(self.retention.all.order)
            .unwrap_or_default();
        keys.sort_unstable_by_key(|one| {
            let turn = match order {
                Removal::LeastRecentlyUsed => one.used,
                Removal::FirstIn => one.saved_at,
            };
            (turn, one.prefix)
        });
        let meant = keys.iter().filter(|one| is_meant(one));
        let mut left: u64 = meant.map(|one| one.bytes).sum();
        let target = self.retention.aim.target(limit, left);
        keys.retain(|one| {
            let stays = !is_meant(one) || left <= target;
            if !stays {
                left -= one.bytes;
                self.keys.insert(one.prefix, Extent::All);
            }
            stays
        });
    }
}
