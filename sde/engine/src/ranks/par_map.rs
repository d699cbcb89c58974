//! `par_map` over the ranks of a process set, and over the threads of each rank.
//!
//! The ranks find the items that none of them has, [deal](super::deal) them out, and compute them with their threads.
//! Then each rank gets the results of the others. Nested runs within an item belong to the rank that computes it: two
//! ranks may compute the same one.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::thread::panicking;
use std::time::{Duration, SystemTime};

use super::deal::{Agent, MOST, Share};
use super::exchange::Offer;
use crate::app::{Handle, NestedCall, ResolvedApp};
use crate::cache::AppCache;
use crate::engine::{CalledApp, Ended, Engine, Loop, Transfer, entry_of, led};
use crate::entry::{Entry, Provenance, Record, RecordHead};
use crate::error::{Error, ErrorKind, said};
use crate::inputs::Inputs;
use crate::key::{Key, keyed};
use crate::parallel::Finally;
use crate::ranks::collective::{Body, Collective, CollectiveOp, Header, Ranks, digest_of};
use crate::result_map::{Content, Named, ResultMap};

/// The reason given for a value that stayed on another rank.
const NOT_SENT: &str = "it was left on the rank that computed it; `fetch` its key, with all ranks";

/// An item's results, or why there are none.
pub(super) type Item = Result<ResultMap, Error>;

/// The keys of a list, and a digest that all ranks must agree on.
pub(super) struct ListKeys {
    pub(super) keys: Vec<Option<Key>>,
    pub(super) digest: Key,
}

impl ListKeys {
    /// The keys of a list whose items each run on `size` ranks.
    pub(super) fn of(app: &CalledApp<'_>, list: &[&Inputs], size: usize) -> Self {
        let id = &app.resolved.id;
        let key_of = |inputs: &&Inputs| {
            let key = inputs.with_encoded(|encoded| keyed(&id.0, encoded));
            key.ok()
        };
        let keys: Vec<Option<Key>> = list.iter().map(key_of).collect();
        let digest = Key::from_bytes(digest_of(&(id, size, &keys)));
        Self { keys, digest }
    }
}

impl Engine {
    /// `par_map` on all ranks. The inputs are distinct.
    pub(crate) fn rank_map(
        &self,
        from: &Handle,
        ranks: &Ranks,
        app: &CalledApp<'_>,
        list: &[&Inputs],
        transfer: &Transfer,
    ) -> Result<Vec<Item>, Error> {
        // Time spent waiting for other ranks counts for no body.
        let _nested = NestedCall::begin();
        let cache = self.cache_of(&app.resolved);
        let listed = ListKeys::of(app, list, 1);
        let holders = &self.holders(ranks, app, cache, &listed)?;
        let held_by = |holder: Holder| (0..list.len()).filter(move |at| holders[*at] == holder);
        let missing: Vec<usize> = held_by(Holder::None).collect();
        let (mut computed, mut failures, mut stayed) = Default::default();
        if !missing.is_empty() {
            computed = self.compute_dealt(from, ranks, app, list, &missing)?;
            failures = self.tell_failed(ranks, app, &computed)?;
        }
        if holders.iter().any(|holder| *holder != Holder::All) {
            let done = computed.iter().filter(|(_, item)| item.is_ok());
            let mine = held_by(Holder::Lowest(ranks.rank())).chain(done.map(|(at, _)| *at));
            let name = &app.resolved.name;
            let mine = mine.filter_map(|at| Some((Arc::clone(name), listed.keys[at]?)));
            stayed = self.exchange(ranks, name, &mine.collect::<Vec<_>>(), transfer)?;
        }
        let stayed: HashMap<Key, Offer> =
            stayed.into_iter().map(|offer| (offer.key, offer)).collect();
        let items = (0..list.len()).map(|at| {
            if let Some(item) = computed.get(&at) {
                return item.clone();
            }
            if let Some(error) = failures.get(&at) {
                return Err(error.clone());
            }
            let key = listed.keys[at];
            if let Some(offer) = key.and_then(|key| stayed.get(&key))
                && !self.has(&app.resolved, cache, key)
            {
                return Ok(self.elsewhere(app, offer));
            }
            recorded(app, cache, key).map_or_else(|| from.results(app, list[at]), Ok)
        });
        Ok(items.collect())
    }

