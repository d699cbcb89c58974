//! Files of a store that the user may not read.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use super::kit::{Done, Sample, done, install, program, says};

/// A user who is not root, to whom modes mean nothing.
const NOBODY: u32 = 65_534;

/// The program, run by somebody who may not read a file of mode 0.
fn unprivileged(folder: &Path) -> Command {
    let is_root = fs::metadata(folder).unwrap().uid() == 0;
    if !is_root {
        return program();
    }
    // The folder of the build may be closed to others.
    let copy = folder.join("sde");
    install(program().get_program(), &copy);
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(copy);
    command.uid(NOBODY).gid(NOBODY).env_remove("COLUMNS");
    command
}

fn give_away(path: &Path) {
    if fs::metadata(path).unwrap().uid() == 0 {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            give_away(&entry.unwrap().path());
        }
    }
}

/// The commands waited for somebody to write into the pipe.
#[test]
fn a_pipe_with_the_name_of_a_segment_is_passed_over() {
    let sample = Sample::new();
    let pipe = sample.path.join("entries/pipe.sde");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let (path, key) = (sample.path.to_str().unwrap(), sample.keys.small.to_string());
    for words in [
        &["ls", path][..],
        &["verify", path],
        &["stats", path],
        &["show", path, &key],
        &["diff", path, path],
        &["invalidate", path, &key],
    ] {
        let mut command = Command::new("timeout");
        command.arg("60").arg(program().get_program()).args(words);
        let ended = done(command.output().unwrap());
        // `timeout` gives this status to what it had to kill.
        assert_ne!(ended.status, 124, "{words:?}");
    }
}

/// It was called damaged.
#[test]
fn what_may_not_be_read_is_told_from_damage() {
    for kind in ["entries", "manifests"] {
        let sample = Sample::new();
        give_away(&sample.path);
        let files = sample.files();
        let is_of_kind = |file: &&std::path::PathBuf| file.to_str().unwrap().contains(kind);
        let file = files.iter().find(is_of_kind).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o000)).unwrap();
        let name = file.strip_prefix(&sample.path).unwrap().to_str().unwrap();
        let run = |arguments: &[&str]| -> Done {
            let mut command = unprivileged(sample.path.parent().unwrap());
            let (first, more) = arguments.split_first().unwrap();
            command.args(sample.line(first, more));
            done(command.output().unwrap())
        };
        let verify = run(&["verify"]);
        assert_eq!(verify.status, 1, "{}{}", verify.out, verify.err);
        let owner = fs::metadata(file).unwrap().uid();
        says(
            &verify.out,
            &format!("may not be read: {name} of user {owner}, mode 0000, so it is not verified"),
        );
        let mend = format!("chmod ug+r {:?}", file.display().to_string());
        says(&verify.out, &mend);
        says(&verify.out, "nothing damaged, 1 that may not be read: ");
        let object = run(&["verify", "--json"]).json();
        assert_eq!(object["damaged"].as_array().unwrap().len(), 0, "{object}");
        assert_eq!(object["unreadable"][0]["file"], name);
        assert_eq!(object["unreadable"][0]["owner"], owner);
        assert_eq!(object["whole"], false);
        // The others say so too, and give what they can read.
        let listed = run(&["ls"]);
        assert_eq!(listed.status, 1, "{}", listed.err);
        says(
            &listed.err,
            &format!("as this user may not read it: {name};"),
        );
        assert!(!listed.err.contains("damaged"), "{}", listed.err);
        // What is damaged beside it is found.
        let other = files
            .iter()
            .find(|other| other.to_str().unwrap().contains("scratch"))
            .unwrap();
        let mut bytes = fs::read(other).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(other, bytes).unwrap();
        let verify = run(&["verify"]);
        assert_eq!(verify.status, 1);
        says(&verify.out, "1 damaged, 1 that may not be read: ");
    }
}
