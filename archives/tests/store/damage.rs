//! Every byte cut off, every bit flipped: misses, never a wrong value.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sde::archiver::{Archiver, Codec, Mark};
use sde::{Key, SavePolicy, Tags, inputs};
use sde_archives::{DirStore, Retention, StoreOptions};
use tempfile::TempDir;

use super::apps::{Table, engine, fresh, page, state};
use super::log::warnings;
use super::says::one_says;

/// A store with two entries, each with a result and an intermediate, a mark and a scratch
/// state; and what is in it.
struct Small {
    dir: TempDir,
    truth: Truth,
}

/// A result's name, tags and value.
type Found = (String, Tags, Option<String>);

#[derive(Debug, PartialEq, Default)]
struct Truth {
    /// The record, and the results.
    entries: HashMap<Key, (String, Vec<Found>)>,
    scratch: HashMap<Key, String>,
    marks: Vec<Mark>,
}

fn small() -> Small {
    let (dir, sde) = fresh(SavePolicy::EveryResult);
    let marked = sde
        .request(&Table, &inputs! { n: 2_u64 })
        .run()
        .unwrap()
        .key;
    sde.invalidate(&marked, "for the test").unwrap();
    sde.archive().unwrap();
    let second = sde
        .request(&Table, &inputs! { n: 3_u64 })
        .run()
        .unwrap()
        .key;
    std::mem::forget(sde);
    let failing = save_scratch(dir.path());
    let truth = read(dir.path(), &[marked, second, failing]).unwrap();
    assert_eq!(truth.entries.len(), 2);
    assert_eq!(truth.scratch.len(), 1);
    assert_eq!(truth.marks.len(), 1);
    Small { dir, truth }
}

/// Saves what a run that did not end leaves.
fn save_scratch(dir: &Path) -> Key {
    let key = Key::from_bytes([7; 32]);
    let store = DirStore::open(dir).unwrap();
    let saved = store.save(&state(key, [-0.0, f64::NAN])).unwrap();
    assert!(saved.left_out.is_empty());
    key
}

/// All that a store gives for these keys.
fn read(dir: &Path, keys: &[Key]) -> Result<Truth, sde::archiver::ArchiveError> {
    let store = DirStore::open_read_only(dir)?;
    let mut truth = Truth::default();
    for key in keys {
        if let Some(entry) = store.find(key)? {
            let results = entry.results.into_iter().map(|result| {
                let codec = match result.name.as_str() {
                    "sum" => Codec::of::<f64>(),
                    "squares" => Codec::of::<Vec<f64>>(),
                    _ => Codec::of::<String>(),
                };
                let value = result.payload.and_then(|p| p.decode(&codec).ok());
                let text = value.map(|value| match value.downcast::<f64>() {
                    Some(number) => format!("{number:?}"),
                    None => format!("{:?}", value.downcast::<Vec<f64>>().unwrap()),
                });
                (result.name, result.tags, text)
            });
            let results = results.collect();
            truth
                .entries
                .insert(*key, (format!("{:?}", entry.record), results));
        }
        if let Some(payload) = store.find_scratch(key)?
            && let Ok(value) = payload.decode(&Codec::of::<[f64; 2]>())
        {
            let bits = value.downcast::<[f64; 2]>().unwrap().map(f64::to_bits);
            truth.scratch.insert(*key, format!("{bits:x?}"));
        }
    }
    truth.marks = store.marks()?;
    Ok(truth)
}

impl Small {
    fn keys(&self) -> Vec<Key> {
        let entries = self.truth.entries.keys();
        entries.chain(self.truth.scratch.keys()).copied().collect()
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for part in ["entries", "scratch"] {
            let names = std::fs::read_dir(self.dir.path().join(part)).unwrap();
            files.extend(names.map(|name| name.unwrap().path()));
        }
        files
    }

