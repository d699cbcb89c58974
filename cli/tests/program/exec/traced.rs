//! `--trace`: what a program read and nobody declared.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::Command;

use super::super::kit::says;
use super::looks::key_of_command;
use super::{Desk, Done, is_there};

/// A desk with files outside of it, or nothing where no process may be traced.
fn desk(test: &str) -> Option<(Desk, PathBuf)> {
    let tried = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "true"])
        .output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        println!("skipped {test}: no strace, or no process may be traced here");
        return None;
    }
    let desk = Desk::new();
    let outside = desk
        .path
        .parent()
        .unwrap()
        .canonicalize()
        .unwrap()
        .join("outside");
    std::fs::create_dir_all(outside.join("folder")).unwrap();
    std::fs::write(outside.join("data"), "data\n").unwrap();
    Some((desk, outside))
}

/// What is told of uses: each line without the flags that would declare it.
fn told(done: &Done) -> Vec<String> {
    let lines = done
        .err
        .lines()
        .filter(|line| line.contains(" and not declared: "));
    let line = |line: &str| {
        let line = line.splitn(3, ": ").nth(2).unwrap();
        line.rsplit_once(" (").unwrap().0.to_owned()
    };
    lines.map(line).collect()
}

#[test]
fn each_use_is_named_and_shown() {
    let Some((desk, outside)) = desk("each_use_is_named_and_shown") else {
        return;
    };
    let at = |name: &str| outside.join(name).display().to_string();
    let odd = OsStr::from_bytes(b"q\"uo'te\nline\\x41 <b>\xff, \"c");
    std::fs::write(outside.join(odd), "").unwrap();
    std::fs::write(outside.join("tool"), "#!/bin/sh\necho tool\n").unwrap();
    Command::new("chmod")
        .arg("+x")
        .arg(outside.join("tool"))
        .status()
        .unwrap();
    desk.write("in", "in\n");
    let lines = format!(
        "read x < in; echo made > own; read x < own; (cd {0}; (read x < data; read x < absent))
        ln -s {0} link; for file in link/q*; do read x < \"$file\"; done; [ -e link/folder/none ]
        {0}/tool; exec 3< gone; rm gone; read x < /proc/self/fd/3; echo done",
        outside.display()
    );
    desk.script("reads.sh", &format!("echo gone > gone\n{lines}"));
    let options = ["--trace", "-i", "in", "--uses", "ln", "--uses", "rm"];
    let done = desk.exec_script(&options, "reads.sh");
    done.ends(0);
    assert_eq!(done.out, "tool\ndone\n");
    let read = format!(
        "{}, {}",
        at("data"),
        at("q\"uo'te\\nline\\x41 <b>\u{fffd}, \"c")
    );
    let missed = format!("{}, {}", at("absent"), at("folder/none"));
    let listed = outside.display().to_string();
    let expected = [
        format!("started and not declared: {}", at("tool")),
        format!("read and not declared: {read}"),
        format!("listed and not declared: {listed}"),
        format!("looked for, not there and not declared: {missed}"),
    ];
    assert_eq!(told(&done), expected);
    // A remembered run tells what its trace found.
    let again = desk.exec_script(&options, "reads.sh");
    assert_eq!((told(&again), desk.runs()), (expected.to_vec(), 1));
    assert_eq!(again.out, done.out);
    let shown = desk
        .sde(&["show", &key_of_command(&desk, &desk.counter)])
        .well();
    says(&shown, "it read what nobody declared");
    says(&shown, &at("folder/none"));
}

/// Nothing that a strict call gives could change without a change of its key.
#[test]
fn strict_remembers_only_what_is_clean() {
    let Some((desk, outside)) = desk("strict_remembers_only_what_is_clean") else {
        return;
    };
    let data = outside.join("data").display().to_string();
    desk.script(
        "reads.sh",
        &format!("read x < {data}; echo $x > out; echo read $x"),
    );
    let run = |options: &[&str], status: i32, runs: usize| {
        let done = desk.exec_script(&[&["-o", "out"], options].concat(), "reads.sh");
        done.ends(status);
        assert_eq!(
            (&*done.out, desk.runs()),
            ("read data\n", runs),
            "{}",
            done.err
        );
        assert_eq!(desk.read("out"), "data\n");
        std::fs::remove_file(desk.path("out")).unwrap();
        done.err
    };
    for runs in [1, 2] {
        let err = run(&["--trace=strict"], 1, runs);
        says(&err, "is not remembered, since --trace=strict");
        says(
            &err,
            &format!("read and not declared: {data} (-i, --uses or --tree counts it)"),
        );
    }
    run(&[], 0, 3);
    run(&[], 0, 3);
    // Neither what was not traced is given, nor what was not clean.
    run(&["--trace=strict"], 1, 4);
    run(&["--trace"], 0, 5);
    run(&["--trace"], 0, 5);
    run(&["--trace=strict"], 1, 6);
    let mut why = desk.script_command(&["-o", "out", "--trace=strict", "--why"], "reads.sh");
    says(&Done::of(why.output().unwrap()).out, "would run again");
    // What was remembered before is still there.
    run(&["--trace"], 0, 6);
    let clean = ["--trace=strict", "--uses", &*data];
    assert_eq!(run(&clean, 0, 7), "");
    assert_eq!(run(&clean, 0, 7), "");
    run(&["--uses", &data], 0, 7);
    std::fs::write(&data, "data \n").unwrap();
    run(&clean, 0, 8);
    // A run that fails is told as one, with what it read.
    let failing = [&clean[..1], &["--require", "nothing of it"]].concat();
    let failed = desk.exec_script(&failing, "reads.sh");
    failed.ends(1);
    says(&failed.err, "nothing that it wrote matches");
    says(&failed.err, &data);
}

