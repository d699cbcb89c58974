//! No more of a store is read than is asked for.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use sde::{Key, SavePolicy, Sde, inputs};
use sde_archives::DirStore;

use super::kit::{energy, files, program};

/// A store of so many entries; gives the key of one.
fn many(path: &Path, entries: i32) -> Key {
    let store = DirStore::open(path).unwrap();
    let builder = Sde::builder().store(store);
    let sde = builder.save(SavePolicy::OnRequest).build().unwrap();
    let keys = (0..entries).map(|charge| {
        let inputs = inputs! { basis: "STO-3G".to_owned(), charge: charge };
        sde.request(&energy, &inputs).run().unwrap().key
    });
    let keys: Vec<Key> = keys.collect();
    sde.finish().unwrap();
    keys[0]
}

/// How many bytes the program reads, as the system counts them.
fn bytes_read(arguments: &[&str]) -> u64 {
    let mut command = program();
    let mut child = command
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // When it ends; until somebody waits for it what the system knows of it is there.
    let mut said = String::new();
    let mut out = child.stdout.take().unwrap();
    out.read_to_string(&mut said).unwrap();
    let counts = std::fs::read_to_string(format!("/proc/{}/io", child.id())).unwrap();
    assert!(child.wait().unwrap().success(), "{said}");
    let read = counts.lines().find_map(|line| line.strip_prefix("rchar: "));
    read.unwrap().parse().unwrap()
}

/// The same as a part of the store that this command is about.
fn part_read(command: &str, more: &[&str]) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let key = many(&path, 10_000).to_string();
    let store = path.to_str().unwrap();
    let more = more.iter().map(|word| match *word {
        "KEY" => &*key,
        other => other,
    });
    let arguments: Vec<&str> = [command, store].into_iter().chain(more).collect();
    let length = |file: &PathBuf| file.metadata().unwrap().len();
    let all: u64 = files(&path).iter().map(length).sum();
    bytes_read(&arguments) as f64 / all as f64
}

#[test]
#[cfg(target_os = "linux")]
fn a_few_entries_are_listed_without_reading_all() {
    let part = part_read("ls", &["--limit", "5"]);
    // Its index is a sixth of it, and read twice.
    assert!(
        part < 0.5,
        "for five entries {part:.1} times the store is read"
    );
}

#[test]
#[cfg(target_os = "linux")]
fn one_entry_is_shown_without_reading_all() {
    let part = part_read("show", &["KEY"]);
    assert!(
        part < 0.25,
        "for one entry {part:.1} times the store is read"
    );
}