    /// What is found is as it was saved. Gives how many values are found.
    fn nothing_is_wrong(&self, what: &str) -> usize {
        let found = read(self.dir.path(), &self.keys()).unwrap();
        let mut values = 0;
        for (key, (record, results)) in &found.entries {
            let (true_record, true_results) = &self.truth.entries[key];
            assert_eq!(record, true_record, "{what}");
            assert_eq!(results.len(), true_results.len(), "{what}");
            for (found, saved) in results.iter().zip(true_results) {
                assert_eq!((&found.0, found.1), (&saved.0, saved.1), "{what}");
                if found.2.is_some() {
                    assert_eq!(found.2, saved.2, "{what}");
                    values += 1;
                }
            }
        }
        for (key, state) in &found.scratch {
            assert_eq!(state, &self.truth.scratch[key], "{what}");
        }
        for mark in &found.marks {
            assert_eq!(mark, &self.truth.marks[0], "{what}");
        }
        values
    }
}

fn for_writing(path: &Path) -> File {
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap()
}

#[test]
fn a_flip_of_any_bit_is_never_a_wrong_value() {
    let small = small();
    // A result and an intermediate of each entry.
    assert_eq!(small.nothing_is_wrong("whole"), 4);
    for path in small.files() {
        let file = for_writing(&path);
        let bytes = std::fs::read(&path).unwrap();
        let mut lost = 0;
        for (at, byte) in bytes.iter().enumerate() {
            for bit in 0..8 {
                file.write_all_at(&[byte ^ 1 << bit], at as u64).unwrap();
                let what = format!("bit {bit} of byte {at} of {}", path.display());
                let left = small.nothing_is_wrong(&what);
                // What one flip in a frame can take is that frame; the segment's header takes the segment.
                let least = if at < 64 { 0 } else { 3 };
                assert!(left >= least, "{what}: {left} values are left");
                lost += usize::from(left < 4);
            }
            file.write_all_at(&[*byte], at as u64).unwrap();
        }
        // Who wrote it, what two copies have and a scratch state may be flipped unnoticed.
        if !path.parent().unwrap().ends_with("scratch") {
            assert!(
                lost > bytes.len() * 2,
                "{lost} flips of {} bytes",
                bytes.len()
            );
        }
    }
    assert_eq!(small.nothing_is_wrong("whole again"), 4);
}

#[test]
fn a_damaged_format_file_is_refused() {
    let small = small();
    let path = small.dir.path().join("FORMAT");
    let bytes = std::fs::read(&path).unwrap();
    let first_line = bytes.iter().position(|byte| *byte == b'\n').unwrap();
    for at in 0..first_line {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        std::fs::write(&path, &flipped).unwrap();
        let error = format!("{:#}", DirStore::open(small.dir.path()).unwrap_err());
        assert!(
            error.contains("FORMAT") || error.contains("format"),
            "{error}"
        );
    }
}

#[test]
fn cut_off_anywhere_it_has_an_exact_prefix() {
    let (dir, sde) = fresh(SavePolicy::EveryResult);
    let mut ends = Vec::new();
    let file = || {
        let mut names = std::fs::read_dir(dir.path().join("entries")).unwrap();
        names.next().unwrap().unwrap().path()
    };
    // After the fourth it ends with zeros.
    for n in 0..4_u64 {
        let outcome = sde.request(&page, &inputs! { number: n }).run().unwrap();
        ends.push((std::fs::metadata(file()).unwrap().len(), outcome.key));
    }
    std::mem::forget(sde);
    let path = file();
    let bytes = std::fs::read(&path).unwrap();
    let found = || {
        let store = DirStore::open_read_only(dir.path()).unwrap();
        let entries = ends.iter().map(|(_, key)| store.find(key).unwrap());
        entries
            .map(|entry| entry.map(|entry| format!("{:?}", entry.record)))
            .collect::<Vec<_>>()
    };
    let whole = found();
    for length in (0..=bytes.len()).rev() {
        for_writing(&path).set_len(length as u64).unwrap();
        for ((found, whole), (end, _)) in found().iter().zip(&whole).zip(&ends) {
            match *end <= length as u64 {
                true => assert_eq!(found, whole, "{length}: {end}"),
                false => assert_eq!(*found, None, "{length}: {end}"),
            }
        }
    }
}

