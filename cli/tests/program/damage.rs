//! Every command on stores that are damaged in many places: none panics, none says that all is
//! well, and `verify` names the file.

use std::path::{Path, PathBuf};

use sde_archives::DirStore;
use sde_archives::inspect::{Inspection, Item};

use super::kit::{Sample, copy, energy, engine, files, says, sde};

/// Each command on a damaged copy of the store; gives the status of `verify`, and what it said.
fn all_commands(path: &Path, sample: &Sample) -> (i32, String) {
    let path = path.to_str().unwrap();
    let key = sample.keys.solver.to_string();
    for arguments in [
        &["ls", path][..],
        &["table", path, "--app", "cli.energy"],
        &["show", path, &key],
        &["explain", path, &key],
        &["stats", path],
        &["diff", path, path],
        &["export", path, &key, "--format", "npz", "-o", "-"],
    ] {
        // Binary output is no text, and not looked at.
        let done = super::kit::program().args(arguments).output().unwrap();
        let err = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(!err.contains("panicked"), "{arguments:?}: {err}");
        assert!(
            (0..=2).contains(&done.status.code().unwrap()),
            "{arguments:?}: {err}"
        );
    }
    let done = sde(["verify", path]);
    (done.status, done.out + &done.err)
}

/// The store with one file changed.
fn damaged(sample: &Sample, file: &Path, change: impl FnOnce(&mut Vec<u8>)) -> (i32, String) {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("store");
    copy(&sample.path, &to);
    let file = to.join(file.strip_prefix(&sample.path).unwrap());
    let mut bytes = std::fs::read(&file).unwrap();
    change(&mut bytes);
    std::fs::write(&file, bytes).unwrap();
    all_commands(&to, sample)
}

/// The places of zeros between frames, which nothing says anything of.
fn is_padding(bytes: &[u8], at: usize) -> bool {
    let next = at.next_multiple_of(8).max(at + 1);
    bytes[at..next.min(bytes.len())]
        .iter()
        .all(|byte| *byte == 0)
}

#[test]
fn a_flipped_bit_is_found_wherever_it_is() {
    let sample = Sample::new();
    for file in sample.files() {
        let bytes = std::fs::read(&file).unwrap();
        let name = file.file_name().unwrap().to_str().unwrap();
        let step = (bytes.len() / 8).max(1);
        for at in (0..bytes.len()).step_by(step) {
            // What comes after the first line of FORMAT is for people.
            let for_people = name == "FORMAT" && at >= 19;
            if for_people || is_padding(&bytes, at) {
                continue;
            }
            let (status, said) = damaged(&sample, &file, |bytes| bytes[at] ^= 1 << (at % 8));
            if name == "FORMAT" {
                assert!(status > 0, "byte {at} of {name}: {said}");
                continue;
            }
            assert_eq!(status, 1, "byte {at} of {name}: {said}");
            assert!(said.contains(name), "byte {at} of {name}: {said}");
        }
    }
}

/// Up to where a manifest vouches for the segment of this name.
fn vouched(store: &Path, name: &str) -> Option<u64> {
    let manifests = Inspection::open(store).unwrap().manifests().unwrap();
    let listed = manifests.heads().flat_map(|(_, info)| &info.segments);
    let of_this = listed.filter(|one| one.path.ends_with(name));
    of_this.map(|one| one.length).max()
}

#[test]
fn a_cut_file_is_found() {
    let sample = Sample::new();
    for file in sample.files() {
        let length = std::fs::metadata(&file).unwrap().len() as usize;
        let name = file.file_name().unwrap().to_str().unwrap();
        if name == "FORMAT" {
            continue;
        }
        let eighths = (0..8).map(|eighth| length * eighth / 8 + 1);
        for left in eighths.chain([length - 3]) {
            let (status, said) = damaged(&sample, &file, |bytes| bytes.truncate(left));
            // Of its index nobody ever said that it is there.
            let is_index = vouched(&sample.path, name).is_some_and(|length| left as u64 > length);
            assert_eq!(
                status,
                i32::from(!is_index),
                "{left} bytes of {name}: {said}"
            );
            let got = said.contains("unfinished: ");
            assert_eq!(got, is_index, "{left} of {name}: {said}");
            assert!(said.contains(name), "{left} bytes of {name}: {said}");
        }
    }
}

