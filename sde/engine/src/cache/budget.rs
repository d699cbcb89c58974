//! The limits of memory for remembered results.

use std::time::Duration;

use crate::result_map::Tag;

/// Limits the memory that remembered results may take, and selects which leave first.
///
/// Counted are the values of entries by their [size](crate::MemorySize), the records of runs, and their places in
/// tables. A result that has left is read from the store when it is asked for again, or computed. Values that only the
/// program holds are not counted.
///
/// | entries | how they leave |
/// |---|---|
/// | saved in the store | with their records |
/// | meant for the store, not saved yet | are saved first, then leave; not with [`SavePolicy::Never`](crate::SavePolicy::Never) |
/// | meant to be saved, and in no store | if the budget was given in bytes; the record stays, unless records may be [forgotten](Self::forget_records) |
/// | `expendable` results | whether or not the store has their entry |
/// | records of runs of which no result is ever saved | with the rest of their values |
/// | [failures](crate::Failure) that are remembered | the store gives them, or the run is tried again |
/// | `no_cache` results, and runs in progress | are not counted |
/// | results that the program holds too | like all others; calls get them for as long as the program holds them |
/// | results that ranks made together | the least recently used first, whatever the order, the tags and the costs; also those that the program holds |
///
/// Where entries that can't leave take most of the budget, the rest may still take an eighth of it. Where they take
/// more than all of it, a warning says so, once.
///
/// ```
/// use sde::{EvictionOrder, MemoryBudget, Sde};
///
/// #[sde::app]
/// fn zeros(length: usize) -> Vec<f64> {
///     vec![0.0; length]
/// }
///
/// let sde = Sde::builder().memory_budget(MemoryBudget::bytes(100_000)).build()?;
/// for length in 1_000..1_100 {
///     zeros.call(&sde, length)?;
/// }
/// assert!(sde.stats().total.evicted > 80);
///
/// let budget = MemoryBudget::bytes(1 << 30).order(EvictionOrder::LeastRecentlyUsed);
/// let sde = Sde::builder().memory_budget_of("zeros", budget).build()?;
/// # Ok::<(), sde::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "it is given to a `Builder`"]
pub struct MemoryBudget {
    /// `None` for half of the memory of the machine.
    bytes: Option<usize>,
    pub(super) entries: usize,
    pub(super) max_age: Option<Duration>,
    pub(super) order: EvictionOrder,
    pub(super) first: Vec<Tag>,
    pub(crate) only_saved: bool,
    pub(crate) forgets_records: bool,
}

/// In what order entries leave memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EvictionOrder {
    /// First the entries that are cheapest to get back for each byte: the time to read a saved one, or to compute one
    /// with its evicted dependencies, times the chance that it is asked for. The default.
    #[default]
    Worth,
    /// First the least recently used.
    LeastRecentlyUsed,
    /// First in, first out.
    FirstIn,
}

impl MemoryBudget {
    /// A limit in bytes, which holds also for results that no store has.
    pub fn bytes(bytes: usize) -> Self {
        Self {
            bytes: Some(bytes),
            only_saved: false,
            ..Self::default()
        }
    }

    /// Limits memory to this number of MiB (1024^2 bytes).
    pub fn mib(mib: usize) -> Self {
        Self::bytes(mib.saturating_mul(1 << 20))
    }

    /// Limits memory to this number of GiB (1024^3 bytes).
    pub fn gib(gib: usize) -> Self {
        Self::bytes(gib.saturating_mul(1 << 30))
    }

    /// No limit of bytes. With [`entries`](Self::entries) or [`max_age`](Self::max_age) unsaved results leave too.
    pub fn unlimited() -> Self {
        Self::bytes(usize::MAX)
    }

    /// In what order entries leave.
    pub fn order(mut self, order: EvictionOrder) -> Self {
        self.order = order;
        self
    }

    /// Limits the number of entries too. Entries that stay, as the table says, and those that ranks made together do
    /// not count towards it.
    pub fn entries(mut self, entries: usize) -> Self {
        self.entries = entries;
        self
    }

    /// Limits the age of entries, too: those that are older leave. Ages are looked at when something is remembered.
    pub fn max_age(mut self, age: Duration) -> Self {
        self.max_age = Some(age);
        self
    }

    /// Names tags whose entries leave first: those whose results all have the first tag leave before those with the
    /// second, and these before all others, whatever they cost.
    pub fn first(mut self, tags: impl IntoIterator<Item = Tag>) -> Self {
        self.first.clear();
        for tag in tags {
            if !self.first.contains(&tag) {
                self.first.push(tag);
            }
        }
        self
    }

    /// Results that are to be saved leave only once the store has them.
    pub fn only_saved(mut self) -> Self {
        self.only_saved = true;
        self
    }

    /// Records leave with the values of their runs, even if no store has them.
    pub fn forget_records(mut self) -> Self {
        self.forgets_records = true;
        self
    }

    /// Half of this memory where no bytes were given; no limit if it is `None` too.
    pub(crate) fn of_machine(mut self, memory: Option<usize>) -> Self {
        let half = || memory.map_or(usize::MAX, |memory| memory / 2);
        self.bytes = Some(self.bytes.unwrap_or_else(half));
        self
    }

    pub(super) fn limit(&self) -> usize {
        self.bytes.unwrap_or(usize::MAX)
    }

    /// Whether the budget has any limit.
    pub(crate) fn is_limited(&self) -> bool {
        self.limit() < usize::MAX || self.entries < usize::MAX || self.max_age.is_some()
    }
}

/// Half of the memory of the machine or of the process's control group, divided by the ranks or tasks on it. Results
/// that are to be saved leave only once the store has them. This is the budget where there
/// is a store to save to and no other is given.
impl Default for MemoryBudget {
    fn default() -> Self {
        Self {
            bytes: None,
            entries: usize::MAX,
            max_age: None,
            order: EvictionOrder::default(),
            first: Vec::new(),
            only_saved: true,
            forgets_records: false,
        }
    }
}