/// A crash tears the last frame; what is written afterwards goes to another file,
/// and both are read.
#[test]
fn a_torn_end_is_cut_from_the_index_and_warned_of() {
    let (dir, sde) = fresh(SavePolicy::EveryResult);
    page.call(&sde, 1).unwrap();
    page.call(&sde, 2).unwrap();
    std::mem::forget(sde);
    let names = std::fs::read_dir(dir.path().join("entries")).unwrap();
    let path = names.map(|name| name.unwrap().path()).next().unwrap();
    let length = std::fs::metadata(&path).unwrap().len();
    for_writing(&path).set_len(length - 9).unwrap();
    let (sde, warned) = warnings(|| engine(dir.path(), SavePolicy::EveryResult).0);
    one_says(&warned, "cut short");
    page.call(&sde, 1).unwrap();
    assert_eq!(sde.stats().total.computed, 0);
    page.call(&sde, 2).unwrap();
    assert_eq!(sde.stats().total.computed, 1);
    let got = std::fs::metadata(&path).unwrap().len();
    assert_eq!(got, length - 9, "left as it is");
    std::mem::forget(sde);
    let (sde, _) = engine(dir.path(), SavePolicy::EveryResult);
    page.call(&sde, 2).unwrap();
    assert_eq!(sde.stats().total.computed, 0);
}

/// Frames after a damaged one are found, whatever part of it is damaged.
#[test]
fn damage_in_the_middle_costs_what_it_hit() {
    let (dir, sde) = fresh(SavePolicy::EveryResult);
    let mut ends = vec![0];
    let checkpoint = dir.path().join("entries");
    for n in 0..4 {
        page.call(&sde, n).unwrap();
        let path = std::fs::read_dir(&checkpoint)
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        ends.push(std::fs::metadata(path).unwrap().len());
    }
    std::mem::forget(sde);
    let path = std::fs::read_dir(&checkpoint)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let bytes = std::fs::read(&path).unwrap();
    // Magic, checksum, body; everything at once.
    let (third, fourth) = (ends[2] as usize, ends[3] as usize);
    for hit in [
        third..third + 1,
        third + 16..third + 24,
        third + 100..third + 101,
        third..fourth,
    ] {
        let mut damaged = bytes.clone();
        damaged[hit.clone()]
            .iter_mut()
            .for_each(|byte| *byte = !*byte);
        std::fs::write(&path, &damaged).unwrap();
        let ((), warned) = warnings(|| {
            let store = DirStore::open_read_only(dir.path()).unwrap();
            let sde = sde::Sde::builder()
                .store(store)
                .save(SavePolicy::OnRequest)
                .build()
                .unwrap();
            for (n, computed) in [(0, 0), (1, 0), (3, 0), (2, 1)] {
                page.call(&sde, n).unwrap();
                assert_eq!(sde.stats().total.computed, computed, "{hit:?}");
            }
            std::mem::forget(sde);
        });
        one_says(&warned, "are left out");
    }
}

/// Bytes of a store are only good where they were written.
#[test]
fn frames_from_elsewhere_are_not_taken() {
    let small = small();
    let other = self::small();
    let from = std::fs::read(&other.files()[0]).unwrap();
    let path = &small.files()[0];
    let mut bytes = std::fs::read(path).unwrap();
    let whole = bytes.len();
    // The frames of another store, and those of this one once more, elsewhere.
    bytes.extend_from_slice(&from[64..]);
    bytes.extend_from_within(64..whole);
    std::fs::write(path, &bytes).unwrap();
    let keys = small.keys();
    let store = DirStore::open_read_only(small.dir.path()).unwrap();
    assert_eq!(store.marks().unwrap(), small.truth.marks);
    assert_eq!(read(small.dir.path(), &keys).unwrap(), small.truth);

    // Those of another store in their old places, under this one's headers. They
    // are runs of the same keys, but not the runs that were made here.
    for (path, from) in small.files().iter().zip(other.files()) {
        let from = std::fs::read(from).unwrap();
        for_writing(path).set_len(64).unwrap();
        for_writing(path).write_all_at(&from[64..], 64).unwrap();
    }
    assert_eq!(read(small.dir.path(), &keys).unwrap(), Truth::default());
}

