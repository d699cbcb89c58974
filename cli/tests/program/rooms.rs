//! The commands about whole stores: `diff`, `copy`, `gc`, `doctor`.

use sde::{Policy, inputs};

use super::kit::{OFFSET, Sample, copy, energy, engine, says, sde};

#[test]
fn diff_tells_what_is_where_and_what_is_otherwise() {
    let sample = Sample::new();
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other");
    copy(&sample.path, &other);
    let both = |more: &[&str]| {
        let stores = [sample.path.to_str().unwrap(), other.to_str().unwrap()];
        sde([&["diff"], &stores[..], more].concat())
    };
    assert!(both(&[]).well().contains("5 entries the same"));
    let sde = engine(&other);
    let new = inputs! { basis: "new".to_owned(), charge: 0_i32 };
    let new = sde.request(&energy, &new).run().unwrap().key;
    OFFSET.set(1e-9);
    let old = inputs! { basis: "STO-3G".to_owned(), charge: 0_i32 };
    let old = sde
        .request(&energy, &old)
        .policy(Policy::Refresh)
        .run()
        .unwrap()
        .key;
    assert_eq!(old, sample.keys.small);
    drop(sde);
    let done = both(&[]);
    assert_eq!(done.status, 1);
    says(&done.out, &format!("+ {} cli.energy\n", new.short()));
    says(
        &done.out,
        &format!("! {} cli.energy: result\n", old.short()),
    );
    let json = both(&["--json"]).json();
    assert_eq!(json["only_second"][0]["key"], new.to_string());
    assert_eq!(json["different"][0]["results"][0], "result");
    assert_eq!(both(&["--app", "cli.Solver"]).status, 0);
}

/// It counted as good.
#[test]
fn diff_tells_what_is_invalid_in_one_store() {
    let sample = Sample::new();
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other");
    copy(&sample.path, &other);
    let sde_of_other = engine(&other);
    let small = sample.keys.small;
    sde_of_other.invalidate(&small, "a bad disk").unwrap();
    drop(sde_of_other);
    let [first, second] = [&sample.path, &other].map(|path| path.to_str().unwrap());
    let done = sde(["diff", first, second]);
    let line = format!("x {} cli.energy: invalid in the second\n", small.short());
    assert!(done.out.starts_with(&line), "{}", done.out);
    assert_eq!(done.status, 1);
    let json = sde(["diff", second, first, "--json"]).json();
    assert_eq!(json["invalid_first"][0]["key"], small.to_string());
    // What is invalid in both is no difference.
    assert_eq!(json["invalid_first"].as_array().unwrap().len(), 1);
    let got = (&json["same"], &json["only_first"]);
    assert_eq!(got, (&4.into(), &[(); 0].into()));
}

/// It was read twice, and what somebody saved in between was a difference.
#[test]
#[cfg(unix)]
fn a_store_is_read_once_to_be_compared_with_itself() {
    let sample = Sample::new();
    let path = sample.path.to_str().unwrap();
    let link = format!("{path}-link");
    std::os::unix::fs::symlink(path, &link).unwrap();
    for other in [path, &link, &format!("{path}/../store")] {
        let found = sde(["diff", path, other]).well();
        assert!(found.contains("5 entries the same"));
    }
    // What can't be read of it is told of each time that it is read.
    let is_scratch = |path: &&std::path::PathBuf| path.to_string_lossy().contains("/scratch/");
    let file = sample.files().iter().find(is_scratch).unwrap().clone();
    std::fs::write(&file, [1; 100]).unwrap();
    for other in [path, &link] {
        let done = sde(["diff", path, other]);
        assert_eq!(done.status, 1, "{}", done.out);
        assert_eq!(done.err.matches("damaged").count(), 1, "{}", done.err);
        says(&done.out, "5 entries the same");
    }
}

/// It made a file and removed it, and so could not be had on a medium that is only read.
#[test]
fn a_dry_run_touches_nothing() {
    let sample = Sample::new();
    let folders = || {
        let inside = sample.path.read_dir().unwrap();
        let paths = inside.map(|entry| entry.unwrap().path());
        let all = paths.chain([sample.path.clone()]);
        all.filter(|path| path.is_dir()).collect::<Vec<_>>()
    };
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    for folder in folders() {
        let folder = std::fs::File::open(folder).unwrap();
        folder.set_modified(long_ago).unwrap();
    }
    let would = sample.run("gc", &["--dry-run", "--capacity", "0"]).well();
    says(&would, "would be replaced");
    for folder in folders() {
        let changed = folder.metadata().unwrap().modified().unwrap();
        assert_eq!(changed, long_ago, "{}", folder.display());
    }
}

