//! Giving ordinary results to other ranks: when a process set is released, after `par_map`, and where they are fetched.
//!
//! What is too large, or left by the [`Transfer`], stays where it was computed; of that the others have the keys. Where
//! all ranks come by again each tells which of them it wants now, and a rank that has one of these offers it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::collective::{CollectiveOp, Header, Ranks};
use super::exchange::{Exchange, Offer, pack, unpack};
use crate::app::TypeIndex;
use crate::cache::{AppCache, Entry};
use crate::checkpoint::StoredEntry;
use crate::engine::{Engine, Transfer, entry_of};
use crate::error::Error;
use crate::key::Key;
use crate::result_map::Tags;

/// For messages.
const FETCHED: &str = "what is fetched";

impl Engine {
    /// The keys of what others have computed and this rank has not got.
    pub(crate) fn left_elsewhere(&self) -> Vec<Key> {
        self.sets.left(|key| !self.holds(key))
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
        let entry = |key: &Key| Some((*key, self.entry_to_give(key)?));
        let made: HashMap<Key, Arc<Entry>> = asked.iter().filter_map(entry).collect();
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
        let entry = |(app, key): &(Arc<str>, Key)| {
            let entry = self.caches.named(app)?.entry(key)?;
            can_give(&entry).then_some((*key, entry))
        };
        let made: HashMap<Key, Arc<Entry>> = fresh.iter().filter_map(entry).collect();
        self.exchange_made(ranks, what, &made, |_| true, transfer)
    }

    /// The same where each rank gets only what it `wants`.
    fn exchange_made(
        &self,
        ranks: &Ranks,
        what: &str,
        made: &HashMap<Key, Arc<Entry>>,
        wants: impl Fn(&Key) -> bool,
        transfer: &Transfer,
    ) -> Result<Vec<Offer>, Error> {
        let offers: Vec<_> = made
            .values()
            .map(|entry| Offer::of(&entry.record))
            .collect();
        let exchange = Exchange { ranks, what };
        let (lacked, mut left) = exchange.run(
            offers,
            |offer| wants(&offer.key) && !self.holds(&offer.key),
            |number, key, to| {
                let Some(entry) = made.get(key) else {
                    return false;
                };
                let app = &entry.record.app;
                let leaves = |name: &str, tags| transfer.leaves(app, name, tags);
                let is_too_large = |bytes| transfer.is_too_large(bytes as u64);
                self.pack(number, entry, leaves, is_too_large, to)
            },
        )?;
        let wire = self.wire()?;
        let taken: Result<(), Error> = lacked.into_iter().try_for_each(|(key, entry)| {
            let entry = unpack(&key, entry, &wire)?;
            left.extend(in_part(&entry, transfer));
            self.take_received(entry);
            Ok(())
        });
        ranks.agree(what, taken)?;
        self.sets.leave(left.iter().map(|left| left.key));
        Ok(left)
    }

    /// What another rank sent waits for a run to ask for it, unless it is the record of something
    /// that no run will look up.
    fn take_received(&self, received: StoredEntry) {
        if !received.record.nondeterministic {
            return self.sets.received.put(received);
        }
        let app = Arc::clone(&received.record.app);
        let cache = self.caches.get(TypeIndex::of(&app), &app);
        let generation = cache.generation();
        let info = self.catalog.info_of(&app, &received.record.code);
        let specs = info.map_or_else(Vec::new, |info| info.results);
        let entry = entry_of(&specs, received, None);
        cache.record(&Arc::new(entry), generation);
    }

    /// Appends an entry to what is sent, without the values that are left, unless it is too large or
    /// can't be turned into bytes. Says whether it did.
    pub(crate) fn pack(
        &self,
        number: usize,
        entry: &Entry,
        leaves: impl Fn(&str, Tags) -> bool,
        is_too_large: impl Fn(usize) -> bool,
        to: &mut Vec<u8>,
    ) -> bool {
        let Ok(wire) = self.wire() else { return false };
        let before = to.len();
        match pack(number, entry, &*wire, leaves, to) {
            Ok(()) => !is_too_large(to.len() - before),
            Err(error) => {
                self.warn(|| {
                    let (app, key) = (&entry.record.app, entry.record.key.short());
                    format!("{app} [{key}] could not be sent to other ranks: {error}")
                });
                false
            }
        }
    }

    /// Whether this rank has an ordinary entry of this key, in memory.
    pub(crate) fn holds(&self, key: &Key) -> bool {
        let in_cache = |cache: &Arc<AppCache>| {
            let entry = cache.entry(key);
            entry.is_some_and(|entry| entry.lacks().is_none())
        };
        self.sets.received.has(key) || self.caches.all().any(in_cache)
    }

    fn entry_to_give(&self, key: &Key) -> Option<Arc<Entry>> {
        let entry = |cache: &Arc<AppCache>| cache.entry(key).filter(|entry| can_give(entry));
        self.caches.all().find_map(entry)
    }
}

/// Whether an entry may be offered: of what is gone from here another rank may have the values.
pub(crate) fn can_give(entry: &Entry) -> bool {
    entry.record.nondeterministic || entry.lacks().is_none()
}

/// An entry of which the filter has left values where they are that a run needs.
fn in_part(entry: &StoredEntry, transfer: &Transfer) -> Option<Offer> {
    let record = &entry.record;
    let mut results = entry.results.iter();
    let is_left = results.any(|result| {
        result.payload.is_none()
            && result.tags.is_needed()
            && transfer.leaves(&record.app, &result.name, result.tags)
    });
    is_left.then(|| Offer::of(record))
}
