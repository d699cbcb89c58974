//! Moves results of distributed apps when process sets change.
//!
//! On a split each subset gets the whole of the results that the program names; on a release all ranks get the results
//! of each subset. Each rank tells its entries. An entry moves if all ranks of an old set have it, from one
//! computation. Its parts are moved by their type or by its app, those of many entries [at once](Ranks::in_rounds).
//!
//! A failure on one rank is told at the next meeting: all ranks get the same error, and none waits in a step that
//! another rank does not reach.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::collective::{Body, CollectiveOp, Header, MEETING_BYTES, Ranks};
use super::entry_move::{EntryMove, Moving, SetChange};
use super::exchange::{Offer, PackedEntry};
use super::parts::{OwnDescriptors, joined};
use super::save::own_descriptors;
use crate::app::{AppInfo, TypeIndex};
use crate::checkpoint::StoredEntry;
use crate::engine::Engine;
use crate::entry::Entry;
use crate::error::Error;
use crate::event::RunId;
use crate::key::Key;
use crate::result_map::Named;

/// An entry that a rank has, as told to the other ranks.
#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct HeldEntry {
    run: RunId,
    descriptors: OwnDescriptors,
    /// The length of its parts of distributed results in bytes.
    bytes: u64,
}

impl Engine {
    /// The entries that have values here to move. An app that moves them itself must have all values that a run needs.
    pub(super) fn movable(
        &self,
        entries: impl Iterator<Item = Arc<Entry>>,
    ) -> HashMap<Key, Arc<Entry>> {
        let is_there = |named: &Named| named.content.is_there();
        let movable = entries.filter(|entry| {
            let info = self.catalog.info_of(&entry.record);
            match info.and_then(|info| info.synchronize) {
                Some(_) => entry.serves_all(),
                None => entry.results.iter().any(is_there),
            }
        });
        movable.map(|entry| (entry.record.key, entry)).collect()
    }

    /// Moves the entries of `held`, unless no rank said at the meeting `met` that it has entries.
    pub(super) fn redistribute(
        &self,
        change: &SetChange<'_>,
        met: &[Header],
        held: &HashMap<Key, Arc<Entry>>,
    ) -> Result<(), Error> {
        let moves = |header: &Header| matches!(header.body, Body::Subset { moves: true, .. });
        if !met.iter().any(moves) {
            return Ok(());
        }
        let told = held
            .iter()
            .map(|(key, entry)| (*key, self.held_entry(change, entry)));
        let header = Header::keyless(CollectiveOp::Exchange, WHAT);
        let told = change.ranks.gather_all(header, Ok(told.collect()))?;
        let moving = moving(change, &told);
        if moving.is_empty() {
            return Ok(());
        }
        let received = self.replicated(change, &moving, held)?;
        let wire = self.wire()?;
        let of_all = moving.iter().filter_map(|(key, moving)| {
            let (received, info) = received.get(key)?;
            Some(EntryMove {
                change,
                moving,
                own: held.get(key),
                received,
                info,
                wire: &*wire,
            })
        });
        let of_all: Vec<_> = of_all.collect();
        // `End` makes the error of a rank that failed that of all, whatever the others are about to do.
        let header = Header::keyless(CollectiveOp::End, "the redistribution of results");
        for batch in batches(&of_all, change.ranks.size()) {
            let each = |at: usize, ranks: &Ranks| batch[at].run(ranks);
            let moved = change.ranks.in_rounds(&header, batch.len(), each)?;
            for (moving, moved) in batch.iter().zip(moved) {
                let record = &moving.received.record;
                let alone = self.caches.get(TypeIndex::of(&record.app), &record.app);
                let cache = change.target.cache(alone);
                change.target.used(&cache, record.key);
                if let Some(entry) = moved {
                    cache.record(&Arc::new(entry), cache.generation());
                }
            }
        }
        Ok(())
    }

    /// What this rank tells the others of an entry.
    fn held_entry(&self, change: &SetChange<'_>, entry: &Entry) -> HeldEntry {
        let record = &entry.record;
        let info = self.catalog.info_of(record);
        let moves = |name: &str| {
            let tags = entry.results.tags(name).unwrap_or_default();
            !change.transfer.stays(record, name, tags)
        };
        let bytes = info.iter().flat_map(|info| &info.results).map(|spec| {
            let value = entry.results.get_erased(&spec.name).ok();
            let value = value.filter(|_| spec.parts.is_some() && moves(&spec.name));
            value.map_or(0, |value| spec.size.of(&value) as u64)
        });
        HeldEntry {
            run: record.run,
            bytes: bytes.fold(0, u64::saturating_add),
            descriptors: info
                .map_or_else(OwnDescriptors::new, |info| own_descriptors(&info, entry)),
        }
    }

