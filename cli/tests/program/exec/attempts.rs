//! A run that fails is run again, and goes on from what an attempt before it has left.

use std::process::{Child, Stdio};
use std::time::Duration;

use super::super::kit::says;
use super::{Desk, Done};

/// How often a script has run, itself among them.
const COUNT: &str = "n=$(wc -l < \"$1\")";

/// Waits for something that another process does.
pub fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..12_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("waited in vain for {what}");
}

pub fn send(signal: &str, to: &Child) {
    let mut kill = std::process::Command::new("kill");
    let sent = kill.args([signal, &to.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

impl Desk {
    fn shown(&self) -> String {
        let listed = self.sde(&["ls", "--json"]).well();
        let all = listed
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let whole = all.filter(|one| one["note"] != "ended" && one["state"] == "current");
        let keys: Vec<String> = whole
            .map(|one| one["key"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(keys.len(), 1, "{listed}");
        self.sde(&["show", "commands.sde", &keys[0]]).well()
    }

    /// Whether the store has the state of a run that is not finished.
    fn has_state(&self) -> bool {
        self.sde(&["stats", "commands.sde", "--json"])
            .out
            .contains("\"unfinished\":1")
    }
}

#[test]
fn a_run_that_fails_is_run_again_as_often_as_it_may() {
    let desk = Desk::new();
    desk.script(
        "third.sh",
        &format!("{COUNT}; echo try $n; test $n -ge 3 || exit 7"),
    );
    let done = desk.exec_script(&["--retry", "1"], "third.sh");
    done.ends(7);
    says(
        &done.err,
        "its exit status is 7 (status 7); an attempt before it failed (its exit status is 7 (status 7))",
    );
    assert_eq!(desk.runs(), 2);
    // What was shown as it came is that of all attempts; what is kept is that of the last.
    let done = desk.exec_script(&["--retry", "5", "--require", "try"], "third.sh");
    done.ends(0);
    assert_eq!(desk.runs(), 3);
    assert!(!desk.shown().contains("attempts"));
    desk.write("count", "");
    std::fs::write(&desk.counter, "").unwrap();
    let done = desk.exec_script(&["--retry", "2", "--again"], "third.sh");
    assert_eq!(done.well(), "try 1\ntry 2\ntry 3\n");
    assert_eq!(desk.exec_script(&[], "third.sh").well(), "try 3\n");
    let shown = desk.shown();
    says(&shown, "attempts");
    says(
        &shown,
        "3; before it: its exit status is 7 (status 7); its exit status is 7",
    );
    assert_eq!(desk.runs(), 3);
}

#[test]
fn a_run_that_a_signal_ended_is_run_again_but_not_by_ours() {
    let desk = Desk::new();
    desk.script(
        "killed.sh",
        &format!("{COUNT}; test $n -ge 2 || kill -9 $$; echo done"),
    );
    assert_eq!(
        desk.exec_script(&["--retry", "1"], "killed.sh").well(),
        "done\n"
    );
    says(&desk.shown(), "2; before it: it was ended by signal 9");
    let desk = Desk::new();
    desk.script(
        "long.sh",
        &format!("{COUNT}; test $n -ge 2 || exec sleep 600; echo done"),
    );
    let limited = ["--retry", "1", "--timeout", "1s"];
    assert_eq!(desk.exec_script(&limited, "long.sh").well(), "done\n");
    let desk = Desk::new();
    desk.script("waits.sh", "exec sleep 600");
    let mut command = desk.script_command(&["--retry", "3"], "waits.sh");
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    until("its run", || desk.runs() == 1);
    send("-TERM", &child);
    let done = Done::of(child.wait_with_output().unwrap());
    done.ends(128 + 15);
    assert_eq!(desk.runs(), 1);
}

/// Counts up to 10 in its state file, and ends itself at 5 the first time.
const COUNTS: &str = "\
n=$(cat state 2> /dev/null || echo 0); echo from $n
test $n != bad || exit 3
while test $n -lt 10; do
    n=$((n + 1)); echo $n > new; mv new state
    test $n != 5 || test -e \"$1.killed\" || { : > \"$1.killed\"; kill -9 $$; }
done
echo end $n";

#[test]
fn the_next_attempt_goes_on_from_the_file_that_one_left() {
    let desk = Desk::new();
    desk.script("counts.sh", COUNTS);
    let carry = ["--carry", "state"];
    let killed = desk.exec_script(&carry, "counts.sh");
    killed.ends(128 + 9);
    assert_eq!(killed.out, "from 0\n");
    let resumed = desk.exec_script(&carry, "counts.sh");
    assert_eq!(resumed.well(), "from 5\nend 10\n");
    says(&desk.shown(), "resumed     it went on from");
    // It is in no key, and is gone when the run is there.
    assert_eq!(
        desk.exec_script(&[], "counts.sh").well(),
        "from 5\nend 10\n"
    );
    assert_eq!(desk.runs(), 2);
    let again = desk.exec_script(&["--carry", "state", "--again"], "counts.sh");
    assert_eq!(again.well(), "from 0\nend 10\n");
    assert!(!desk.shown().contains("resumed"));
}

#[test]
fn a_file_that_the_call_does_not_name_is_not_handed_on() {
    let desk = Desk::new();
    desk.script("counts.sh", COUNTS);
    desk.exec_script(&["--carry", "state"], "counts.sh")
        .ends(128 + 9);
    let other = desk.exec_script(&["--carry", "other"], "counts.sh");
    assert_eq!(other.out, "from 0\nend 10\n");
}

#[test]
fn attempts_of_one_call_go_on_too() {
    let desk = Desk::new();
    desk.script("counts.sh", COUNTS);
    let done = desk.exec_script(&["--carry", "state", "--retry", "1"], "counts.sh");
    assert_eq!(done.well(), "from 0\nfrom 5\nend 10\n");
    let shown = desk.shown();
    says(&shown, "2; before it: it was ended by signal 9");
    says(&shown, "resumed");
}

#[test]
fn what_is_carried_must_be_a_file_of_the_run() {
    let desk = Desk::new();
    desk.script("counts.sh", COUNTS);
    for (options, why) in [
        (&["--carry", "../state"][..], "without `..`"),
        (&["--carry", "/state"], "in the run's folder"),
        // An argument that names a file makes it one.
        (&["--carry", "counts.sh"], "it is an input"),
        (
            &["--carry", "state", "--trace"],
            "what an attempt before read",
        ),
    ] {
        let done = desk.exec_script(options, "counts.sh");
        done.ends(125);
        says(&done.err, why);
    }
    assert_eq!(desk.runs(), 0);
}

/// Leaves a good copy and then a bad one, which the next attempt can't read.
#[test]
fn an_attempt_that_fails_from_a_copy_is_followed_by_one_from_the_copy_before() {
    let desk = Desk::new();
    let go = format!("{}.go", desk.counter);
    desk.write(
        "leaves.sh",
        &format!(
            "test -e \"$1.go\" || {{
echo 5 > state; while test ! -e \"$1.go\"; do sleep 0.01; done; echo bad > state; kill -9 $$; }}
echo run >> \"$1\"; : > \"$1.killed\"\n{COUNTS}"
        ),
    );
    let options = ["--carry", "state", "--carry-every", "20ms"];
    let mut command = desk.script_command(&options, "leaves.sh");
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    until("a copy", || desk.has_state());
    std::fs::write(go, "").unwrap();
    Done::of(child.wait_with_output().unwrap()).ends(128 + 9);
    assert_eq!(desk.runs(), 0);
    let done = desk.exec_script(&options, "leaves.sh");
    assert_eq!(done.well(), "from bad\nfrom 5\nend 10\n");
    assert_eq!(desk.runs(), 2);
    says(&desk.shown(), "2; before it: resumed: its exit status is 3");
}

/// The only copy is bad: then from none, by itself.
#[test]
fn an_attempt_that_fails_from_the_last_copy_is_followed_by_one_from_none() {
    let desk = Desk::new();
    desk.script("leaves.sh", &format!("test -e \"$1.killed\" || {{ : > \"$1.killed\"; echo bad > state; kill -9 $$; }}\n{COUNTS}"));
    let carry = ["--carry", "state"];
    desk.exec_script(&carry, "leaves.sh").ends(128 + 9);
    assert_eq!(
        desk.exec_script(&carry, "leaves.sh").well(),
        "from bad\nfrom 0\nend 10\n"
    );
    assert!(!desk.shown().contains("resumed "), "{}", desk.shown());
}

#[test]
fn a_copy_outlives_sde_itself() {
    let desk = Desk::new();
    desk.script(
        "waits.sh",
        "test -e state || { echo 7 > state; exec sleep 600; }; echo from $(cat state)",
    );
    let options = ["--carry", "state", "--carry-every", "20ms"];
    let mut command = desk.script_command(&options, "waits.sh");
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    until("a copy", || desk.has_state());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(desk.exec_script(&options, "waits.sh").well(), "from 7\n");
    assert_eq!(desk.runs(), 2);
}
