//! Stores that users share, and whose code is run.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::kit::{Done, Sample, done, files, program, says};

const GROUP: u32 = 64_100;
const ANNA: u32 = 64_001;
const BERT: u32 = 64_002;

/// A folder that all can enter, with the program; `None`, and a line that says so, if this user can't be another.
fn place(test: &str) -> Option<(tempfile::TempDir, PathBuf)> {
    let dir = tempfile::tempdir().unwrap();
    if dir.path().metadata().unwrap().uid() != 0 {
        println!("skipped {test}: only the administrator can be several users");
        return None;
    }
    mode(dir.path(), 0o1777);
    let copy = dir.path().join("sde");
    fs::copy(program().get_program(), &copy).unwrap();
    mode(&copy, 0o755);
    Some((dir, copy))
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// The program, run by a user who is in the group, under the least generous umask.
fn by(user: u32, program: &Path, arguments: &[&str]) -> Done {
    let mut command = Command::new("sh");
    let line = "umask 077; exec setpriv --reuid $USER --regid $USER --groups $GROUP -- \"$@\"";
    command
        .args(["-c", line, "sh"])
        .arg(program)
        .args(arguments);
    let home = program.parent().unwrap();
    command.env("GROUP", GROUP.to_string());
    command.env("USER", user.to_string());
    command.env("XDG_CONFIG_HOME", home.join(user.to_string()));
    done(command.output().unwrap())
}

#[test]
fn a_store_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a/store");
    for _ in 0..2 {
        let told = super::kit::sde(["init", path.to_str().unwrap()]).well();
        says(&told, "is a store");
    }
    assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o700);
    fs::write(dir.path().join("thesis.tex"), "a year of work").unwrap();
    let refused = super::kit::sde(["init", "--group", dir.path().to_str().unwrap()]);
    assert_eq!(refused.status, 2);
    says(&refused.err, "it has other things in it");
}

/// The commands of a member, and of one whose files are still closed to the group.
#[test]
fn a_store_is_shared_with_a_group() {
    let Some((dir, sde)) = place("a_store_is_shared_with_a_group") else {
        return;
    };
    let store = dir.path().join("store");
    let path = store.to_str().unwrap();
    let other = by(ANNA, &sde, &["init", "--group=0", path]);
    assert_eq!(other.status, 2);
    says(
        &other.err,
        &format!("you are in {ANNA}, {GROUP}: --group=NAME"),
    );
    let group = format!("--group={GROUP}");
    let nowhere = by(ANNA, &sde, &["init", &group, &format!("{path}/a/b")]);
    assert_eq!(nowhere.status, 2);
    says(&nowhere.err, "make it, open to the group");
    mode(dir.path(), 0o1770);
    let closed = super::kit::sde(["init", &group, path]);
    assert_eq!(closed.status, 1, "{}", closed.err);
    says(
        &closed.out,
        &format!("they may not enter {}", dir.path().display()),
    );
    fs::remove_dir_all(&store).unwrap();
    mode(dir.path(), 0o1777);
    let told = by(ANNA, &sde, &["init", &group, path]).well();
    says(&told, &format!("is shared with the group {GROUP}"));
    assert_eq!(store.metadata().unwrap().mode() & 0o7777, 0o2770);
    for user in [ANNA, BERT] {
        let ran = by(
            user,
            &sde,
            &["exec", "-s", path, "--", "/bin/echo", "a result"],
        );
        assert_eq!(ran.out, "a result\n", "{}", ran.err);
    }
    let listed = by(BERT, &sde, &["--json", "ls", path]).well();
    assert_eq!(listed.lines().count(), 1, "{listed}");
    let key = serde_json::from_str::<serde_json::Value>(&listed).unwrap();
    let key = key["key"].as_str().unwrap().to_owned();
    let shown = by(BERT, &sde, &["show", path, &key]).well();
    says(&shown, &format!("by          {ANNA}\n"));
    for command in ["verify", "gc", "stop"] {
        by(BERT, &sde, &[command, path]).well();
    }

    // As a copy by hand would leave it.
    let segments = files(&store.join("entries")).into_iter();
    let of_anna = |path: &PathBuf| path.metadata().unwrap().uid() == ANNA;
    let closed = segments
        .filter(of_anna)
        .map(|path| mode(&path, 0o600))
        .count();
    assert_eq!(closed, 1);
    let told = by(BERT, &sde, &["init", "--group", path]);
    assert_eq!(told.status, 1, "{}", told.err);
    says(
        &told.out,
        &format!("1 file or folder is still closed to it: {ANNA} has to run"),
    );
    by(ANNA, &sde, &["init", "--group", path]).well();
    let again = by(BERT, &sde, &["init", "--group", path]).well();
    says(&again, "0 files and folders changed");

    // It may be a private file, to which another member has given this name.
    let segment = files(&store.join("entries")).remove(0);
    mode(&segment, 0o600);
    let other = dir.path().join("other name");
    fs::hard_link(&segment, &other).unwrap();
    let closed = super::kit::sde(["init", &group, path]);
    assert_eq!(closed.status, 1, "{}", closed.err);
    says(
        &closed.out.replace("\n  ", " "),
        &format!(
            "{} is still closed to it: copy it, it has another name",
            segment.display()
        ),
    );
    fs::remove_file(&other).unwrap();
    super::kit::sde(["init", &group, path]).well();
}

#[test]
fn who_is_trusted_is_in_the_users_own_file() {
    let dir = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let mut command = program();
        command.env("XDG_CONFIG_HOME", dir.path()).arg("trust");
        done(command.args(arguments).output().unwrap())
    };
    says(&run(&[]).well(), "only what you have saved yourself");
    assert_eq!(run(&["64001", "64002"]).well(), "64001\n64002\n");
    says(&run(&["root"]).well(), "root (0)\n");
    assert_eq!(run(&["--remove", "0", "64001"]).well(), "64002\n");
    let list = dir.path().join("sde/trusted");
    assert_eq!(list.metadata().unwrap().mode() & 0o777, 0o600);
    let nobody = run(&["no such user"]);
    assert_eq!(nobody.status, 2);
    says(&nobody.err, "no user is called");
    mode(&list, 0o666);
    let refused = run(&["64003"]);
    assert_eq!(refused.status, 2);
    says(&refused.err, "others can change it");
    assert_eq!(fs::read_to_string(&list).unwrap(), "64002\n");
}

#[test]
fn who_has_saved_an_entry_is_shown() {
    let sample = Sample::new();
    let owner = sample.files()[0].metadata().unwrap().uid();
    let key = sample.keys.small.to_string();
    let shown = sample.run("show", &["--json", &key]).json();
    assert_eq!(shown["by"], owner);
    if owner == 0 {
        let segment = |path: &&PathBuf| path.extension().is_some_and(|end| end == "sde");
        for path in sample.files().iter().filter(segment) {
            chown(path, Some(ANNA), None).unwrap();
        }
        let shown = sample.run("show", &["--json", &key]).json();
        assert_eq!(shown["by"], ANNA);
    }
}
