//! Stores that users share, and whose code is run.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::exec::until;
use super::kit::{Done, Sample, done, files, install, program, says};

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
    install(program().get_program(), &copy);
    Some((dir, copy))
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// The program, run by a user who is in the group, under the least generous umask.
fn by(user: u32, program: &Path, arguments: &[&str]) -> Done {
    let groups = format!("--groups={GROUP}");
    let mut command = command(&user.to_string(), &groups, "077", program);
    done(command.args(arguments).output().unwrap())
}

fn command(user: &str, groups: &str, umask: &str, program: &Path) -> Command {
    let mut command = Command::new("sh");
    let line = "umask $1; shift; exec setpriv \"$@\"";
    command
        .args(["-c", line, "sh", umask, "--reuid", user, "--regid", user])
        .args([groups, "--"])
        .arg(program);
    let home = program.parent().unwrap();
    command.env("USER", user);
    command.env("XDG_CONFIG_HOME", home.join(user));
    command
}

/// Accounts that `./test` makes where it can: two of the group `sdetest`, and one that is not in it.
const ACCOUNTS: [&str; 3] = ["sdetest1", "sdetest2", "sdetest3"];

/// Such a folder, where these accounts are.
fn place_of_accounts(test: &str) -> Option<(tempfile::TempDir, PathBuf)> {
    let found = Command::new("getent").arg("passwd").args(ACCOUNTS).output();
    if !found.is_ok_and(|found| found.status.success()) {
        println!(
            "skipped {test}: no accounts {ACCOUNTS:?}; ./test makes them for the administrator, by useradd"
        );
        return None;
    }
    place(test)
}

/// One writes, one only reads, one is not in the group.
#[test]
fn a_store_is_shared_by_accounts_under_any_umask() {
    let Some((dir, sde)) = place_of_accounts("a_store_is_shared_by_accounts_under_any_umask")
    else {
        return;
    };
    let store = dir.path().join("store");
    let path = store.to_str().unwrap();
    let [one, two, stranger] = ACCOUNTS;
    for umask in ["002", "022", "077"] {
        let run = |user, arguments: &[&str]| {
            let mut command = command(user, "--init-groups", umask, &sde);
            done(command.args(arguments).output().unwrap())
        };
        let told = run(one, &["init", "--group=sdetest", path]).well();
        says(&told, "is shared with the group sdetest (");
        // A second run would tell another number.
        let exec = ["exec", "-s", path, "--", "sh", "-c", "echo $$"];
        let ran = run(one, &exec);
        assert_eq!(ran.status, 0, "{umask}: {}", ran.err);
        let listed = run(two, &["ls", "--json", path]).well();
        let key = serde_json::from_str::<serde_json::Value>(&listed).unwrap();
        let key = key["key"].as_str().unwrap();
        let shown = run(two, &["show", path, key]).well();
        let number = store.metadata().unwrap().uid();
        says(&shown, &format!("by          {one} ({number})\n"));
        let table = run(two, &["table", "--csv", path]).well();
        assert_eq!(table.lines().count(), 2, "{umask}: {table}");
        run(two, &["verify", path]).well();
        let found = run(two, &exec);
        assert_eq!(found.out, ran.out, "{umask}: {}", found.err);
        for line in [&["ls", path][..], &["verify", path], &exec] {
            let refused = run(stranger, line);
            let status = if line == exec { 125 } else { 2 };
            assert_eq!((refused.status, &*refused.out), (status, ""), "{umask}");
            says(&refused.err, "ermission denied");
        }
        for path in files(&store) {
            let found = path.metadata().unwrap();
            assert_eq!(found.mode() & 0o7777, 0o640, "{umask}: {path:?}");
        }
        fs::remove_dir_all(&store).unwrap();
    }
}

/// A member sees what another is at, and tells it to stop.
#[test]
fn a_member_watches_another() {
    let Some((dir, sde)) = place("a_member_watches_another") else {
        return;
    };
    let store = dir.path().join("store");
    let path = store.to_str().unwrap();
    by(ANNA, &sde, &["init", &format!("--group={GROUP}"), path]).well();
    let [begun, gate] = ["begun", "gate"].map(|name| dir.path().join(name));
    assert!(
        Command::new("mkfifo")
            .arg(&gate)
            .status()
            .unwrap()
            .success()
    );
    mode(&gate, 0o666);
    // Held open, so that nobody waits for an end that is gone.
    let mut open = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&gate)
        .unwrap();
    let groups = format!("--groups={GROUP}");
    let mut at_work = command(&ANNA.to_string(), &groups, "077", &sde);
    let line = format!(": > {}; head -n 1 < {}", begun.display(), gate.display());
    at_work.args(["exec", "-s", path, "--text", &line, "--", "sh", "-c", &line]);
    let at_work = at_work.stdout(Stdio::piped()).stderr(Stdio::piped());
    let at_work = at_work.spawn().unwrap();
    until("the command", || begun.exists());
    let watched = || by(BERT, &sde, &["watch", "--json", path]).well();
    until("it is seen", || watched().contains("\"app\":\"sh\""));
    let shown = by(BERT, &sde, &["watch", path]).well();
    says(&shown, " sh ");
    let work = store.join("work").metadata().unwrap();
    assert_eq!((work.mode() & 0o7777, work.gid()), (0o2770, GROUP));
    let told = by(BERT, &sde, &["stop", path]).well();
    says(&told, "1 program is told");
    open.write_all(b"well\n").unwrap();
    let ended = done(at_work.wait_with_output().unwrap());
    assert_eq!(ended.out, "well\n", "{}", ended.err);
    says(&by(BERT, &sde, &["watch", path]).well(), "nobody is seen");
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

    // A list closes what the mode opens.
    let segments = files(&store.join("entries")).into_iter();
    let listed = segments.filter(of_anna).all(|path| {
        let mut set = Command::new("setfacl");
        let set = set
            .args(["-m", &format!("u:{BERT}:---")])
            .arg(path)
            .status();
        set.is_ok_and(|set| set.success())
    });
    if listed {
        let told = by(BERT, &sde, &["init", "--group", path]);
        assert_eq!(told.status, 1, "{}", told.err);
        says(&told.out, &format!("still closed to it: {ANNA} has to run"));
        by(ANNA, &sde, &["init", "--group", path]).well();
        by(BERT, &sde, &["init", "--group", path]).well();
    }

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
