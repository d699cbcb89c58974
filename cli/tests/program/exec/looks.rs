//! The other commands on runs of programs.

use std::fs;

use serde_json::Value;

use super::super::kit::says;
use super::{Desk, Done};

/// Runs that pass, one that fails, and one that was ended.
fn desk() -> Desk {
    let desk = Desk::new();
    let script = r#"echo "energy $2.5"; printf '\033[2Jwarning\n' >&2
echo "$2" > out.txt; echo log > log.txt
test "$2" != 3 || exit 4; test "$2" != 9 || kill -9 $$"#;
    desk.script("model.sh", script);
    for (number, status) in [("1", 0), ("2", 0), ("3", 4), ("9", 137)] {
        let options = "--name model -o out.txt -o ?log.txt --env A=b --get";
        let mut options: Vec<&str> = options.split(' ').collect();
        options.extend([r"energy=energy (\S+)", "--text", &desk.counter]);
        options.extend(["--text", number]);
        let done = desk.exec(&options, &["sh", "model.sh", &desk.counter, number]);
        done.ends(status);
    }
    desk
}

fn keys(desk: &Desk) -> Vec<(String, Value)> {
    let listed = desk.sde(&["ls", "--json"]).well();
    let entries = listed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let entries: Vec<Value> = entries.collect();
    let key = |entry: &Value| entry["key"].as_str().unwrap().to_owned();
    entries
        .into_iter()
        .map(|entry| (key(&entry), entry))
        .collect()
}

/// The key of the run with this number.
fn key_of(desk: &Desk, number: &str) -> String {
    key_of_command(desk, &format!(" {number}"))
}

/// The key of the run whose command ends so.
pub(super) fn key_of_command(desk: &Desk, end: &str) -> String {
    let is_it = |entry: &Value| {
        let command = entry["inputs"]["command"].as_str().unwrap();
        command.ends_with(end)
    };
    keys(desk)
        .into_iter()
        .find(|(_, entry)| is_it(entry))
        .unwrap()
        .0
}

#[test]
fn ls_tells_what_failed_and_hides_the_rules() {
    let desk = desk();
    let text = desk.sde(&["ls"]).well();
    for part in [
        "command=sh model.sh ",
        "$A=b",
        "status 4",
        "3 entries",
        "2 runs failed: --failed",
    ] {
        says(&text, part);
    }
    assert!(!text.contains("sde.rules"), "{text}");
    says(&desk.sde(&["ls", "--app", "sde.rules"]).well(), "app=model");
}

#[test]
fn table_has_values_of_runs_that_pass_and_errors_of_others() {
    let desk = desk();
    let done = desk.sde(&["table", "--app", "model", "--csv"]);
    let rows: Vec<Vec<&str>> = done
        .out
        .lines()
        .map(|line| line.split(',').collect())
        .collect();
    assert_eq!(
        rows[0],
        [
            "command", "inputs", "$A", "status", "energy", "error", "key"
        ]
    );
    let ends: Vec<&[&str]> = rows[1..].iter().map(|row| &row[2..6]).collect();
    let ended = ["b", "", "", "it was ended by signal 9"];
    let failed = ["b", "4", "", "its exit status is 4 (status 4)"];
    assert_eq!(
        ends,
        [["b", "0", "1.5", ""], ["b", "0", "2.5", ""], failed, ended]
    );
    assert!(rows[1][0].starts_with("sh model.sh "), "{rows:?}");
    assert_eq!((&rows[1][1][..9], rows[1][1].len()), ("model.sh ", 9 + 12));
    assert_eq!(done.err, "");
    let last = desk.sde(&["table", "--app", "model", "-n", "2", "--csv"]);
    assert_eq!(last.out.lines().count(), 3, "{last:?}");
    let others = desk.sde(&[
        "table",
        "--get",
        "n=out.txt:(.*)",
        "--csv",
        "--app",
        "model",
    ]);
    says(&others.out, ",status,n,error,key");
    says(&others.out, ",0,2,");
    // The rules that were asked for last judge all.
    let options = [
        "--name",
        "model",
        "--reject",
        "energy 1",
        "--text",
        &desk.counter,
    ];
    let line = ["sh", "model.sh", &desk.counter, "5"];
    desk.exec(&options, &line).ends(0);
    let judged = desk.sde(&["table", "--csv"]);
    assert_eq!(judged.out.lines().count(), 6, "{judged:?}");
    assert_eq!(
        judged.out.matches("reject energy 1").count(),
        1,
        "{judged:?}"
    );
}

