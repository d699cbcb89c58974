//! Other systems of the family: no orphans are adopted, and no signal tells that the parent has ended. Its end of
//! the line does, and what is ended is the program's group.

use std::io;
use std::os::fd::RawFd;

use libc::{c_int, pid_t};

pub(in super::super) fn fork() -> pid_t {
    // SAFETY: the child makes system calls only.
    unsafe { libc::fork() }
}

pub(in super::super) fn follow(_parent: pid_t, _signal: c_int) -> io::Result<()> {
    Ok(())
}

pub(in super::super) fn adopt_orphans() -> io::Result<()> {
    Ok(())
}

pub(in super::super) fn close_on_exec(from: RawFd) {
    // SAFETY: no precondition.
    each_fd(from, |fd| unsafe {
        libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
    });
}

pub(super) fn close_from(from: RawFd) {
    // SAFETY: nobody in this process uses these files.
    each_fd(from, |fd| unsafe {
        libc::close(fd);
    });
}

fn each_fd(from: RawFd, act: impl Fn(RawFd)) {
    // SAFETY: no precondition.
    for fd in from..unsafe { libc::getdtablesize() } {
        act(fd);
    }
}

/// Whether the group has members, the program included.
pub(in super::super) fn others_remain(program: pid_t) -> bool {
    // SAFETY: no precondition; signal 0 is none.
    unsafe { libc::kill(-program, 0) == 0 }
}

/// The program's group, by its negative number, stands for all.
pub(in super::super) fn each_child(program: pid_t, mut act: impl FnMut(pid_t)) -> bool {
    act(-program);
    false
}

pub(in super::super) fn name(_process: pid_t) -> [u8; 16] {
    [0; 16]
}

/// A signal may come before the call, so it is short.
pub(super) fn poll(fd: &mut libc::pollfd, millis: Option<u32>) {
    // SAFETY: the structure is the caller's.
    unsafe { libc::poll(fd, 1, millis.unwrap_or(50) as c_int) };
}

pub(in super::super) fn release_memory() {}
