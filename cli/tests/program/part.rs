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
    let builder = Sde::builder().store(store).save(SavePolicy::OnRequest);
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

/// What entries have in common was read and looked for once more for each of them: of a million entries it took hours.
#[test]
#[cfg(target_os = "linux")]
fn all_entries_are_compared_without_reading_anything_twice() {
    for arguments in [("explain", &["KEY"][..]), ("table", &["--csv"])] {
        let part = part_read(arguments.0, arguments.1);
        assert!(
            part < 2.0,
            "{arguments:?}: {part:.1} times the store is read"
        );
    }
}

/// More than fits a buffer: the writer of CSV gave an error of its own for it.
#[test]
fn a_long_table_in_a_closed_pipe_ends_quietly() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    many(&path, 2000);
    for form in ["--csv", "--json"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut table = program();
        table.args(["table", path.to_str().unwrap(), form]);
        let done = super::kit::done(table.stdout(writer).output().unwrap());
        assert_eq!((done.status, &*done.err), (0, ""), "{form}");
    }
}
