//! Splitting process sets, and releasing them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::collective::{Body, CollectiveOp, Header, Ranks};
use super::entry_move::SetChange;
use super::group::ProcessGroup;
use super::sets::{ProcessSet, Runs};
use crate::engine::{Engine, Transfer};
use crate::entry::Entry;
use crate::error::{Error, ErrorKind};
use crate::result_map::{Named, Tag};

impl Engine {
    /// The process set that the program begins with.
    pub(crate) fn world(
        self: &Arc<Self>,
        group: Box<dyn ProcessGroup>,
        patience: Duration,
    ) -> Arc<ProcessSet> {
        let engine = Arc::downgrade(self);
        let late = move |doing: &str, late: &[usize]| {
            if let Some(engine) = engine.upgrade() {
                engine.warn(|| late_text(doing, late));
            }
        };
        let ranks = Ranks::world(group, patience, Arc::new(late));
        let set = Arc::new(ProcessSet::new(ranks));
        self.sets.push(Arc::clone(&set));
        set
    }

    /// Makes a process set of some of these ranks.
    pub(crate) fn split_set(
        &self,
        whole: &ProcessSet,
        color: u32,
        key: i64,
        transfer: &Transfer,
    ) -> Result<Arc<ProcessSet>, Error> {
        let named = whole.entries().into_iter();
        let named = self.movable(named.filter(|entry| names_parts(transfer, entry)));
        let header = Header::keyless(CollectiveOp::Split, "parts").with_body(Body::Subset {
            set: u64::from(color),
            place: key,
            commits: self.commits_by_the_way(),
            moves: !named.is_empty(),
        });
        let met = whole.meet(header)?;
        self.commit_by_the_way(whole, &met);
        let subsets = sets_of(&met);
        let own = subsets.iter().find(|subset| subset.contains(&whole.rank()));
        let group = whole.split(color, key)?;
        let subset = whole.subset(group, color, own.map_or(&[], |own| own));
        tracing::info!(target: "sde", color, rank = subset.rank(), ranks = subset.size(), "in a part of the ranks");
        let subset = Arc::new(ProcessSet::new(subset));
        let change = SetChange {
            ranks: whole,
            from: vec![(0..whole.size()).collect()],
            to: subsets,
            target: &subset,
            transfer,
        };
        self.redistribute(&change, &met, &named)?;
        whole.set_split();
        self.sets.push(Arc::clone(&subset));
        Ok(subset)
    }

    /// Returns from a subset to the whole, and gets each rank the results that others computed.
    pub(crate) fn release_set(
        &self,
        whole: &ProcessSet,
        subset: &ProcessSet,
        (op, failure): (CollectiveOp, Option<&Error>),
        transfer: &Transfer,
    ) -> Result<(), Error> {
        subset.check()?;
        // The whole set has the entries that came from it.
        let made = subset.entries().into_iter();
        let made = self.movable(made.filter(|entry| !whole.has(&entry.record)));
        // Meets before it takes anything apart: a rank that is elsewhere in the program gets an error.
        let header = Header::keyless(op, "its part").with_body(Body::Subset {
            set: subset.id(),
            place: subset.rank() as i64,
            commits: self.commits_by_the_way(),
            moves: !made.is_empty(),
        });
        let doing = header.what.clone();
        let is_split = subset.is_split();
        let inner = is_split.then(|| ErrorKind::IsSplit { doing }.into());
        // Ranks that wait for this one in the subset must not wait for ever.
        subset.leave();
        let met = whole.meet(header.with_failure(failure.or(inner.as_ref())));
        let fresh = self.abandon_set(whole, subset);
        let met = met?;
        self.commit_by_the_way(whole, &met);
        self.exchange(whole, "results", &fresh, transfer)?;
        let change = SetChange {
            ranks: whole,
            from: sets_of(&met),
            to: vec![(0..whole.size()).collect()],
            target: whole,
            transfer,
        };
        self.redistribute(&change, &met, &made)?;
        // In a nested split, ranks outside of `whole` lack these results too.
        whole.add_fresh(fresh);
        Ok(())
    }

    /// Ends a process set on this rank alone; gives its [ordinary runs](ProcessSet::end) whose results other ranks
    /// lack.
    pub(crate) fn abandon_set(&self, whole: &ProcessSet, subset: &ProcessSet) -> Runs {
        subset.leave();
        subset.set_released();
        whole.end_split();
        self.sets.remove(subset.id());
        subset.take_results()
    }
}

/// Whether the transfer names a distributed value of an entry. A subset finds all other values in the memory of the
/// whole ([`Engine::of_larger_set`]).
fn names_parts(transfer: &Transfer, entry: &Entry) -> bool {
    let is_named = |named: &Named| {
        let tags = named.tags;
        let has_part = tags.contains(Tag::Distributed) && named.content.is_there();
        has_part && !transfer.stays(&entry.record, &named.name, tags)
    };
    entry.results.iter().any(is_named)
}

/// The ranks of each set that ranks go to or come from, in the set's order.
fn sets_of(met: &[Header]) -> Vec<Vec<usize>> {
    let mut sets: BTreeMap<u64, BTreeSet<(i64, usize)>> = BTreeMap::new();
    for (rank, header) in met.iter().enumerate() {
        if let Body::Subset { set, place, .. } = header.body {
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
