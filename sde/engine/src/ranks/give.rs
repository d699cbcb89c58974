//! Giving ordinary results to other ranks: when a process set is released, after `par_map`, and where they are fetched.
//!
//! A value that is too large, or that the [`Transfer`] excludes, stays where it was computed; the other ranks get its
//! key. At later exchanges each rank tells which of these keys it wants, and a rank that has one offers its entry.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::collective::{CollectiveOp, Header, Ranks};
use super::exchange::{Exchange, Exchanged, Offer, PackedEntry};
use crate::app::TypeIndex;
use crate::cache::AppCache;
use crate::engine::{Engine, Transfer, entry_of};
use crate::entry::Entry;
use crate::error::Error;
use crate::event::RunId;
use crate::key::Key;
use crate::result_map::{Named, Tag};

const FETCHED: &str = "what is fetched";

impl Engine {
    /// The keys of entries that other ranks have computed and this rank lacks.
    pub(crate) fn keys_elsewhere(&self) -> Vec<Key> {
        self.sets.elsewhere(|key| !self.holds(key))
    }

    /// Gets each rank the keys that it asks for; gives the keys that this rank still lacks.
    pub(crate) fn fetch_keys(
        &self,
        ranks: &Ranks,
        keys: &[Key],
        transfer: &Transfer,
    ) -> Result<Vec<Key>, Error> {
        let is_lacking = |key: &&Key| !self.holds(key);
        let wanted: BTreeSet<Key> = keys.iter().filter(is_lacking).copied().collect();
        let header = Header::keyless(CollectiveOp::Exchange, FETCHED);
        let asked = ranks.gather_all(header, Ok(wanted))?;
        let wanted = &asked[ranks.rank()];
        let of_all: BTreeSet<&Key> = asked.iter().flatten().collect();
        let give = |key| self.entry_to_give(self.caches.all(), key);
        let made: Vec<_> = of_all.into_iter().filter_map(give).collect();
        self.exchange_made(ranks, FETCHED, &made, |key| wanted.contains(key), transfer)?;
        Ok(wanted.iter().filter(is_lacking).copied().collect())
    }

    /// Gives all ranks the entries that one of them made. Entries that can't be sent stay where they are; the result
    /// has those that this rank lacks at least in part.
    pub(crate) fn exchange(
        &self,
        ranks: &Ranks,
        what: &str,
        fresh: &[(Arc<str>, Key)],
        transfer: &Transfer,
    ) -> Result<Vec<Offer>, Error> {
        let made: Vec<_> = fresh
            .iter()
            .filter_map(|(app, key)| self.entry_to_give(self.caches.named(app), key))
            .collect();
        self.exchange_made(ranks, what, &made, |_| true, transfer)
    }

    /// As [`exchange`](Self::exchange), but each rank gets only the entries that it `wants`.
    fn exchange_made(
        &self,
        ranks: &Ranks,
        what: &str,
        made: &[Arc<Entry>],
        wants: impl Fn(&Key) -> bool,
        transfer: &Transfer,
    ) -> Result<Vec<Offer>, Error> {
        let exchanged = self.exchange_entries(
            (ranks, what),
            made,
            transfer,
            |_| 0,
            |rank, offer| {
                let has = || match self.held_run(&offer.key) {
                    // A recorded result that is not deterministic is replaced.
                    Some(run) => !offer.nondeterministic || run == offer.run,
                    None => false,
                };
                rank != ranks.rank() && wants(&offer.key) && !has()
            },
        )?;
        let random = |entry: &PackedEntry| entry.offer().nondeterministic;
        let (random, ordinary) = exchanged.came.into_iter().partition(random);
        self.drop_received_over_budget();
        self.sets.received.put(ordinary);
        random.iter().for_each(|entry| self.record_received(entry));
        self.sets
            .note_elsewhere(exchanged.stayed.iter().map(|offer| offer.key));
        Ok(exchanged.stayed)
    }

