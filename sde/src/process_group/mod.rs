//! The few things that ranks do together, and who does them.
//!
//! The engine moves results between ranks, and has them agree, by five operations. They are
//! behind the trait [`ProcessGroup`], so that the engine knows nothing of MPI: a program
//! without it is a group [of one](OneProcess), a test lets [threads](ThreadGroup) stand for
//! ranks, and the crate `sde-mpi` has the real thing.

mod differ;
mod error;
mod gather;
mod group;
mod notice;
mod one;
mod patient;
mod ranks;
mod threads;

pub(crate) use differ::Given;
pub use error::GroupError;
pub(crate) use gather::parts;
pub use group::{ProcessGroup, Subgroup};
pub(crate) use notice::{Act, Notice, Says};
pub use one::OneProcess;
pub(crate) use ranks::{Ranks, chain, not_here};
pub use threads::ThreadGroup;
