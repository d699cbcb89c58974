//! Signals are for Python's threads. If the system gives one to a thread that Python does not know, Python notes it, but
//! the main thread does not look for it while it runs a function.
#![cfg_attr(
    unix,
    allow(
        unsafe_code,
        reason = "no safe interface blocks the signals of a thread"
    )
)]

/// Does something that starts threads, to which the system gives no signals.
#[cfg(unix)]
pub(crate) fn blocked<R>(run: impl FnOnce() -> R) -> R {
    /// The signals that were blocked before, which are so again, also when a panic goes through.
    struct Before(libc::sigset_t);
    impl Drop for Before {
        fn drop(&mut self) {
            // SAFETY: the set was filled by the system.
            unsafe {
                libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut())
            };
        }
    }
    // SAFETY: both sets are plain memory, which is filled before it is read.
    let _before = unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        Before(before)
    };
    run()
}

#[cfg(not(unix))]
pub(crate) fn blocked<R>(run: impl FnOnce() -> R) -> R {
    run()
}