/// Found by use: a table had the rows of both scripts.
#[test]
fn a_script_that_is_edited_is_other_code() {
    let desk = Desk::new();
    let run = |x: &str| desk.exec(&[], &["sh", "scan.sh", x]).ends(0);
    desk.write("scan.sh", "echo $1");
    ["1", "2", "3"].into_iter().for_each(run);
    desk.write("scan.sh", "echo 0$1");
    ["1", "2"].into_iter().for_each(run);
    let table = desk.sde(&["table", "--csv"]);
    assert_eq!(table.out.lines().count(), 3, "{table:?}");
    says(&table.err, "1 combination only under other code");
    let all = desk.sde(&["table", "--csv", "--all-code"]);
    assert_eq!(all.out.lines().count(), 6, "{all:?}");
    let edited = desk.sde(&["explain", &key_of(&desk, "scan.sh 2")]).well();
    says(&edited, "input \"./scan.sh\": ");
    assert!(!edited.contains("\"command\""), "{edited}");
    // What was used last is current.
    desk.write("scan.sh", "echo $1");
    run("3");
    desk.sde(&["gc", "--old-code"]).ends(0);
    assert_eq!(desk.sde(&["table", "--csv"]).out.lines().count(), 4);
}

#[test]
fn show_tells_the_command_and_how_it_went() {
    let desk = desk();
    let shown = desk.sde(&["show", &key_of(&desk, "2")]).well();
    for part in [
        "command     ",
        "sh model.sh ",
        "status      0",
        "judged      passes",
        "energy  2.5",
        "out.txt  2 B",
        "log.txt  4 B",
        "standard output, 11 B\n  energy 2.5\n",
        "  \\u{1b}[2Jwarning\n",
    ] {
        says(&shown, part);
    }
    let failed = desk.sde(&["show", &key_of(&desk, "3")]).well();
    says(
        &failed,
        "judged      fails: its exit status is 4 (status 4)",
    );
    let json = desk.sde(&["show", &key_of(&desk, "2"), "--json"]).well();
    let run = &serde_json::from_str::<Value>(&json).unwrap()["run"];
    assert_eq!(run["values"]["energy"], 2.5);
    assert_eq!(run["stdout_end"], "energy 2.5\n");
}

#[test]
fn show_has_the_end_of_long_output() {
    let desk = Desk::new();
    desk.script(
        "long.sh",
        "i=0; while [ $i -lt 1000 ]; do echo line $i; i=$((i+1)); done",
    );
    desk.exec_script(&[], "long.sh").ends(0);
    let shown = desk.sde(&["show", &keys(&desk)[0].0]).well();
    says(&shown, "the last 2000 bytes");
    says(&shown, "  line 999\n");
    assert!(!shown.contains("line 1\n"), "{shown}");
}

#[test]
fn export_gives_what_it_printed_and_wrote() {
    let desk = desk();
    let key = key_of(&desk, "2");
    let export = |name: &str, more: &[&str]| {
        let options = ["export", &key, name];
        desk.sde(&[&options, more].concat())
    };
    assert_eq!(export("stdout", &[]).well(), "energy 2.5\n");
    assert_eq!(export("stderr", &[]).well(), "\u{1b}[2Jwarning\n");
    assert_eq!(export("files", &["--file", "out.txt"]).well(), "2\n");
    assert_eq!(export("files", &["--file", "1"]).well(), "log\n");
    export("files", &["--file", "log.txt", "-o", "copy"]).well();
    assert_eq!(desk.read("copy"), "log\n");
    says(&export("files", &["--file", "none"]).err, "or by its name");
    assert_eq!(
        export("stdout", &["--format", "raw"]).well(),
        "energy 2.5\n"
    );
    // What is empty is that.
    desk.write("touch.sh", ": > empty");
    desk.exec(&["-o", "empty", "--name", "touch"], &["sh", "touch.sh"])
        .well();
    let empty = key_of_command(&desk, "sh touch.sh");
    for name in [&["stdout"][..], &["files", "--file", "empty"], &["files"]] {
        assert_eq!(desk.sde(&[&["export", &empty], name].concat()).well(), "");
    }
    // What is no output file has no format by itself.
    for export in [export("status", &[]), desk.sde(&["export", &key])] {
        export.ends(2);
        says(&export.err, "which format?");
    }
}

