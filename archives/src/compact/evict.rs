//! Which entries are given up for the limits of a [`Retention`].

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use sde::Key;
use sde::key::BuildKeyHasher;

use super::live::{FrameNumber, Live};
use super::retention::{Limits, Order, Retention};
use super::survey::{Candidate, FrameContent, FrameInfo};
use crate::format::index_block::prefix;
use crate::store::uses::UsesOf;

/// The keys of which something is given up.
pub(crate) type GivenUp = HashMap<Key, Extent, BuildKeyHasher>;

/// How much of a key is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All that the limits hold for.
    All,
    /// The entries of a size that is not kept.
    OfSize,
}

/// A key that the limits hold for. Times are in nanoseconds since 1970.
struct Limited {
    key: Key,
    app: Arc<str>,
    saved_at: u64,
    /// When it was made or last used, by the time of day.
    used: u64,
    bytes: u64,
}

/// What the contents of output files take, divided by the entries that need them.
fn contents(candidates: &[Candidate], live: &Live) -> HashMap<Key, u64, BuildKeyHasher> {
    let info = |at: &FrameNumber| &candidates[at.0].frames[at.1];
    let mut needed: HashMap<Key, u64, BuildKeyHasher> = HashMap::default();
    let entries = live.keys.values().flat_map(|kept| &kept.frames);
    for key in entries.flat_map(|at| info(at).contents()) {
        *needed.entry(*key).or_default() += 1;
    }
    let there = live.contents.iter().map(info);
    let divided = there.filter_map(|one| Some((one.key(), one.bytes() / needed.get(&one.key())?)));
    divided.collect()
}

impl Retention {
    /// The keys of which something is given up.
    pub(crate) fn given_up(
        &self,
        candidates: &[Candidate],
        live: &Live,
        uses: &UsesOf,
        now: u64,
    ) -> GivenUp {
        let info = |at: &FrameNumber| &candidates[at.0].frames[at.1];
        let contents = contents(candidates, live);
        let (mut keys, mut given_up) = (Vec::new(), GivenUp::default());
        for (key, kept) in &live.keys {
            let limited = || {
                kept.frames
                    .iter()
                    .map(info)
                    .filter(|one| self.holds_for(one))
            };
            let Some(app) = limited().find_map(|one| one.content.app()) else {
                continue;
            };
            if limited().any(|one| self.refuses(one)) {
                given_up.insert(*key, Extent::OfSize);
            }
            let of_contents = |one: &FrameInfo| {
                let needed = one.contents().iter();
                needed.filter_map(|key| contents.get(key)).sum::<u64>()
            };
            let bytes = limited().filter(|one| !self.refuses(one));
            let bytes = bytes.map(|one| one.bytes() + of_contents(one)).sum();
            if bytes == 0 {
                continue;
            }
            let made = limited().map(FrameInfo::made_at).max().unwrap_or(0);
            let used = uses.get(&prefix(key)).map_or(0, |one| one.last);
            keys.push(Limited {
                key: *key,
                app: Arc::clone(app),
                saved_at: kept.saved_at,
                used: made.max(used),
                bytes,
            });
        }
        self.choose(keys, now, &mut given_up);
        given_up
    }

    /// Takes from what is live what is given up.
    pub(crate) fn apply(&self, given_up: &GivenUp, candidates: &[Candidate], live: &mut Live) {
        for key in given_up.keys() {
            if let Some(kept) = live.keys.get_mut(key) {
                kept.frames
                    .retain(|at| !self.gives_up(given_up, &candidates[at.0].frames[at.1]));
            }
        }
    }

    /// Whether a frame is given up.
    pub(crate) fn gives_up(&self, given_up: &GivenUp, info: &FrameInfo) -> bool {
        match given_up.get(&info.key()) {
            Some(Extent::All) => self.holds_for(info),
            Some(Extent::OfSize) => self.refuses(info),
            None => false,
        }
    }

    fn holds_for(&self, info: &FrameInfo) -> bool {
        let app = info.content.app();
        app.is_some_and(|app| self.limits(app, info.header.class()))
    }

    /// Whether it is an entry of a size that is not kept.
    fn refuses(&self, info: &FrameInfo) -> bool {
        match &info.content {
            // What output files hold is none of its values, and dearer to have again than they are long.
            FrameContent::Entry(facts) if facts.contents.is_empty() => {
                !self.accepts(&facts.app, info.header.class(), facts.bytes)
            }
            _ => false,
        }
    }

    fn choose(&self, mut keys: Vec<Limited>, now: u64, given_up: &mut GivenUp) {
        // What is too old first, wherever its turn is: nothing else goes for the room it takes.
        keys.retain(|one| {
            let age = Duration::from_nanos(now.saturating_sub(one.used));
            let limit = self.said(&one.app, |limits| limits.max_age);
            let is_old = limit.is_some_and(|limit| age > limit);
            if is_old {
                given_up.insert(one.key, Extent::All);
            }
            !is_old
        });
        for (app, limits) in &self.apps {
            self.evict(&mut keys, |one| one.app == *app, limits, given_up);
        }
        self.evict(&mut keys, |_| true, &self.all, given_up);
    }

    fn evict(
        &self,
        keys: &mut Vec<Limited>,
        is_meant: impl Fn(&Limited) -> bool,
        limits: &Limits,
        given_up: &mut GivenUp,
    ) {
        let Some(limit) = limits.max_bytes else {
            return;
        };
        let order = limits.order.or(self.all.order).unwrap_or_default();
        keys.sort_unstable_by_key(|one| {
            let turn = match order {
                Order::LeastRecentlyUsed => one.used,
                Order::FirstIn => one.saved_at,
            };
            (turn, *one.key.as_bytes())
        });
        let meant = keys.iter().filter(|one| is_meant(one));
        let mut left: u64 = meant.map(|one| one.bytes).sum();
        let target = self.aim.target(limit, left);
        keys.retain(|one| {
            let stays = !is_meant(one) || left <= target;
            if !stays {
                left -= one.bytes;
                given_up.insert(one.key, Extent::All);
            }
            stays
        });
    }
}
