//! What fails here: printing, a file that gets too large, a run that did not end by itself.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use super::super::kit::says;
use super::{Desk, Done};

fn to_full_disk(mut command: Command) -> Done {
    let full = File::options().write(true).open("/dev/full").unwrap();
    command.stdout(full).stderr(Stdio::piped());
    Done::of(command.spawn().unwrap().wait_with_output().unwrap())
}

#[test]
#[cfg(target_os = "linux")]
fn outputs_are_put_though_nothing_can_be_printed() {
    let desk = Desk::new();
    desk.script("writes.sh", "echo out; echo one > one.txt");
    let options = ["-o", "one.txt"];
    // Made by the first call, remembered by the second.
    for stream in ["its standard output: ", ""] {
        let done = to_full_disk(desk.script_command(&options, "writes.sh"));
        done.ends(125);
        let told = format!("can't be printed: {stream}No space left on device");
        says(&done.err, &told);
        assert_eq!((desk.read("one.txt"), desk.runs()), ("one\n".to_owned(), 1));
        fs::remove_file(desk.path("one.txt")).unwrap();
    }
    // Of a failure both are told.
    desk.script("fails.sh", "echo out; exit 3");
    desk.exec_script(&[], "fails.sh").ends(3);
    let done = to_full_disk(desk.script_command(&["--keep-failures"], "fails.sh"));
    done.ends(125);
    says(&done.err, "its exit status is 3");
    says(&done.err, "can't be printed");
    assert_eq!(desk.runs(), 2);
}

/// A command below a limit on the size of files, in units of 512 bytes.
fn limited(desk: &Desk, blocks: u32, command: &Command) -> Done {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("ulimit -f {blocks}; exec \"$0\" \"$@\"")])
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(&desk.path)
        .env("TMPDIR", desk.scratch());
    Done::of(shell.output().unwrap())
}

#[test]
fn a_file_that_gets_too_large_is_an_error_and_the_programs_end() {
    let desk = Desk::new();
    desk.script("long.sh", "seq 100000");
    let long = desk.script_command(&["--uses", "seq"], "long.sh");
    desk.exec_script(&["--uses", "seq"], "long.sh").ends(0);
    let done = limited(&desk, 256, &long);
    done.ends(125);
    says(&done.err, "File too large");
    // The program has the signal as it is elsewhere.
    desk.write("writes.sh", "yes > big");
    let done = limited(
        &desk,
        256,
        &desk.command(["exec", "--uses", "yes", "sh", "writes.sh"]),
    );
    done.ends(128 + 25);
}

#[test]
fn a_run_that_did_not_end_by_itself_is_shown_by_the_key_that_the_error_names() {
    let desk = Desk::new();
    desk.script("killed.sh", "echo so far; kill -9 $$");
    let done = desk.exec_script(&[], "killed.sh");
    done.ends(128 + 9);
    let (_, after) = done.err.split_once("killed.sh [").unwrap();
    let (key, _) = after.split_once(']').unwrap();
    let shown = desk.sde(&["show", key]).well();
    says(&shown, "it was ended by signal 9");
    says(&shown, "so far");
    says(&shown, "sh killed.sh");
    says(&shown, "computed again whenever it is asked for");
    let listed = desk.sde(&["ls", "--failed"]).well();
    let line = listed.lines().find(|line| line.contains(key)).unwrap();
    assert!(
        line.contains("sh killed.sh") && line.contains("ended by signal 9"),
        "{line}"
    );
}

#[test]
fn what_a_killed_run_left_goes_with_the_next_call_there() {
    let desk = Desk::new();
    desk.script("some.sh", "echo out");
    let own = desk.path("own");
    fs::create_dir(&own).unwrap();
    desk.exec_script(&[], "some.sh").ends(0);
    for (options, folder) in [(&[][..], desk.scratch()), (&["--scratch", "own"], own)] {
        let killed = folder.join("sde-run-killed");
        fs::create_dir_all(killed.join("work")).unwrap();
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        fs::write(killed.join("lock"), host).unwrap();
        assert_eq!(desk.exec_script(options, "some.sh").well(), "out\n");
        assert!(!killed.exists(), "{options:?}");
    }
    assert_eq!(desk.runs(), 1);
}

/// Found by an attack: jobs that keep failures lost the rows that others had ended.
#[test]
fn what_others_ended_is_run_again_also_where_failures_are_kept() {
    let cases = [
        ("TERM", &[][..]),
        ("KILL", &[]),
        ("0", &["--timeout", "0.2s"]),
    ];
    for (signal, limit) in cases {
        let desk = Desk::new();
        desk.script("killed.sh", &format!("kill -{signal} $$; sleep 5"));
        let options = [limit, &["--keep-failures", "--uses", "sleep"]].concat();
        for runs in 1..3 {
            let done = desk.exec_script(&options, "killed.sh");
            assert!(done.status > 120, "{done:?}");
            assert_eq!(desk.runs(), runs, "{signal}");
        }
    }
}

#[test]
fn a_crash_is_a_failure() {
    let desk = Desk::new();
    desk.script("crashes.sh", "kill -SEGV $$");
    desk.exec_script(&[], "crashes.sh").ends(128 + 11);
    let kept = desk.exec_script(&["--keep-failures"], "crashes.sh");
    says(&kept.err, "it was ended by signal 11");
    says(&kept.err, "was not run again");
    assert_eq!(desk.runs(), 1);
    desk.exec_script(&[], "crashes.sh").ends(128 + 11);
    assert_eq!(desk.runs(), 2);
}

#[test]
fn what_fails_by_its_rules_is_listed_with_them() {
    let desk = Desk::new();
    desk.script("ends.sh", "exit 3");
    desk.exec_script(&[], "ends.sh").ends(3);
    desk.script("prints.sh", "echo a NaN");
    desk.exec_script(&["--reject", "NaN"], "prints.sh").ends(1);
    desk.script("passes.sh", "echo 1");
    desk.exec_script(&[], "passes.sh").ends(0);
    let listed = desk.sde(&["ls", "--failed"]).well();
    says(&listed, "its exit status is 3 (");
    says(&listed, "matches (reject NaN)");
    says(&listed, "2 failed runs");
    assert!(!listed.contains("passes.sh"), "{listed}");
    // The first of them alone, and then none: by other rules it passes.
    let one = desk.sde(&["ls", "--failed", "-n", "1"]).well();
    says(&one, "1 failed run of 2");
    desk.exec_script(&["--ok-status", "3", "--again"], "ends.sh")
        .ends(3);
    let listed = desk.sde(&["ls", "--failed"]).well();
    assert!(!listed.contains("ends.sh"), "{listed}");
}
