//! Which computation of a key counts: whoever chooses chooses the same.

use std::path::Path;
use std::time::Duration;

use sde::archiver::{Archiver, Batch, Codec, SavedEntry, Selection};
use sde::record::{Record, RunId};
use sde::{
    App, AppError, AppInfo, ErasedValue, Fingerprint, Handle, Inputs, Policy, ResultMap,
    ResultSpec, Sde, Source, Tags, inputs,
};
use sde_archives::{DirStore, Retention};
use serde_json::json;

use super::kit::{copy, energy, engine, sde};

/// Saves a computation with one result.
fn save(store: &DirStore, record: Record, value: (ErasedValue, Codec)) {
    let result = ("result", Tags::NONE, Some(value));
    let entry = SavedEntry::new(record, Selection::Archive, [result]);
    let mut batch = Batch::new(Selection::Archive);
    batch.entries.push(entry);
    store.save(&batch).unwrap();
}

/// The same of a record, but with another run, made before it.
fn save_other(store: &DirStore, record: &Record, run: u64, before: Duration) {
    let mut record = record.clone();
    record.made_at -= before;
    record.run = RunId::new(1, run);
    save(
        store,
        record,
        (ErasedValue::new(run as f64), Codec::of::<f64>()),
    );
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
        save_other(&store, &record, run, Duration::ZERO);
    }
    save_other(&store, &record, 8, Duration::from_nanos(1));
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
        let format = ["--format", "json", "-o", "-"];
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
    let now = sde_archives::StoreOptions::new().grace(Duration::ZERO);
    let compacted = now.open(&path).unwrap().compact(&Retention::new()).unwrap();
    assert!(compacted.replaced > 0);
    check(&path);
    let listed = sde(["ls", &text(&path), "--all"]).well();
    assert!(listed.contains("1 entry"), "{listed}");
    sde(["diff", &text(&before), &text(&path)]).well();
}

/// The values of this length lie beside the body of their frame, with digests of their own.
const LONG: usize = 20_000;

/// Has a long result and a short one.
#[derive(Fingerprint)]
struct Long;

impl App for Long {
    fn info(&self) -> AppInfo {
        AppInfo::new("cli.long", "1")
            .result(ResultSpec::new::<Vec<f64>>("result"))
            .result(ResultSpec::new::<f64>("first"))
    }

    fn run(&self, _: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let first = inputs.get::<f64>("number")? + super::kit::OFFSET.get();
        let results = ResultMap::new().with("result", vec![first; LONG]);
        Ok(results.with("first", first))
    }
}

/// A store in a folder with a run of `Long`: its engine, and its key.
fn with_long(path: &Path, number: f64) -> (Sde, String) {
    let sde = engine(path);
    let outcome = sde.request(&Long, &inputs! { number: number }).run();
    let key = outcome.unwrap().key.to_string();
    (sde, key)
}

/// What `export` gives of the first element, after these values were damaged: by their first elements.
fn exported(store: &Path, key: &str, damaged: &[f64]) -> Option<f64> {
    for file in super::kit::files(&store.join("entries")) {
        let mut bytes = std::fs::read(&file).unwrap();
        for number in damaged {
            let value = number.to_le_bytes().repeat(2);
            let at = bytes.windows(16).position(|part| part == value);
            at.into_iter().for_each(|at| bytes[at + 8 * LONG / 2] ^= 1);
        }
        std::fs::write(file, bytes).unwrap();
    }
    let store = store.to_str().unwrap();
    let done = sde(["export", store, key, "result", "--json"]);
    (done.status < 2).then(|| done.json()[0].as_f64().unwrap())
}

/// What each command that chooses a computation says of it.
fn said(store: &Path, before: &Path, key: &str) -> Vec<serde_json::Value> {
    let [store, before] = [store, before].map(|path| path.to_str().unwrap());
    let done = |command: &str, more: &[&str]| {
        let done = sde([&[command, store], more, &["--json"]].concat());
        assert_eq!(done.status, 0, "{}{}", done.out, done.err);
        done.json()
    };
    let shown = done("show", &[key]);
    vec![
        done("ls", &[])["made_at"].clone(),
        shown["record"]["made_at"].clone(),
        done("explain", &[key])["entry"]["made_at"].clone(),
        done("table", &[])["first"].clone(),
        shown["results"][1]["short"].clone(),
        done("export", &[key, "first"]),
        sde(["diff", store, before, "--json"]).json()["same"].clone(),
    ]
}

/// As the engine does: what was to take the place of a computation is not to cost it. `ls`, `table` and `diff` took it.
#[test]
fn one_whose_result_is_damaged_counts_after_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let before = folder.path().join("before");
    let (sde, key) = with_long(&path, 1.0);
    sde.checkpoint().unwrap();
    copy(&path, &before);
    super::kit::OFFSET.set(1.0);
    let inputs = inputs! { number: 1.0 };
    let again = sde.request(&Long, &inputs).policy(Policy::Refresh);
    again.run().unwrap();
    sde.finish().unwrap();
    drop(sde);
    let first = said(&before, &before, &key);
    assert_eq!(first[3..], [json!(1.0), json!("1.0"), json!(1.0), json!(1)]);
    assert_eq!(exported(&path, &key, &[]), Some(2.0));
    let second = said(&path, &before, &key);
    assert_eq!(
        second[3..],
        [json!(2.0), json!("2.0"), json!(2.0), json!(0)]
    );
    assert_eq!(second[..3], vec![second[0].clone(); 3]);
    assert_eq!(exported(&path, &key, &[2.0]), Some(1.0));
    assert_eq!(said(&path, &before, &key), first);
    let outcome = engine(&path).request(&Long, &inputs).run().unwrap();
    assert_eq!(*outcome.results.get::<f64>("first").unwrap(), 1.0);
    assert_eq!(exported(&path, &key, &[1.0]), None);
}

/// The same computation may be there twice, and one of them be damaged.
#[test]
fn what_is_damaged_in_one_frame_is_taken_from_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let (sde, key) = with_long(&path, 3.0);
    sde.finish().unwrap();
    drop(sde);
    assert_eq!(exported(&path, &key, &[3.0]), None);
    let store = DirStore::open(&path).unwrap();
    let found = store.find(&key.parse().unwrap()).unwrap().unwrap();
    let value = (ErasedValue::new(vec![3.0; LONG]), Codec::of::<Vec<f64>>());
    save(&store, found.record.clone(), value);
    drop(store);
    assert_eq!(exported(&path, &key, &[]), Some(3.0));
}
