//! The engine's locks; builds with debug assertions check both crates together. The store's lock order: superseded
//! scratch, committing, the look at the directory, writers, segments, index, lease. A thread that holds any other
//! lock takes none. Warnings under a lock are made in [`warnings_after`].

pub(crate) use sde::__private::locks::{
    Guard, MutexGuard, lock, read, try_lock, user_code, wait, wait_timeout, write,
};
pub(crate) use sde::__private::warnings_after;
