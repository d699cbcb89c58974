//! What a run writes, and what is put back.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use sde_engine::key::commit;
use sde_engine::{InputFile, OutputFile};

use crate::kit::{Lab, text};

#[test]
fn outputs_are_put_where_they_are_wanted_with_their_modes() {
    let lab = Lab::new();
    let script = lab.script("job", "mkdir -p out/deep; echo 1 > out/deep/a; echo 2 > b.log; chmod 755 b.log; echo 3 > c; echo 4 > in");
    lab.write("in", "");
    let command = lab
        .command(&script)
        .arg("in")
        .output("out")
        .output("*.log")
        .output("?none");
    let ran = lab.run(&command);
    assert_eq!(ran.outputs().collect::<Vec<_>>(), ["b.log", "out/deep/a"]);
    assert_eq!(ran.undeclared(), ["c", "in (an input)"]);
    for folder in ["one", "two"] {
        lab.run(&command).put_all(lab.path(folder)).unwrap();
        let file = lab.path(folder).join("b.log");
        assert_eq!(fs::read_to_string(&file).unwrap(), "2\n");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(
            fs::read_to_string(lab.path(folder).join("out/deep/a")).unwrap(),
            "1\n"
        );
    }
    assert_eq!(lab.runs(), 1);
    assert_eq!(text(ran.read("b.log")), "2\n");
    assert!(
        ran.read("c")
            .unwrap_err()
            .to_string()
            .contains("b.log, out/deep/a")
    );
}

#[test]
fn a_file_that_is_there_already_is_left_alone() {
    let lab = Lab::new();
    let script = lab.script("job", "echo 1 > a");
    let command = lab.command(&script).output("a");
    let place = lab.path("place");
    lab.run(&command).put_all(&place).unwrap();
    let before = place.join("a").metadata().unwrap().ino();
    lab.run(&command).put_all(&place).unwrap();
    assert_eq!(place.join("a").metadata().unwrap().ino(), before);
    fs::write(place.join("a"), "edited").unwrap();
    lab.run(&command).put_all(&place).unwrap();
    assert_eq!(fs::read_to_string(place.join("a")).unwrap(), "1\n");
}

/// Nothing is half put back.
#[test]
fn where_one_output_cannot_be_put_none_is() {
    let lab = Lab::new();
    let script = lab.script("job", "echo 1 > a; echo 2 > b");
    let command = lab.command(&script).output("a").output("b");
    let place = lab.path("place");
    fs::create_dir_all(&place).unwrap();
    symlink("/dev/null", place.join("b")).unwrap();
    let error = lab.run(&command).put_all(&place).unwrap_err();
    assert!(error.to_string().contains("no regular file"), "{error}");
    assert!(!place.join("a").exists());
    assert_eq!(fs::read_dir(&place).unwrap().count(), 1);
}

/// Put back, it would be another input of the next call.
#[test]
fn an_input_is_an_output_only_by_its_own_name() {
    let lab = Lab::new();
    let script = lab.script("job", "echo more >> a.xyz; cp a.xyz b.xyz");
    lab.write("a.xyz", "1\n");
    let command = lab.command(&script).input_file("a.xyz");
    let ran = lab.run(&command.clone().output("*.xyz"));
    assert_eq!(ran.outputs().collect::<Vec<_>>(), ["b.xyz"]);
    let ran = lab.run(&command.output("a.xyz"));
    assert_eq!(text(ran.read("a.xyz")), "1\nmore\n");
    assert_eq!(fs::read_to_string(lab.path("a.xyz")).unwrap(), "1\n");
}

#[test]
fn the_run_sees_its_inputs_and_nothing_else() {
    let lab = Lab::new();
    lab.write("data/a", "1");
    lab.write("data/b", "2");
    lab.write("run.sh", "#!/bin/sh\necho hidden");
    let script = lab.script("job", "find . | sort; cat");
    let ran = lab.run(
        &lab.command(&script)
            .arg("data/a")
            .input("x", "data/b")
            .stdin_bytes("end"),
    );
    assert_eq!(text(ran.stdout()), ".\n./data\n./data/a\n./x\nend");
}

