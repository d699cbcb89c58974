//! Giving ordinary results to other ranks: when a process set is released, after `par_map`, and where they are fetched.
//!
//! What is too large, or stays by the [`Transfer`], is where it was computed; of that the others have the keys. Where
//! all ranks come by again each tells which of them it wants now, and a rank that has one of these offers it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::collective::{CollectiveOp, Header, Ranks};
use super::exchange::{Exchange, Offer, Outbox, PackedEntry};
use crate::app::TypeIndex;
use crate::cache::{AppCache, Entry};
use crate::engine::{Engine, Transfer, entry_of};
use crate::error::Error;
use crate::event::RunId;
use crate::key::Key;
use crate::result_map::Tags;

/// For messages.
const FETCHED: &str = "what is fetched";

impl Engine {
    /// The keys of what others have computed and this rank has not got.
    pub(crate) fn keys_elsewhere(&self) -> Vec<Key> {
        self.sets.elsewhere(|key| !self.holds(key))
    }

    /// Has each rank get what it asks for; gives back what this one still lacks.
    pub(crate) fn fetch_keys(
        &self,
        ranks: &Ranks,
        keys: &[Key],
        transfer: &Transfer,
    ) -> Result<Vec<Key>, Error> {
        let wanted: BTreeSet<Key> = keys
            .iter()
            .filter(|key| !self.holds(key))
            .copied()
            .collect();
        let header = Header::keyless(CollectiveOp::Exchange, FETCHED);
        let asked: BTreeSet<Key> = ranks
            .gather_all(header, &wanted)?
            .into_iter()
            .flatten()
            .collect();
        let made: Vec<_> = asked
            .iter()
            .filter_map(|key| self.entry_to_give(self.caches.all(), key))
            .collect();
        self.exchange_made(ranks, FETCHED, &made, |key| wanted.contains(key), transfer)?;
        let lacking = wanted.into_iter().filter(|key| !self.holds(key));
        Ok(lacking.collect())
    }

    /// Gives all ranks the entries that one of them has made. What can't be sent stays where
    /// it is; gives back what this rank lacks of that, or has in part.
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

    /// The same where each rank gets only what it `wants`.
    fn exchange_made(
        &self,
        ranks: &Ranks,
        what: &str,
        made: &[Arc<Entry>],
        wants: impl Fn(&Key) -> bool,
        transfer: &Transfer,
    ) -> Result<Vec<Offer>, Error> {
        let wire = self.wire()?;
        let exchange = Exchange { ranks, what, wire };
        let exchanged = exchange.run(
            made,
            |entry, to| {
                let stays = |name: &str, tags| transfer.stays(&entry.record, name, tags);
                self.pack(entry, stays, |bytes| transfer.is_too_large(bytes), to);
            },
            |rank, offer| {
                let has = || match self.held_run(&offer.key) {
                    // What is not deterministic is recorded, and replaced.
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

    /// What other ranks sent before and nobody has asked for goes where the budget has no room for it: they have it, and it
    /// can be computed again.
    fn drop_received_over_budget(&self) {
        let Some(memory) = self.caches.memory() else {
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

    /// What no run will look up is recorded; what else another rank sent waits for a run to ask for it.
    fn record_received(&self, entry: &PackedEntry) {
        let received = match entry.unpack() {
            Ok(received) => received,
            Err(error) => return self.warn(|| error.to_string()),
        };
        let app = Arc::clone(&received.record.app);
        let cache = self.caches.get(TypeIndex::of(&app), &app);
        let generation = cache.generation();
        let info = self.catalog.info_of(&app, &received.record.code);
        let specs = info.map_or_else(Vec::new, |info| info.results);
        let entry = entry_of(&specs, &received, None);
        cache.record(&Arc::new(entry), generation);
    }

    /// Adds an entry to what is sent, without the values that stay, unless it is too large or
    /// can't be turned into bytes: then it stays here.
    pub(super) fn pack<'e>(
        &self,
        entry: &'e Entry,
        stays: impl Fn(&str, Tags) -> bool,
        is_too_large: impl Fn(u64) -> bool,
        to: &mut Outbox<'e>,
    ) {
        if let Err(error) = to.add(entry, stays, is_too_large) {
            self.warn(|| {
                let (app, key) = (&entry.record.app, entry.record.key.short());
                format!("{app} [{key}] could not be sent to other ranks: {error}")
            });
        }
    }

    /// Whether this rank has an ordinary entry of this key, in memory.
    fn holds(&self, key: &Key) -> bool {
        self.held_run(key).is_some()
    }

    /// The run that made it.
    fn held_run(&self, key: &Key) -> Option<RunId> {
        let in_cache = |cache: &Arc<AppCache>| {
            let entry = cache.entry(key)?;
            entry.lacks().is_none().then_some(entry.record.run)
        };
        let received = self.sets.received.run_of(key);
        received.or_else(|| self.caches.all().find_map(in_cache))
    }

    /// What may be offered of an ordinary run: the entry in one of these caches, or else the store's.
    fn entry_to_give<'a>(
        &self,
        caches: impl IntoIterator<Item = &'a Arc<AppCache>>,
        key: &Key,
    ) -> Option<Arc<Entry>> {
        let entry = |cache: &Arc<AppCache>| cache.entry(key).filter(|entry| can_give(entry));
        let in_memory = caches.into_iter().find_map(entry);
        in_memory.or_else(|| self.stored_to_give(key))
    }

    /// Another rank may not see this rank's store.
    fn stored_to_give(&self, key: &Key) -> Option<Arc<Entry>> {
        let stored = self.archiver()?.find(key).ok()??;
        let record = &stored.record;
        let info = self.catalog.info_of(&record.app, &record.code)?;
        let entry = entry_of(&info.results, &stored, None);
        let is_whole = info.results.iter().all(|spec| spec.parts.is_none());
        let may_give = is_whole && self.refusal(&entry, None).is_none();
        may_give.then(|| Arc::new(entry))
    }
}

/// Whether an entry may be offered: of what is gone from here another rank may have the values.
pub(crate) fn can_give(entry: &Entry) -> bool {
    entry.record.nondeterministic || entry.lacks().is_none()
}
