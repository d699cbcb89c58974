//! Tests of process sets, whatever stands for ranks: threads, or the processes of an MPI job.
//!
//! A test is a function that is given [`Ranks`] and says what each of them shall do. Threads run it
//! in one process. Under MPI every process runs it, from its beginning to its end, and those that
//! are a rank of it run the program in its middle; what the ranks return is given to all, so that
//! what follows holds, or fails, on all of them.
//!
//! So what a test does outside of [`Ranks::run`] must be the same on all processes. What may happen only
//! once, to a file say, goes into [`Ranks::once`].
//!
//! [`list`](self) has all tests, with the numbers of ranks that each is for.

mod arrays;
mod errors;
mod exchanged;
mod fields;
mod folder;
mod journey;
mod list;
mod memory;
mod origins;
mod rank_map;
mod redistribution;
mod restart;
mod runs;
mod scratch;
mod set_map;
mod sets;
mod slots;
mod state_parts;
mod together;
mod world;

pub use folder::Folder;
pub use journey::{Arrived, journey, load_acknowledged, since_panic};
pub use list::{Sizes, TESTS, Test, on_threads, run_all};
pub use restart::{load_waves, save_waves};
pub use world::{Rank, Ranks, Threads, World};

/// How results were got, as text: that can go from rank to rank.
fn names(sources: impl IntoIterator<Item = sde::Source>) -> Vec<String> {
    let name = |source| format!("{source:?}");
    sources.into_iter().map(name).collect()
}

/// Says that what each rank has is this.
#[track_caller]
fn all_are<T: PartialEq + std::fmt::Debug>(of_ranks: &[T], this: &T) {
    let are = of_ranks.iter().all(|one| one == this);
    assert!(are, "not all are {this:?}: {of_ranks:?}");
}