#[test]
fn what_is_not_there_counts_as_that() {
    let Some((desk, outside)) = desk("what_is_not_there_counts_as_that") else {
        return;
    };
    let absent = outside.join("absent").display().to_string();
    desk.script("looks.sh", &format!("[ -e {absent} ] || echo nothing"));
    let uses = format!("?{absent}");
    let run =
        |options: &[&str]| desk.exec_script(&[&["--trace=strict"], options].concat(), "looks.sh");
    run(&[]).ends(1);
    let optional = ["--uses", &*uses];
    assert_eq!(run(&optional).well(), "nothing\n");
    assert_eq!(
        (run(&optional).well(), desk.runs()),
        ("nothing\n".into(), 2)
    );
    std::fs::write(&absent, "").unwrap();
    assert_eq!((run(&optional).well(), desk.runs()), (String::new(), 3));
    std::fs::remove_file(&absent).unwrap();
    assert_eq!(
        (run(&optional).well(), desk.runs()),
        ("nothing\n".into(), 3)
    );
    // It came to be while the program ran.
    desk.script("makes.sh", &format!("echo > {absent}"));
    let made = desk.exec_script(&optional, "makes.sh");
    made.ends(125);
    says(&made.err, "came to be while the program ran");
}

#[test]
fn without_a_trace_nothing_is_clean() {
    let Some((desk, _)) = desk("without_a_trace_nothing_is_clean") else {
        return;
    };
    let none = "there is no strace in PATH";
    let refuses = "no process may be traced here, or strace is too old: ptrace: not permitted";
    // It kills who traces it.
    let kills =
        "while read key value; do [ $key != TracerPid: ] || kill -9 $value; done < /proc/$$/status";
    let lived = "processes lived on";
    let cases = [("none", none), ("refuses", refuses), ("kills", lived)];
    for (case, why) in cases {
        let bin = desk.path(&format!("bin-{case}"));
        std::fs::create_dir(&bin).unwrap();
        for program in ["env", "sh", "strace"] {
            let real = Command::new("sh")
                .args(["-c", &format!("command -v {program}")])
                .output();
            let real = String::from_utf8(real.unwrap().stdout).unwrap();
            if program != "strace" || case == "kills" {
                std::os::unix::fs::symlink(real.trim(), bin.join(program)).unwrap();
            }
        }
        if case == "refuses" {
            std::fs::write(
                bin.join("strace"),
                "#!/bin/sh\necho ptrace: not permitted >&2; exit 1\n",
            )
            .unwrap();
            Command::new("chmod")
                .arg("+x")
                .arg(bin.join("strace"))
                .status()
                .unwrap();
        }
        let lines = match case {
            "kills" => kills,
            _ => "",
        };
        let script = format!("{case}.sh");
        desk.script(&script, &format!("{lines}\necho ran"));
        let run = |options: &[&str]| {
            let options = [options, &["--grace", "50ms", "--text", "sleep"]].concat();
            let mut command = desk.script_command(&options, &script);
            Done::of(command.env("PATH", &bin).output().unwrap())
        };
        let before = desk.runs();
        for _ in 0..2 {
            let strict = run(&["--trace=strict"]);
            assert_eq!(
                (strict.status, &*strict.out),
                (1, "ran\n"),
                "{}",
                strict.err
            );
            says(&strict.err, &format!("not traced as a whole: {why}"));
        }
        assert_eq!(desk.runs(), before + 2);
        let warned = run(&["--trace"]);
        assert_eq!((warned.status, &*warned.out), (0, "ran\n"));
        says(&warned.err, why);
    }
}