    /// Drops received entries that no run asked for if the budget has no room: other ranks have them, and they can be
    /// computed again.
    fn drop_received_over_budget(&self) {
        let Some(memory) = &self.caches.memory else {
            return;
        };
        if self.sets.received.bytes() <= memory.room() {
            return;
        }
        for (key, run) in self.sets.received.waiting() {
            let look = || self.archiver()?.look(&key).ok()?;
            let is_stored = || look().is_some_and(|stored| stored.record.run == run);
            if !memory.budget.only_saved || is_stored() {
                self.sets.received.forget(&key);
            }
        }
    }

    /// Records a received result that no run will look up. Other entries wait until a run asks for them.
    fn record_received(&self, entry: &PackedEntry) {
        let received = match entry.unpack() {
            Ok(received) => received,
            Err(error) => return self.warn(|| format!("{error:#}")),
        };
        let app = Arc::clone(&received.record.app);
        let cache = self.caches.get(TypeIndex::of(&app), &app);
        let generation = cache.generation();
        let info = self.catalog.info_of(&received.record);
        let specs = info.map_or_else(Vec::new, |info| info.results);
        let entry = entry_of(&specs, &received, None);
        cache.record(&Arc::new(entry), generation);
    }

    /// Offers entries to all ranks, without the values that stay, and gets the offers that this rank `wants`, by the
    /// rank that offers them. An entry that can't be encoded, or is too large together with its parts of distributed
    /// values, is offered without values.
    pub(super) fn exchange_entries(
        &self,
        (ranks, what): (&Ranks, &str),
        entries: &[Arc<Entry>],
        transfer: &Transfer,
        parts: impl Fn(&Key) -> u64,
        wants: impl Fn(usize, &Offer) -> bool,
    ) -> Result<Exchanged, Error> {
        let wire = self.wire()?;
        let exchange = Exchange { ranks, what, wire };
        exchange.run(
            entries,
            |entry, to| {
                let record = &entry.record;
                let stays = |named: &Named| {
                    let is_part = named.tags.contains(Tag::Distributed);
                    is_part || transfer.stays(record, &named.name, named.tags)
                };
                let parts = parts(&record.key);
                let is_too_large = |own| transfer.is_too_large(parts.saturating_add(own));
                if let Err(error) = to.add(entry, stays, is_too_large) {
                    self.warn(|| {
                        let (app, key) = (&record.app, record.key.short());
                        format!("{app} [{key}] could not be sent to other ranks: {error:#}")
                    });
                }
            },
            wants,
        )
    }

    fn holds(&self, key: &Key) -> bool {
        self.held_run(key).is_some()
    }

    /// The run that made this rank's ordinary entry of the key, if memory has all of its needed values.
    fn held_run(&self, key: &Key) -> Option<RunId> {
        let in_cache = |cache: &Arc<AppCache>| {
            let entry = cache.entry(key)?;
            entry.serves_all().then_some(entry.record.run)
        };
        let received = self.sets.received.run_of(key);
        received.or_else(|| self.caches.all().find_map(in_cache))
    }

    /// The entry of an ordinary run that may be offered: from one of these caches, or else from the store.
    fn entry_to_give<'a>(
        &self,
        caches: impl IntoIterator<Item = &'a Arc<AppCache>>,
        key: &Key,
    ) -> Option<Arc<Entry>> {
        let entry = |cache: &Arc<AppCache>| {
            let entry = cache.entry(key).filter(|entry| can_give(entry))?;
            // With the values that have left and are held all the same: this call's own, for one.
            Some(entry.holding())
        };
        let in_memory = caches.into_iter().find_map(entry);
        in_memory.or_else(|| self.stored_to_give(key))
    }

    /// The store's entry of a key, offered since another rank may not see this rank's store.
    fn stored_to_give(&self, key: &Key) -> Option<Arc<Entry>> {
        let stored = self.archiver()?.find(key).ok()??;
        let record = &stored.record;
        let info = self.catalog.info_of(record)?;
        let entry = entry_of(&info.results, &stored, None);
        let is_whole = info.results.iter().all(|spec| spec.parts.is_none());
        let may_give = is_whole && self.refusal(&entry, None).is_none();
        may_give.then(|| Arc::new(entry))
    }
}

/// Whether an entry may be offered: if it lacks values, another rank may have them, unless the run is not
/// deterministic.
pub(crate) fn can_give(entry: &Entry) -> bool {
    entry.record.nondeterministic || entry.serves_all()
}
