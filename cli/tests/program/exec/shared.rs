//! Several processes that go through the rows of one file.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};

use super::super::kit::says;
use super::attempts::{send, until};
use super::{Desk, Done};

impl Desk {
    /// A process on the rows of `rows.csv`, whose script tells who it is for.
    fn worker(&self, who: usize, more: &[&str]) -> Child {
        self.worker_in("", who, more)
    }

    /// Such a process in an array of Slurm jobs.
    fn worker_in(&self, array: &str, who: usize, more: &[&str]) -> Child {
        let line = ["--", "sh", "row.sh", &self.counter, "{x}"];
        let options = ["-s", "s.sde", "--pass", "WHO", "--text", &self.counter];
        let mut command =
            self.command([&["exec", "--each", "rows.csv"], &options[..], more, &line].concat());
        command.env("WHO", who.to_string()).stderr(Stdio::piped());
        command.env("SLURM_ARRAY_JOB_ID", array).spawn().unwrap()
    }

    /// Who ran which row, in the order in which they began.
    fn told(&self) -> Vec<(String, String)> {
        let told = std::fs::read_to_string(&self.counter).unwrap_or_default();
        let pair = |line: &str| {
            let (who, row) = line.split_once(' ')?;
            Some((who.to_owned(), row.to_owned()))
        };
        told.lines().filter_map(pair).collect()
    }

    /// How many processes have asked for the runs of others.
    fn askers(&self) -> usize {
        let names = std::fs::read_dir(self.path("s.sde/work"))
            .into_iter()
            .flatten();
        let names = names.map(|entry| entry.unwrap().file_name());
        names
            .filter(|name| name.to_string_lossy().contains('.'))
            .count()
    }
}

fn done(child: Child) -> Done {
    Done::of(child.wait_with_output().unwrap())
}

/// One is killed, one is stopped for a while.
#[test]
fn four_processes_run_four_hundred_rows_once_each() {
    let desk = Desk::new();
    desk.write("row.sh", "echo \"$WHO $2\" >> \"$1\"; echo value $2");
    let rows: String = (0..400).map(|x| format!("{x}\n")).collect();
    desk.write("rows.csv", &format!("x\n{rows}"));
    let mut workers: Vec<Child> = (0..4).map(|who| desk.worker(who, &[])).collect();
    let all_have_begun = || {
        let begun: BTreeSet<String> = desk.told().into_iter().map(|(who, _)| who).collect();
        begun.len() == 4
    };
    until("all of them", all_have_begun);
    let mut killed = workers.remove(0);
    send("-STOP", &workers[0]);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let then = desk.told().len();
    until("others", || desk.told().len() >= then + 60);
    send("-CONT", &workers[0]);
    for worker in workers {
        let done = done(worker);
        done.ends(0);
        says(&done.err, "400 rows: 400 passed");
    }
    let mut by_row: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (who, row) in desk.told() {
        by_row.entry(row).or_default().push(who);
    }
    assert_eq!(by_row.len(), 400);
    for (row, by) in by_row {
        let by_others = by.iter().filter(|who| *who != "0").count();
        assert!(by_others <= 1 && by.len() <= 2, "{row}: {by:?}");
    }
    let table = desk
        .sde(&["table", "s.sde", "--app", "row.sh", "--csv"])
        .well();
    assert_eq!(table.lines().count(), 1 + 400);
}

/// Also a failure of an earlier time, which each of them is to run again, and a run that each is to make anew. Each has two threads
/// for two rows of that one run.
#[test]
fn a_row_that_fails_or_is_made_anew_is_run_once_by_all_processes_together() {
    let desk = Desk::new();
    let gate = format!("{}.gate", desk.counter);
    let made = std::process::Command::new("mkfifo").arg(&gate).status();
    assert!(made.unwrap().success());
    desk.write(
        "row.sh",
        "echo \"$WHO $2\" >> \"$1\"; cat < \"$1.gate\"; exit 3",
    );
    desk.write("rows.csv", "x\n1\n1\n");
    let options: [&[&str]; 4] = [
        &["-j2"],
        &["-j2"],
        &["-j2", "--again"],
        &["-j2", "--again", "--ok-status=3"],
    ];
    for (options, runs) in options.into_iter().zip(1..) {
        let first = desk.worker(1, options);
        // Opened once the script reads from it.
        let mut open = std::fs::OpenOptions::new().write(true).open(&gate).unwrap();
        let second = desk.worker(2, options);
        until("the second", || desk.askers() == 2);
        open.write_all(b"through").unwrap();
        drop(open);
        for one in [first, second] {
            let done = done(one);
            match runs {
                4 => done.ends(0),
                _ => {
                    done.ends(1);
                    says(&done.err, "2 rows: 0 passed (0 run now), 2 failed");
                }
            }
        }
        assert_eq!(desk.told().len(), runs, "{options:?}");
    }
}

