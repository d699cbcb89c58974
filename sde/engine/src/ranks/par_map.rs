//! `par_map` over the ranks of a process set, and over the threads of each.
//!
//! The ranks find out together what nobody has yet, deal that out, and compute it, each with its
//! own threads. Then each gets what the others computed. What runs within an item is the
//! affair of the rank that computes it: two ranks may compute the same there, which is counted.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::exchange::Offer;
use crate::app::{Handle, NestedCall, ResolvedApp};
use crate::engine::{CalledApp, Engine, Options, Transfer, entry_of};
use crate::error::{Error, ErrorKind};
use crate::inputs::Inputs;
use crate::key::{FingerprintError, Key, keyed};
use crate::ranks::collective::{CollectiveOp, Header, Ranks, chain};
use crate::result_map::{Content, Named, Origin, ResultMap};

/// Why a value is not here.
const NOT_SENT: &str = "it was left on the rank that computed it; `fetch` its key, with all ranks";

/// An item's results, or why there are none.
type Item = Result<ResultMap, Error>;

/// What each rank knows of the list before anything is computed.
struct Plan {
    keys: Vec<Option<Key>>,
    /// Whether this rank has it to give: not where all have it.
    has_to_give: Vec<bool>,
    /// For each item the rank that is to compute it; `None` if a rank has it.
    dealt: Vec<Option<usize>>,
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
        // What is waited for other ranks is no body's own time.
        let _nested = NestedCall::begin();
        let plan = self.plan(ranks, app, list)?;
        let own = ranks.rank();
        let mine: Vec<usize> = (0..list.len())
            .filter(|at| plan.dealt[*at] == Some(own))
            .collect();
        let label = match ranks.size() {
            1 => app.resolved.name.to_string(),
            size => format!("{} (share of rank {own} of {size})", app.resolved.name),
        };
        let watch = self.sets.watch_computed();
        let computed = from.in_parallel(&mine, &label, |sde, at| {
            sde.results_erased(app, list[*at], &Options::default())
        });
        let computed: HashMap<usize, Item> = mine.into_iter().zip(computed).collect();
        let failures = self.tell_computed(ranks, watch.computed(), &computed)?;
        let left = self.give_out(ranks, app, &plan, &computed, transfer)?;
        let left: HashMap<Key, Offer> = left.into_iter().map(|left| (left.key, left)).collect();
        let items = (0..list.len()).map(|at| {
            if let Some(item) = computed.get(&at) {
                return item.clone();
            }
            if let Some(error) = failures.get(&at) {
                return Err(error.clone());
            }
            self.item(from, app, list[at], plan.keys[at], &left)
        });
        Ok(items.collect())
    }

    /// Finds out who has what, and deals out what nobody has.
    fn plan(&self, ranks: &Ranks, app: &CalledApp<'_>, list: &[&Inputs]) -> Result<Plan, Error> {
        let id = &app.resolved.id.0;
        let key_of = |inputs: &&Inputs| inputs.with_encoded(|encoded| keyed(id, encoded));
        let keys: Vec<Result<Key, FingerprintError>> = list.iter().map(key_of).collect();
        let keys: Vec<_> = keys.into_iter().map(Result::ok).collect();
        let mut all = blake3::Hasher::new();
        all.update(app.resolved.id.as_bytes());
        for key in &keys {
            all.update(&[u8::from(key.is_some())]);
            all.update(key.as_ref().map_or(&[][..], |key| key.as_bytes()));
        }
        let all = Key::from_bytes(*all.finalize().as_bytes());
        let nondeterministic = app.resolved.nondeterministic;
        let held: Vec<bool> = keys
            .iter()
            .map(|key| !nondeterministic && self.has(&app.resolved, *key))
            .collect();
        let header = Header::new(CollectiveOp::RankMap, all, &*app.resolved.name);
        let of_all = ranks.gather_all(header, &held)?;
        let has = |held: &Vec<bool>, at: usize| held.get(at) == Some(&true);
        let missing = (0..list.len()).filter(|at| !of_all.iter().any(|held| has(held, *at)));
        let missing: Vec<_> = missing.collect();
        let mut dealt = vec![None; list.len()];
        for (at, rank) in deal(app, list, &missing, ranks.size()) {
            dealt[at] = Some(rank);
        }
        let by_all = |at: usize| of_all.iter().all(|held| has(held, at));
        let has_to_give = (0..list.len()).map(|at| held[at] && !by_all(at)).collect();
        Ok(Plan {
            keys,
            has_to_give,
            dealt,
        })
    }

    /// Whether this rank need not compute it. Why not, `peek` tells: it looks through all that is stored.
    fn has(&self, resolved: &ResolvedApp, key: Option<Key>) -> bool {
        let Some(key) = key else { return false };
        let entry = self.cache_of(resolved).entry(&key);
        entry.is_some_and(|entry| self.refusal(&entry, None).is_none())
            || matches!(self.stored_refusal(resolved, &key), Some(Ok(_)))
    }

    /// Tells all ranks what was computed, of which is counted what several have, and which of the items failed, and
    /// why.
    fn tell_computed(
        &self,
        ranks: &Ranks,
        keys: Vec<Key>,
        computed: &HashMap<usize, Item>,
    ) -> Result<HashMap<usize, Error>, Error> {
        let failed = |(at, item): (&usize, &Item)| Some((*at, chain(item.as_ref().err()?)));
        let failed: Vec<(usize, String)> = computed.iter().filter_map(failed).collect();
        let header = Header::keyless(CollectiveOp::Exchange, "what was computed");
        let all = ranks.gather_all(header, &(keys, failed))?;
        let mut seen = HashSet::new();
        let mut failures = HashMap::new();
        for (rank, (keys, failed)) in all.into_iter().enumerate() {
            let again = keys.into_iter().filter(|key| !seen.insert(*key)).count();
            self.sets.add_duplicates(again as u64);
            let rank = ranks.in_program(rank);
            for (at, text) in failed {
                let message = crate::error::told(&text);
                failures.insert(at, ErrorKind::OnRank { rank, message }.into());
            }
        }
        Ok(failures)
    }

    /// Gives all ranks the results that one of them has; gives back those that were left
    /// where they are.
    fn give_out(
        &self,
        ranks: &Ranks,
        app: &CalledApp<'_>,
        plan: &Plan,
        computed: &HashMap<usize, Item>,
        transfer: &Transfer,
    ) -> Result<Vec<Offer>, Error> {
        let here = |at: &usize| plan.has_to_give[*at] || matches!(computed.get(at), Some(Ok(_)));
        let mine = (0..plan.keys.len()).filter(here);
        let mine: Vec<_> = mine
            .filter_map(|at| Some((Arc::clone(&app.resolved.name), plan.keys[at]?)))
            .collect();
        let name = &*app.resolved.name;
        self.exchange(ranks, name, &mine, transfer)
    }

    /// What this rank gives for an item that another has computed, or had before.
    fn item(
        &self,
        from: &Handle,
        app: &CalledApp<'_>,
        inputs: &Inputs,
        key: Option<Key>,
        left: &HashMap<Key, Offer>,
    ) -> Item {
        if let Some(left) = key.and_then(|key| left.get(&key))
            && !self.has(&app.resolved, key)
        {
            return Ok(self.elsewhere(app, left));
        }
        if let (true, Some(key)) = (app.resolved.nondeterministic, key) {
            // What other ranks made is recorded, and never looked up.
            let entry = self.cache_of(&app.resolved).entry(&key);
            if let Some(entry) = entry {
                return Ok(entry.results.clone());
            }
        }
        from.results_erased(app, inputs, &Options::default())
    }

    /// The results of a run that is with another rank only, or some of whose values are.
    fn elsewhere(&self, app: &CalledApp<'_>, left: &Offer) -> ResultMap {
        let origin = Origin {
            app: Arc::clone(&app.resolved.name),
            key: left.key,
            run: left.run,
        };
        let known = self.cache_of(&app.resolved).entry(&left.key);
        let here = match self.sets.received.find(&left.key) {
            Some(stored) => {
                let entry = entry_of(&app.resolved.info.results, stored, known.as_deref());
                Some(entry.results)
            }
            None => known.map(|entry| entry.results.clone()),
        };
        let content = |name: &str| {
            let mut results = here.iter().flat_map(ResultMap::results);
            let content = &results.find(|named| named.name == name)?.content;
            content.is_there().then(|| content.clone())
        };
        let results = app.resolved.info.results.iter().map(|spec| Named {
            name: spec.name.clone(),
            tags: Some(spec.tags),
            codec: spec.codec,
            size: Some(spec.size),
            content: content(&spec.name).unwrap_or(Content::Gone(NOT_SENT)),
        });
        ResultMap::from_parts(origin, results.collect())
    }
}

/// Which rank computes which of these items: each next one, the costliest first where the app
/// knows what they cost, goes to the rank that has least to do.
fn deal(
    app: &CalledApp<'_>,
    list: &[&Inputs],
    missing: &[usize],
    ranks: usize,
) -> Vec<(usize, usize)> {
    let cost = |at: &usize| app.app.cost(list[*at]).map(|cost| cost.time);
    let costs: Option<Vec<_>> = missing.iter().map(cost).collect();
    let Some(costs) = costs else {
        let in_turn = missing.iter().enumerate();
        return in_turn.map(|(n, at)| (*at, n % ranks)).collect();
    };
    let mut order: Vec<_> = costs.into_iter().zip(missing).collect();
    order.sort_by_key(|(cost, at)| (std::cmp::Reverse(*cost), **at));
    let mut loads = vec![std::time::Duration::ZERO; ranks];
    order
        .into_iter()
        .map(|(cost, at)| {
            let least = (0..ranks).min_by_key(|rank| loads[*rank]).unwrap_or(0);
            loads[least] = loads[least].saturating_add(cost);
            (*at, least)
        })
        .collect()
}
