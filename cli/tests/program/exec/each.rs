//! A run for each row of a file.

use std::io::Write;
use std::process::Stdio;

use super::super::kit::says;
use super::{Desk, Done};

/// Prints its last argument, and fails if that is 3.
const FAILS_AT_3: &str = "echo \"energy $2\"; echo \"$2\" > out.txt; test \"$2\" != 3 || exit 4";
const GET: [&str; 2] = ["--get", "e=energy (.*)"];

impl Desk {
    /// A command for each row of `rows.csv`, of the script `row.sh` with the column `x`.
    fn each(&self, options: &[&str]) -> std::process::Command {
        let text = ["--text", &self.counter, "--each", "rows.csv"];
        let line = ["--", "sh", "row.sh", &self.counter, "{x}"];
        self.command([&["exec", "-s", "s.sde"], options, &text, &line].concat())
    }

    fn each_done(&self, options: &[&str]) -> Done {
        Done::of(self.each(options).output().unwrap())
    }
}

#[test]
fn each_row_runs_once_and_those_that_fail_are_told() {
    let desk = Desk::new();
    desk.script("row.sh", FAILS_AT_3);
    desk.write(
        "rows.csv",
        "name,x,note\r\na,1,\r\n\r\n\"b,b\",2,\r\nc,3,\r\nd,2,\r\n",
    );
    let options = [&GET[..], &["-o", "out.txt=to/{name}.txt"]].concat();
    let first = desk.each_done(&options);
    first.ends(1);
    // What rows print is not mixed into one stream.
    assert_eq!(first.out, "");
    says(&first.err, "sde: no {column} uses note of rows.csv");
    says(&first.err, "sde: line 5: row.sh [");
    says(&first.err, "failed: its exit status is 4 (status 4)");
    says(&first.err, "sde: energy 3");
    says(&first.err, "4 rows: 3 passed (2 run now), 1 failed");
    assert_eq!(desk.runs(), 3, "two rows share a run");
    for (name, text) in [("a", "1\n"), ("b,b", "2\n"), ("d", "2\n")] {
        assert_eq!(desk.read(&format!("to/{name}.txt")), text);
    }
    assert!(!desk.path("to/c.txt").exists());
    // Only what failed runs again, once; and what was deleted is put back.
    std::fs::remove_file(desk.path("to/a.txt")).unwrap();
    let again = desk.each_done(&[&options[..], &["-j", "3"]].concat());
    again.ends(1);
    says(&again.err, "4 rows: 3 passed (0 run now), 1 failed");
    assert_eq!(desk.runs(), 4);
    assert_eq!(desk.read("to/a.txt"), "1\n");
    let kept = desk.each_done(&[&options[..], &["--keep-failures"]].concat());
    kept.ends(1);
    assert_eq!(desk.runs(), 4);
    let table = desk.sde(&["table", "s.sde", "--app", "row.sh", "--csv"]);
    assert_eq!(table.out.lines().count(), 4, "{}", table.out);
    says(&table.out, "its exit status is 4 (status 4)");
}