/// Found by an attack: who waited ran it too after ten seconds.
#[test]
#[ignore = "long: a run of more than ten seconds"]
fn a_long_run_is_waited_for_as_long_as_it_takes() {
    let desk = Desk::new();
    desk.write("row.sh", "echo \"$WHO $2\" >> \"$1\"; sleep 13");
    desk.write("rows.csv", "x\n1\n");
    let first = desk.worker(1, &[]);
    until("a run", || desk.told().len() == 1);
    let second = desk.worker(2, &[]);
    for one in [first, second] {
        done(one).ends(0);
    }
    assert_eq!(desk.told().len(), 1);
}

/// Its jobs begin one after another, and its id is theirs.
#[test]
fn a_row_that_failed_in_an_array_of_jobs_is_not_run_again_there() {
    let desk = Desk::new();
    desk.write("row.sh", "echo \"$WHO $2\" >> \"$1\"; exit 3");
    desk.write("rows.csv", "x\n1\n");
    for (array, runs) in [("7", 1), ("7", 1), ("8", 2), ("", 3), ("", 4)] {
        done(desk.worker_in(array, 1, &[])).ends(1);
        assert_eq!(desk.told().len(), runs, "array {array:?}");
    }
}

#[test]
fn a_signal_ends_what_runs_and_nothing_more_begins() {
    let desk = Desk::new();
    desk.write("row.sh", "echo \"$WHO $2\" >> \"$1\"; exec sleep 600");
    desk.write("rows.csv", "x\n1\n2\n3\n");
    let first = desk.worker(1, &[]);
    until("a run", || desk.told().len() == 1);
    // It waits for the first at last.
    let second = desk.worker(2, &[]);
    until("two more", || desk.told().len() == 2);
    send("-INT", &first);
    let ended = done(first);
    ended.ends(128 + 2);
    says(&ended.err, "3 rows: 0 passed (0 run now), 3 left");
    send("-TERM", &second);
    done(second).ends(128 + 15);
    assert_eq!(desk.told().len(), 2);
}

#[test]
fn the_row_in_hand_ends_and_no_other_begins_when_it_is_told_to_stop() {
    let desk = Desk::new();
    let gate = format!("{}.gate", desk.counter);
    let made = std::process::Command::new("mkfifo").arg(&gate).status();
    assert!(made.unwrap().success());
    desk.write("row.sh", "echo \"$WHO $2\" >> \"$1\"; cat < \"$1.gate\"");
    desk.write("rows.csv", "x\n1\n2\n3\n");
    let mut worker = desk.worker(1, &[]);
    let mut open = std::fs::OpenOptions::new().write(true).open(&gate).unwrap();
    let seen = || desk.sde(&["watch", "s.sde", "--json"]).well();
    until("it is seen", || seen().contains("row.sh"));
    says(&desk.sde(&["stop", "s.sde"]).well(), "1 program is told");
    let mut err = BufReader::new(worker.stderr.take().unwrap());
    let mut told = String::new();
    while !told.contains(": nothing new begins") {
        assert_ne!(err.read_line(&mut told).unwrap(), 0, "{told}");
    }
    open.write_all(b"through").unwrap();
    drop(open);
    err.read_to_string(&mut told).unwrap();
    says(&told, "3 rows: 1 passed (1 run now), 2 left");
    assert_eq!(worker.wait().unwrap().code(), Some(75));
    assert_eq!(desk.told().len(), 1);
}