#[test]
fn a_lost_file_is_found() {
    let sample = Sample::new();
    for file in sample.files() {
        let is_segment = file.extension().is_some_and(|extension| extension == "sde");
        let is_format = file.ends_with("FORMAT");
        if !is_segment && !is_format {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("store");
        copy(&sample.path, &to);
        std::fs::remove_file(to.join(file.strip_prefix(&sample.path).unwrap())).unwrap();
        let (status, said) = all_commands(&to, &sample);
        assert_eq!(status, 1, "{}: {said}", file.display());
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(said.contains(name), "{name}: {said}");
    }
}

/// Has a value that is too long to be in its frame.
#[derive(sde::Fingerprint)]
struct Field;

impl sde::App for Field {
    fn info(&self) -> sde::AppInfo {
        sde::AppInfo::new("cli.Field", "1")
            .result(sde::ResultSpec::new::<Vec<f64>>("values"))
            .result(sde::ResultSpec::new::<String>("label"))
    }
    fn run(&self, _: &sde::Handle, _: &sde::Inputs) -> Result<sde::ResultMap, sde::AppError> {
        Ok(sde::ResultMap::new()
            .with("values", vec![1.0; 10_000])
            .with("label", "a label".to_owned()))
    }
}

#[test]
fn a_damaged_value_is_named_with_its_entry_and_all_else_is_shown() {
    let sample = Sample::new();
    let sde = engine(&sample.path);
    let key = sde.request(&Field, &sde::inputs! {}).run().unwrap().key;
    drop(sde);
    let key = key.to_string();
    let shown = sample.run("show", &[&key, "--json"]).json();
    let result = &shown["results"][0];
    let file = sample.path.join(result["file"].as_str().unwrap());
    let at = result["from"].as_u64().unwrap() as usize + 30;
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[at] ^= 1;
    std::fs::write(&file, bytes).unwrap();

    let verify = sample.run("verify", &["--json"]);
    assert_eq!(verify.status, 1);
    let damaged = &verify.json()["damaged"];
    assert_eq!(damaged.as_array().unwrap().len(), 1);
    assert_eq!(damaged[0]["file"], result["file"]);
    assert_eq!(damaged[0]["from"], result["from"]);
    let of = format!("result \"values\" of cli.Field [{}]", &key[..12]);
    assert_eq!(damaged[0]["of"], of);

    let show = sample.run("show", &[&key]);
    assert_eq!(show.status, 1);
    says(&show.out, "DAMAGED");
    says(&show.out, "a label");
    let export = |name| sample.run("export", &[&key, name, "--format", "json", "-o", "-"]);
    assert_eq!(export("values").status, 2);
    assert_eq!(export("label").well(), "\"a label\"\n");
}

/// Some said with status 0 what was only part of the truth.
#[test]
fn each_command_that_meets_damage_says_so() {
    let sample = Sample::new();
    let (key, small) = (
        sample.keys.solver.to_string(),
        sample.keys.small.to_string(),
    );
    let shown = sample.run("show", &[&small, "--json"]);
    let place = shown.json()["saved"][0].clone();
    let file = sample.path.join(place["file"].as_str().unwrap());
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[place["at"].as_u64().unwrap() as usize + 100] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let path = sample.path.to_str().unwrap();
    let json = ["--format", "json", "-o", "-"];
    let export = |key, name| [&[key, name][..], &json].concat();
    for (command, more, status) in [
        ("ls", vec![], 1),
        ("table", vec!["--app", "cli.Solver"], 1),
        ("explain", vec![&*key], 1),
        ("verify", vec!["--json"], 1),
        ("diff", vec![path], 1),
        ("stats", vec![], 1),
        ("show", vec![&*small], 2),
        ("export", export(&*small, "small"), 2),
        // These read one entry, and that is whole.
        ("show", vec![&*key], 0),
        ("export", export(&*key, "guess"), 0),
    ] {
        let done = sample.run(command, &more);
        assert_eq!(done.status, status, "{command}: {}{}", done.out, done.err);
        if status == 0 {
            continue;
        }
        let said = done.err + &done.out;
        assert!(said.contains("damaged"), "{command}: {said}");
    }
    let entry = format!("(entry {})", sample.keys.small.short());
    says(&sample.run("ls", &[]).err, &entry);
}

/// A manifest is one of two generations: the one before counts.
#[test]
fn a_damaged_manifest_leaves_the_store_usable() {
    let sample = Sample::new();
    let manifests = sample.files();
    let is_manifest =
        |path: &&std::path::PathBuf| path.extension().is_some_and(|e| e == "manifest");
    for path in manifests.iter().filter(is_manifest) {
        std::fs::write(path, b"nothing").unwrap();
    }
    let ls = sample.run("ls", &[]);
    assert_eq!(ls.status, 1);
    says(&ls.err, "manifests/0000");
    assert!(ls.out.lines().count() > 3, "{}", ls.out);
    let verify = sample.run("verify", &[]);
    assert_eq!(verify.status, 1);
    says(&verify.out, "manifests/0000");
    assert!(sample.run("stats", &[]).out.contains("no, damaged"));
}

/// A store as a process leaves it that is killed, and its segment of results.
fn left_by_a_kill(commits: bool) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (live, left) = (folder.path().join("live"), folder.path().join("left"));
    let sde = engine(&live);
    for charge in 0..3 {
        energy.call(&sde, "STO-3G", charge).unwrap();
    }
    if commits {
        sde.checkpoint().unwrap();
    }
    copy(&live, &left);
    let segments = files(&left.join("entries"));
    (folder, segments[0].clone())
}

