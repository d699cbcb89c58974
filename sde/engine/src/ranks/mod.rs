//! Programs on many ranks, and transports for them.
//!
//! The engine moves and compares results between ranks by the few operations of a [`ProcessGroup`], so it does not
//! depend on MPI: a program on one process is a group [of one](OneProcess), tests use [threads](ThreadGroup) as ranks,
//! and the crate `sde-mpi` implements groups on MPI. Who writes another transport implements that trait.
//!
//! Each rank has its own caches. A process set may be [split](crate::Handle::split_for), so that its parts compute
//! different things, and released, after which all of its ranks are to have the results that any of them computed.
//! Ordinary results are alike wherever they were made, so they are exchanged: keys first, then each value that a rank
//! lacks, once. A received entry stays bytes until a run asks for it, as in a store. Results of distributed apps are
//! made by all ranks and belong to the process set that made them; their values lie on several ranks and move with the
//! process sets.

// Every collective operation begins with a meeting, in `collective`. `exchange` moves ordinary results, `redistribute`
// values that lie on several ranks; `run` makes results on all ranks, which `sets` keep.
pub(crate) mod collective;
mod commit;
mod deal;
pub(crate) mod distributed;
mod entry_move;
pub(crate) mod exchange;
mod give;
pub(crate) mod group;
mod handle;
mod job_end;
mod par_map;
pub(crate) mod parts;
mod points;
mod redistribute;
mod run;
mod save;
mod scratch;
mod set_map;
pub(crate) mod sets;
mod split;
mod threads;
mod values;

pub use collective::Collective;
pub(crate) use collective::{CollectiveOp, not_here};
pub use distributed::{Distributed, Placement, Redistribution, SavedParts};
pub(crate) use exchange::is_complete;
pub use group::{GroupError, Note, OneProcess, ProcessGroup, Subgroup};
pub(crate) use parts::part_key;
pub(crate) use save::{bind, with_parts};
pub(crate) use scratch::{StateKind, state_key};
pub(crate) use sets::{ProcessSet, Sets};
pub use threads::ThreadGroup;

pub use crate::app::Synchronize;
#[cfg(unix)]
pub use crate::engine::start_library;
pub use crate::engine::{Subset, Transfer};
