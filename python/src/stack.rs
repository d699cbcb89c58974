//! How much is left of a thread's stack. Each call of a cached function in another takes some of it, and what overflows it
//! ends the process; Python's limit of recursion does not count bytes.

#![cfg_attr(
    target_os = "linux",
    allow(
        unsafe_code,
        reason = "no safe interface tells where a thread's stack lies"
    )
)]

use pyo3::PyErr;
use pyo3::exceptions::PyRecursionError;

/// How deep runs may nest: without bound where the stack is measured.
pub(crate) const MAX_DEPTH: Option<usize> = match cfg!(target_os = "linux") {
    true => Some(usize::MAX),
    false => None,
};

/// Whether less than a quarter of this thread's stack is left: that is for what the function itself calls.
#[cfg(target_os = "linux")]
pub(crate) fn is_nearly_full() -> bool {
    thread_local! {
        /// The lowest address that may be used. The system reads a file to tell where the main thread's stack lies.
        static LOWEST: Option<usize> = bounds().map(|(lowest, length)| lowest + length / 4);
    }
    let here = 0_u8;
    let here = (&raw const here).addr();
    LOWEST.with(|lowest| lowest.is_some_and(|lowest| here < lowest))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn is_nearly_full() -> bool {
    false
}

/// The lowest address of this thread's stack, and its length in bytes.
#[cfg(target_os = "linux")]
fn bounds() -> Option<(usize, usize)> {
    // SAFETY: the attributes are plain memory, which is read only if the system has filled it, and released once.
    unsafe {
        let mut attributes = std::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes) != 0 {
            return None;
        }
        let (mut lowest, mut length) = (std::ptr::null_mut(), 0);
        let got =
            libc::pthread_attr_getstack(&raw const attributes, &raw mut lowest, &raw mut length);
        libc::pthread_attr_destroy(&raw mut attributes);
        (got == 0).then(|| (lowest.addr(), length))
    }
}

/// The error of a call that is nested too deeply.
pub(crate) fn too_deep(name: &str) -> PyErr {
    PyRecursionError::new_err(format!(
        "{name} is called within so many other calls that this thread's stack is nearly full; make the innermost calls \
         first, whose results are then remembered, or call it on a thread with more (threading.stack_size)"
    ))
}
