//! What runs, and what is remembered.

use std::io::{BufRead, Write};

use super::super::kit::says;
use super::{Desk, Done, is_there};

#[test]
fn no_option_is_needed() {
    let desk = Desk::new();
    desk.write("data.txt", "1\n2\n");
    let first = desk.exec(&[], &["wc", "-l", "data.txt"]);
    says(
        &first.err,
        "sde: results are kept in commands.sde; SDE_STORE names another store",
    );
    assert_eq!(first.well(), "2 data.txt\n");
    // Without the mark too, and nothing is told then.
    let again = desk.sde(&["exec", "wc", "-l", "data.txt"]);
    assert_eq!(again.err, "");
    assert_eq!(again.well(), "2 data.txt\n");
    let listed = desk.sde(&["ls", "--json"]).well();
    assert_eq!(listed.lines().count(), 1, "{listed}");
    says(&listed, "\"hits\":1");
    // Its input counts.
    desk.write("data.txt", "1\n2\n3\n");
    assert_eq!(
        desk.exec(&[], &["wc", "-l", "data.txt"]).well(),
        "3 data.txt\n"
    );
}

#[test]
fn a_python_script_with_its_data_needs_no_option() {
    if !is_there("python3") {
        return println!(
            "skipped a_python_script_with_its_data_needs_no_option: there is no python3"
        );
    }
    let desk = Desk::new();
    desk.write("data.csv", "1\n2.5\n");
    desk.write(
        "fit.py",
        "import sys\nprint(sum(map(float, open(sys.argv[1]))))\n",
    );
    let line = ["python3", "fit.py", "data.csv"];
    let whys: Vec<String> = (0..2)
        .map(|_| {
            let why = desk.exec(&["--why"], &line).well();
            assert_eq!(desk.exec(&[], &line).well(), "3.5\n");
            why
        })
        .collect();
    says(&whys[0], "would be computed");
    says(&whys[1], "is in the store");
    says(&desk.sde(&["ls"]).well(), "fit.py");
}

#[test]
fn what_is_remembered_prints_the_same_and_runs_nothing() {
    let desk = Desk::new();
    desk.script("both.sh", "echo out; echo err >&2; printf 'no end'");
    for run in 0..3 {
        let done = desk.exec_script(&["-s", "results.sde"], "both.sh");
        done.ends(0);
        assert_eq!((&*done.out, &*done.err), ("out\nno end", "err\n"), "{run}");
        assert_eq!(desk.runs(), 1, "{run}");
    }
    desk.exec_script(&["-s", "results.sde", "--again"], "both.sh")
        .ends(0);
    assert_eq!(desk.runs(), 2);
    assert!(!desk.path("commands.sde").exists());
}

#[test]
fn with_sde_disable_nothing_is_kept() {
    let desk = Desk::new();
    desk.script("some.sh", "echo out");
    for runs in 1..3 {
        let mut command = desk.script_command(&[], "some.sh");
        let done = command.env("SDE_DISABLE", "1").output().unwrap();
        assert_eq!(Done::of(done).well(), "out\n");
        assert_eq!(desk.runs(), runs);
    }
    assert!(!desk.path("commands.sde").exists());
}

#[test]
fn why_runs_nothing_and_makes_no_store() {
    let desk = Desk::new();
    desk.script("some.sh", "echo out");
    let why = desk.exec_script(&["--why"], "some.sh").well();
    says(&why, "would be computed");
    assert!(!desk.path("commands.sde").exists());
    desk.exec_script(&[], "some.sh").ends(0);
    let why = desk.exec_script(&["--why"], "some.sh").well();
    says(&why, "is in the store");
    says(&why, "UTC; passes: it would be given");
    assert!(!why.contains("made by"), "{why}");
    let fails = desk.exec_script(&["--why", "--reject", "out"], "some.sh");
    says(
        &fails.well(),
        "something that it wrote matches (reject out)",
    );
    let other = desk
        .exec_script(&["--why", "--env", "A=b"], "some.sh")
        .well();
    says(&other, "would be computed");
    says(&other, "$A");
    assert_eq!(desk.runs(), 1);
}

#[test]
fn a_failure_runs_again_unless_it_is_kept_or_a_rule_is_new() {
    let desk = Desk::new();
    desk.script("fails.sh", "echo energy -5; exit 3");
    let fails = |options: &[&str], runs| {
        let done = desk.exec_script(options, "fails.sh");
        assert_eq!(done.out, "energy -5\n");
        assert_eq!(desk.runs(), runs, "{done:?}");
        done
    };
    fails(&[], 1).ends(3);
    says(&fails(&[], 2).err, "failed: its exit status is 3");
    says(&fails(&["--keep-failures"], 2).err, "was not run again");
    fails(&["--ok-status", "0,3"], 2).ends(3);
    let mistyped = fails(&["--ok-status", "3", "--get", "e=enrgy (.*)"], 2);
    mistyped.ends(3);
    says(&mistyped.err, "--again runs it");
}

#[test]
fn two_that_ask_at_once_run_it_once() {
    let desk = Desk::new();
    let gate = desk.path("gate");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&gate)
            .status()
            .unwrap()
            .success()
    );
    let gate = gate.to_str().unwrap().to_owned();
    desk.script("slow.sh", &format!("cat < '{gate}'"));
    let start = || {
        let mut command = desk.script_command(&["--store", "s.sde", "--timeout", "60s"], "slow.sh");
        let piped = std::process::Stdio::piped;
        command.stdout(piped()).stderr(piped()).spawn().unwrap()
    };
    let first = start();
    // Opened once the first reads from it.
    let mut open = std::fs::OpenOptions::new().write(true).open(&gate).unwrap();
    let is_announced = || {
        let names = std::fs::read_dir(desk.path("s.sde/work"))
            .into_iter()
            .flatten();
        let mut names = names.map(|entry| entry.unwrap().file_name());
        names.any(|name| !name.to_string_lossy().contains('.'))
    };
    for _ in 0..2000 {
        if is_announced() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let mut second = start();
    let mut told = std::io::BufReader::new(second.stderr.take().unwrap());
    let mut line = String::new();
    told.read_line(&mut line).unwrap();
    says(&line, "runs this already, and is waited for");
    open.write_all(b"through").unwrap();
    drop(open);
    for one in [first, second] {
        assert_eq!(Done::of(one.wait_with_output().unwrap()).well(), "through");
    }
    assert_eq!(desk.runs(), 1);
}
