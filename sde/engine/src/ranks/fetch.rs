//! Getting later what was left on other ranks.
//!
//! Large values may stay where they were computed; of them the others have the keys. Where all ranks
//! come by again each tells which of them it wants now. A rank that has one of these offers it, and the
//! rest is an [exchange](super::exchange) like any other.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::split::can_give;
use crate::cache::{AppCache, Entry};
use crate::engine::{Engine, Transfer};
use crate::error::Error;
use crate::key::Key;
use crate::ranks::collective::{CollectiveOp, Header, Ranks};

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
        let header = Header::keyless(CollectiveOp::Exchange, WHAT);
        let asked: BTreeSet<Key> = ranks
            .gather_all(header, &wanted)?
            .into_iter()
            .flatten()
            .collect();
        let entry = |key: &Key| Some((*key, self.entry_to_give(key)?));
        let made: HashMap<Key, Arc<Entry>> = asked.iter().filter_map(entry).collect();
        self.exchange_made(ranks, WHAT, &made, |key| wanted.contains(key), transfer)?;
        let lacking = wanted.into_iter().filter(|key| !self.holds(key));
        Ok(lacking.collect())
    }

    fn entry_to_give(&self, key: &Key) -> Option<Arc<Entry>> {
        let entry = |cache: &Arc<AppCache>| cache.entry(key).filter(|entry| can_give(entry));
        self.caches.all().find_map(entry)
    }
}

/// For messages.
const WHAT: &str = "what is fetched";
