//! Inputs and options, what is refused, and the help.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use super::super::kit::{says, sde_wide};
use super::{Desk, Done};

#[test]
fn inputs_come_in_every_way() {
    let desk = Desk::new();
    desk.write("a.txt", "a\n");
    desk.write("b=c", "b\n");
    std::fs::create_dir(desk.path("tree")).unwrap();
    desk.write("tree/d", "d\n");
    desk.write("in", "stdin\n");
    desk.script("shows.sh", "cat x/a.txt b=c tree/d; cat; echo $A $B $C");
    let mut options = vec!["-i", "a.txt=x/a.txt", "-i", "b=c", "--tree", "tree"];
    options.extend(["--env", "A=1", "--env", "B", "--pass", "C", "--stdin", "in"]);
    let run = |options: &[&str], b: &str, c: &str| {
        let mut command = desk.script_command(options, "shows.sh");
        command.env("B", b).env("C", c);
        Done::of(command.output().unwrap()).well()
    };
    let text = "a\nb\nd\nstdin\n1 2 3\n";
    assert_eq!(run(&options, "2", "3"), text);
    // What is passed does not count, what is declared does.
    assert_eq!((run(&options, "2", "4"), desk.runs()), (text.to_owned(), 1));
    assert_eq!(run(&options, "5", "4"), text.replace("2 3", "5 4"));
    desk.write("tree/d", "D\n");
    assert_eq!(run(&options, "5", "4"), "a\nb\nD\nstdin\n1 5 4\n");
    assert_eq!(desk.runs(), 3);
}

#[test]
fn our_standard_input_is_read_if_asked_for() {
    let desk = Desk::new();
    let piped = |text: &[u8]| {
        let mut command = desk.command(["exec", "--stdin", "-", "wc", "-c"]);
        let piped = Stdio::piped;
        command.stdin(piped()).stdout(piped()).stderr(piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(text).unwrap();
        Done::of(child.wait_with_output().unwrap()).well()
    };
    assert_eq!(piped(b"12345").trim(), "5");
    assert_eq!(piped(b"123").trim(), "3");
    assert_eq!(desk.exec(&[], &["wc", "-c"]).well().trim(), "0");
}

#[test]
fn a_time_limit_is_some_time() {
    let desk = Desk::new();
    for limit in ["0", "0s"] {
        let done = desk.exec(&["--timeout", limit], &["ls"]);
        done.ends(125);
        says(&done.err, "it is no time: 30s");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn our_standard_input_is_kept_in_a_file_that_no_end_leaves_behind() {
    let desk = Desk::new();
    let mut command = desk.command(["exec", "--stdin", "-", "wc", "-c"]);
    command.stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let bytes = vec![b'a'; 1 << 20];
    child.stdin.as_mut().unwrap().write_all(&bytes).unwrap();
    let files = format!("/proc/{}/fd", child.id());
    let is_kept = || {
        let files = std::fs::read_dir(&files).unwrap();
        files.flatten().any(|file| {
            let of = std::fs::read_link(file.path()).unwrap_or_default();
            let length = || std::fs::metadata(file.path()).map_or(0, |about| about.len());
            of.starts_with(desk.scratch()) && length() == 1 << 20
        })
    };
    while !is_kept() {
        assert!(child.try_wait().unwrap().is_none(), "it ended");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(std::fs::read_dir(desk.scratch()).unwrap().count(), 0);
    let done = desk.exec(&["--stdin", "-", "--scratch", "none"], &["wc", "-c"]);
    done.ends(125);
    says(&done.err, "--scratch names another folder");
}

#[test]
fn what_is_refused_names_what_to_write() {
    let desk = Desk::new();
    desk.write("a", "");
    desk.write("b", "");
    std::fs::create_dir(desk.path("folder")).unwrap();
    let refused = |options: &[&str], line: &[&str], says_: &[&str]| {
        let done = desk.exec(options, line);
        done.ends(125);
        assert_eq!(done.out, "");
        assert!(done.err.starts_with("sde: "), "{done:?}");
        says_.iter().for_each(|part| says(&done.err, part));
    };
    let path = ["-i /etc/passwd", "--uses /etc/passwd", "--text /etc/passwd"];
    refused(&[], &["cat", "/etc/passwd"], &path);
    refused(&["--env", "A=/etc/passwd"], &["cat", "a"], &path);
    let free = ["--env", "A=x:/etc/passwd", "--text", "x:/etc/passwd"];
    desk.exec(&free, &["cat", "a"]).well();
    refused(&[], &["ls", "folder"], &["--tree folder", "--text folder"]);
    refused(&[], &["nice", "cat", "a"], &["--uses cat", "--text cat"]);
    refused(&["-i", "folder"], &["ls"], &["--tree "]);
    refused(&["-i", "a=b", "-i", "b"], &["ls"], &["-i SOURCE=NAME"]);
    refused(&["-i", "a=../b"], &["ls"], &["-i SOURCE=NAME"]);
    refused(&["--compare", "c"], &["ls"], &["-o c"]);
    refused(&["-o", "c", "-o", "c"], &["ls"], &["named twice"]);
    refused(&["--uses", "."], &["ls"], &["the store lies in it"]);
    refused(&["-o", "../c"], &["ls"], &["without `..`"]);
    refused(&["--require", "c.log:x"], &["ls"], &["-o c.log"]);
    refused(
        &["--get", "energy"],
        &["ls"],
        &["--get energy: write NAME=REGEX"],
    );
    refused(&["--pass", "A=b"], &["ls"], &["--env NAME=VALUE does"]);
    refused(
        &["--scratch", "none"],
        &["cat", "a"],
        &["--scratch names another"],
    );
    assert_eq!(
        desk.exec(&["--text", "folder"], &["echo", "folder"]).well(),
        "folder\n"
    );
}

#[test]
fn a_refusal_fits_the_terminal() {
    let desk = Desk::new();
    let mut command = desk.command(["exec", "cat", "/etc/passwd"]);
    let done = Done::of(command.env("COLUMNS", "80").output().unwrap());
    let lines: Vec<&str> = done.err.lines().collect();
    assert!(
        lines.len() > 1 && lines.iter().all(|line| line.len() <= 80),
        "{lines:#?}"
    );
}

#[test]
fn the_help_fits_a_screen() {
    let help = sde_wide(80, ["exec", "--help"]).well();
    let lines: Vec<&str> = help.lines().collect();
    assert!((24..=62).contains(&lines.len()), "{help}");
    assert!(
        lines.iter().all(|line| line.chars().count() <= 80),
        "{help}"
    );
    assert_eq!(help.matches("\n  sde exec ").count(), 4, "{help}");
    for heading in [
        "What it is given:",
        "What it gives:",
        "When it is a success:",
        "Where and how it runs:",
    ] {
        says(&help, heading);
    }
    // An option and what it is for stand on one line.
    let options = lines
        .iter()
        .filter(|line| line.trim_start().starts_with('-'));
    assert!(
        options.clone().all(|line| line.trim().contains("  ")),
        "{help}"
    );
    assert_eq!(options.count(), 33, "{help}");
    assert_eq!(sde_wide(80, ["exec", "-h"]).well(), help);
}