#[test]
fn files_that_are_no_segments_are_left_out() {
    let small = small();
    let checkpoint = small.dir.path().join("entries");
    let segment = &small.files()[0];
    std::fs::write(checkpoint.join("empty.sde"), "").unwrap();
    std::fs::write(checkpoint.join("short.sde"), "SDEstore").unwrap();
    std::fs::write(checkpoint.join("text.sde"), "x".repeat(1000)).unwrap();
    std::fs::write(checkpoint.join("notes.txt"), "mine").unwrap();
    std::fs::create_dir(checkpoint.join("folder.sde")).unwrap();
    let (found, warned) = warnings(|| read(small.dir.path(), &small.keys()).unwrap());
    assert_eq!(found, small.truth);
    one_says(&warned, "text.sde");
    one_says(&warned, "folder.sde");
    // A whole segment twice is the same entries twice.
    std::fs::copy(segment, checkpoint.join("copy.sde")).unwrap();
    assert_eq!(read(small.dir.path(), &small.keys()).unwrap(), small.truth);
}

/// The first entry has in its body what the others refer to.
#[test]
fn without_both_frames_of_their_provenance_entries_are_read_and_compacted() {
    let (dir, sde) = fresh(SavePolicy::OnRequest);
    for number in 0..20 {
        page.call(&sde, number).unwrap();
    }
    sde.checkpoint().unwrap();
    drop(sde);
    let mut names = std::fs::read_dir(dir.path().join("entries")).unwrap();
    let path = names.next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&path).unwrap();
    let frames = bytes.windows(4).enumerate();
    let frames: Vec<usize> = frames
        .filter(|(_, four)| four == b"SDEf")
        .map(|(at, _)| at)
        .collect();
    let of_provenances: Vec<usize> = frames
        .into_iter()
        .filter(|at| bytes[at + 20] == 7)
        .collect();
    assert!(of_provenances.len() >= 2);
    of_provenances.iter().for_each(|at| bytes[at + 80] ^= 1);
    std::fs::write(&path, bytes).unwrap();
    let computed = || {
        let (sde, _) = engine(dir.path(), SavePolicy::OnRequest);
        for number in 0..20 {
            page.call(&sde, number).unwrap();
        }
        sde.stats().total.computed
    };
    assert_eq!(computed(), 0);
    let store = StoreOptions::new()
        .grace(Duration::ZERO)
        .open(dir.path())
        .unwrap();
    for _ in 0..2 {
        store.compact(&Retention::new()).unwrap();
    }
    assert!(!path.exists());
    assert_eq!(computed(), 0);
}

/// One that is kept, since nothing takes its place, is damaged in a copy too.
#[test]
fn a_damaged_value_is_not_copied_each_time() {
    let (dir, sde) = fresh(SavePolicy::OnRequest);
    sde.run(&Table, &inputs! { n: 20_000_u64 }).unwrap();
    sde.checkpoint().unwrap();
    drop(sde);
    let mut names = std::fs::read_dir(dir.path().join("entries")).unwrap();
    let path = names.next().unwrap().unwrap().path();
    let file = for_writing(&path);
    let middle = file.metadata().unwrap().len() / 2;
    file.write_all_at(b"damage", middle).unwrap();
    let store = StoreOptions::new().grace(Duration::ZERO).open(dir.path());
    let store = store.unwrap();
    let replaced = [(); 3].map(|()| store.compact(&Retention::new()).unwrap().replaced);
    assert_eq!(replaced[2], 0, "{replaced:?}");
}
