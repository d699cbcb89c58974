//! Cells that remember the last value, and never wait for it.
//!
//! A function that is called again and again with the same argument needs only the cheapest cache: one record, the last
//! argument and the last result. A lock around it costs too much. Readers of one record queue up although none changes
//! anything, and a thread that the system stops while it holds the lock stops all the others.
//!
//! The cells here follow another rule: **on any conflict, compute**. A reader that meets a writer gets nothing and
//! computes itself; a writer that meets a writer gives up. Nobody ever waits, whichever thread is stopped wherever. The
//! price is a computation now and then, which the caller would have made without a cache as well.
//!
//! In Rust it is undefined behaviour to copy a record that another thread may be writing and to
//! throw the copy away afterwards, volatile or not. So there are several cells, each sound in its
//! own way:
//!
//! | cell | key and value | readers of one record | room |
//! |---|---|---|---|
//! | [`LastValueWords`] | small and [`Plain`]: numbers, arrays and tuples of them | do not write memory at all | 128 bytes, no allocation |
//! | [`LastValue`] | any | do not write to what they share | one record |
//! | [`LastValuePerThread`] | any | share nothing: each thread has a record of its own | a record for each thread |
//!
//! # Which one
//!
//! If key and value fit, [`LastValueWords`]. Otherwise, if all threads ask for the same thing and it changes seldom,
//! [`LastValue`]. If threads work on different things, [`LastValuePerThread`]: in a shared cell each would overwrite
//! the records of others, and the cache line would move between cores at each write.
//!
//! # Clearing
//!
//! A result that was computed before the cache was cleared must not appear in it afterwards, even if its thread stores
//! it late. Each cell counts its clearings: an [`Epoch`] is the count at some moment. A record carries the epoch in
//! which its computation *began*, and is found only in that epoch. `get_or_compute` sees to this. A caller of `get` and
//! `set` apart takes `epoch()` before computing and stores with `set_at`. So `clear` needs neither to wait for a writer
//! nor to win against one: after it has returned, no record from before is found.

mod per_thread;
mod plain;
mod plain_impls;
mod recent;
mod swapped;
mod sync;
mod try_cell;
mod words;

pub use per_thread::LastValuePerThread;
pub use plain::Plain;
// The engine's first level: a table of each thread, whose values come from a larger cache.
#[doc(hidden)]
pub use recent::{MAX_ENCODED, Place, Recent};
pub use swapped::LastValue;
#[doc(hidden)]
pub use sync::{own_thread_number, thread_number};
pub use words::LastValueWords;

/// The number of times that a cell had been cleared at some moment.
///
/// Taken with `epoch()` before a computation and given back with its result, so that a result from
/// before a `clear` is not found after it. Means nothing to another cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Epoch(u64);

/// The epoch of a new cell. Not zero, so that a record of zeros is from no epoch.
const FIRST_EPOCH: u64 = 1;
