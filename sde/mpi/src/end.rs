//! The end of a job.
//!
//! MPI does not define what happens to the other ranks when one fails: they hang. The session is the only part of SDE
//! that prints or ends the process.

use std::ffi::c_int;
use std::io::Write;
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives};

use crate::guard;
use crate::home::Home;

#[allow(
    unsafe_code,
    reason = "the standard library has no way to be called at an exit"
)]
// SAFETY: ISO C declares it like this; it may be called at any time.
unsafe extern "C" {
    /// Registers a function to be called when the process exits other than by a signal, before those registered
    /// earlier.
    safe fn atexit(function: extern "C" fn()) -> c_int;
}

/// The exit status that Rust gives a program that panicked.
const STATUS: i32 = 101;
/// The time after which a rank that waits at the end says so.
const SAY: Duration = Duration::from_secs(10);

/// The longest time for `MPI_Abort`, since MPICH's hangs now and then while messages are under way.
const ABORT: Duration = Duration::from_secs(1);

/// The time for `mpirun` to read this rank's output: MPICH's drops unread output when the rank calls `MPI_Abort`.
const HEARD: Duration = Duration::from_millis(500);

/// The last panic of the session's thread, and its place.
static PANIC: Mutex<Option<(String, Option<String>)>> = Mutex::new(None);
/// Whether a session has begun and not ended.
static LIVES: AtomicBool = AtomicBool::new(false);

/// Begins a session on this thread.
pub(crate) fn begin() {
    LIVES.store(true, Ordering::SeqCst);
    // If `atexit` has no room, only a message is lost, and with MPICH the exit status.
    let _ = atexit(exits);
    watch_for_panics(thread::current().id());
}

/// Records that the session has ended.
pub(crate) fn ended() {
    LIVES.store(false, Ordering::SeqCst);
}

/// Ends the job if this process exits during the session. MPICH would end it with this rank's exit status.
extern "C" fn exits() {
    if LIVES.load(Ordering::SeqCst) {
        say("exits without having ended its session; ending the job");
        end_job(1);
    }
}

/// Keeps the message of a panic of the session's thread, or of a helper, whose panic goes on in the thread that it
/// helps.
fn watch_for_panics(here: ThreadId) {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let thread = thread::current();
        if thread.id() == here || thread.name() == Some("sde-helper") {
            keep(panic);
        }
        before(panic);
    }));
}

fn keep(panic: &PanicHookInfo<'_>) {
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let what = text.unwrap_or("no message");
    let mut kept = PANIC.lock().unwrap_or_else(PoisonError::into_inner);
    // A sweep lets the panic of an item go on with the item's name before its text: it was at the first place.
    let first = kept.take().filter(|(first, _)| what.ends_with(&**first));
    let here = || panic.location().map(ToString::to_string);
    let place = first.map_or_else(here, |(_, place)| place);
    *kept = Some((what.to_owned(), place));
}

/// Ends all ranks, since this rank panics.
pub(crate) fn panics() -> ! {
    ended();
    let last = PANIC.lock().unwrap_or_else(PoisonError::into_inner).take();
    let (what, place) = last.unwrap_or_else(|| ("no message".to_owned(), None));
    let place = place.map_or_else(String::new, |place| format!(" ({place})"));
    say(&format!("panicked: {what}{place}; ending the job"));
    end_job(STATUS)
}

fn end_job(status: i32) -> ! {
    guard::told();
    thread::sleep(HEARD);
    let abort = || {
        thread::sleep(ABORT);
        // A signal death of one rank makes `mpirun` end the job.
        std::process::abort();
    };
    // If no thread can be had, the job still ends if `MPI_Abort` works.
    let _ = thread::Builder::new().spawn(abort);
    SimpleCommunicator::world().abort(status)
}

/// Waits until all ranks have come to the end of their sessions.
pub(crate) fn wait_for_all(home: &Home) {
    let mut barrier = home.control.immediate_barrier();
    let since = Instant::now();
    let mut said = false;
    while let Err(waiting) = barrier.test() {
        barrier = waiting;
        home.attend();
        if !said && since.elapsed() > SAY {
            said = true;
            say("has ended its session, and waits for the other ranks to end theirs");
        }
        thread::sleep(Duration::from_micros(100));
    }
    home.attend();
}

fn say(what: &str) {
    let world = SimpleCommunicator::world();
    let (rank, size) = (world.rank(), world.size());
    let line = format!("rank {rank} of {size} {what}\n");
    // One write keeps the lines of different ranks apart. There is no remedy if it fails.
    let _ = std::io::stderr().write_all(line.as_bytes());
}
