//! What only Linux has.

use std::ffi::CStr;
use std::io;
use std::os::fd::RawFd;

use libc::{c_int, c_uint, c_ulong, pid_t};

use super::check;

/// Forks without the handlers that libraries registered for it (`pthread_atfork`): they may take locks that
/// another thread held at the first fork.
pub(in super::super) fn fork() -> pid_t {
    let none = 0 as c_ulong;
    // SAFETY: without a stack and flags, `clone` is `fork`: the child goes on with a copy of everything.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone,
            c_ulong::from(libc::SIGCHLD as u32),
            none,
            none,
            none,
            none,
        )
    };
    pid as pid_t
}

/// Has the parent's end send a signal to this process, and ends it if that has happened already.
pub(in super::super) fn follow(parent: pid_t, signal: c_int) -> io::Result<()> {
    // SAFETY: no precondition.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal as c_ulong) })?;
    if super::parent() != parent {
        super::exit(1);
    }
    Ok(())
}

/// Has every descendant that loses its parent become a child of this process.
pub(in super::super) fn adopt_orphans() -> io::Result<()> {
    // SAFETY: no precondition; the name ends with a zero byte.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, c"sde-supervisor".as_ptr());
        check(libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1 as c_ulong))?;
    }
    Ok(())
}

/// Has `execve` close all files from this number on, for libraries open files that it would not close.
pub(in super::super) fn close_on_exec(from: RawFd) {
    if !close_range(from, libc::CLOSE_RANGE_CLOEXEC) {
        // SAFETY: no precondition.
        each_fd(from, |fd| unsafe {
            libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
        });
    }
}

pub(super) fn close_from(from: RawFd) {
    if !close_range(from, 0) {
        // SAFETY: nobody in this process uses these files.
        each_fd(from, |fd| unsafe {
            libc::close(fd);
        });
    }
}

/// False before Linux 5.9 (5.11 with flags).
fn close_range(from: RawFd, flags: c_uint) -> bool {
    // SAFETY: only numbers are handed on.
    unsafe { libc::syscall(libc::SYS_close_range, from as c_uint, c_uint::MAX, flags) == 0 }
}

fn each_fd(from: RawFd, act: impl Fn(RawFd)) {
    // SAFETY: the structure is plain data.
    let limit = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        limit.rlim_cur
    };
    for fd in from..limit.min(1 << 20) as RawFd {
        act(fd);
    }
}

pub(in super::super) fn others_remain(_program: pid_t) -> bool {
    // SAFETY: the structure is plain data; with WNOWAIT nobody is waited for.
    unsafe {
        let mut info = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        libc::waitid(libc::P_ALL, 0, &mut info, flags) == 0
            || *libc::__errno_location() != libc::ECHILD
    }
}

/// Does something to each child. Where they can't be listed (no `/proc`), to the program's group, by its negative
/// number; false then.
pub(in super::super) fn each_child(program: pid_t, mut act: impl FnMut(pid_t)) -> bool {
    let mut buffer = [0; 4096];
    let Some(text) = read(c"/proc/thread-self/children", &mut buffer) else {
        act(-program);
        return false;
    };
    // A number that the buffer cuts has its turn when others have gone.
    let whole = text
        .iter()
        .rposition(|&byte| byte == b' ')
        .map_or(0, |at| at + 1);
    let mut number: pid_t = 0;
    for &byte in &text[..whole] {
        match byte {
            b'0'..=b'9' => {
                number = number
                    .wrapping_mul(10)
                    .wrapping_add(pid_t::from(byte - b'0'))
            }
            _ => {
                if number > 0 {
                    act(number);
                }
                number = 0;
            }
        }
    }
    true
}