/// What `verify` says if these are the bytes of a segment: its status, its output, its JSON.
fn verified(segment: &Path, bytes: &[u8]) -> (i32, String, serde_json::Value) {
    std::fs::write(segment, bytes).unwrap();
    let store = segment
        .parent()
        .unwrap()
        .parent()
        .unwrap()
        .to_str()
        .unwrap();
    let (told, json) = (
        sde(["verify", store]),
        sde(["verify", store, "--json"]).json(),
    );
    assert_eq!(json["whole"], told.status == 0);
    (told.status, told.out, json)
}

/// It was called damage, so that after each kill somebody looked for a broken disk.
#[test]
fn an_end_that_a_killed_writer_left_is_unfinished_and_no_damage() {
    let (_folder, segment) = left_by_a_kill(false);
    let whole = std::fs::read(&segment).unwrap();
    assert_eq!(verified(&segment, &whole).0, 0);
    let cut = |by: usize| whole[..whole.len() - by].to_vec();
    let longer = |by: &[u8]| [&whole[..], by].concat();
    for left in [
        cut(20),
        cut(60),
        longer(b"SD"),
        longer(b"SDEf\x01"),
        longer(&[0; 999]),
    ] {
        let (status, told, json) = verified(&segment, &left);
        assert_eq!(status, 0, "{told}");
        let store = segment.ancestors().nth(2).unwrap().to_str().unwrap();
        // Below a line of titles, and above one of sums.
        let entries = sde(["ls", store]).well().lines().count() - 2;
        assert_eq!(entries, if left.len() < whole.len() { 2 } else { 3 });
        assert!(told.starts_with("unfinished: entries/"), "{told}");
        says(&told, "\nwhole: ");
        let unfinished = &json["unfinished"][0];
        assert_eq!(unfinished["to"], left.len());
        assert!(unfinished["from"].as_u64().unwrap() < left.len() as u64);
        assert_eq!(json["damaged"].as_array().unwrap().len(), 0);
    }
    // It was killed while it wrote the header.
    for left in [&whole[..0], &whole[..5], &whole[..40], &[0; 40]] {
        let (status, told, _) = verified(&segment, left);
        assert_eq!(status, 0, "{told}");
    }
    // No writer leaves that.
    let (status, told, _) = verified(&segment, &[7; 40]);
    assert_eq!(status, 1, "{told}");
    says(&told, "too short to have a header");
    let (status, told, _) = verified(&segment, &longer(&[7; 200]));
    assert_eq!(status, 1, "{told}");
    says(&told, "no frame, nor the beginning of one");
}

#[test]
fn an_end_that_a_generation_vouches_for_is_damage() {
    let (_folder, segment) = left_by_a_kill(true);
    let whole = std::fs::read(&segment).unwrap();
    assert_eq!(verified(&segment, &whole).0, 0);
    for left in [whole.len() - 20, whole.len() - 150, 40, 0] {
        let (status, told, json) = verified(&segment, &whole[..left]);
        assert_eq!(status, 1, "{left}: {told}");
        assert_eq!(json["damaged"].as_array().unwrap().len(), 1, "{told}");
        assert_eq!(json["unfinished"].as_array().unwrap().len(), 0, "{told}");
        says(&told, "lost");
    }
}

