//! The results in memory and the computations in progress.
//!
//! A cache has the entries of one app type. Its map holds for each key an entry or a flight, so looking up and claiming
//! are one step, and nothing else is done with the map's lock held. The code that decides about a flight (wait, take
//! over, compute too, refuse) knows no map ([`flight`], [`waits`]), so a model checker can try it on its own.

mod app_cache;
mod budget;
mod counted;
pub mod eviction;
pub(crate) mod flight;
mod key_state;
mod ledger;
mod memory;
mod merge;
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
pub(crate) use ledger::AccountState;
pub use memory::MemoryUse;
pub(crate) use memory::{Listed, Memory};
pub(crate) use merge::merge;
pub(crate) use run_cost::SHORT;
pub(crate) use run_flight::RunFlight;
pub(crate) use scratches::ScratchState;
pub use stats::AppStats;
pub(crate) use stats::Count;
pub(crate) use table::CacheTable;