    /// Gives all ranks the record of each entry, and its results that are not distributed, from the lowest rank that
    /// has the entry. A value that is too large or can't be sent stays. So does an entry whose app a rank does not
    /// know: it can't take part in the move.
    fn replicated(
        &self,
        change: &SetChange<'_>,
        moving: &BTreeMap<Key, Moving>,
        held: &HashMap<Key, Arc<Entry>>,
    ) -> Result<BTreeMap<Key, (StoredEntry, AppInfo)>, Error> {
        let ranks = change.ranks;
        let sends = |moving: &Moving| moving.from.first() == Some(&ranks.rank());
        let sent = moving.iter().filter(|(_, moving)| sends(moving));
        let sent: Vec<_> = sent.filter_map(|(key, _)| held.get(key).cloned()).collect();
        let parts = |key: &Key| moving.get(key).map_or(0, |moving| moving.bytes);
        let all = |_, _: &Offer| true;
        let exchanged = self.exchange_entries((ranks, WHAT), &sent, change.transfer, parts, all)?;
        let read = |entry: PackedEntry| Ok((entry.offer().key, entry.unpack()?));
        let came = exchanged.came.into_iter().map(read);
        let came: Result<BTreeMap<Key, StoredEntry>, Error> = came.collect();
        let info = |received: &StoredEntry| self.catalog.info_of(&received.record);
        let known = came.as_ref().map_err(Error::clone).map(|came| {
            let known = came.values().map(|received| info(received).is_some());
            known.collect::<Vec<_>>()
        });
        // All ranks have the same list of packed entries, so all tell of as many.
        let all = ranks.gather_all(Header::keyless(CollectiveOp::Move, WHAT), known)?;
        let mut known_by_all = BTreeMap::new();
        for (at, (key, received)) in came?.into_iter().enumerate() {
            let by_all = all.iter().all(|known| known.get(at) == Some(&true));
            match info(&received).filter(|_| by_all) {
                Some(info) => drop(known_by_all.insert(key, (received, info))),
                None => self.warn(|| {
                    let (app, key) = (&received.record.app, key.short());
                    format!(
                        "{app} [{key}] stays on the ranks that made it, since others have not met the app; name it in \
                         `link_app!`"
                    )
                }),
            }
        }
        Ok(known_by_all)
    }
}

const WHAT: &str = "distributed results";

/// Splits the entries into batches, whose bytes are in memory twice for a while; those of an entry that moves alone
/// are not.
fn batches<'a, 'm>(
    going: &'a [EntryMove<'m>],
    ranks: usize,
) -> impl Iterator<Item = &'a [EntryMove<'m>]> + use<'a, 'm> {
    const LEAST: u64 = 8 << 20;
    let most = LEAST.max((ranks as u64) << 16);
    // For each entry every rank has a message from each other rank.
    let size = move |going: &EntryMove<'_>| {
        going
            .moving
            .bytes
            .saturating_add((ranks * MEETING_BYTES) as u64)
    };
    let mut bytes = going.first().map_or(0, size);
    going.chunk_by(move |_, next| {
        let next = size(next);
        bytes = bytes.saturating_add(next);
        let fits = bytes <= most;
        if !fits {
            bytes = next;
        }
        fits
    })
}

/// The entries that all ranks of an old set have. The result and its order are equal on all ranks.
fn moving(change: &SetChange<'_>, told: &[BTreeMap<Key, HeldEntry>]) -> BTreeMap<Key, Moving> {
    let mut found = BTreeMap::new();
    let mut sets: Vec<&Vec<usize>> = change.from.iter().collect();
    sets.sort_by_key(|set| set.iter().min());
    for set in sets {
        let Some(first) = set.first().and_then(|rank| told.get(*rank)) else {
            continue;
        };
        for (key, entry) in first {
            let of_rank = |rank: &usize| {
                let held = told.get(*rank)?.get(key);
                held.filter(|held| held.run == entry.run)
            };
            let parts: Option<Vec<&HeldEntry>> = set.iter().map(of_rank).collect();
            let Some(parts) = parts.filter(|_| !found.contains_key(key)) else {
                continue;
            };
            let descriptors: Vec<_> = parts.iter().map(|part| &part.descriptors).collect();
            let bytes = parts.iter().map(|part| part.bytes);
            let moving = Moving {
                from: set.clone(),
                descriptors: joined(&descriptors),
                bytes: bytes.fold(0, u64::saturating_add),
            };
            found.insert(*key, moving);
        }
    }
    found
}
