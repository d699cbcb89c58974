//! Runs that other stores have.

use std::fs;

use super::super::kit::says;
use super::{Desk, Done};

/// A desk with a run in `theirs.sde`, made there by a person with other stores.
fn desk() -> Desk {
    let desk = Desk::new();
    desk.script("model.sh", "echo energy; echo text > out.txt");
    let made = of(&desk, &["-s", "theirs.sde"], "");
    assert_eq!(made.out, "energy\n");
    fs::remove_file(desk.path("out.txt")).unwrap();
    desk
}

fn of(desk: &Desk, options: &[&str], also: &str) -> Done {
    let options = [options, &["-o", "out.txt"]].concat();
    let mut command = desk.script_command(&options, "model.sh");
    Done::of(command.env("SDE_ALSO", also).output().unwrap())
}

#[test]
fn a_run_of_another_store_is_given_and_runs_nothing() {
    let desk = desk();
    let also = "theirs.sde";
    let given = || {
        let done = of(&desk, &[], also);
        assert_eq!((&*done.out, &*desk.read("out.txt")), ("energy\n", "text\n"));
        fs::remove_file(desk.path("out.txt")).unwrap();
        done.err
    };
    // There is no store of one's own yet, and then there is one without the run.
    for line in ["echo one", "echo two"] {
        let why = of(&desk, &["--why"], also).well();
        let theirs = desk.path(also);
        says(
            &why,
            &format!("is in {}, which SDE_ALSO names", theirs.display()),
        );
        says(&why, "passes: it would be given");
        let line: Vec<&str> = line.split(' ').collect();
        desk.exec(&[], &line);
    }
    given();
    says(&of(&desk, &["--why"], also).well(), "is in the store");
    given();
    // It was short, and is here by now.
    fs::remove_dir_all(desk.path(also)).unwrap();
    says(
        &given(),
        "nothing is looked up in theirs.sde, and what only it has is computed: there is no store",
    );
    assert_eq!(desk.runs(), 1);
}

#[test]
fn a_dry_run_knows_of_other_stores() {
    let desk = desk();
    desk.write("rows.csv", "name\nmodel.sh\n");
    let dry = |also: &str| {
        let line = [
            "exec",
            "--each",
            "rows.csv",
            "--dry-run",
            "-o",
            "out.txt",
            "--text",
        ];
        let line = [
            &line,
            &[&*desk.counter, "--", "sh", "{name}", &desk.counter][..],
        ]
        .concat();
        let mut command = desk.command(line);
        Done::of(command.env("SDE_ALSO", also).output().unwrap()).well()
    };
    says(&dry(""), "0 would be given, 1 would run");
    for _ in 0..2 {
        says(&dry("theirs.sde"), "1 would be given, 0 would run");
        desk.exec(&[], &["echo", "another"]);
    }
}

#[test]
fn what_another_store_has_is_invalidated_in_ones_own() {
    let desk = desk();
    desk.exec(&[], &["echo", "one"]);
    let listed = desk.sde(&["--json", "ls", "theirs.sde"]).well();
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let key = listed["key"].as_str().unwrap();
    let sde = |arguments: &[&str], also: &str| {
        let arguments = [&["invalidate", "-s", "commands.sde", key], arguments].concat();
        let mut command = desk.command(arguments);
        Done::of(command.env("SDE_ALSO", also).output().unwrap())
    };
    let bad = ["--reason", "bad"];
    sde(&bad, "").ends(2);
    says(
        &sde(&bad, "theirs.sde").well(),
        " of theirs.sde is not used any more",
    );
    says(
        &sde(&["--undo"], "theirs.sde").well(),
        " of theirs.sde is used again",
    );
    sde(&["--undo"], "theirs.sde").ends(2);
    sde(&bad, "theirs.sde").well();
    // Whose store it is has it as before.
    of(&desk, &["-s", "theirs.sde"], "").well();
    assert_eq!(desk.runs(), 1);
    of(&desk, &[], "theirs.sde");
    assert_eq!(desk.runs(), 2);
    of(&desk, &[], "theirs.sde").well();
    assert_eq!(desk.runs(), 2);
    // What is used now is one's own.
    let own = sde(&bad, "theirs.sde").well();
    assert!(!own.contains("theirs.sde"), "{own}");
}

/// That of the other store would count in place of it.
#[test]
fn a_key_is_invalidated_in_all_stores() {
    let desk = desk();
    desk.exec(&[], &["echo", "one"]);
    of(&desk, &[], "").well();
    assert_eq!(desk.runs(), 2);
    let listed = desk.sde(&["--json", "ls", "theirs.sde"]).well();
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let key = listed["key"].as_str().unwrap();
    let mut command = desk.command(["invalidate", "-s", "commands.sde", key, "--reason", "bad"]);
    let done = Done::of(command.env("SDE_ALSO", "theirs.sde").output().unwrap());
    assert_eq!(done.well().matches("is not used any more").count(), 2);
    of(&desk, &[], "theirs.sde").well();
    assert_eq!(desk.runs(), 3);
}