/// What `ps` calls a process, with zeros behind.
pub(in super::super) fn name(process: pid_t) -> [u8; 16] {
    let mut path = *b"/proc/\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    let mut digits = [0; 10];
    let (mut rest, mut count) = (process.max(0), 0);
    while rest > 0 && count < digits.len() {
        digits[count] = b'0' + (rest % 10) as u8;
        rest /= 10;
        count += 1;
    }
    let mut at = 6;
    for &digit in digits[..count].iter().rev() {
        path[at] = digit;
        at += 1;
    }
    path[at..at + 5].copy_from_slice(b"/comm");
    let mut name = [0; 16];
    if let Ok(path) = CStr::from_bytes_until_nul(&path) {
        read(path, &mut name);
    }
    name
}

/// What one read of a file gives.
fn read<'a>(path: &CStr, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    // SAFETY: the path ends with a zero byte, the buffer is a slice.
    let count = unsafe {
        let fd = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if fd < 0 {
            return None;
        }
        let count = libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len());
        libc::close(fd);
        count
    };
    usize::try_from(count)
        .ok()
        .and_then(|count| buffer.get(..count))
}

/// Only the two signals that have a handler get through: another would end the supervisor.
pub(super) fn poll(fd: &mut libc::pollfd, millis: Option<u32>) {
    let timeout = millis.map(|millis| libc::timespec {
        tv_sec: 0,
        tv_nsec: libc::c_long::from(millis as i32) * 1_000_000,
    });
    let timeout = timeout
        .as_ref()
        .map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the structures are variables of this function and its caller.
    unsafe {
        let mut others = std::mem::zeroed();
        libc::sigfillset(&mut others);
        libc::sigdelset(&mut others, libc::SIGCHLD);
        libc::sigdelset(&mut others, libc::SIGUSR1);
        libc::ppoll(fd, 1, timeout, &others);
    }
}

/// Gives back what this process shares with its parent since the fork. Else the kernel keeps twice whatever the
/// parent changes until the program ends, and takes this process for a large one when memory runs out.
///
/// Large writable mappings without a file are emptied, but for those of this thread's stack and variables. What
/// runs here uses no heap; what the C library has of its own is small.
pub(in super::super) fn release_memory() {
    let here = 0_u8;
    // SAFETY: no precondition.
    let kept = [
        std::ptr::from_ref(&here).addr(),
        unsafe { libc::__errno_location() }.addr(),
    ];
    each_line(c"/proc/self/maps", |line| {
        if let Some((start, end)) = large_mapping(line)
            && !kept.iter().any(|address| (start..end).contains(address))
        {
            // SAFETY: nothing in the mapping is used any more.
            unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_DONTNEED) };
        }
    });
}

/// The addresses of a mapping of a MiB or more that may be written and has no file, from its line.
fn large_mapping(line: &[u8]) -> Option<(usize, usize)> {
    let mut fields = line.split(|&byte| byte == b' ');
    let mut addresses = fields
        .next()?
        .split(|&byte| byte == b'-')
        .map(|text| std::str::from_utf8(text).ok());
    let (start, end) = (addresses.next()??, addresses.next()??);
    let (start, end) = (
        usize::from_str_radix(start, 16).ok()?,
        usize::from_str_radix(end, 16).ok()?,
    );
    let writable = fields.next()?.get(1) == Some(&b'w');
    let no_file = fields.nth(2)? == b"0";
    (writable && no_file && end - start >= 1 << 20).then_some((start, end))
}

/// Hands on the first 256 bytes of each line.
fn each_line(path: &CStr, mut act: impl FnMut(&[u8])) {
    // SAFETY: the path ends with a zero byte.
    let fd = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    let (mut line, mut length) = ([0; 256], 0);
    let mut buffer = [0; 4096];
    loop {
        // SAFETY: the buffer is an array of this function.
        let count = unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) };
        let Some(bytes) = usize::try_from(count).ok().filter(|&count| count > 0) else {
            break;
        };
        for &byte in &buffer[..bytes] {
            if byte == b'\n' {
                act(&line[..length]);
                length = 0;
            } else if length < line.len() {
                line[length] = byte;
                length += 1;
            }
        }
    }
    // SAFETY: the file is this function's.
    unsafe { libc::close(fd) };
}
