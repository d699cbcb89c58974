//! Splitting process sets, and releasing them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use super::collective::{Body, CollectiveOp, Header, Ranks};
use super::entry_move::SetChange;
use super::exchange::{Exchange, NotSent, Offer, ReceivedEntry, Sent, pack, unpack};
use super::group::ProcessGroup;
use super::sets::ProcessSet;
use crate::app::{Transfer, TypeIndex};
use crate::cache::Entry;
use crate::engine::{Engine, entry_of_specs};
use crate::error::{Error, ErrorKind};
use crate::key::Key;
use crate::result_map::Tags;

impl Engine {
    /// The process set that the program begins with.
    pub(crate) fn world(
        self: &Arc<Self>,
        group: Box<dyn ProcessGroup>,
        patience: Duration,
    ) -> Arc<Ranks> {
        let engine = Arc::downgrade(self);
        let late = move |doing: &str, late: &[usize]| {
            if let Some(engine) = engine.upgrade() {
                engine.warn(|| late_text(doing, late));
            }
        };
        let ranks = Arc::new(Ranks::world(group, patience, Arc::new(late)));
        self.sets
            .push(Arc::new(ProcessSet::new(Arc::clone(&ranks))));
        ranks
    }

    /// Makes a process set of some of these ranks.
    pub(crate) fn split_ranks(
        &self,
        whole: &Arc<Ranks>,
        color: u32,
        key: i64,
        transfer: &Transfer,
    ) -> Result<Arc<Ranks>, Error> {
        let header = Header::keyless(CollectiveOp::Split, "parts").with_body(Body::Part {
            set: u64::from(color),
            place: key,
            commits: self.commits_by_the_way(),
        });
        let met = whole.meet(header)?;
        self.commit_by_the_way(whole, &met);
        let parts = sets_of(&met);
        let own = parts.iter().find(|part| part.contains(&whole.rank()));
        let group = whole.split(color, key)?;
        let part = Arc::new(whole.part(group, color, own.map_or(&[], |own| own)));
        tracing::info!(target: "sde", color, rank = part.rank(), ranks = part.size(), "in a part of the ranks");
        let set = Arc::new(ProcessSet::new(Arc::clone(&part)));
        if let Some(outer) = self.sets.of(whole) {
            let change = SetChange {
                ranks: whole,
                from: vec![(0..whole.size()).collect()],
                to: parts,
                transfer,
                is_release: false,
            };
            self.redistribute(&change, outer.all(), &set)?;
        }
        whole.set_split();
        self.sets.push(set);
        Ok(part)
    }

    /// Returns from a part to the whole, and has each rank get what others computed.
    pub(crate) fn release_ranks(
        &self,
        whole: &Arc<Ranks>,
        part: &Arc<Ranks>,
        transfer: &Transfer,
    ) -> Result<(), Error> {
        part.check()?;
        let set = self.sets.of(part);
        // Met before anything is taken apart: who is elsewhere in the program gets an error.
        let header = Header::keyless(CollectiveOp::Release, "its part").with_body(Body::Part {
            set: part.id(),
            place: part.rank() as i64,
            commits: self.commits_by_the_way(),
        });
        let doing = header.what.clone();
        let inner = part.is_split().then(|| ErrorKind::IsSplit { doing }.into());
        // Who waits for this rank in the part must not wait for ever.
        part.leave();
        let met = whole.meet(header.with_failure(inner.as_ref()));
        self.abandon_ranks(whole, part);
        let met = met?;
        self.commit_by_the_way(whole, &met);
        let Some(set) = set else { return Ok(()) };
        let fresh = set.take_fresh();
        self.exchange(whole, "results", &fresh, transfer)?;
        if let Some(outer) = self.sets.of(whole) {
            let change = SetChange {
                ranks: whole,
                from: sets_of(&met),
                to: vec![(0..whole.size()).collect()],
                transfer,
                is_release: true,
            };
            self.redistribute(&change, set.own(), &outer)?;
            // Ranks beyond the outer set lack them too.
            outer.add_fresh(fresh);
        }
        Ok(())
    }

