//! The system calls of the supervisor. They allocate nothing and take no lock.

use std::io;
use std::os::fd::RawFd;

use libc::{c_int, pid_t};

pub(super) use platform::{
    adopt_orphans, close_on_exec, each_child, follow, fork, name, others_remain, release_memory,
};

pub(super) fn check(result: c_int) -> io::Result<c_int> {
    if result == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// Blocks every signal, and has SIGCHLD and SIGUSR1 wake the supervisor where it waits. With `execve` the
/// program gets the default handlers.
pub(super) fn handle_signals() -> io::Result<()> {
    extern "C" fn nothing(_: c_int) {}
    // SAFETY: the structures are plain data, initialized before use; the handler does nothing.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&mut all);
        check(libc::sigprocmask(
            libc::SIG_SETMASK,
            &all,
            std::ptr::null_mut(),
        ))?;
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(c_int) as libc::sighandler_t;
        check(libc::sigaction(
            libc::SIGCHLD,
            &action,
            std::ptr::null_mut(),
        ))?;
        check(libc::sigaction(
            libc::SIGUSR1,
            &action,
            std::ptr::null_mut(),
        ))?;
    }
    Ok(())
}

/// Blocks no signal.
pub(super) fn unblock_signals() -> io::Result<()> {
    // SAFETY: `sigemptyset` initializes the set.
    unsafe {
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        check(libc::sigprocmask(
            libc::SIG_SETMASK,
            &none,
            std::ptr::null_mut(),
        ))?;
    }
    Ok(())
}

/// A session without terminal, of which this process is the first.
pub(super) fn new_session() -> io::Result<()> {
    // SAFETY: no precondition.
    check(unsafe { libc::setsid() }).map(drop)
}

/// Makes a process the first of its group. Its parent does so too: neither may go on before it is so.
pub(super) fn lead_group(process: pid_t) -> io::Result<()> {
    // SAFETY: no precondition.
    check(unsafe { libc::setpgid(process, process) }).map(drop)
}

pub(super) fn me() -> pid_t {
    // SAFETY: no precondition.
    unsafe { libc::getpid() }
}

pub(super) fn parent() -> pid_t {
    // SAFETY: no precondition.
    unsafe { libc::getppid() }
}

pub(super) fn group_of(process: pid_t) -> pid_t {
    // SAFETY: no precondition.
    unsafe { libc::getpgid(process) }
}

pub(super) fn signal(target: pid_t, signal: c_int) {
    // SAFETY: no precondition.
    unsafe { libc::kill(target, signal) };
}

pub(super) fn exit(status: c_int) -> ! {
    // SAFETY: no precondition.
    unsafe { libc::_exit(status) }
}

/// A child that has ended, and its status.
pub(super) fn reap() -> Option<(pid_t, c_int)> {
    let mut status = 0;
    loop {
        // SAFETY: the status is a variable of this function.
        match unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) } {
            -1 if io::Error::last_os_error().raw_os_error() == Some(libc::EINTR) => {}
            0 | -1 => return None,
            pid => return Some((pid, status)),
        }
    }
}

/// The next order, if there is one; [`super::END`] if the parent has closed its end.
pub(super) fn receive(line: RawFd) -> Option<u8> {
    let mut order = super::END;
    // SAFETY: the buffer is a byte of this function.
    let count = unsafe { libc::recv(line, (&raw mut order).cast(), 1, libc::MSG_DONTWAIT) };
    (count >= 0).then_some(order)
}

/// Lost if the parent does not listen.
pub(super) fn send(line: RawFd, message: &[u8]) {
    // SAFETY: the buffer is a slice.
    unsafe {
        libc::send(
            line,
            message.as_ptr().cast(),
            message.len(),
            libc::MSG_DONTWAIT,
        )
    };
}

/// Closes all but two files, and gives the new number of the first.
///
/// Whoever waits for the end of a pipe must not wait for the supervisor, and the library's own pipe tells that
/// the program was started when it is closed.
pub(super) fn keep_two(first: RawFd, second: RawFd) -> RawFd {
    // SAFETY: only numbers are handed on; nobody in this process uses the files that are closed.
    unsafe {
        let (first, second) = (
            libc::fcntl(first, libc::F_DUPFD, 5),
            libc::fcntl(second, libc::F_DUPFD, 5),
        );
        libc::dup2(first, 3);
        libc::dup2(second, 4);
        for standard in 0..3 {
            libc::close(standard);
        }
    }
    platform::close_from(5);
    3
}

/// Waits for a signal or an order.
pub(super) fn sleep(line: RawFd, millis: Option<u32>) {
    let mut fd = libc::pollfd {
        fd: line,
        events: libc::POLLIN,
        revents: 0,
    };
    platform::poll(&mut fd, millis);
}

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod platform;

#[cfg(not(target_os = "linux"))]
#[path = "other.rs"]
mod platform;
