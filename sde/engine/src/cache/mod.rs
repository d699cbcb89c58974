//! What is remembered, and who is computing what.
//!
//! A cache is the entries of one app type. Its map holds for each key either an
//! entry or a flight: looking up and claiming are then one step, and the map's
//! lock is held for nothing else. What to do about a flight (wait, take over,
//! compute too, refuse) is decided by code that knows no map ([`flight`],
//! [`waits`]), so that a model checker can try it on its own.

mod app_cache;
mod budget;
mod counted;
mod entry;
pub mod eviction;
pub(crate) mod flight;
mod ledger;
mod memory;
mod merge;
mod record;
mod run_cost;
mod run_flight;
mod scratches;
mod stats;
mod table;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod waits;

pub(crate) use app_cache::{AppCache, Before, Claimed, Decision};
pub use budget::{EvictionOrder, MemoryBudget};
pub(crate) use counted::EVICTED;
pub(crate) use entry::{Entry, PERIODS, Served, epoch_of};
pub use memory::MemoryUse;
pub(crate) use memory::{Listed, Memory, Stays};
pub(crate) use merge::merge;
pub use record::{Provenance, Record, RecordHead};
pub(crate) use run_cost::SHORT;
pub(crate) use run_flight::RunFlight;
pub(crate) use scratches::ScratchState;
pub use stats::AppStats;
pub(crate) use stats::Count;
pub(crate) use table::CacheTable;
