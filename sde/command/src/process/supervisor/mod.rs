//! The process between this one and the program. See [`super`].
//!
//! What runs here after the fork allocates nothing and takes no lock: another thread may have held one at
//! the fork. So it is system calls, on the stack.

#![allow(
    unsafe_code,
    reason = "forks, and goes on in the child by system calls that have no safe form"
)]

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use libc::{c_char, pid_t};

use super::Launch;

mod duty;
mod system;

/// How long what a program leaves behind has to end by itself: `tee` at the end of a pipe still writes.
const SETTLE: Duration = Duration::from_millis(500);
/// An order to end everything; other orders are the number of a signal to pass on.
pub(super) const END: u8 = 0;
/// The bytes of a message: its kind, a number and a name.
pub(super) const MESSAGE: usize = 24;
/// The program ended, with this status.
pub(super) const ENDED: i32 = 1;
/// The end of all that is left has begun.
pub(super) const ENDING: i32 = 2;
/// The process of this number and name was left behind.
pub(super) const LEFT: i32 = 3;

/// A program that runs, under its supervisor.
pub(super) struct Started {
    /// The supervisor, with the pipes of the program.
    pub(super) child: Child,
    /// Takes orders, gives messages, and is at its end when the supervisor is.
    pub(super) line: UnixStream,
    pub(super) since: Instant,
}

/// Starts the supervisor and the program; errors are those of the program's `execve` too.
pub(super) fn start(launch: &Launch<'_>) -> io::Result<Started> {
    let mut tries = 0;
    loop {
        match start_once(launch) {
            // A program that was just written stays open for writing in what another thread forks, until that
            // has started a program of its own.
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy && tries < 50 => {
                tries += 1;
                std::thread::sleep(Duration::from_millis(10));
            }
            result => return result,
        }
    }
}

fn start_once(launch: &Launch<'_>) -> io::Result<Started> {
    let image = Image::new(launch)?;
    let (line, theirs) = UnixStream::pair()?;
    let seat = Seat {
        parent: system::me(),
        line: theirs.as_raw_fd(),
        lock: launch.lock.as_raw_fd(),
        grace: launch.grace,
    };
    let mut command = Command::new(launch.program);
    command
        .current_dir(launch.folder)
        .stdin(launch.stdin.try_clone()?)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // SAFETY: the closure makes system calls only, and allocates nothing.
    unsafe { command.pre_exec(move || seat.take(&image)) };
    let since = Instant::now();
    let child = command.spawn()?;
    Ok(Started { child, line, since })
}

/// What `execve` takes. The library's own way to execute has the shell run what has no format of a program,
/// and nobody counted that shell.
struct Image {
    path: CString,
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    /// What the pointers point to.
    _strings: Vec<CString>,
}

// SAFETY: the pointers are into strings that the image owns and nobody changes.
unsafe impl Send for Image {}
// SAFETY: as above.
unsafe impl Sync for Image {}

impl Image {
    fn new(launch: &Launch<'_>) -> io::Result<Self> {
        let mut strings = Vec::new();
        let mut list =
            |texts: &mut dyn Iterator<Item = Vec<u8>>| -> io::Result<Vec<*const c_char>> {
                let mut pointers = Vec::new();
                for text in texts {
                    let text = CString::new(text)?;
                    pointers.push(text.as_ptr());
                    strings.push(text);
                }
                pointers.push(std::ptr::null());
                Ok(pointers)
            };
        let bytes = |text: &OsStr| text.as_bytes().to_vec();
        let arguments = list(
            &mut std::iter::once(launch.program.as_os_str())
                .chain(launch.args.iter().map(AsRef::as_ref))
                .map(bytes),
        )?;
        let pairs = launch.environment.iter();
        let environment = list(
            &mut pairs.map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat()),
        )?;
        Ok(Self {
            path: CString::new(bytes(launch.program.as_os_str()))?,
            arguments,
            environment,
            _strings: strings,
        })
    }

    /// Returns only if it fails.
    fn execute(&self) -> io::Error {
        // SAFETY: the path and the strings end with a zero byte, the lists with a null pointer.
        unsafe {
            libc::execve(
                self.path.as_ptr(),
                self.arguments.as_ptr(),
                self.environment.as_ptr(),
            )
        };
        io::Error::last_os_error()
    }
}

/// What the supervisor gets from its parent.
struct Seat {
    parent: pid_t,
    line: RawFd,
    lock: RawFd,
    grace: Duration,
}

impl Seat {
    /// Becomes the supervisor, which never returns, and in a child of it the program. Returns what failed.
    fn take(&self, image: &Image) -> io::Result<()> {
        // No terminal: its signals come by way of the parent, once, and a program that asks it for something
        // fails instead of being stopped.
        system::new_session()?;
        system::handle_signals()?;
        system::follow(self.parent, libc::SIGUSR1)?;
        system::adopt_orphans()?;
        let me = system::me();
        match system::fork() {
            0 => Err(run_program(me, image)),
            program => {
                system::check(program)?;
                // Fails if the program runs already, which has done it then.
                let _ = system::lead_group(program);
                duty::Supervisor::new(self, program).run()
            }
        }
    }
}

/// The program's side of the second fork. Gives what failed.
fn run_program(supervisor: pid_t, image: &Image) -> io::Error {
    let prepare = || {
        // A group of its own: `kill 0` must not reach the supervisor.
        system::lead_group(0)?;
        system::follow(supervisor, libc::SIGKILL)?;
        system::close_on_exec(3);
        system::unblock_signals()
    };
    match prepare() {
        Ok(()) => image.execute(),
        Err(error) => error,
    }
}