    /// Which ranks have each item of a list, in these caches or in a store.
    ///
    /// Usually all ranks hold the same items, which the meeting shows. Otherwise the lists are sent, once for all ranks
    /// that hold the same, as ranges: few where each rank has computed a piece of a long list.
    pub(super) fn holders(
        &self,
        ranks: &Ranks,
        app: &CalledApp<'_>,
        cache: &AppCache,
        listed: &ListKeys,
    ) -> Result<Vec<Holder>, Error> {
        let nondeterministic = app.resolved.nondeterministic;
        let has = |key: &Option<Key>| !nondeterministic && self.has(&app.resolved, cache, *key);
        let held: Vec<bool> = listed.keys.iter().map(has).collect();
        let header = Header::new(CollectiveOp::RankMap, listed.digest, &*app.resolved.name);
        let own = Body::Held(digest_of(&held));
        let met = ranks.meet(header.clone().with_body(own))?;
        let digest = |header: &Header| match header.body {
            Body::Held(digest) => Some(digest),
            _ => None,
        };
        let all = ranks.gather_distinct(header, &met, digest, || {
            let mut end = 0;
            let runs = held.chunk_by(|a, b| a == b).filter_map(|run| {
                end += run.len();
                run[0].then_some(end - run.len()..end)
            });
            runs.collect::<Vec<_>>()
        })?;
        let Some(all) = all else {
            let of_all = |held: bool| if held { Holder::All } else { Holder::None };
            return Ok(held.into_iter().map(of_all).collect());
        };
        let mut counts = vec![(0, 0); held.len()];
        for (rank, runs) in &all {
            for run in runs {
                let items = counts.get_mut(Range::clone(run));
                for (lowest, count) in items.into_iter().flatten() {
                    *lowest = if *count == 0 { *rank } else { *lowest };
                    *count += 1;
                }
            }
        }
        let holder = |(lowest, count): (usize, usize)| match count {
            0 => Holder::None,
            count if count < all.len() => Holder::Lowest(lowest),
            _ => Holder::All,
        };
        Ok(counts.into_iter().map(holder).collect())
    }

    /// Computes the missing items, a share on each rank, with its own threads. Idle ranks take items that other ranks
    /// have not begun.
    fn compute_dealt(
        &self,
        from: &Handle,
        ranks: &Ranks,
        app: &CalledApp<'_>,
        list: &[&Inputs],
        missing: &[usize],
    ) -> Result<HashMap<usize, Item>, Error> {
        let (name, rank, size) = (&app.resolved.name, ranks.rank(), ranks.size());
        let label = format!("{name} (share of rank {rank} of {size})");
        let gate = from.gate(app);
        let compute = |at: &usize| from.results_through(app, list[*at], gate.as_ref());
        let name = |_, at: &usize| format!("item {at} ({})", list[*at].short());
        let shares = deal(app, list, missing, size);
        // A rank has one item at most, or there are more than notes can number.
        if missing.len() <= size || missing.len() > MOST {
            let mine = &shares[rank];
            let each = |at: &usize, _| Ended::of(compute(at));
            let items = from.in_order((&label, mine, false), name, each, |_| true);
            let items = mine.iter().copied().zip(items.into_iter().flatten());
            return Ok(items.collect());
        }
        let order = shares.concat();
        let share = Share::default();
        let mut agent = Agent::new(ranks, &share, &shares);
        // Before the agent gives points to other ranks.
        let mine = share.remaining();
        let work = Loop {
            label: &label,
            threads: usize::MAX,
            total: |done| match done {
                0 => Some(mine),
                _ => Some(done + share.remaining()),
            },
            most_deferred: usize::MAX,
        };
        let mut computed = HashMap::new();
        let keep = |_: usize, at: &usize, item| {
            computed.insert(*at, item);
            true
        };
        let items = std::iter::from_fn(|| share.next().map(|place| (place, order[place])));
        let each = |at: &usize, _| {
            let _on_panic = Finally(|| {
                if panicking() {
                    share.stop();
                }
            });
            Ended::of(compute(at))
        };
        let work = || work.run(from, items, name, each, keep);
        compute_led(ranks, work, |_| agent.run())?.1?;
        Ok(computed)
    }

    /// Whether this rank need not compute the item. The reason is not looked up: `peek` finds it by a search of the
    /// whole store.
    fn has(&self, resolved: &ResolvedApp, cache: &AppCache, key: Option<Key>) -> bool {
        let Some(key) = key else { return false };
        let entry = cache.entry(&key);
        entry.is_some_and(|entry| self.refusal(&entry, None).is_none())
            || matches!(self.stored_refusal(resolved, &key, None), Some(Ok(_)))
    }

