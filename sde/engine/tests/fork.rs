//! A process that was forked off one that has hashed on several threads.

#![cfg(unix)]
#![allow(unsafe_code, reason = "only unsafe code can fork")]

use std::time::{Duration, Instant};

use sde::key::commit;

/// Found by a hostile program: the child has no threads but its own, and waited for those of the hash pool without end.
#[test]
fn a_forked_process_keys_large_inputs() {
    sde::key::set_hash_threads(4);
    let large = vec![1.0_f64; 1 << 20];
    let expected = commit(&large).unwrap();
    // SAFETY: the child hashes, which allocates at the most, and ends without running anything else.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let same = commit(&large).is_ok_and(|digest| digest == expected);
        // SAFETY: it ends the child.
        unsafe { libc::_exit(i32::from(!same)) }
    }
    assert_eq!(ended(child), 0);
}

/// Found by a hostile program: the child has the handlers, and not the thread that sees to signals: it swallowed the first.
#[test]
fn a_forked_process_ends_by_a_signal() {
    let sde = sde::Sde::builder().checkpoint_on_signals().build().unwrap();
    // SAFETY: the child only waits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        loop {
            // SAFETY: it waits for a signal.
            unsafe { libc::pause() };
        }
    }
    // SAFETY: it is our child, and has not been waited for.
    unsafe { libc::kill(child, libc::SIGTERM) };
    assert!(libc::WTERMSIG(ended(child)) == libc::SIGTERM);
    drop(sde);
}

#[sde::app]
fn square(x: u64) -> u64 {
    x * x
}

/// The child has no thread that saves: what it asked to be saved in the background was not saved before its end.
#[test]
fn a_forked_process_saves_in_the_background() {
    let (saved, told) = std::sync::mpsc::channel();
    let tell = move |event: &sde::Event| {
        if matches!(event, sde::Event::Saved { .. }) {
            let _ = saved.send(());
        }
    };
    let builder = sde::Sde::builder().store(sde::archiver::MemoryArchiver::new());
    let sde = builder.observer(tell).build().unwrap();
    // SAFETY: the child computes and saves on threads of its own, and ends without running anything else.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let is_asked = square.call(&sde, 3).is_ok() && sde.checkpoint_in_background().is_ok();
        let is_saved = is_asked && told.recv_timeout(Duration::from_secs(30)).is_ok();
        // SAFETY: it ends the child.
        unsafe { libc::_exit(i32::from(!is_saved)) }
    }
    assert_eq!(ended(child), 0);
}

/// How it ended, within a minute.
fn ended(child: libc::pid_t) -> i32 {
    assert!(child > 0);
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut status = 0;
    // SAFETY: the status is written to; the child is ours.
    while unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } == 0 {
        if Instant::now() > deadline {
            // SAFETY: it is our child, and has not been waited for.
            unsafe { libc::kill(child, libc::SIGKILL) };
            return -1;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    status
}
