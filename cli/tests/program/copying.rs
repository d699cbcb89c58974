//! Stores that are copied to other machines and back: a script stands in for `ssh`, and has the line run here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sde::{Policy, inputs};
use tempfile::{TempDir, tempdir};

use super::kit::{Done, Keys, done, energy, engine, files, install, program, sample, says, sde};

/// What a shell is to run where nothing goes wrong: the line, without the machine.
const WELL: &str = "shift\nexec sh -c \"$*\"";

/// Passes so many bytes on, one by one: `head` and `sed` hold back what the other end waits for.
fn first(bytes: usize) -> String {
    format!("dd bs=1 count={bytes} status=none")
}

/// Runs the line with what it says, or what it is told, through a filter. As `ssh` does, this ends as soon as either
/// has ended, whatever still waits.
fn through(filter: &str, is_pull: bool) -> String {
    let line = "sh -c \"$*\" <&3";
    match is_pull {
        true => format!("shift; exec 3<&0; {line} | {{ {filter}; kill $$; }}"),
        false => format!("shift; exec 3<&0; {{ {filter}; }} <&3 | {{ sh -c \"$*\"; kill $$; }}"),
    }
}

/// Passes bytes on with one of them changed.
fn changed(at: usize) -> String {
    let other = "dd bs=1 count=1 status=none | LC_ALL=C tr '\\000-\\377' '\\001-\\377\\000'";
    format!("{}; {other}; cat", first(at))
}

/// Two stores, and the way between them.
struct Desk {
    folder: TempDir,
    keys: Keys,
}