#[test]
fn an_output_that_is_no_file_is_told_and_missing() {
    let lab = Lab::new();
    let script = lab.script("job", "mkfifo pipe");
    let error = lab.error(&lab.command(&script).output("pipe"));
    assert!(
        error.contains("not kept: pipe (no regular file)"),
        "{error}"
    );
    // Nobody asked for it.
    lab.run(&lab.command(&script));
}

/// What a program wrote never loses the run.
#[test]
fn all_that_can_be_kept_is_kept() {
    let lab = Lab::new();
    let script = lab.script(
        "job",
        "mkdir d; echo 1 > d/a; ln -s a d/b; ln -s nowhere d/c; ln -s . d/e; mkfifo d/f; echo 2 > d/$(printf 'x\\377')",
    );
    let ran = lab.run(&lab.command(&script).output("d"));
    assert_eq!(ran.outputs().collect::<Vec<_>>(), ["d/a", "d/b"]);
    assert_eq!(text(ran.read("d/b")), "1\n");
    let unkept = ran.unkept().join(" ");
    for part in ["d/c (", "d/e (", "d/f (", "its name is no text"] {
        assert!(unkept.contains(part), "{unkept}");
    }
}

/// A kill while outputs are put leaves a folder, which the next call takes away.
#[test]
fn what_a_kill_leaves_beside_outputs_is_removed() {
    let lab = Lab::new();
    let script = lab.script("job", "echo 1 > a");
    let ran = lab.run(&lab.command(&script).output("a"));
    let place = lab.path("place");
    let left = place.join("sde-run-killed");
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join("0"), "half").unwrap();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    fs::write(left.join("lock"), host).unwrap();
    ran.put_all(&place).unwrap();
    assert_eq!(fs::read_dir(&place).unwrap().count(), 1);
}

/// An output of one command as the input of an app: it counts by content, in another process too.
#[test]
fn an_output_is_an_input_by_its_content() {
    let key = |lines: usize| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        fs::write(&path, "line\n".repeat(lines)).unwrap();
        let held = OutputFile::without_place(&path, dir).unwrap();
        let bytes = serde_json::to_vec(&held).unwrap();
        let sent: OutputFile = serde_json::from_slice(&bytes).unwrap();
        let here = commit(&InputFile::new(&path)).unwrap();
        assert_eq!(
            [commit(&held).unwrap(), commit(&sent).unwrap()],
            [here.clone(), here.clone()]
        );
        here
    };
    assert_ne!(key(1), key(2));
}

#[test]
fn two_outputs_have_two_places() {
    let lab = Lab::new();
    let script = lab.script("job", "echo 1 > a; mkdir d; echo 2 > d/b");
    let ran = lab.run(&lab.command(&script).output("./a").output("d//b"));
    assert_eq!(ran.outputs().collect::<Vec<_>>(), ["a", "d/b"]);
    let place = lab.path("place");
    for places in [["x", "x"], ["x", "x/y"]] {
        let put = ran.put_each(|name| place.join(places[usize::from(name == "a")]));
        assert!(put.unwrap_err().to_string().contains("two outputs"));
    }
    assert!(!place.exists());
}

#[test]
fn what_is_written_into_a_tree_is_told_or_kept() {
    let lab = Lab::new();
    let script = lab.script("job", "echo 2 >> tree/old; echo 1 > tree/new");
    lab.write("tree/old", "1");
    lab.write("tree/same", "1");
    let command = || lab.command(&script).tree("tree");
    assert_eq!(
        lab.run(&command()).undeclared(),
        ["tree/new", "tree/old (an input)"]
    );
    let ran = lab.run(&command().output("*/new"));
    assert_eq!(ran.outputs().collect::<Vec<_>>(), ["tree/new"]);
}
