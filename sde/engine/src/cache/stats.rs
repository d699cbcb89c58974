//! Counting what happens, without the threads getting in one another's way.
//!
//! A counter that every hit adds to would be written by all threads, and its
//! cache line would travel between their cores: hits would not scale. So each
//! thread adds to a line of its own, and reading sums them up.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_utils::CachePadded;
use sde_last_value::own_thread_number;

use crate::entry::nanos;
use crate::event::Source;

/// How many threads have a line of their own; the others share one.
const LINES: usize = 16;
const KINDS: usize = 15;

/// The kinds of events and amounts.
#[derive(Clone, Copy)]
pub(crate) enum Count {
    Recent,
    Map,
    Loaded,
    Waited,
    Computed,
    Duplicate,
    Failed,
    NanosSpent,
    NanosSaved,
    Evicted,
    EvictedBytes,
    EvictedNanos,
    WaitedForOthers,
    BesideOthers,
    Differing,
}

impl From<Source> for Count {
    fn from(source: Source) -> Self {
        match source {
            Source::Memory => Self::Map,
            Source::Loaded => Self::Loaded,
            Source::Waited => Self::Waited,
            Source::Computed => Self::Computed,
            Source::Duplicate => Self::Duplicate,
        }
    }
}

/// The counters of one cache.
#[derive(Default)]
pub(crate) struct Counters {
    lines: [CachePadded<Line>; LINES],
    shared: CachePadded<Line>,
}

type Line = [AtomicU64; KINDS];

/// The line of a thread, or one that it shares.
enum OnLine<'a> {
    Own(&'a Line),
    Shared(&'a Line),
}

impl OnLine<'_> {
    /// Nobody else writes to a thread's own line, so there a load and a store are enough; a
    /// read-modify-write costs as much as ten of them.
    #[inline]
    fn add<const N: usize>(self, amounts: [(Count, u64); N]) {
        match self {
            Self::Own(line) => {
                for (count, amount) in amounts {
                    let counter = &line[count as usize];
                    let sum = counter.load(Ordering::Relaxed).wrapping_add(amount);
                    counter.store(sum, Ordering::Relaxed);
                }
            }
            Self::Shared(line) => {
                for (count, amount) in amounts {
                    line[count as usize].fetch_add(amount, Ordering::Relaxed);
                }
            }
        }
    }
}

impl Counters {
    pub(crate) fn add(&self, count: Count, amount: u64) {
        self.line().add([(count, amount)]);
    }

    /// Counts a hit of a kind and the time it saved, on one line.
    #[inline]
    pub(crate) fn hit(&self, kind: Count, nanos_saved: u64) {
        self.line()
            .add([(kind, 1), (Count::NanosSaved, nanos_saved)]);
    }

    /// Counts an entry that left memory, and the time that getting it back would take.
    pub(crate) fn evicted(&self, bytes: usize, nanos: u64) {
        self.line().add([
            (Count::Evicted, 1),
            (Count::EvictedBytes, bytes as u64),
            (Count::EvictedNanos, nanos),
        ]);
    }

    /// Counts time that a body took itself.
    pub(crate) fn spent(&self, time: Duration) {
        self.add(Count::NanosSpent, nanos(time));
    }

    /// The line that this thread counts on.
    #[inline]
    fn line(&self) -> OnLine<'_> {
        match own_thread_number().and_then(|number| self.lines.get(number)) {
            Some(own) => OnLine::Own(own),
            None => OnLine::Shared(&self.shared),
        }
    }

    pub(crate) fn sum(&self) -> AppStats {
        let sum = |count: Count| {
            self.lines
                .iter()
                .chain([&self.shared])
                .map(|line| line[count as usize].load(Ordering::Relaxed))
                .fold(0, u64::saturating_add)
        };
        AppStats {
            recent_hits: sum(Count::Recent),
            map_hits: sum(Count::Map),
            loads: sum(Count::Loaded),
            waits: sum(Count::Waited),
            computed: sum(Count::Computed) + sum(Count::Duplicate),
            duplicates: sum(Count::Duplicate),
            failures: sum(Count::Failed),
            evicted: sum(Count::Evicted),
            evicted_bytes: sum(Count::EvictedBytes),
            evicted_time: Duration::from_nanos(sum(Count::EvictedNanos)),
            waited_for_others: sum(Count::WaitedForOthers),
            beside_others: sum(Count::BesideOthers),
            differing: sum(Count::Differing),
            time_spent: Duration::from_nanos(sum(Count::NanosSpent)),
            time_saved: Duration::from_nanos(sum(Count::NanosSaved)),
        }
    }
}

/// Counts and times of the runs of one app, or of all apps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AppStats {
    /// Hits among the thread's recent ones: no digest, no lock.
    pub recent_hits: u64,
    /// Hits in the map.
    pub map_hits: u64,
    /// Results read from the store.
    pub loads: u64,
    /// Calls that waited for another that was computing the same key.
    pub waits: u64,
    /// Bodies that ran to their end, duplicates among them.
    pub computed: u64,
    /// Bodies that ran although another was computing the same key.
    pub duplicates: u64,
    /// Calls that ended in an error.
    pub failures: u64,
    /// The number of entries that left memory to make room.
    pub evicted: u64,
    /// Bytes that the values of the evicted entries took.
    pub evicted_bytes: u64,
    /// Time to get all evicted entries back: reading the saved ones from the store, computing the rest.
    pub evicted_time: Duration,
    /// Loads of results that another process computed while this one [waited](crate::SharedWork) for them.
    pub waited_for_others: u64,
    /// Bodies that ran to their end although another process was known to compute the same key. Computations that this
    /// process was not told of are not counted.
    pub beside_others: u64,
    /// The number of times that two computations of one key were compared and had other bits. Each is a warning too.
    pub differing: u64,
    /// Time in bodies, failed ones included. The runs that a body makes count for their own apps. Waiting there for
    /// another thread or for the store counts for none. The sum over apps is what the program's threads computed.
    pub time_spent: Duration,
    /// Compute time of remembered results, nested runs included, summed over all hits on them.
    pub time_saved: Duration,
}

impl AppStats {
    /// Hits in memory, at either level.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.recent_hits.saturating_add(self.map_hits)
    }

    /// The sum with another app's.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            recent_hits: self.recent_hits.saturating_add(other.recent_hits),
            map_hits: self.map_hits.saturating_add(other.map_hits),
            loads: self.loads.saturating_add(other.loads),
            waits: self.waits.saturating_add(other.waits),
            computed: self.computed.saturating_add(other.computed),
            duplicates: self.duplicates.saturating_add(other.duplicates),
            failures: self.failures.saturating_add(other.failures),
            evicted: self.evicted.saturating_add(other.evicted),
            evicted_bytes: self.evicted_bytes.saturating_add(other.evicted_bytes),
            evicted_time: self.evicted_time.saturating_add(other.evicted_time),
            waited_for_others: self
                .waited_for_others
                .saturating_add(other.waited_for_others),
            beside_others: self.beside_others.saturating_add(other.beside_others),
            differing: self.differing.saturating_add(other.differing),
            time_spent: self.time_spent.saturating_add(other.time_spent),
            time_saved: self.time_saved.saturating_add(other.time_saved),
        }
    }
}
