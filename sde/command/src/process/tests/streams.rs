//! What programs print.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use super::{End, Trial};

const SOON: Duration = Duration::from_millis(500);
/// Prints 100000 lines to each stream.
const MUCH: &str = "seq 100000; seq 100000 >&2";

fn much() -> String {
    (1..=100_000).map(|number| format!("{number}\n")).collect()
}

#[test]
fn all_is_kept_when_the_readers_of_the_echo_are_gone() {
    let mut trial = Trial::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    trial.echoes = [
        Some(writer.try_clone().unwrap().into()),
        Some(writer.into()),
    ];
    let finished = trial.shell(MUCH);
    assert!(matches!(finished.end, End::Exited(0)), "{finished:?}");
    assert_eq!(finished.unshown, None, "they wanted no more");
    assert!(trial.text("out") == much() && trial.text("err") == much());
}

#[test]
fn an_echo_that_fails_is_told_and_all_is_kept() {
    let mut trial = Trial::new();
    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
    trial.echoes = [Some(full().into()), Some(full().into())];
    let finished = trial.shell(MUCH);
    assert!(matches!(finished.end, End::Exited(0)), "{finished:?}");
    let why = std::io::Error::from(rustix::io::Errno::NOSPC);
    let unshown = format!("its standard output: {why}; its standard error: {why}");
    assert_eq!(finished.unshown, Some(unshown));
    assert!(trial.text("out") == much() && trial.text("err") == much());
}

/// More is read than the echo's pipe holds, so that the second part stays in the program's.
const SCRIPT: &str = "seq 15000; seq 20000 >&2
    until test $(stat -c %s $RUN/out) -gt 65536; do sleep 0.01; done
    seq 5000; : > $RUN/ended";

#[test]
fn the_echo_gets_the_same_bytes_at_its_readers_pace() {
    let mut trial = Trial::new();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let (mut errors, error_writer) = std::io::pipe().unwrap();
    trial.echoes = [Some(writer.into()), Some(error_writer.into())];
    let ended = trial.path("ended");
    let slow = std::thread::spawn(move || {
        let mut text = String::new();
        super::until("the program's end", || ended.exists());
        // Longer than a pipe is waited for that somebody else holds.
        std::thread::sleep(Duration::from_millis(1500));
        reader.read_to_string(&mut text).unwrap();
        text
    });
    let other = std::thread::spawn(move || {
        let mut text = String::new();
        errors.read_to_string(&mut text).unwrap();
        text
    });
    let finished = trial.shell(SCRIPT);
    assert!(matches!(finished.end, End::Exited(0)), "{finished:?}");
    assert!(slow.join().unwrap() == trial.text("out") && trial.text("out").ends_with("\n5000\n"));
    assert!(other.join().unwrap() == trial.text("err") && trial.text("err").ends_with("\n20000\n"));
}

#[test]
fn two_streams_may_go_to_one_pipe() {
    let mut trial = Trial::new();
    let (mut reader, writer) = std::io::pipe().unwrap();
    trial.echoes = [
        Some(writer.try_clone().unwrap().into()),
        Some(writer.into()),
    ];
    let count = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).unwrap();
        bytes.len()
    });
    let finished = trial.shell("seq 100000 & seq 100000 >&2; wait");
    assert!(matches!(finished.end, End::Exited(0)), "{finished:?}");
    assert_eq!(count.join().unwrap(), 2 * much().len());
}

#[test]
fn an_echo_that_nobody_reads_keeps_no_time_limit_off() {
    let mut trial = Trial::new();
    let (_reader, writer) = std::io::pipe().unwrap();
    trial.echoes[0] = Some(writer.into());
    trial.limit = Some(SOON);
    let finished = trial.shell("yes");
    assert!(matches!(finished.end, End::TimeLimit(SOON)), "{finished:?}");
}

#[test]
fn an_echo_that_nobody_reads_does_not_keep_a_program_from_its_last_words() {
    let mut trial = Trial::new();
    let (_reader, writer) = std::io::pipe().unwrap();
    trial.echoes[0] = Some(writer.into());
    trial.limit = Some(SOON);
    let finished = trial.shell(
        "trap 'seq 100000; : > $RUN/saved; exit 0' TERM; seq 20000; while :; do sleep 0.01; done",
    );
    assert!(matches!(finished.end, End::TimeLimit(SOON)), "{finished:?}");
    assert_eq!(finished.unshown, None);
    assert!(trial.path("saved").exists() && trial.text("out").ends_with("\n100000\n"));
}

#[test]
fn a_full_disk_ends_the_program() {
    let mut trial = Trial::new();
    trial.stdout = Some(OpenOptions::new().write(true).open("/dev/full").unwrap());
    let finished = trial.shell("echo $$ >&2; exec yes");
    let End::Full(error) = &finished.end else {
        panic!("{finished:?}")
    };
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    assert!(!super::runs(trial.text("err").trim()));
}

/// The program's pipe is opened by a process that is none of its descendants: this one.
#[test]
fn who_holds_the_pipe_from_outside_is_not_waited_for() {
    let mut trial = Trial::new();
    let held = std::cell::RefCell::new(None);
    let (ready, go) = (trial.path("ready"), trial.path("go"));
    let stop = || {
        let pid = std::fs::read_to_string(&ready).unwrap_or_default();
        if held.borrow().is_none() && pid.ends_with('\n') {
            let pipe = Path::new("/proc").join(pid.trim()).join("fd/1");
            let mut pipe = OpenOptions::new().write(true).open(pipe).unwrap();
            pipe.write_all(b"from outside\n").unwrap();
            *held.borrow_mut() = Some(OwnedFd::from(pipe));
            File::create(&go).unwrap();
        }
        None
    };
    let finished = trial.shell_until(
        "echo $$ > $RUN/ready; until test -e $RUN/go; do sleep 0.01; done; echo in",
        &stop,
    );
    assert!(matches!(finished.end, End::Exited(0)), "{finished:?}");
    assert_eq!(trial.text("out"), "from outside\nin\n");
}
