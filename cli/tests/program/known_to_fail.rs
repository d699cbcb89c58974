//! What must be true and is not yet. Each test says what it gives now; the day that this is cured it
//! fails, and goes to where it belongs.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use sde::{Key, SavePolicy, Sde, inputs};
use sde_archives::DirStore;
use sde_archives::inspect::{Inspection, Item};

use super::kit::{Sample, energy, files, program};

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
    let key = many(&path, 3_000).to_string();
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

/// Found by hostile use: of a store with 10^6 entries `ls --limit 5` read everything, in 52 s.
#[test]
#[cfg(target_os = "linux")]
#[should_panic(expected = "times the store is read")]
fn a_few_entries_are_listed_without_reading_all() {
    let part = part_read("ls", &["--limit", "5"]);
    assert!(
        part < 0.25,
        "for five entries {part:.1} times the store is read"
    );
}

/// Found by hostile use: so did `show` with a key, in 27 s, although each segment has an index of its keys.
#[test]
#[cfg(target_os = "linux")]
#[should_panic(expected = "times the store is read")]
fn one_entry_is_shown_without_reading_all() {
    let part = part_read("show", &["KEY"]);
    assert!(
        part < 0.25,
        "for one entry {part:.1} times the store is read"
    );
}

/// Found by hostile use: `verify` said that a store is whole which could not be opened, for a link that leads
/// nowhere.
#[test]
#[cfg(unix)]
#[should_panic(expected = "it says \"whole: ")]
fn what_cannot_be_opened_is_not_called_whole() {
    let sample = Sample::new();
    let link = sample.path.join("entries/0123-45.sde");
    std::os::unix::fs::symlink("nowhere", link).unwrap();
    DirStore::open(&sample.path).unwrap_err();
    let done = sample.run("verify", &[]);
    assert_eq!(done.status, 1, "it says {:?}", done.out);
}

/// Found by hostile use: what was damaged was computed again and the store compacted, and `verify` went on
/// to tell of the damage.
#[test]
#[should_panic(expected = "1 damaged")]
fn what_was_computed_again_is_no_damage_after_a_compaction() {
    let sample = Sample::new();
    let (file, bytes) = damage_one_result(&sample.path);
    std::fs::write(file, bytes).unwrap();
    assert_eq!(sample.run("verify", &[]).status, 1);
    let sde = super::kit::engine(&sample.path);
    energy.call(&sde, "STO-3G", 0).unwrap();
    assert_eq!(sde.stats().total.computed, 1);
    sde.finish().unwrap();
    drop(sde);
    // What was replaced stays for a time of grace, and does not count any more.
    sample.run("gc", &[]).well();
    let done = sample.run("verify", &[]);
    assert_eq!(done.status, 0, "{}", done.out);
}

/// The file with the first result of a store, with another bit in that.
fn damage_one_result(store: &Path) -> (PathBuf, Vec<u8>) {
    let store = Inspection::open(store).unwrap();
    for segment in store.segments().unwrap() {
        let mut first = None;
        let each = |item| {
            if let Item::Entry(entry) = item
                && let Some(payload) = entry.results.first().and_then(|one| one.payload.as_ref())
            {
                let is_it = &*entry.record.app == "cli.energy"
                    && entry.record.inputs[0].short.contains("STO-3G");
                first = first.or(is_it.then(|| payload.place().start));
            }
        };
        segment.walk(each).unwrap();
        if let Some(at) = first {
            let file = store.path().join(segment.path());
            let mut bytes = std::fs::read(&file).unwrap();
            bytes[at as usize] ^= 1;
            return (file, bytes);
        }
    }
    unreachable!("there is one")
}
