//! Process groups of SDE on MPI.
//!
//! The engine moves results between processes by the few operations of [`sde::ranks::ProcessGroup`] and knows nothing of MPI.
//! This crate implements them on MPI, through `rsmpi`. A program starts a [`Session`] first thing in `main` and takes
//! its group from there:
//!
//! ```
//! use sde::ranks::ProcessGroup;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let session = sde_mpi::Session::start()?;
//!     let group = session.world();
//!     let mut ranks = vec![0; group.size()];
//!     group.all_gather(&[group.rank() as u8], &vec![1; group.size()], &mut ranks)?;
//!     assert_eq!(usize::from(ranks[group.rank()]), group.rank());
//!     Ok(())
//! }
//! ```
//!
//! `mpirun -n 4 program` runs it on four ranks; started without `mpirun` it is one rank.
//!
//! # What MPI leaves open, and what is done about it
//!
//! - **A rank that fails hangs the others.** A session [ends the job](Session#how-a-job-ends)
//!   when its rank panics, and tells the others when its rank returns early.
//! - **Operations that do not fit together are fatal, or hang.** Before ranks move anything they
//!   tell each other which operation they are in, and how many bytes each has. If these do not
//!   fit, all ranks get the same error, before MPI is called. That costs one message of 253
//!   bytes from each rank to each, which carries payloads of up to 173 bytes.
//! - **Counts are C ints.** Larger buffers are sent in pieces of 256 MiB.
//! - **Communicators must be gone before MPI is finalized.** The session owns those of all
//!   groups. A group that outlives its session says so, and does no harm.
//! - **Threads.** MPI is called by the thread that started the session and by no other; on
//!   another thread each operation is an error.
//!
//! A program that also calls MPI itself takes `mpi` as a dependency of its own:
//! `mpi::topology::SimpleCommunicator::world()` works while the session lives, and objects made
//! from it must be dropped before the session. [`MpiGroup::from_communicator`] makes a group of any
//! communicator, which it duplicates, so that messages do not mix.

mod ask;
mod book;
mod end;
mod frame;
mod group;
mod guard;
mod home;
mod in_flight;
mod notice;
mod session;
mod transfer;

pub use group::MpiGroup;
pub use session::{Session, StartError};