    /// Ends a process set on this rank alone.
    pub(crate) fn abandon_ranks(&self, whole: &Ranks, part: &Ranks) {
        part.leave();
        part.set_released();
        whole.end_split();
        self.sets.remove(part.id());
    }

    /// Gives all ranks the entries that one of them has made. What can't be sent stays where
    /// it is; gives back what this rank lacks of that, or has in part.
    pub(crate) fn exchange(
        &self,
        ranks: &Ranks,
        what: &str,
        fresh: &[(Arc<str>, Key)],
        transfer: &Transfer,
    ) -> Result<Vec<NotSent>, Error> {
        let entry = |(app, key): &(Arc<str>, Key)| {
            let entry = self.caches.named(app)?.entry(key)?;
            can_give(&entry).then_some((*key, entry))
        };
        let made: HashMap<Key, Arc<Entry>> = fresh.iter().filter_map(entry).collect();
        self.exchange_made(ranks, what, &made, |_| true, transfer)
    }

    /// The same where each rank gets only what it `wants`.
    pub(crate) fn exchange_made(
        &self,
        ranks: &Ranks,
        what: &str,
        made: &HashMap<Key, Arc<Entry>>,
        wants: impl Fn(&Key) -> bool,
        transfer: &Transfer,
    ) -> Result<Vec<NotSent>, Error> {
        let offers: Vec<_> = made.values().map(|entry| Offer::of(entry)).collect();
        let exchange = Exchange { ranks, what };
        let Sent { lacked, mut left } = exchange.run(
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
    fn take_received(&self, received: ReceivedEntry) {
        if !received.record.nondeterministic {
            return self.sets.received.put(received);
        }
        let app = Arc::clone(&received.record.app);
        let cache = self.caches.get(TypeIndex::of(&app), &app);
        let generation = cache.generation();
        let info = self.catalog.info_of(&app, &received.record.code);
        let specs = info.map_or_else(Vec::new, |info| info.results);
        let entry = entry_of_specs(&specs, received.into_stored(), None);
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
        let in_cache = |cache: &Arc<crate::cache::AppCache>| {
            let entry = cache.entry(key);
            entry.is_some_and(|entry| entry.lacks().is_none())
        };
        self.sets.received.has(key) || self.caches.all().any(in_cache)
    }
}

/// Whether an entry may be offered: of what is gone from here another rank may have the values.
pub(crate) fn can_give(entry: &Entry) -> bool {
    entry.record.nondeterministic || entry.lacks().is_none()
}

/// An entry of which the filter has left values where they are that a run needs.
fn in_part(entry: &ReceivedEntry, transfer: &Transfer) -> Option<NotSent> {
    let record = &entry.record;
    let mut results = entry.results.iter();
    let is_left = results.any(|result| {
        result.value.is_none()
            && result.tags.is_needed()
            && transfer.leaves(&record.app, &result.name, result.tags)
    });
    is_left.then_some(NotSent {
        key: record.key,
        run: record.run,
    })
}

/// The ranks of each set that ranks go to or come from, in their order there.
fn sets_of(met: &[Header]) -> Vec<Vec<usize>> {
    let mut sets: BTreeMap<u64, BTreeSet<(i64, usize)>> = BTreeMap::new();
    for (rank, header) in met.iter().enumerate() {
        if let Body::Part { set, place, .. } = header.body {
            sets.entry(set).or_default().insert((place, rank));
        }
    }
    let ranks = |set: BTreeSet<(i64, usize)>| set.into_iter().map(|(_, rank)| rank).collect();
    sets.into_values().map(ranks).collect()
}

fn late_text(doing: &str, late: &[usize]) -> String {
    let names: Vec<_> = late.iter().take(8).map(ToString::to_string).collect();
    let more = match late.len().saturating_sub(8) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let ranks = if late.len() == 1 { "rank" } else { "ranks" };
    format!(
        "this rank {doing}, and waits for {ranks} {}{more}",
        names.join(", ")
    )
}
