//! The session: MPI from its start to its end.

use std::marker::PhantomData;
use std::rc::Rc;

use mpi::Threading;
use mpi::environment::{self, Universe};
use mpi::traits::Communicator;

use crate::home::Home;
use crate::transfer::Limits;
use crate::{MpiGroup, end, guard};

/// MPI can't be started, or lacks a feature that the engine needs.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A session lives already, or other code has started MPI.
    #[error(
        "starting MPI: it is started already; start one session, first thing in `main`, or give \
         the `Universe` that there is to `Session::over`"
    )]
    Started,
    /// MPI was started and ended before in this process.
    #[error(
        "starting MPI: it has ended, and can't be started twice in a process; keep the session \
         until the end of `main`"
    )]
    Ended,
    /// The library does not allow threads besides the one that calls it.
    #[error(
        "starting MPI: the library grants the thread level {granted}, and the engine has threads \
         of its own: it needs MPI_THREAD_FUNNELED; use a build of the library with threads"
    )]
    #[non_exhaustive]
    Threads {
        /// The thread level that the library grants.
        granted: String,
    },
}

sde::debug_as_said!(StartError);

/// Makes `Session::start()?` possible in a function that returns the engine's error.
impl From<StartError> for sde::Error {
    fn from(error: StartError) -> Self {
        Self::ranks("begins", sde::ranks::GroupError::Other(error.to_string()))
    }
}

/// MPI, from its start to its end. Keep it in `main`, before all that uses it.
///
/// # How a job ends
///
/// A program that starts a session asks for this: a job of which one rank has failed ends, and says
/// why. No other library of SDE prints, or ends a process.
///
/// - **A panic** that unwinds through the session, on the thread that started it, ends all
///   ranks at once, with the status 101. The message `rank 3 of 8 panicked: ...; ending the job`
///   goes to stderr. A panic that is caught, or on another thread, ends nothing.
/// - **A rank that returns early** from `main` tells the others: those that wait for it in a
///   [group](sde::ranks::ProcessGroup), now or later, get [`Left`](sde::ranks::GroupError::Left). At the end
///   of its session each rank waits for the others, as MPI asks for, and
///   says so on stderr after 10 seconds.
/// - **A rank that exits** (`std::process::exit`) in the middle of its session ends all ranks
///   with the status 1, and says so. So does a session that is forgotten, in a `static` say, when
///   `main` returns.
/// - **A rank that is killed**, or aborts, is noticed by `mpirun`, which ends the job. Open MPI
///   names the rank. MPICH gives the number of its process, so there each rank starts a
///   shell that names it, `rank 3 of 8 (process 4242) was killed`, on Linux.
///
/// The process that ends a job calls `MPI_Abort`, half a second after it has said why. If that takes longer than a
/// second, it aborts.
pub struct Session {
    home: Rc<Home>,
    /// For this thread only, as MPI is.
    _here: PhantomData<*const ()>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Session")
    }
}

impl Session {
    /// Starts MPI, for calls by this thread only; the process may have other threads.
    ///
    /// # Errors
    /// If MPI has been started before, or allows no threads.
    pub fn start() -> Result<Self, StartError> {
        if environment::is_finalized() {
            return Err(StartError::Ended);
        }
        // MPICH handles SIGUSR1, and libraries that it loads handle others: no such handler is the program's own.
        let start = || environment::initialize_with_threading(Threading::Funneled);
        let started = sde::ranks::start_library(start);
        let (universe, _) = started.ok_or(StartError::Started)?;
        Self::over(universe)
    }

    /// Takes over MPI from a program that has started it, on the thread that did. Signal handlers that MPI has set
    /// count as the program's own, unless it was started by [`sde::ranks::start_library`].
    ///
    /// # Errors
    /// If MPI was started without threads.
    pub fn over(universe: Universe) -> Result<Self, StartError> {
        let granted = environment::threading_support();
        if granted < Threading::Funneled {
            return Err(StartError::Threads {
                granted: format!("{granted:?}"),
            });
        }
        let home = Home::new(universe).install();
        end::begin();
        guard::post(&home.control);
        Ok(Self {
            home,
            _here: PhantomData,
        })
    }

    /// A group of all ranks. Collective.
    ///
    /// ```no_run
    /// # use sde::ranks::ProcessGroup;
    /// let session = sde_mpi::Session::start()?;
    /// let world = session.world();
    /// assert!(world.rank() < world.size());
    /// # Ok::<(), sde_mpi::StartError>(())
    /// ```
    #[must_use]
    pub fn world(&self) -> MpiGroup {
        MpiGroup::of_all(&self.home)
    }

    /// Sends buffers longer than this number of bytes in pieces of this length, for MPI libraries that fail on large
    /// messages. All ranks set the same length, at least 1; more than 256 MiB counts as 256 MiB. By default, only buffers
    /// that MPI can't count are cut.
    pub fn set_piece(&self, bytes: usize) {
        let most = Limits::default();
        let piece = bytes.clamp(1, most.piece);
        self.home.limits.set(Limits {
            whole: piece,
            piece,
        });
    }

    /// This process's rank among all, for messages; equal to that of [`Session::world`].
    #[must_use]
    pub fn rank(&self) -> usize {
        usize::try_from(self.home.control.rank()).unwrap_or(0)
    }

    /// The number of ranks.
    #[must_use]
    pub fn size(&self) -> usize {
        usize::try_from(self.home.control.size()).unwrap_or(1)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if std::thread::panicking() {
            end::panics();
        }
        self.home.release_all();
        end::wait_for_all(&self.home);
        Home::uninstall();
        end::ended();
        guard::dismiss();
    }
}
