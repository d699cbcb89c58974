//! Time limits, signals, and what programs leave behind.

use std::cell::Cell;
use std::fs::File;
use std::path::Path;
use std::time::Duration;

use super::{End, Trial, runs, signal_when};

const SOON: Duration = Duration::from_millis(500);
const INT: i32 = 2;

#[test]
fn a_time_limit_ends_what_ignores_term() {
    let mut trial = Trial::new();
    (trial.limit, trial.grace) = (Some(SOON), SOON);
    let finished = trial.shell("trap '' TERM; echo $$; while :; do sleep 0.01; done");
    assert!(matches!(finished.end, End::TimeLimit(SOON)), "{finished:?}");
    assert!(!runs(trial.text("out").trim()));
}

#[test]
fn a_time_limit_lets_the_program_end_in_order() {
    let mut trial = Trial::new();
    trial.limit = Some(SOON);
    let finished = trial.shell("trap 'echo saved; exit 0' TERM; while :; do sleep 0.01; done");
    assert!(matches!(finished.end, End::TimeLimit(SOON)), "{finished:?}");
    assert_eq!(trial.text("out"), "saved\n");
}

#[test]
fn a_stopped_program_gets_its_term() {
    let mut trial = Trial::new();
    trial.limit = Some(SOON);
    let finished = trial.shell("trap 'echo saved; exit 0' TERM; kill -STOP $$; exit 1");
    assert!(matches!(finished.end, End::TimeLimit(SOON)), "{finished:?}");
    assert_eq!(trial.text("out"), "saved\n");
}

#[test]
fn a_stopped_supervisor_keeps_no_time_limit_off() {
    let mut trial = Trial::new();
    trial.limit = Some(SOON);
    let finished = trial.shell("echo $$; kill -STOP $PPID; exec sleep 1000");
    assert!(matches!(finished.end, End::TimeLimit(SOON)), "{finished:?}");
    assert!(!runs(trial.text("out").trim()));
}

#[test]
fn what_left_its_session_is_ended_and_named() {
    let mut trial = Trial::new();
    let finished = trial.shell(
        "setsid sh -c 'echo $$ > $RUN/pid; while :; do echo on; sleep 0.01; done' &
        until test -s $RUN/pid; do sleep 0.01; done",
    );
    assert!(matches!(finished.end, End::Exited(0)), "{finished:?}");
    let pid = trial.text("pid");
    assert_eq!(finished.left, [format!("sh ({})", pid.trim())]);
    assert!(!runs(pid.trim()));
    assert!(trial.text("out").starts_with("on\n"));
}

#[test]
fn what_is_left_and_ignores_term_is_killed_with_its_children() {
    let mut trial = Trial::new();
    trial.grace = SOON;
    let finished = trial.shell(
        "setsid sh -c 'trap \"\" TERM; setsid sleep 1000 & echo $! $$ > $RUN/pids; wait' &
        until test -s $RUN/pids; do sleep 0.01; done",
    );
    assert!(matches!(finished.end, End::Exited(0)), "{finished:?}");
    assert!(trial.text("pids").split_whitespace().all(|pid| !runs(pid)));
}

#[test]
fn a_process_in_the_background_is_left_behind() {
    let mut trial = Trial::new();
    let finished = trial.shell("sleep 1000 & echo $!; exit 0");
    assert!(matches!(finished.end, End::Exited(0)), "{finished:?}");
    let pid = trial.text("out");
    assert_eq!(finished.left, [format!("sleep ({})", pid.trim())]);
    assert!(!runs(pid.trim()));
}

/// A shell does not wait for what it pipes to by `>(tee)`.
#[test]
fn who_ends_with_its_input_is_not_left_behind() {
    let mut trial = Trial::new();
    let finished =
        trial.shell("mkfifo pipe; (cat pipe; sleep 0.1; echo late) & exec 3>pipe; echo text >&3");
    assert!(matches!(finished.end, End::Exited(0)), "{finished:?}");
    assert!(finished.left.is_empty(), "{finished:?}");
    assert_eq!(trial.text("out"), "text\nlate\n");
}

#[test]
fn a_signal_to_the_own_group_does_not_reach_the_supervisor() {
    let finished = Trial::new().shell("kill -KILL 0");
    assert!(matches!(finished.end, End::Signal(9)), "{finished:?}");
}