#[test]
fn all_is_well_when_all_rows_pass() {
    let desk = Desk::new();
    desk.script("row.sh", FAILS_AT_3);
    let mut command = desk.each(&["--each", "-"]);
    // Instead of the file: an option that is given twice is refused.
    let refused = Done::of(command.output().unwrap());
    refused.ends(125);
    let line = [
        "exec",
        "--each",
        "-",
        "--text",
        &desk.counter,
        "--",
        "sh",
        "row.sh",
    ];
    let mut command = desk.command([&line[..], &[&desk.counter, "{{{x}}}"]].concat());
    let piped = Stdio::piped;
    command.stdin(piped()).stdout(piped()).stderr(piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"x\n1\n2\n").unwrap();
    let done = Done::of(child.wait_with_output().unwrap());
    done.ends(0);
    says(&done.err, "2 rows: 2 passed (2 run now)");
    says(&desk.sde(&["ls"]).well(), "{1}");
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_runs() {
    let desk = Desk::new();
    desk.script("row.sh", FAILS_AT_3);
    desk.write("rows.csv", "x,file\n1,a\n2,b\n1,a\n");
    desk.write("b", "");
    let refused = |options: &[&str], parts: &[&str]| {
        let done = desk.each_done(options);
        done.ends(125);
        parts.iter().for_each(|part| says(&done.err, part));
        assert_eq!(desk.runs(), 0, "{options:?}");
        assert!(!desk.path("s.sde").exists());
    };
    refused(
        &["-i", "{none}"],
        &["no column \"none\"", "the columns are: x, file"],
    );
    let places = "its run and that of line 2 put their outputs at";
    refused(
        &["-o", "out.txt"],
        &["rows.csv, line 3", places, "desk/out.txt"],
    );
    refused(&["-o", "out.txt=all"], &["line 3", places]);
    refused(&["-o", "*.txt"], &["line 3", places]);
    refused(&["-o", "?out.txt"], &["line 3", places]);
    refused(&["--stdin", "-"], &["line 2", "--stdin - is for one run"]);
    refused(&["--why"], &["--dry-run tells it"]);
    refused(&["-j", "0"], &["0"]);
    // One that is refused by itself hides none behind it.
    desk.write("rows.csv", "x,file\n1,none\n2,b\n3,b\n");
    refused(
        &["-i", "{file}", "-o", "out.txt"],
        &["line 4, is refused: its run and that of line 3"],
    );
    // One row's output lies in another's folder, and is another's input.
    desk.write("rows.csv", "x,file\n1,a\n2,a/b\n");
    refused(&["-o", "out.txt={file}"], &["line 3", places]);
    desk.write("rows.csv", "x,file,from\n1,a,b\n2,b,b\n");
    refused(
        &["-o", "out.txt={file}", "-i", "{from}"],
        &[
            "line 2",
            "b is read, and is where the run of line 3 puts an output",
        ],
    );
    // By the next time it would be another input.
    refused(
        &["-o", "out.txt={x}"],
        &["line 2", "1 is read, and is where the run of line 2"],
    );
    // The folder that one row puts, and a pattern, may hold the other's input.
    std::fs::create_dir(desk.path("to2")).unwrap();
    desk.write("to2/b.log", "");
    desk.write("rows.csv", "x,from\n1,to2/b.log\n2,b\n");
    for outputs in ["d=to{x}", "to{x}/*.log"] {
        refused(
            &["-o", outputs, "-i", "{from}"],
            &[
                "line 2",
                "to2/b.log is read, and is where the run of line 3",
            ],
        );
    }
    // The rows themselves, a folder that is read whole, and one place by two ways.
    desk.write("rows.csv", "x\n1\n");
    refused(
        &["-o", "out.txt=rows.csv"],
        &["line 2", "rows.csv is read, and is where the run of line 2"],
    );
    std::fs::create_dir(desk.path("folder")).unwrap();
    std::os::unix::fs::symlink("folder", desk.path("link")).unwrap();
    desk.write("rows.csv", "x,file\n1,folder/o\n2,link/o\n");
    refused(&["-o", "out.txt={file}"], &["line 3", places]);
    for reads in ["--tree", "--uses"] {
        refused(
            &["-o", "out.txt=link/{x}", reads, "folder"],
            &[
                "line 2",
                "desk/folder is read, and is where the run of line 2",
            ],
        );
    }
    std::fs::remove_file(desk.path("link")).unwrap();
    std::fs::remove_dir(desk.path("folder")).unwrap();
    desk.write("rows.csv", "x,file\n1,b\n2,-\n");
    refused(
        &["--stdin", "{file}"],
        &["line 3", "--stdin - is for one run"],
    );
    desk.write("rows.csv", "x,x\n1,2\n");
    refused(&[], &["two columns are called \"x\""]);
    desk.write("rows.csv", "x,y\n1,2\n3\n");
    refused(
        &[],
        &["rows.csv, line 3, is refused: 1 fields for 2 columns"],
    );
    std::fs::remove_file(desk.path("rows.csv")).unwrap();
    refused(&[], &["reading the rows of rows.csv"]);
}

/// Two rows that are one run write the same.
#[test]
fn no_output_is_put_into_the_store() {
    let desk = Desk::new();
    desk.script("row.sh", "echo 1 > out.txt");
    desk.write("rows.csv", "x\n1\n");
    let in_store = desk.each_done(&["-o", "out.txt=s.sde/{x}"]);
    in_store.ends(1);
    says(
        &in_store.err,
        "desk/s.sde/1 is refused as the place of an output",
    );
    assert_eq!(desk.runs(), 0);
}

#[test]
fn rows_of_one_run_may_have_one_place() {
    let desk = Desk::new();
    desk.script("row.sh", FAILS_AT_3);
    desk.write("rows.csv", "x\n1\n1\n");
    desk.each_done(&["-o", "out.txt"]).ends(0);
    assert_eq!((&*desk.read("out.txt"), desk.runs()), ("1\n", 1));
    // Beginnings of names meet only in patterns.
    desk.write("rows.csv", "x,name\n1,a\n2,ab\n");
    desk.each_done(&["-o", "out.txt={name}"]).ends(0);
    desk.script("row.sh", "echo \"$2\" > \"$2.txt\"");
    desk.write("rows.csv", "x\n1\n12\n");
    desk.each_done(&["-o", "{x}.txt"]).ends(0);
    desk.each_done(&["-o", "{x}*"]).ends(125);
}

#[test]
fn a_row_that_is_refused_is_no_hindrance_for_others() {
    let desk = Desk::new();
    desk.script("row.sh", FAILS_AT_3);
    desk.write("rows.csv", "x,file\n1,none\n2,there\n");
    desk.write("there", "");
    let done = desk.each_done(&["-i", "{file}", "-o", "out.txt={x}.out"]);
    done.ends(1);
    says(&done.err, "line 2: reading the input");
    says(&done.err, "2 rows: 1 passed (1 run now), 1 failed");
    assert_eq!(desk.runs(), 1);
}

#[test]
fn a_dry_run_tells_what_rows_would_do_and_how_long() {
    let desk = Desk::new();
    desk.script("row.sh", FAILS_AT_3);
    desk.write("rows.csv", "x\n1\n2\n3\n");
    let dry = desk.each_done(&["--dry-run"]).well();
    says(
        &dry,
        "rows.csv: 3 rows, 0 would be given, 3 would run, 0 would fail",
    );
    says(&dry, "3 runs, 1 at a time; how long they take is not known");
    assert!(!desk.path("s.sde").exists());
    desk.each_done(&[]).ends(1);
    let rest: String = (4..20).map(|x| format!("{x}\n")).collect();
    desk.write("rows.csv", &format!("x\n1\n2\n3\n4\n{rest}"));
    let dry = desk.each_done(&["--dry-run", "-j", "4"]).well();
    says(
        &dry,
        "20 rows, 2 would be given, 18 would run, 0 would fail",
    );
    says(
        &dry,
        "line 4 would run: it failed: its exit status is 4 (status 4)",
    );
    says(&dry, "line 5 would run: it was not run before; ");
    says(&dry, "another row has this run");
    says(&dry, "17 runs, 4 at a time, of ");
    says(&dry, "(the median of 3 runs)");
    let dry = desk
        .each_done(&["--dry-run", "--keep-failures", "--require", "nothing"])
        .well();
    says(&dry, "0 would be given, 17 would run, 3 would fail");
    says(
        &dry,
        "line 2 would fail: it did not fail so before, --again runs it",
    );
    says(&dry, "line 4 would fail: it failed: its exit status is 4");
    assert_eq!(desk.runs(), 3);
}

#[test]
fn what_the_time_is_too_short_for_is_left_and_what_is_remembered_is_given() {
    let desk = Desk::new();
    desk.script("row.sh", FAILS_AT_3);
    desk.write("rows.csv", "x\n1\n");
    desk.each_done(&["-o", "out.txt=o{x}"]).ends(0);
    std::fs::remove_file(desk.path("o1")).unwrap();
    desk.write("rows.csv", "x\n1\n2\n3\n");
    let limited = |limit| {
        let mut command = desk.each(&["-o", "out.txt=o{x}"]);
        Done::of(command.env("SDE_TIME_LIMIT", limit).output().unwrap())
    };
    let done = limited("@1");
    done.ends(75);
    says(
        &done.err,
        "3 rows: 1 passed (0 run now), 2 left since the job's time is up: the same line goes on with them",
    );
    assert_eq!((&*desk.read("o1"), desk.runs()), ("1\n", 1));
    let done = limited("1h");
    done.ends(1);
    assert_eq!(desk.runs(), 3);
    limited("some").ends(125);
    // One run by itself is asked for, whatever time is left.
    let mut one = desk.script_command(&[], "row.sh");
    Done::of(one.env("SDE_TIME_LIMIT", "@1").output().unwrap()).ends(0);
}