    /// Tells all ranks which of the items failed, and why, or were not begun for want of time.
    pub(super) fn tell_failed(
        &self,
        ranks: &Ranks,
        app: &CalledApp<'_>,
        computed: &HashMap<usize, Item>,
    ) -> Result<HashMap<usize, Error>, Error> {
        let own = ranks.in_program(ranks.rank());
        let failed = |(at, item): (&usize, &Item)| {
            let error = item.as_ref().err()?;
            Some(match error.kind() {
                _ if error.is_not_started() => (*at, own, None),
                // A failure that all ranks of a set share names the rank where it happened.
                ErrorKind::OnRank { rank, message } => (*at, *rank, Some(message.clone())),
                _ => (*at, own, Some(said(error))),
            })
        };
        let failed: Vec<(usize, usize, Option<String>)> =
            computed.iter().filter_map(failed).collect();
        let header = Header::keyless(CollectiveOp::Exchange, "what failed");
        let all = ranks.gather_all(header, Ok(failed))?;
        let mut failures = HashMap::new();
        for (at, rank, text) in all.into_iter().flatten() {
            let error = match text {
                Some(text) => ErrorKind::OnRank {
                    rank,
                    message: crate::error::told(&text),
                },
                None => ErrorKind::NotStarted {
                    app: Arc::clone(&app.resolved.name),
                    stopped: false,
                },
            };
            failures.insert(at, error.into());
        }
        Ok(failures)
    }

    /// The result map of a run of which another rank keeps some or all values, and the whole record.
    fn elsewhere(&self, app: &CalledApp<'_>, offer: &Offer) -> ResultMap {
        let resolved = &app.resolved;
        let known = self.cache_of(resolved).entry(&offer.key);
        let here = match self.sets.received.find(&offer.key) {
            Some(stored) => {
                let entry = entry_of(&resolved.info.results, &stored, known.as_deref());
                Some(Arc::new(entry))
            }
            None => known,
        };
        let content = |name: &str| {
            let content = &here.as_ref()?.results.find(name)?.content;
            content.is_there().then(|| content.clone())
        };
        let results = resolved.info.results.iter().map(|spec| Named {
            content: content(&spec.name).unwrap_or(Content::Gone(NOT_SENT)),
            spec: Arc::clone(spec),
            tags: spec.tags,
        });
        let provenance = Provenance {
            app: Arc::clone(&resolved.name),
            code: resolved.info.code.clone(),
            id: resolved.id,
            setup: Arc::clone(resolved.setup(&*app.app)),
            dependencies: Vec::new(),
            host: Arc::default(),
            user: Arc::default(),
            target: Arc::default(),
            job: Arc::default(),
        };
        let head = RecordHead {
            provenance: Arc::new(provenance),
            key: offer.key,
            run: offer.run,
            calls: Box::default(),
            nondeterministic: offer.nondeterministic,
            anew: false,
            made_at: SystemTime::UNIX_EPOCH,
            took: Duration::ZERO,
            thread: 0,
        };
        let entry = Entry::unchecked(Record::new(head, []), results);
        ResultMap::of(Arc::new(entry))
    }
}

/// Computes points on a thread of its own, while this one talks to other ranks.
pub(super) fn compute_led<T: Send, R>(
    ranks: &Ranks,
    work: impl FnOnce() -> T + Send,
    meanwhile: impl FnOnce(&dyn Fn() -> bool) -> R,
) -> Result<(T, R), Error> {
    let failed =
        |error: std::io::Error| ranks.give_up("computes points on a thread", error.to_string());
    led(work, meanwhile).map_err(failed)
}

/// The result of an item that is recorded and never looked up, since the app is not deterministic.
pub(super) fn recorded(
    app: &CalledApp<'_>,
    cache: &AppCache,
    key: Option<Key>,
) -> Option<ResultMap> {
    let key = key.filter(|_| app.resolved.nondeterministic)?;
    cache.entry(&key).map(ResultMap::of)
}

/// The ranks that have an item.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Holder {
    None,
    /// Some ranks, of which this is the lowest.
    Lowest(usize),
    All,
}

/// The items that each rank begins with. Each next item, the costliest first if the app estimates costs, goes to the
/// rank that has least to do.
pub(super) fn deal(
    app: &CalledApp<'_>,
    list: &[&Inputs],
    missing: &[usize],
    ranks: usize,
) -> Vec<Vec<usize>> {
    let mut shares = vec![Vec::with_capacity(missing.len() / ranks + 1); ranks];
    let cost = |at: &usize| app.app.cost(list[*at]).map(|cost| cost.time);
    let costs: Option<Vec<_>> = missing.iter().map(cost).collect();
    let costs = costs.unwrap_or_else(|| vec![Duration::ZERO; missing.len()]);
    let mut order: Vec<_> = costs.into_iter().zip(missing).collect();
    order.sort_by_key(|(cost, at)| (Reverse(*cost), **at));
    let mut loads: BinaryHeap<_> = (0..ranks)
        .map(|rank| Reverse((Duration::ZERO, 0, rank)))
        .collect();
    for (cost, at) in order {
        if let Some(Reverse((load, items, rank))) = loads.pop() {
            shares[rank].push(*at);
            loads.push(Reverse((load.saturating_add(cost), items + 1, rank)));
        }
    }
    shares
}
