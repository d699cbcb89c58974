//! How much memory what is remembered may take.

use std::time::Duration;

use crate::result_map::Tag;

/// How much memory what is remembered may take, and what leaves first.
///
/// Counted is what entries hold: values by their [size](crate::MemorySize), the record of the run, and
/// its place in tables. What leaves is looked up in the store when it is asked for again, or
/// computed. What nobody but the program holds is the program's.
///
/// | | leaves |
/// |---|---|
/// | what the store has | with its record |
/// | what the store is to have and has not yet | is saved first, then the same; not with [`SavePolicy::Never`](crate::SavePolicy::Never) |
/// | what is to be saved and no store has | if the budget was given in bytes; the record stays, unless records may be [forgotten](Self::forget_records) |
/// | what is `expendable` | whatever the store has of its entry |
/// | records of runs of which no result is ever saved | with what is left of their values |
/// | failures that are [permanent](crate::Failure::Permanent) | the run is tried again when it is asked for |
/// | `no_cache`, and what is being computed | is not counted |
/// | what the program holds too | stays; dropping it would free nothing |
/// | what ranks made together | what was used longest ago first, whatever the order, the tags and the costs; also what the program holds |
///
/// Where what can't leave takes most of the budget, an eighth of it besides is left for the rest; where it takes more than all of
/// it, a warning says so, once.
///
/// ```
/// use sde::{EvictionOrder, MemoryBudget, Sde};
///
/// #[sde::app]
/// fn zeros(length: usize) -> Vec<f64> {
///     vec![0.0; length]
/// }
///
/// let sde = Sde::builder().memory_budget(100_000).build()?;
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
    /// `None` for half of what there is.
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
    /// First what is cheapest to have again for each byte: what computing it took, with what it rests on and has left
    /// too, or reading it back once it is saved, times how likely it is asked for. The default.
    #[default]
    Worth,
    /// First what was used longest ago.
    LeastRecentlyUsed,
    /// First what was there first.
    FirstIn,
}

impl MemoryBudget {
    /// So many bytes, whatever the store has.
    pub fn bytes(bytes: usize) -> Self {
        Self {
            bytes: Some(bytes),
            only_saved: false,
            ..Self::default()
        }
    }

    /// No limit of bytes. With [`entries`](Self::entries) or [`max_age`](Self::max_age) what no store has leaves too.
    pub fn unlimited() -> Self {
        Self::bytes(usize::MAX)
    }

    /// In what order entries leave.
    pub fn order(mut self, order: EvictionOrder) -> Self {
        self.order = order;
        self
    }

    /// At most so many entries that may leave, too: besides those that stay, as the table says, and what ranks made
    /// together.
    pub fn entries(mut self, entries: usize) -> Self {
        self.entries = entries;
        self
    }

    /// What has been in memory for longer leaves, too, when something is remembered.
    pub fn max_age(mut self, age: Duration) -> Self {
        self.max_age = Some(age);
        self
    }

    /// Entries whose results all have the first of these tags leave before those with the second, and these before all
    /// others, whatever they cost.
    pub fn first(mut self, tags: impl IntoIterator<Item = Tag>) -> Self {
        self.first.clear();
        for tag in tags {
            if !self.first.contains(&tag) {
                self.first.push(tag);
            }
        }
        self
    }

    /// What is to be saved leaves only once it is in the store.
    pub fn only_saved(mut self) -> Self {
        self.only_saved = true;
        self
    }

    /// How a run was made leaves with its values, where no store has it either.
    pub fn forget_records(mut self) -> Self {
        self.forgets_records = true;
        self
    }

    /// With the half of this where no bytes were given; without a limit if it is not known.
    pub(crate) fn of_machine(mut self, memory: Option<usize>) -> Self {
        let half = || memory.map_or(usize::MAX, |memory| memory / 2);
        self.bytes = Some(self.bytes.unwrap_or_else(half));
        self
    }

    pub(super) fn limit(&self) -> usize {
        self.bytes.unwrap_or(usize::MAX)
    }

    /// Whether anything can ever be over it.
    pub(crate) fn is_limited(&self) -> bool {
        self.limit() < usize::MAX || self.entries < usize::MAX || self.max_age.is_some()
    }
}

/// Half of the memory that the machine has, or the control group of the process, divided by the ranks or tasks on it;
/// what is to be saved leaves only once it is in the store. What [`program_defaults`](crate::Builder::program_defaults) has.
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

impl From<usize> for MemoryBudget {
    fn from(bytes: usize) -> Self {
        Self::bytes(bytes)
    }
}
