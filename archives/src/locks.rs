//! The locks of the engine, whose builds with debug assertions check both crates together. The order of a store's own:
//! superseded scratch, committing, the look at the directory, writers, segments, index, lease; a thread that holds any other lock
//! takes none. Whatever warns while it holds one does so in [`warnings_after`].

pub(crate) use sde::__private::locks::{
    Guard, MutexGuard, lock, read, try_lock, user_code, wait, wait_timeout, write,
};
pub(crate) use sde::__private::warnings_after;