/// What a record says of itself may be anything: times that no sum can hold.
#[test]
fn costs_that_no_sum_holds_are_no_reason_to_panic() {
    use sde::Sde;
    use sde::archiver::{Archiver as _, Batch, SavedEntry, Selection};

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = sde_archives::DirStore::open(&path).unwrap();
    let sde = Sde::new();
    for charge in 0..3 {
        energy.call(&sde, "STO-3G", charge).unwrap();
    }
    let hostile = |mut record: sde::record::Record| {
        record.took = std::time::Duration::MAX;
        SavedEntry::new::<String>(record, Selection::Archive, [])
    };
    let mut batch = Batch::new(Selection::Archive);
    sde.records(|record| batch.entries.push(hostile(record.clone())));
    store.save(&batch).unwrap();
    store.commit(Selection::Archive).unwrap();
    let path = path.to_str().unwrap();
    for arguments in [
        &["stats", path][..],
        &["stats", path, "--json"],
        &["ls", path],
    ] {
        let done = super::kit::program().args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(0), "{arguments:?}: {said}");
    }
}

#[test]
#[cfg(unix)]
fn what_cannot_be_opened_is_not_called_whole() {
    let sample = Sample::new();
    let link = sample.path.join("entries/0123-45.sde");
    std::os::unix::fs::symlink("nowhere", link).unwrap();
    DirStore::open(&sample.path).unwrap_err();
    let done = sample.run("verify", &[]);
    assert_eq!(done.status, 1, "it says {:?}", done.out);
}

/// It was whole, it said, and programs could not open it.
#[test]
#[cfg(unix)]
fn what_programs_refuse_is_not_called_whole() {
    use std::os::unix::fs::PermissionsExt;

    let sample = Sample::new();
    let is_segment = |path: &&PathBuf| path.extension().is_some_and(|ending| ending == "sde");
    let segment = sample.files().iter().find(is_segment).unwrap().clone();
    let elsewhere = sample.path.with_file_name("elsewhere");
    std::fs::rename(&segment, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &segment).unwrap();
    let others = Sample::new();
    let mode = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(&others.path, mode).unwrap();
    for (sample, why) in [(sample, "it is a link"), (others, "others can write to it")] {
        DirStore::open(&sample.path).unwrap_err();
        let done = sample.run("verify", &[]);
        assert_eq!(done.status, 1, "{}", done.out);
        assert!(
            done.out.starts_with("refused by programs: "),
            "{}",
            done.out
        );
        assert!(
            done.out.contains(why) && !done.out.contains("whole"),
            "{}",
            done.out
        );
        let object = sample.run("verify", &["--json"]).json();
        assert_eq!(object["whole"], false);
        assert!(
            object["refused"].as_str().unwrap().contains(why),
            "{object}"
        );
        let trusted = sample.run("verify", &["--trust-others"]).well();
        assert!(trusted.starts_with("whole: "), "{trusted}");
    }
}

#[test]
fn what_was_computed_again_is_no_damage_after_a_compaction() {
    let sample = Sample::new();
    let (file, bytes) = damage_one_result(&sample.path);
    std::fs::write(file, bytes).unwrap();
    assert_eq!(sample.run("verify", &[]).status, 1);
    let sde = engine(&sample.path);
    energy.call(&sde, "STO-3G", 0).unwrap();
    assert_eq!(sde.stats().total.computed, 1);
    sde.finish().unwrap();
    drop(sde);
    // What was replaced stays for a time of grace, and does not count any more.
    sample.run("gc", &[]).well();
    let done = sample.run("verify", &[]);
    assert_eq!(done.status, 0, "{}", done.out);
}

/// Two processes that saved at one time have a generation each: what the one replaced the other still lists.
#[test]
fn what_was_replaced_is_not_lost_whoever_lists_it() {
    let sample = Sample::new();
    let other = sample.path.with_file_name("other");
    copy(&sample.path, &other);
    let before = files(&other);
    let sde = engine(&other);
    energy.call(&sde, "new", 0).unwrap();
    sde.finish().unwrap();
    drop(sde);
    for _ in 0..2 {
        let limit = ["--capacity", "0", "--grace", "0s"];
        sample.run("gc", &limit).well();
    }
    let is_new = |file: &&PathBuf| !before.contains(file);
    for file in files(&other).iter().filter(is_new) {
        std::fs::copy(file, sample.path.join(file.strip_prefix(&other).unwrap())).unwrap();
    }
    let manifests = Inspection::open(&sample.path).unwrap().manifests().unwrap();
    assert_eq!(manifests.heads().count(), 2);
    let verified = sample.run("verify", &[]);
    assert_eq!(verified.status, 0, "{}", verified.out);
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