#[test]
fn gc_changes_nothing_when_dry_and_loses_no_result() {
    let sample = Sample::new();
    let listed = |sample: &Sample| sample.run("ls", &["--json", "--class", "result"]).well();
    let before = listed(&sample);
    let files = sample.files();
    sample.run("gc", &["--dry-run", "--capacity", "0"]).well();
    assert_eq!(sample.files(), files);
    sample
        .run("gc", &["--capacity", "0", "--policy", "fifo"])
        .well();
    let keys = |text: &str| -> Vec<String> {
        let key = |line: &str| {
            let object: serde_json::Value = serde_json::from_str(line).unwrap();
            object["key"].to_string()
        };
        text.lines().map(key).collect()
    };
    assert_eq!(keys(&listed(&sample)), keys(&before));
    let got = sample.run("ls", &["--class", "intermediate"]).well();
    assert_eq!(got, "no entries\n");
    let verify = sample.run("verify", &[]);
    assert_eq!(verify.status, 0, "{}", verify.out);
}

/// Less was said to do than was done, and "nothing" where files were to be removed.
#[test]
fn gc_says_beforehand_what_it_removes() {
    let sample = Sample::new();
    sample.run("gc", &["--capacity", "0"]).well();
    let replaced = sample.files();
    assert_eq!(sample.run("gc", &["--dry-run"]).well(), "nothing to do\n");
    let now = ["--grace", "0s"];
    let would = sample
        .run("gc", &[&now[..], &["--dry-run"]].concat())
        .well();
    assert_eq!(sample.files(), replaced);
    let did = sample.run("gc", &now).well();
    assert_eq!(would, did.replace(" removed", " would be removed"));
    let left = sample.files();
    let is_segment = |path: &&std::path::PathBuf| path.extension().is_some_and(|e| e == "sde");
    let segments = |files: &[std::path::PathBuf]| files.iter().filter(is_segment).count();
    let gone = segments(&replaced) - segments(&left);
    assert!(gone > 0);
    assert!(did.starts_with(&format!("{gone} replaced file")), "{did}");
    assert_eq!(sample.run("gc", &now).well(), "nothing to do\n");
}

/// Found by hostile use: it was told that somebody else makes room, and to try later. It only reads.
#[test]
fn a_dry_run_is_told_while_somebody_else_makes_room() {
    let sample = Sample::new();
    let format = std::fs::File::open(sample.path.join("FORMAT")).unwrap();
    format.lock().unwrap();
    assert_eq!(sample.run("gc", &[]).status, 2);
    sample.run("gc", &["--dry-run"]).well();
}

#[test]
fn doctor_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let done = sde(["doctor", folder.path().to_str().unwrap()]);
    assert_eq!(done.status, 0, "{}", done.out);
    says(&done.out, "holds  a name is made once");
    for check in ["a rename gives", "a lock keeps others out"] {
        says(&done.out, &format!("holds  {check}"));
    }
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

/// Where files can be made, and nothing written to them.
#[test]
#[cfg(unix)]
fn doctor_says_what_fails() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let limited = |more: &[&str]| {
        let mut shell = std::process::Command::new("sh");
        let limit = "trap '' XFSZ; ulimit -f 0; exec \"$@\"";
        shell.args(["-c", limit, "sh", env!("CARGO_BIN_EXE_sde"), "doctor", path]);
        super::kit::done(shell.args(more).output().unwrap())
    };
    let done = limited(&[]);
    assert_eq!(done.status, 1, "{}{}", done.out, done.err);
    for said in [
        "holds  a name is made once",
        "FAILS  what is appended can be read at once: ",
        "without it another process may see old lengths",
        "A store here is at risk",
    ] {
        assert!(done.out.contains(said), "{said}: {}", done.out);
    }
    let json = limited(&["--json"]);
    assert_eq!((json.status, &json.json()["good"]), (1, &false.into()));
    let checks = json.json()["checks"].clone();
    let why = |check: &serde_json::Value| check["why"].is_string();
    for check in checks.as_array().unwrap() {
        assert_eq!(check["holds"], !why(check), "{check}");
    }
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

/// The doctor's other process sees the locks of others; with one of its own it could not fail.
#[test]
fn the_other_process_of_the_doctor_sees_locks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let file = std::fs::File::create(&path).unwrap();
    let hold = || sde(["doctor", "--hold", path.to_str().unwrap()]).well();
    assert_eq!(hold(), "held\n");
    file.try_lock().unwrap();
    assert_eq!(hold(), "taken\n");
}

#[test]
fn copy_takes_what_is_chosen_and_goes_on_from_there() {
    let sample = Sample::new();
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other");
    let (from, to) = (sample.path.to_str().unwrap(), other.to_str().unwrap());
    let copy = |more: &[&str]| sde([&["copy", from, to], more].concat());
    let small = sample.keys.small.to_string();
    says(&copy(&["--key", &small[..8]]).well(), "; 0 there already\n");
    assert_eq!(copy(&["--app", "none*", "--json"]).json()["entries"], 0);
    assert_eq!(copy(&["--since", "1h", "--json"]).json()["there"], 1);
    copy(&[]).well();
    assert_eq!(copy(&["--json"]).json()["entries"], 0);
    says(&sde(["diff", from, to]).well(), "5 entries the same");
    for wrong in [&["copy", from, from][..], &["copy", from, to, "--key", "x"]] {
        assert_eq!(sde(wrong).status, 2);
    }
    assert_eq!(sde(["copy", "/nowhere", to]).status, 2);
}