impl Desk {
    fn new() -> Self {
        let folder = tempdir().unwrap();
        let keys = sample(&folder.path().join("store"));
        fs::create_dir(folder.path().join("tmp")).unwrap();
        Self { folder, keys }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The folder as it is named on the other machine.
    fn there(&self, name: &str) -> String {
        format!("node17:{}", self.path(name).display())
    }

    /// `sde copy FROM TO` where `ssh` does this.
    fn command(&self, ssh: &str, words: &[&str]) -> Command {
        let script = self.path("ssh");
        let text = self.path("ssh.text");
        fs::write(&text, format!("#!/bin/sh\n{ssh}\n")).unwrap();
        install(&text, &script);
        let mut command = program();
        let remote = command.get_program().to_owned();
        command.arg("copy").args(words);
        command.arg("--remote-sde").arg(remote);
        command
            .env("SDE_SSH", script)
            .env("TMPDIR", self.path("tmp"));
        command.current_dir(self.folder.path());
        command
    }

    fn copy(&self, ssh: &str, words: &[&str]) -> Done {
        let copied = done(self.command(ssh, words).output().unwrap());
        // Nothing on its way is left, however it went.
        assert_eq!(files(&self.path("tmp")), Vec::<PathBuf>::new());
        copied
    }

    fn is_whole_copy(&self, name: &str) {
        let path = self.path(name);
        let path = path.to_str().unwrap();
        sde(["verify", path]).well();
        let told = sde(["diff", self.path("store").to_str().unwrap(), path]).well();
        says(&told, "5 entries the same");
    }
}

/// Both files and their bytes.
fn state(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    match path.exists() {
        true => files(path)
            .into_iter()
            .map(|file| (file.clone(), fs::read(file).unwrap()))
            .collect(),
        false => Vec::new(),
    }
}

#[test]
fn a_store_is_copied_to_another_machine_and_back() {
    let desk = Desk::new();
    let odd = "a b'c \"d\" $(touch x);e";
    let (to, from) = (desk.there(odd), desk.there("store"));
    let first = desk.copy(WELL, &["store", &to]).well();
    says(&first, "7 entries copied, made");
    desk.is_whole_copy(odd);
    assert!(!desk.path("x").exists(), "a shell has run it");
    let again = desk.copy(WELL, &["store", &to]).well();
    assert_eq!(again, "0 entries copied; 7 there already\n");
    // And back: chosen ones, then all.
    let chosen = desk.copy(WELL, &[&from, "back", "--app", "cli.energy"]);
    says(&chosen.well(), "3 entries copied");
    let key = desk.keys.solver.short();
    let one = desk.copy(WELL, &[&from, "back", "--key", &key, "--since", "1h"]);
    says(&one.well(), "2 entries copied");
    let rest = desk.copy(WELL, &[&from, "back"]).well();
    says(&rest, "2 entries copied, made");
    says(&rest, "; 5 there already");
    desk.is_whole_copy("back");
    // Invalidations come along.
    let invalid = desk.keys.invalid.to_string();
    let shown = sde(["show", desk.path("back").to_str().unwrap(), &invalid]);
    says(&shown.well(), "bad memory in node 7");
}

#[test]
fn it_is_told_who_made_what_arrived() {
    let desk = Desk::new();
    fs::write(desk.path("in.txt"), "text").unwrap();
    for (user, line) in [("anna", "cat"), ("ben", "wc")] {
        let mut exec = program();
        exec.current_dir(desk.folder.path()).env("USER", user);
        exec.args(["exec", "-s", "runs", "-i", "in.txt", "--", line, "in.txt"]);
        assert!(exec.output().unwrap().status.success());
    }
    let told = desk.copy(WELL, &[&desk.there("runs"), "here"]).well();
    says(&told, "2 entries copied, made by anna, ben on ");
    let day = jiff::Timestamp::now().strftime("%Y-").to_string();
    says(&told, &day);
    let local = desk.copy(WELL, &["runs", "local", "--json"]).json();
    assert_eq!(local["users"], serde_json::json!(["anna", "ben"]));
    let listed = sde(["ls", desk.path("here").to_str().unwrap(), "--json"]).well();
    let first: serde_json::Value = serde_json::from_str(listed.lines().next().unwrap()).unwrap();
    let key = first["key"].as_str().unwrap();
    let shown = sde(["show", desk.path("here").to_str().unwrap(), key]).well();
    says(&shown, "user        ben, by its own account");
}

/// Two laptops, each with a computation of its own of one key, while programs have both stores open.
#[test]
fn two_stores_in_use_are_merged_both_ways() {
    let desk = Desk::new();
    let [one, other] = ["one", "other"].map(|name| desk.path(name));
    let [first, second] = [&one, &other].map(|path| engine(path));
    energy.call(&first, "STO-3G", 1).unwrap();
    energy.call(&second, "STO-3G", 1).unwrap();
    energy.call(&second, "STO-3G", 2).unwrap();
    let given = inputs! { basis: "STO-3G".to_owned(), charge: 1_i32 };
    let request = first.request(&energy, &given).policy(Policy::Refresh);
    let latest = request.run().unwrap();
    let told = desk.copy(WELL, &["one", &desk.there("other")]).well();
    says(
        &told,
        "of 1 key both stores had a computation of their own: the later one counts",
    );
    let told = desk.copy(WELL, &[&desk.there("other"), "one"]).well();
    // The file that a program still writes is not relied on, so that what is in it comes back.
    says(&told, "2 entries copied");
    assert!(!told.contains("of 1 key"), "{told}");
    for path in [&one, &other] {
        let path = path.to_str().unwrap();
        let shown = sde(["show", path, &latest.key.to_string(), "--json"]).json();
        assert_eq!(shown["record"]["run"], latest.made_by.to_string());
        sde(["verify", path]).well();
    }
    // What came meanwhile is found by the program that goes on.
    first.finish().unwrap();
    drop((first, second));
    let later = engine(&one);
    energy.call(&later, "STO-3G", 2).unwrap();
    assert_eq!(later.stats().total.computed, 0);
}

/// What fails leaves TO as it was, and says why.
#[test]
fn a_copy_that_fails_changes_nothing_and_says_why() {
    let desk = Desk::new();
    drop(engine(&desk.path("old")));
    let [pulled, pushed] = [true, false].map(|is_pull| through(&changed(4000), is_pull));
    let cases: [(&str, &str); 6] = [
        ("exit 255", "did not reach node17, or lost it"),
        ("exec sh -c /nowhere/sde", "has no program"),
        (
            "echo unrecognized subcommand >&2; exit 2",
            "did not begin the copy",
        ),
        (
            "echo 'SDE copy, version 9'; cat > /dev/null",
            "an sde of another release",
        ),
        (
            "echo Welcome on node17; cat > /dev/null",
            "its shell must print nothing",
        ),
        (&pulled, "not what was sent"),
    ];
    for (ssh, why) in cases {
        for to in ["old", "new"] {
            let before = state(&desk.path(to));
            let failed = desk.copy(ssh, &[&desk.there("store"), to]);
            assert_eq!(failed.status, 2, "{ssh}: {}", failed.out);
            assert_eq!(failed.out, "");
            says(&failed.err, why);
            assert!(state(&desk.path(to)) == before, "{ssh}");
        }
    }
    for (ssh, why) in [
        ("exit 255", "did not reach node17"),
        (&pushed, "not what was sent"),
    ] {
        let before = state(&desk.path("old"));
        let failed = desk.copy(ssh, &["store", &desk.there("old")]);
        assert_eq!(failed.status, 2, "{ssh}: {}", failed.out);
        says(&failed.err, why);
        assert!(state(&desk.path("old")) == before, "{ssh}");
    }
    let gone = desk.copy(WELL, &[&desk.there("nowhere"), "new"]);
    assert_eq!(gone.status, 2);
    says(&gone.err, "it does not exist");
    let mut no_ssh = desk.command(WELL, &["store", "node17:x"]);
    let no_ssh = done(no_ssh.env("SDE_SSH", "/nowhere/ssh").output().unwrap());
    says(&no_ssh.err, "/nowhere/ssh is not there to reach node17");
    for (words, why) in [
        (["-x:store", "new"], "unexpected argument"),
        (["./-x:store", "node17:"], "which folder on node17?"),
        (["node17:", "new"], "which folder on node17?"),
        (["a:x", "b:y"], "must be on this machine"),
    ] {
        let refused = desk.copy(WELL, &words);
        assert_eq!(refused.status, 2, "{words:?}");
        says(&refused.err, why);
    }
}

/// Cut after so many bytes, in either direction: then TO is as it was, or has whole entries, and the next copy goes on.
#[test]
fn a_copy_that_is_cut_short_goes_on_the_next_time() {
    let desk = Desk::new();
    let cut = |bytes: usize, is_pull: bool| through(&first(bytes), is_pull);
    let portions = ["--portion", "1"];
    for is_pull in [true, false] {
        let to = format!("to-{is_pull}");
        let words = match is_pull {
            true => [desk.there("store"), to.clone()],
            false => ["store".to_owned(), desk.there(&to)],
        };
        let words = [&words.each_ref().map(String::as_str)[..], &portions].concat();
        let count = || match desk.path(&to).exists() {
            true => {
                sde(["verify", desk.path(&to).to_str().unwrap()]).well();
                let listed = sde(["ls", desk.path(&to).to_str().unwrap(), "--json"]).well();
                listed.lines().count()
            }
            false => 0,
        };
        let (mut before, mut grew) = (0, 0);
        for bytes in (0..12_000).step_by(701) {
            let failed = desk.copy(&cut(bytes, is_pull), &words);
            if failed.status == 0 {
                break;
            }
            assert_eq!(failed.status, 2, "{}", failed.err);
            let after = count();
            assert!(after >= before, "{bytes}: {after} of {before}");
            grew += usize::from(after > before);
            before = after;
        }
        assert!(grew > 1, "each portion that arrived stays: {grew}");
        desk.copy(WELL, &words).well();
        desk.is_whole_copy(&to);
    }
}

/// A machine that is not trusted sends names that lead elsewhere.
#[test]
fn what_arrives_is_written_nowhere_else() {
    let desk = Desk::new();
    for name in [
        "../evil",
        "../../evil",
        "/tmp/evil",
        "a/../../evil",
        "entries/a/b",
    ] {
        let mut sent = b"SDE copy, version 1\n\0".to_vec();
        sent.extend(blake3::hash(&sent).as_bytes());
        sent.extend([1, 1]);
        sent.extend((name.len() as u64).to_le_bytes());
        sent.extend(name.as_bytes());
        sent.extend(4_u64.to_le_bytes());
        sent.extend(b"evil");
        fs::write(desk.path("sent"), &sent).unwrap();
        // It ends once it has been told what there is: the first line, and a digest.
        let ssh = format!("cat {:?}; {} > /dev/null", desk.path("sent"), first(52));
        let failed = desk.copy(&ssh, &["node17:x", "new"]);
        assert_eq!(failed.status, 2);
        says(&failed.err, &format!("{name} is no file of a store"));
        assert!(!desk.path("new").exists() && !desk.path("evil").exists());
    }
}

/// A store was left in the other.
#[test]
fn a_copy_that_is_refused_makes_nothing() {
    let desk = Desk::new();
    let store = desk.path("store");
    let before = state(&store);
    for (folder, to) in [(desk.path(""), "store/a/inner"), (store.clone(), "inner")] {
        let mut command = desk.command(WELL, &[store.to_str().unwrap(), to]);
        let refused = done(command.current_dir(folder).output().unwrap());
        assert_eq!(refused.status, 2, "{}", refused.err);
        says(&refused.err, "or lies in it");
        assert!(state(&store) == before);
        assert!(!store.join("a").exists() && !store.join("inner").exists());
    }
}
