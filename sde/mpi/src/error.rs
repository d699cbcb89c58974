//! Why a session can't be started.

/// MPI can't be started, or not as the engine needs it.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// There is a session, or somebody else has started MPI.
    #[error(
        "starting MPI: it is started already; start one session, first thing in `main`, or give \
         the `Universe` that there is to `Session::over`"
    )]
    Started,
    /// MPI was started and ended before.
    #[error(
        "starting MPI: it has ended, and can't be started twice in a process; keep the session \
         until the end of `main`"
    )]
    Ended,
    /// The library allows no threads besides the one that calls it.
    #[error(
        "starting MPI: the library grants the thread level {granted}, and the engine has threads \
         of its own: it needs MPI_THREAD_FUNNELED; use a build of the library with threads"
    )]
    Threads {
        /// The level that is granted.
        granted: String,
    },
}

sde::debug_as_said!(StartError);
