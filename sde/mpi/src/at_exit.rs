//! What is called when the process exits, by whatever way but a signal.

#![allow(
    unsafe_code,
    reason = "the standard library has no way to be called at an exit"
)]

use std::ffi::c_int;

// SAFETY: ISO C declares it like this; it may be called at any time.
unsafe extern "C" {
    safe fn atexit(function: extern "C" fn()) -> c_int;
}

/// Has a function called when the process exits, before those that were given earlier. False
/// if there is no room for it.
pub(crate) fn call(function: extern "C" fn()) -> bool {
    atexit(function) == 0
}