#[test]
fn a_program_that_signals_its_parent_does_not_end_the_supervisor() {
    let mut trial = Trial::new();
    let signals =
        "for n in HUP INT QUIT USR1 USR2 PIPE ALRM TERM CHLD CONT; do kill -$n $PPID; done";
    let finished = trial.shell(&format!("{signals}; exit 3"));
    assert!(matches!(finished.end, End::Exited(3)), "{finished:?}");
}

#[test]
fn a_signal_is_passed_on_once_and_the_run_is_interrupted_whatever_its_status() {
    let mut trial = Trial::new();
    let (asked, seen) = (Cell::new(0), trial.path("seen"));
    let passed = signal_when(trial.path("ready"), INT);
    let stop = || {
        let signal = passed();
        asked.set(asked.get() + i32::from(seen.exists()));
        if asked.get() == 5 {
            File::create(seen.with_file_name("enough")).unwrap();
        }
        signal
    };
    let script = "trap 'echo got; : > $RUN/seen' INT; : > $RUN/ready; until test -e $RUN/enough; do sleep 0.01; done";
    // A shell that starts tests in the background has them ignore INT.
    let shell = ["--default-signal=INT", "sh", "-c", script];
    let finished = trial.program(Path::new("/usr/bin/env"), &shell, &stop);
    let finished = finished.unwrap();
    assert!(
        matches!(finished.end, End::Interrupted(INT)),
        "{finished:?}"
    );
    assert_eq!(trial.text("out"), "got\n");
}

#[test]
fn a_signal_before_the_start_keeps_the_program_from_it() {
    let mut trial = Trial::new();
    // To start it would be an error.
    let missing = trial.path("missing");
    let finished = trial.program(&missing, &[], &|| Some(INT)).unwrap();
    assert!(
        matches!(finished.end, End::Interrupted(INT)),
        "{finished:?}"
    );
}

#[test]
fn a_disk_that_was_full_for_a_time_makes_an_end_that_is_no_exit() {
    let mut trial = Trial::new();
    let (full, seen) = (trial.path("full"), trial.path("seen"));
    trial.free = Box::new(move || {
        if !full.exists() || seen.exists() {
            return Some(1 << 30);
        }
        File::create(&seen).unwrap();
        Some((1 << 20) - 1)
    });
    let finished =
        trial.shell(": > $RUN/full; until test -e $RUN/seen; do sleep 0.01; done; exit 0");
    let End::Full(error) = &finished.end else {
        panic!("{finished:?}")
    };
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
}

#[test]
fn a_disk_is_looked_at_when_the_run_is_over() {
    let mut trial = Trial::new();
    let supervisor = trial.path("supervisor");
    trial.free = Box::new(move || {
        let pid = std::fs::read_to_string(&supervisor).unwrap_or_default();
        Some(if pid.ends_with('\n') && !runs(pid.trim()) {
            0
        } else {
            1 << 30
        })
    });
    let finished = trial.shell("echo $PPID > $RUN/supervisor");
    assert!(matches!(finished.end, End::Full(_)), "{finished:?}");
}

#[test]
fn a_full_disk_is_not_told_for_another_end() {
    let mut trial = Trial::new();
    trial.free = Box::new(|| Some(0));
    let finished = trial.shell("kill -SEGV $$");
    assert!(matches!(finished.end, End::Signal(11)), "{finished:?}");
}

#[test]
fn free_room_is_told_where_a_disk_has_a_size() {
    use crate::process::watch::free;
    assert!(free(&tempfile::tempfile().unwrap()).unwrap() > 0);
    assert_eq!(free(&File::open("/proc/version").unwrap()), None);
}

#[test]
fn a_signal_after_the_program_ended_does_not_interrupt_it() {
    let mut trial = Trial::new();
    let pid = trial.path("pid");
    let stop = || {
        let text = std::fs::read_to_string(&pid).unwrap_or_default();
        (text.ends_with('\n') && !Path::new("/proc").join(text.trim()).exists()).then_some(INT)
    };
    // What is left would stay for the grace of a minute, if it were not for KILL.
    let script = "setsid sleep 1000 & echo $$ > $RUN/part; mv $RUN/part $RUN/pid";
    let finished = trial.shell_until(script, &stop);
    assert!(matches!(finished.end, End::Exited(0)), "{finished:?}");
}
