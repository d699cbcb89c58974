//! Which computation of a key counts: whoever chooses chooses the same.

use std::path::Path;
use std::time::Duration;

use sde::{
    Archiver, Batch, Codec, ErasedValue, Policy, Record, RunId, SavedEntry, SavedResult, Selection,
    Source, Tags, inputs,
};
use sde_archives::{DirStore, Retention};

use super::kit::{copy, energy, engine, sde};

/// Saves a computation of the same key with another run and value.
fn save(store: &DirStore, record: &Record, run: u64, before: Duration) {
    let mut record = record.clone();
    record.made_at -= before;
    record.run = RunId {
        process: 1,
        number: run,
    };
    let value = (ErasedValue::new(run as f64), Codec::of::<f64>());
    let result = SavedResult {
        name: "result".into(),
        tags: Tags::NONE,
        value: Some(value),
    };
    let entry = SavedEntry {
        record: record.into(),
        results: vec![result],
    };
    let batch = Batch {
        selection: Selection::Archive,
        entries: vec![entry],
        scratch: Vec::new(),
        marks: Vec::new(),
    };
    store.save(&batch).unwrap();
}

/// `show` took that with the lowest run, `ls` that with the highest, `diff` any.
#[test]
fn of_several_that_were_made_at_one_time_all_take_that_which_was_saved_last() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let before = folder.path().join("before");
    let basis = inputs! { basis: "STO-3G".to_owned(), charge: 0_i32 };
    let first = engine(&path);
    let request = first.request(&energy, &basis).policy(Policy::Refresh);
    let key = request.run().unwrap().key;
    first.finish().unwrap();
    drop(first);
    let store = DirStore::open(&path).unwrap();
    let record = store.find(&key).unwrap().unwrap().record;
    for run in [5, 9, 7] {
        save(&store, &record, run, Duration::ZERO);
    }
    save(&store, &record, 8, Duration::from_nanos(1));
    drop(store);
    copy(&path, &before);

    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let check = |path: &Path| {
        let later = engine(path);
        let outcome = later.request(&energy, &basis).run().unwrap();
        assert_eq!(outcome.source, Source::Loaded);
        assert_eq!(*outcome.results.get::<f64>("result").unwrap(), 7.0);
        drop(later);
        let (path, key) = (text(path), key.to_string());
        let format = ["--format", "json", "--to", "-"];
        let exported = sde([&["export", &path, &key], &format[..]].concat());
        assert_eq!(exported.json()["result"], 7.0);
        let shown = sde(["show", &path, &key]).well();
        assert!(shown.contains(": 7.0"), "{shown}");
    };
    check(&path);
    let listed = sde(["ls", &text(&path), "--all", "--json"]).well();
    let objects = listed.lines().map(|line| {
        let object: serde_json::Value = serde_json::from_str(line).unwrap();
        object["state"].as_str().unwrap().to_owned()
    });
    let mut states: Vec<String> = objects.collect();
    states.sort();
    assert_eq!(
        states,
        ["current", "replaced", "replaced", "replaced", "replaced"]
    );
    let now = sde_archives::Options::new().grace(Duration::ZERO);
    let compacted = now.open(&path).unwrap().compact(&Retention::new()).unwrap();
    assert!(compacted.replaced > 0);
    check(&path);
    let listed = sde(["ls", &text(&path), "--all"]).well();
    assert!(listed.contains("1 entry"), "{listed}");
    sde(["diff", &text(&before), &text(&path)]).well();
}
