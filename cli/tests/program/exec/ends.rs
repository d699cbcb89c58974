//! Exit statuses, signals and streams that are closed.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command, Stdio};

use super::super::kit::says;
use super::{Desk, Done};

#[test]
fn each_end_has_its_status() {
    let desk = Desk::new();
    desk.write("three.sh", "echo some; exit 3");
    desk.write("killed.sh", "kill -9 $$");
    desk.write("text.txt", "some text");
    desk.write("ends.sh", "exec sleep 600");
    let status = |options: &[&str], line: &[&str]| desk.exec(options, line).status;
    assert_eq!(status(&[], &["sh", "three.sh"]), 3);
    assert_eq!(status(&["--ok-status", "3"], &["sh", "three.sh"]), 3);
    // Failed by a rule, with the program's status where that is one.
    let rule = ["--require", "nothing of the kind"];
    assert_eq!(status(&rule, &["wc", "-l", "text.txt"]), 1);
    assert_eq!(status(&["--reject", "some"], &["sh", "three.sh"]), 3);
    assert_eq!(status(&["--timeout", "50ms"], &["sh", "ends.sh"]), 124);
    assert_eq!(status(&[], &["sh", "killed.sh"]), 128 + 9);
    assert_eq!(status(&[], &["./text.txt"]), 126);
    assert_eq!(status(&[], &["no-such-program"]), 127);
    assert_eq!(status(&[], &["cat", "/etc/passwd"]), 125);
    // Of the command line, which for other commands is 2.
    assert_eq!(status(&["--no-such-option"], &["wc"]), 125);
    assert_eq!(desk.sde(&["exec"]).status, 125);
    assert_eq!(status(&["--require", "("], &["wc"]), 125);
    assert_eq!(status(&["--json"], &["wc"]), 125);
    assert_eq!(desk.sde(&["ls", "--no-such-option"]).status, 2);
}

/// Starts a script, whose lines can be read.
fn started(mut command: Command) -> (Child, BufReader<ChildStdout>) {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap());
    (child, lines)
}

fn next(lines: &mut impl BufRead) -> String {
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    line
}

fn send(signal: &str, to: &Child) {
    let id = to.id().to_string();
    let sent = Command::new("kill").args([signal, &id]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn the_program_gets_the_signals_and_no_result_is_kept() {
    let desk = Desk::new();
    let counts = "n=0; trap 'n=$((n+1)); echo int $n; test $n = 2 && exit 0' INT";
    desk.script(
        "traps.sh",
        &format!("{counts}\necho ready; while :; do sleep 0.01; done"),
    );
    let (child, mut lines) = started(desk.script_command(&["--timeout", "60s"], "traps.sh"));
    assert_eq!(next(&mut lines), "ready\n");
    send("-INT", &child);
    assert_eq!(next(&mut lines), "int 1\n");
    send("-INT", &child);
    assert_eq!(next(&mut lines), "int 2\n");
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
    let output = child.wait_with_output().unwrap();
    // As shells want it, to end a loop.
    assert_eq!(output.status.signal(), Some(2));
    let done = Done::of(output);
    says(&done.err, "it was told to end (signal 2)");
    let why = desk.exec_script(&["--why"], "traps.sh").well();
    says(&why, "would be computed");
    says(&desk.sde(&["ls"]).well(), "1 run failed: --failed");
    says(
        &desk.sde(&["ls", "--failed"]).well(),
        "it was told to end (signal 2)",
    );
    let left = std::fs::read_dir(desk.scratch()).unwrap().count();
    assert_eq!(left, 0, "the run's folder is left");
}

#[test]
fn a_signal_that_is_ignored_stays_ignored() {
    let desk = Desk::new();
    desk.script("reads.sh", "echo ready; read line; echo $line");
    let mut ignoring = Command::new("sh");
    let gate = desk.path("gate");
    assert!(
        Command::new("mkfifo")
            .arg(&gate)
            .status()
            .unwrap()
            .success()
    );
    desk.script(
        "waits.sh",
        &format!("echo ready; cat < '{}'", gate.display()),
    );
    let command = desk.script_command(&[], "waits.sh");
    ignoring
        .args(["-c", "trap '' HUP; exec \"$0\" \"$@\""])
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(&desk.path)
        .env("TMPDIR", desk.scratch());
    let (child, mut lines) = started(ignoring);
    assert_eq!(next(&mut lines), "ready\n");
    send("-HUP", &child);
    // Nobody would read this if the signal had ended it.
    std::fs::write(&gate, "goes on\n").unwrap();
    assert_eq!(next(&mut lines), "goes on\n");
    Done::of(child.wait_with_output().unwrap()).ends(0);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let desk = Desk::new();
    // More than a pipe takes.
    desk.script(
        "long.sh",
        "i=0; while [ $i -lt 30000 ]; do echo line $i; i=$((i+1)); done",
    );
    for runs in 1..=2 {
        let (child, lines) = started(desk.script_command(&["-o", "?none"], "long.sh"));
        drop(lines);
        Done::of(child.wait_with_output().unwrap()).ends(0);
        // What is remembered is printed, and nobody reads it.
        assert_eq!(desk.runs(), 1, "{runs}");
    }
    let whole = desk.exec_script(&["-o", "?none"], "long.sh").well();
    assert_eq!(whole.lines().count(), 30_000);
}

#[test]
fn closed_streams_are_no_error() {
    let desk = Desk::new();
    desk.script("quiet.sh", "cat; echo out");
    for closed in ["<&-", ">&- 2>&-"] {
        let command = desk.script_command(&[], "quiet.sh");
        let done = Command::new("sh")
            .args(["-c", &format!("exec \"$0\" \"$@\" {closed}")])
            .arg(command.get_program())
            .args(command.get_args())
            .current_dir(&desk.path)
            .env("TMPDIR", desk.scratch())
            .output()
            .unwrap();
        Done::of(done).ends(0);
    }
    assert_eq!(desk.runs(), 1);
}

#[test]
fn a_store_that_fails_is_an_error() {
    let desk = Desk::new();
    desk.script("some.sh", "echo out");
    desk.write("file", "");
    let done = desk.exec_script(&["--store", "file/s.sde"], "some.sh");
    done.ends(125);
    says(&done.err, "SDE_STORE or --store names another store");
    assert_eq!(desk.runs(), 0);
    // The store goes while the program runs.
    let store = desk.path("gone.sde");
    desk.script(
        "removes.sh",
        &format!("rm -r '{0}'; : > '{0}'; echo out", store.display()),
    );
    let done = desk.exec_script(&["--store", "gone.sde"], "removes.sh");
    assert_eq!(done.out, "out\n");
    done.ends(125);
    says(&done.err, "the result is not kept");
}