/// strace is neither in the way of signals nor of time limits, and no process of it is left.
#[test]
fn a_traced_run_ends_as_any() {
    let Some((desk, _)) = desk("a_traced_run_ends_as_any") else {
        return;
    };
    desk.write("three.sh", "echo some; exit 3");
    desk.write("killed.sh", "kill -9 $$");
    desk.write("ends.sh", "trap 'echo told; exit 0' TERM; sleep 600 & wait");
    desk.write("deaf.sh", "trap '' TERM; sleep 600; sleep 600");
    desk.write("ints.sh", "kill -INT 0; sleep 600");
    desk.write("text.txt", "");
    let sleeps = ["--trace", "--uses", "sleep", "--grace", "100ms"];
    let run =
        |options: &[&str], script: &str| desk.exec(&[&sleeps, options].concat(), &["sh", script]);
    run(&[], "three.sh").ends(3);
    run(&["--ok-status", "3"], "three.sh").ends(3);
    run(&[], "killed.sh").ends(128 + 9);
    run(&[], "ints.sh").ends(128 + 2);
    let ended = run(&["--timeout", "300ms"], "ends.sh");
    ended.ends(124);
    says(&ended.out, "told");
    run(&["--timeout", "100ms"], "deaf.sh").ends(124);
    desk.exec(&["--trace"], &["./text.txt"]).ends(126);
    // What is left behind is named, without who traces it.
    desk.write("leaves.sh", "sleep 600 >/dev/null 2>&1 & echo left");
    let leaves = run(&[], "leaves.sh");
    assert_eq!((leaves.status, &*leaves.out), (0, "left\n"));
    says(
        &leaves.err,
        "left processes behind, which were ended: sleep (",
    );
    assert!(!leaves.err.contains("strace ("), "{}", leaves.err);
    let left = std::fs::read_dir(desk.scratch()).unwrap().count();
    assert_eq!(left, 0);
}

#[test]
fn many_processes_and_many_files_are_followed() {
    let Some((desk, outside)) = desk("many_processes_and_many_files_are_followed") else {
        return;
    };
    let lines = format!(
        "cd {}; n=0; while [ $n -lt 200 ]; do (cd folder; [ -e $n ]) & n=$((n+1)); done; wait
        n=0; while [ $n -lt 5000 ]; do read x < data; n=$((n+1)); done; echo done",
        outside.display()
    );
    desk.script("many.sh", &lines);
    let done = desk.exec_script(&["--trace"], "many.sh");
    assert_eq!((done.status, &*done.out), (0, "done\n"), "{}", done.err);
    assert!(!done.err.contains("not traced"), "{}", done.err);
    let folder = outside.join("folder").display().to_string();
    let told = told(&done);
    says(&told[0], &outside.join("data").display().to_string());
    let missed = told.last().unwrap();
    assert!(
        missed.contains(&format!("{folder}/0, {folder}/1, ")) && missed.ends_with(" and 192 more"),
        "{missed}"
    );
}

/// The map of a file is made after it was opened, and a program without libraries makes the same calls.
#[test]
fn a_program_of_its_own_is_followed() {
    let test = "a_program_of_its_own_is_followed";
    let Some((desk, outside)) = desk(test) else {
        return;
    };
    if !is_there("cc") {
        return println!("skipped {test}: no cc");
    }
    let code = "#include <fcntl.h>\n#include <stdio.h>\n#include <sys/mman.h>\n#include <unistd.h>\n\
        int main(int n, char **v) { (void)n; chdir(v[1]); int d = open(\"folder\", O_RDONLY | O_DIRECTORY);\n\
        int f = openat(d, \"../data\", O_RDONLY); char *m = mmap(0, 5, PROT_READ, MAP_PRIVATE, f, 0);\n\
        unlink(\"data\"); putchar(m[0]); return 0; }\n";
    desk.write("maps.c", code);
    for (flag, name) in [("-O0", "maps"), ("-static", "static")] {
        std::fs::write(outside.join("data"), "x\n").unwrap();
        let line = ["-w", flag, "-o", name, "maps.c"];
        let built = Command::new("cc")
            .args(line)
            .current_dir(&desk.path)
            .status()
            .unwrap();
        assert!(built.success());
        let place = outside.display().to_string();
        let program = format!("./{name}");
        let done = desk.exec(&["--trace", "--text", &place], &[&program, &place]);
        assert_eq!(
            (&*done.out, told(&done)),
            ("x", Vec::new()),
            "what --text names is free: {}",
            done.err
        );
        std::fs::write(outside.join("data"), "x\n").unwrap();
        desk.write("place", &place);
        desk.script(
            "runs.sh",
            &format!("read place < place; exec ./{name} $place"),
        );
        let done = desk.exec_script(&["--trace=strict", "-i", "place", "-i", name], "runs.sh");
        assert_eq!((&*done.out, done.status), ("x", 1), "{}", done.err);
        says(&told(&done)[0], &outside.join("data").display().to_string());
    }
}
