//! What a run writes is put where it belongs.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::super::kit::{files, says};
use super::Desk;

const WRITES: &str = "mkdir -p sub; echo one > one.txt; echo two > sub/two; echo three > sub/three
chmod 755 one.txt; chmod 600 sub/two";

fn mode(desk: &Desk, name: &str) -> u32 {
    let about = fs::metadata(desk.path(name)).unwrap();
    about.permissions().mode() & 0o777
}

#[test]
fn outputs_are_put_back_with_their_modes() {
    let desk = Desk::new();
    desk.script("writes.sh", WRITES);
    for runs in 0..2 {
        let options = ["-o", "one.txt", "-o", "sub", "-o", "?none"];
        desk.exec_script(&options, "writes.sh").well();
        assert_eq!(desk.read("one.txt"), "one\n", "{runs}");
        assert_eq!(desk.read("sub/three"), "three\n");
        assert_eq!(
            (mode(&desk, "one.txt"), mode(&desk, "sub/two")),
            (0o755, 0o600)
        );
        assert!(!desk.path("none").exists());
        fs::remove_file(desk.path("one.txt")).unwrap();
        fs::remove_dir_all(desk.path("sub")).unwrap();
    }
    assert_eq!(desk.runs(), 1);
}

#[test]
fn outputs_are_put_at_other_places() {
    let desk = Desk::new();
    desk.script("writes.sh", WRITES);
    let elsewhere = desk.scratch().join("deep/one");
    let one = format!("one.txt={}", elsewhere.display());
    for _ in 0..2 {
        desk.exec_script(&["-o", &one, "-o", "sub/=other"], "writes.sh")
            .well();
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "one\n");
        assert_eq!(desk.read("other/two"), "two\n");
        assert!(!desk.path("one.txt").exists() && !desk.path("sub").exists());
        fs::remove_dir_all(desk.path("other")).unwrap();
    }
    assert_eq!(desk.runs(), 1);
    let done = desk.exec_script(&["-o", "*.txt=one"], "writes.sh");
    done.ends(125);
    says(&done.err, "leave `=one` out");
}

#[test]
fn all_outputs_are_put_or_none() {
    let desk = Desk::new();
    desk.script("writes.sh", WRITES);
    // Sorted, it is the last.
    fs::create_dir_all(desk.path("sub/two")).unwrap();
    let options = ["-o", "one.txt", "-o", "sub"];
    let done = desk.exec_script(&options, "writes.sh");
    done.ends(125);
    says(&done.err, "sub/two is no regular file");
    let names = |folder: &str| fs::read_dir(desk.path(folder)).unwrap().count();
    // The store, the script, and what was there.
    assert_eq!((names("."), names("sub")), (3, 1));
    // It was kept all the same.
    fs::remove_dir(desk.path("sub/two")).unwrap();
    desk.exec_script(&options, "writes.sh").well();
    assert_eq!((desk.read("sub/two"), desk.runs()), ("two\n".to_owned(), 1));
}

#[test]
fn a_run_that_fails_puts_nothing() {
    let desk = Desk::new();
    desk.script("fails.sh", "echo one > one.txt; exit 3");
    for _ in 0..2 {
        desk.exec_script(&["-o", "one.txt"], "fails.sh").ends(3);
        assert!(!desk.path("one.txt").exists());
    }
    desk.exec_script(&["-o", "one.txt", "--ok-status", "3"], "fails.sh")
        .ends(3);
    assert_eq!(desk.read("one.txt"), "one\n");
    let done = desk.exec_script(&["-o", "another.txt", "--ok-status", "3"], "fails.sh");
    done.ends(3);
    says(&done.err, "it wrote no output \"another.txt\"");
}

#[test]
fn an_output_that_can_not_be_kept_is_told() {
    let desk = Desk::new();
    desk.script("pipe.sh", "echo one > one.txt; mkfifo pipe");
    let options = ["-o", "one.txt", "-o", "?pipe", "--uses", "mkfifo"];
    let done = desk.exec_script(&options, "pipe.sh");
    done.ends(0);
    says(&done.err, "sde: pipe.sh: outputs are not kept: pipe (");
    assert_eq!(desk.read("one.txt"), "one\n");
}

#[test]
fn what_nobody_declared_is_named_once() {
    let desk = Desk::new();
    desk.script("writes.sh", WRITES);
    let done = desk.exec_script(&["-o", "sub/two", "-s", "s.sde"], "writes.sh");
    done.ends(0);
    let told = "sde: sh wrote one.txt, sub/three, which nobody declared: -o one.txt keeps it\n";
    assert_eq!(done.err.replace("writes.sh wrote", "sh wrote"), told);
    desk.exec_script(&["-o", "sub/two", "-s", "s.sde"], "writes.sh")
        .well();
    assert_eq!(desk.runs(), 1);
}

/// Changes one byte of a text wherever files of the store have it; says in how many.
fn damage(desk: &Desk, text: &str) -> usize {
    let has = |bytes: &[u8]| {
        bytes
            .windows(text.len())
            .position(|at| at == text.as_bytes())
    };
    let mut damaged = 0;
    for file in files(&desk.path("commands.sde")) {
        let mut bytes = fs::read(&file).unwrap();
        if let Some(at) = has(&bytes) {
            bytes[at] ^= 1;
            fs::write(&file, bytes).unwrap();
            damaged += 1;
        }
    }
    damaged
}

#[test]
fn what_is_damaged_in_the_store_is_written_again_once() {
    let desk = Desk::new();
    desk.script("writes.sh", "echo output-text > one.txt; echo printed-text");
    let exec = || desk.exec_script(&["-o", "one.txt"], "writes.sh");
    assert_eq!(exec().well(), "printed-text\n");
    for (text, runs) in [("output-text", 2), ("printed-text", 3)] {
        assert_eq!(damage(&desk, text), 1, "{text}");
        fs::remove_file(desk.path("one.txt")).unwrap();
        let done = exec();
        done.ends(0);
        says(&done.err, "the content of an output file of ");
        assert_eq!(
            (&*done.out, desk.read("one.txt"), desk.runs()),
            ("printed-text\n", "output-text\n".to_owned(), runs)
        );
        // What was damaged has been replaced.
        fs::remove_file(desk.path("one.txt")).unwrap();
        assert_eq!(exec().well(), "printed-text\n");
        assert_eq!(
            (desk.read("one.txt"), desk.runs()),
            ("output-text\n".to_owned(), runs)
        );
    }
}