#[test]
fn gc_removes_the_folders_of_killed_runs() {
    let desk = desk();
    let killed = desk.scratch().join("sde-run-killed");
    fs::create_dir_all(killed.join("work")).unwrap();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    fs::write(killed.join("lock"), host).unwrap();
    desk.sde(&["gc", "--dry-run"]).well();
    assert!(killed.exists());
    says(
        &desk.sde(&["gc"]).well(),
        "1 folder of runs that were killed removed from ",
    );
    assert!(!killed.exists());
}

#[test]
fn a_file_that_the_store_lost_is_told() {
    let desk = desk();
    let damaged = |done: &Done| done.status != 0;
    for entry in fs::read_dir(desk.path("commands.sde/entries")).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        // Half of each segment is lost.
        bytes.truncate(bytes.len() / 2);
        fs::write(path, bytes).unwrap();
    }
    for command in [&["ls"][..], &["table", "--csv"]] {
        let done = desk.sde(command);
        assert!(damaged(&done), "{done:?}");
    }
}

/// Texts that differ far behind their beginnings look different, and results keep their room beside them.
#[test]
fn long_texts_that_differ_look_different() {
    let desk = Desk::new();
    desk.script("model.sh", "echo energy $3; test $3 -lt 4");
    let long = "the same long word ".repeat(8);
    let path = |number: &str| format!("{long}{number}{long}");
    for number in ["1", "2", "4", "5"] {
        let (counter, text) = (&*desk.counter, &*path(number));
        let options = [
            "--text",
            counter,
            "--text",
            text,
            "--get",
            "energy=energy (.*)",
        ];
        desk.exec(&options, &["sh", "model.sh", counter, text, number]);
    }
    let at_80 = |arguments: &[&str]| {
        let mut command = desk.command(arguments);
        Done::of(command.env("COLUMNS", "80").output().unwrap()).well()
    };
    // Each text is there, cut, with the number that tells it apart.
    let differ = |shown: &str, numbers: [&str; 2]| {
        let lines = shown.lines().filter(|line| line.contains('…'));
        let lines: Vec<&str> = lines.collect();
        for number in numbers {
            let has = |line: &&&str| line.contains(&format!("word {number}the"));
            assert_eq!(lines.iter().filter(has).count(), 1, "{number}:\n{shown}");
        }
    };
    let table = at_80(&["table"]);
    differ(&table, ["1", "2"]);
    assert!(table.lines().next().unwrap().contains("energy"), "{table}");
    let listed = at_80(&["ls"]);
    differ(&listed, ["1", "2"]);
    differ(&at_80(&["ls", "--failed"]), ["4", "5"]);
    differ(&at_80(&["gc", "-n", "--app", "*"]), ["1", "2"]);
    let failed = at_80(&["gc", "-n", "--failed"]);
    differ(&failed, ["4", "5"]);
    says(&failed, "its exit status is 1");
}

#[test]
fn results_keep_their_room_beside_many_inputs() {
    let desk = Desk::new();
    desk.script("model.sh", "echo energy $A_LONG_VARIABLE_1");
    for number in 1..3 {
        let given: Vec<String> = (1..7)
            .map(|at| format!("A_LONG_VARIABLE_{at}={number}"))
            .collect();
        let given = given.iter().flat_map(|one| ["--env", one]);
        let get = ["--get", "energy=energy (.*)"];
        let options: Vec<&str> = get.into_iter().chain(given).collect();
        desk.exec_script(&options, "model.sh").well();
    }
    let mut command = desk.command(["table"]);
    let table = Done::of(command.env("COLUMNS", "80").output().unwrap()).well();
    let titles = table.lines().next().unwrap();
    assert!(titles.contains("energy"), "{table}");
    says(&table, "no room for: ");
}
