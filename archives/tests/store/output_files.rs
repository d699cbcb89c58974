//! Files that runs have written: their content is in the store, and hits have them there as they were.

use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::time::Duration;
use std::{fs, io};

use sde::key::{Encoder, FingerprintError};
use sde::{
    App, AppError, AppInfo, ErrorKind, Event, Fingerprint, Handle, Inputs, OutputFile, Peek,
    Policy, ResultMap, ResultSpec, SavePolicy, Sde, Tag, inputs,
};
use sde_archives::inspect::{Inspection, Item};
use sde_archives::{DirStore, Retention, StoreOptions};
use tempfile::{TempDir, tempdir};

use super::apps::engine;
use super::log::warnings;
use super::says::one_says;

#[sde::app]
pub fn report(to: &Path, text: &str) -> io::Result<OutputFile> {
    fs::write(to, text)?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o640))?;
    OutputFile::new(to)
}

/// A folder for files, and one for a store.
pub struct Place(TempDir);

impl Place {
    pub fn new() -> Self {
        Self(tempdir().unwrap())
    }

    pub fn store(&self) -> PathBuf {
        self.0.path().join("store")
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn engine(&self) -> Sde {
        engine(&self.store(), SavePolicy::EveryResult).0
    }

    /// Calls an app in a process of its own; gives how many runs that took.
    pub fn call(&self, name: &str, text: &str) -> u64 {
        let sde = self.engine();
        report.call(&sde, &self.file(name), text).unwrap();
        assert_eq!(fs::read_to_string(self.file(name)).unwrap(), text);
        sde.stats().total.computed
    }

    pub fn bytes(&self) -> u64 {
        let files = fs::read_dir(self.store().join("entries")).unwrap();
        files
            .map(|file| file.unwrap().metadata().unwrap().len())
            .sum()
    }

    /// How many contents are in the store.
    pub fn contents(&self) -> usize {
        let mut contents = 0;
        for segment in &Inspection::open(self.store()).unwrap().segments().unwrap() {
            let walked =
                segment.walk(|item| contents += usize::from(matches!(item, Item::Content(_))));
            walked.unwrap();
        }
        contents
    }

    fn compact(&self, retention: &Retention) {
        let store = StoreOptions::new().grace(Duration::ZERO).open(self.store());
        store.unwrap().compact(retention).unwrap();
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_file_that_was_deleted_or_changed_is_put_back_with_its_mode() {
    let place = Place::new();
    let path = place.file("report");
    assert_eq!(place.call("report", "text"), 1);
    let sde = place.engine();
    let change: [&dyn Fn(); 4] = [
        &|| fs::remove_file(&path).unwrap(),
        &|| fs::write(&path, "tixt").unwrap(),
        &|| fs::write(&path, "longer text").unwrap(),
        &|| fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap(),
    ];
    // Of an entry in the store, in memory, and one that was found before.
    for change in change.iter().chain(&change).chain(&change) {
        change();
        let file = report.call(&sde, &path, "text").unwrap();
        assert_eq!(fs::read_to_string(file.path()).unwrap(), "text");
        assert_eq!((mode(&path), file.mode(), file.length()), (0o640, 0o640, 4));
    }
    assert_eq!(sde.stats().total.computed, 0);
    let left = fs::read_dir(place.0.path()).unwrap();
    assert_eq!(left.count(), 2, "nothing unfinished is left");
}

#[test]
fn a_file_that_is_there_stays_the_one_that_it_is() {
    let place = Place::new();
    let path = place.file("report");
    place.call("report", "text");
    let number = |path: &Path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap());
    let before = number(&path);
    assert_eq!(place.call("report", "text"), 0);
    assert_eq!(number(&path), before);
    // Folders that are gone are made again.
    let deep = place.file("deep/er");
    fs::create_dir_all(&deep).unwrap();
    place.call("deep/er/report", "text");
    fs::remove_dir_all(place.file("deep")).unwrap();
    assert_eq!(place.call("deep/er/report", "text"), 0);
}

#[test]
fn one_content_is_in_the_store_once() {
    let place = Place::new();
    let text = "0123456789abcdef".repeat(1 << 14);
    let sde = place.engine();
    for name in ["one", "two"] {
        report.call(&sde, &place.file(name), &text).unwrap();
    }
    drop(sde);
    assert_eq!(place.contents(), 1);
    // Another process refers to what this one has sealed.
    place.call("three", &text);
    assert_eq!(place.contents(), 1);
    place.compact(&Retention::new());
    assert_eq!(place.contents(), 1);
    assert!(place.bytes() < 2 * text.len() as u64);
    for name in ["one", "two", "three"] {
        fs::remove_file(place.file(name)).unwrap();
        assert_eq!(place.call(name, &text), 0);
    }
}

/// Found by reading: a content is looked for in the segment that is being written only, and a long one seals that. So each run
/// stored it again.
#[test]
fn a_content_that_seals_its_segment_is_in_the_store_once() {
    let place = Place::new();
    let text = "0123456789abcdef".repeat(1 << 14);
    let options = StoreOptions::new().segment_size(1 << 16);
    let store = options.open(place.store()).unwrap();
    let builder = Sde::builder().store(store).save(SavePolicy::EveryResult);
    let sde = builder.build().unwrap();
    for name in ["one", "two"] {
        report.call(&sde, &place.file(name), &text).unwrap();
    }
    drop(sde);
    let times = place.contents();
    assert!(times == 1, "the content is in the store {times} times");
}

#[test]
fn without_its_content_a_run_is_computed_again_and_saved_again() {
    let place = Place::new();
    let text = "content ".repeat(1000);
    place.call("report", &text);
    for segment in fs::read_dir(place.store().join("entries")).unwrap() {
        let path = segment.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        let at = bytes
            .windows(32)
            .position(|some| some == &text.as_bytes()[..32]);
        let file = fs::OpenOptions::new().write(true).open(path).unwrap();
        file.write_all_at(b"C", at.unwrap() as u64 + 800).unwrap();
    }
    // A file that is there needs no content.
    assert_eq!(place.call("report", &text), 0);
    fs::remove_file(place.file("report")).unwrap();
    let (computed, warned) = warnings(|| place.call("report", &text));
    assert_eq!(computed, 1);
    let told = |text: &&String| text.contains("the content of an output file");
    assert_eq!(warned.iter().filter(told).count(), 1, "{warned:?}");
    fs::remove_file(place.file("report")).unwrap();
    assert_eq!(place.call("report", &text), 0);
}

#[test]
fn contents_stay_as_long_as_an_entry_needs_them() {
    let place = Place::new();
    for name in ["one", "two"] {
        place.call(name, &"shared ".repeat(1000));
    }
    place.call("three", &"its own ".repeat(1000));
    let delete = || ["one", "two", "three"].map(|name| fs::remove_file(place.file(name)).unwrap());
    let all_are_remembered = || {
        assert_eq!(place.call("one", &"shared ".repeat(1000)), 0);
        assert_eq!(place.call("two", &"shared ".repeat(1000)), 0);
        assert_eq!(place.call("three", &"its own ".repeat(1000)), 0);
    };
    place.compact(&Retention::new());
    assert_eq!(place.contents(), 2);
    delete();
    all_are_remembered();
    // An entry that is not replaced keeps what another segment holds.
    place.call("four", &"shared ".repeat(1000));
    place.compact(&Retention::new());
    assert_eq!(place.contents(), 2);
    delete();
    all_are_remembered();

    let elsewhere = Place::new();
    let store = DirStore::open(place.store()).unwrap();
    let sde = Sde::builder()
        .store(store)
        .save(SavePolicy::OnRequest)
        .build()
        .unwrap();
    sde.archive_to(elsewhere.store()).unwrap();
    drop(sde);
    assert_eq!(elsewhere.contents(), 2);
    fs::rename(elsewhere.store(), place.file("archive")).unwrap();
    fs::remove_dir_all(place.store()).unwrap();
    fs::rename(place.file("archive"), place.store()).unwrap();
    delete();
    all_are_remembered();

    place.compact(&Retention::new().results().max_age(Duration::ZERO));
    assert_eq!(place.contents(), 0);
}

/// A content whose last entry was computed anew goes with it.
#[test]
fn a_content_that_no_entry_needs_goes() {
    let place = Place::new();
    let sde = place.engine();
    let (path, source) = (place.file("report"), place.file("source"));
    for text in ["first ", "second "] {
        fs::write(&source, text.repeat(1000)).unwrap();
        let copy = Copy {
            source: source.clone(),
        };
        let given = inputs! { to: path.clone() };
        let copied = sde.request(&copy, &given);
        copied.policy(Policy::Refresh).run().unwrap();
    }
    drop(sde);
    assert_eq!(place.contents(), 2);
    place.compact(&Retention::new());
    assert_eq!(place.contents(), 1);
}

/// Depends on more than its key says.
struct Copy {
    source: PathBuf,
}

impl Fingerprint for Copy {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.structure("Copy", |_| Ok(()))
    }
    fn shape(to: &mut sde::key::TypeWriter<'_, '_>) {
        to.declared("Copy", 0);
    }
}

impl App for Copy {
    fn info(&self) -> AppInfo {
        AppInfo::new("Copy", "1").result(ResultSpec::new::<OutputFile>("file"))
    }
    fn run(&self, _: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let to = inputs.get::<PathBuf>("to")?;
        fs::copy(&self.source, to)?;
        let file = OutputFile::new(to)?;
        Ok(ResultMap::new().with("file", file))
    }
}

#[test]
fn what_is_no_regular_file_is_neither_followed_nor_replaced() {
    let place = Place::new();
    let (path, other) = (place.file("report"), place.file("other"));
    place.call("report", "text");
    fs::remove_file(&path).unwrap();
    fs::write(&other, "of someone").unwrap();
    let (sde, log) = engine(&place.store(), SavePolicy::EveryResult);
    let given = inputs! { to: path.clone(), text: "text".to_owned() };
    let remembered = || {
        let asked = sde
            .request(&report, &given)
            .policy(Policy::OnlyIfRemembered);
        asked.run().map(drop)
    };
    symlink(&other, &path).unwrap();
    let refused = remembered().unwrap_err();
    assert!(
        matches!(refused.kind(), ErrorKind::NotRemembered { .. }),
        "{refused}"
    );
    let why = |event: &Event| matches!(event, Event::Stale { why, .. } if why.contains("no regular file"));
    assert!(log.events().iter().any(why), "{:?}", log.events());
    assert_eq!(fs::read_to_string(&other).unwrap(), "of someone");
    assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    remembered().unwrap_err();
    fs::remove_dir(&path).unwrap();
    remembered().unwrap();
    assert!(OutputFile::new(place.0.path()).is_err());
}

#[test]
fn threads_that_put_a_file_back_at_once_all_get_it() {
    let place = Place::new();
    let text = "0123456789abcdef".repeat(1 << 14);
    place.call("report", &text);
    let (sde, path) = (place.engine(), place.file("report"));
    for _ in 0..8 {
        fs::remove_file(&path).unwrap();
        let barrier = Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    barrier.wait();
                    report.call(&sde, &path, &text).unwrap();
                    assert_eq!(fs::read_to_string(&path).unwrap(), text);
                });
            }
        });
    }
    assert_eq!(sde.stats().total.computed, 0);
}

/// A result of any type may have files in it.
#[derive(serde::Serialize, serde::Deserialize)]
struct Grids {
    names: Vec<String>,
    files: Vec<Option<OutputFile>>,
}

#[derive(Fingerprint)]
struct Several;

impl App for Several {
    fn info(&self) -> AppInfo {
        AppInfo::new("Several", "1")
            .result(ResultSpec::new::<Grids>("grids"))
            .result(ResultSpec::new::<OutputFile>("log").tagged(Tag::Intermediate))
            .result(ResultSpec::new::<f64>("energy"))
    }
    fn run(&self, _: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let dir = inputs.get::<PathBuf>("dir")?;
        let write = |name: &str| {
            let path = dir.join(name);
            fs::write(&path, name).and_then(|()| OutputFile::new(path))
        };
        let grids = Grids {
            names: vec!["a".to_owned()],
            files: vec![None, Some(write("a")?), Some(write("b")?)],
        };
        let map = ResultMap::new()
            .with("grids", grids)
            .with("log", write("log")?);
        Ok(map.with("energy", -76.0))
    }
}

#[test]
fn files_in_a_result_of_any_type_are_put_back_if_it_is_asked_for() {
    let place = Place::new();
    let given = inputs! { dir: place.0.path().to_owned() };
    place.engine().run(&Several, &given).unwrap();
    let is_there = || ["a", "b", "log"].map(|name| place.file(name).exists());
    let delete = || ["a", "b", "log"].map(|name| drop(fs::remove_file(place.file(name))));
    delete();
    let sde = place.engine();
    assert!(matches!(
        sde.peek(&Several, &given).unwrap(),
        Peek::Load { .. }
    ));
    let got = is_there();
    assert_eq!(got, [false; 3], "nothing is put back for who only looks");
    sde.request(&Several, &given)
        .names(&["energy"])
        .run()
        .unwrap();
    assert_eq!(is_there(), [false; 3]);
    sde.request(&Several, &given).names(&["log"]).run().unwrap();
    assert_eq!(is_there(), [false, false, true]);
    let all = sde.run(&Several, &given).unwrap();
    assert_eq!(is_there(), [true; 3]);
    assert_eq!(all.get::<Grids>("grids").unwrap().names, ["a"]);
    assert_eq!(sde.stats().total.computed, 0);
}

#[test]
fn a_file_that_is_gone_before_it_is_saved_is_computed_again() {
    let place = Place::new();
    let (sde, _) = engine(&place.store(), SavePolicy::OnRequest);
    let path = place.file("report");
    report.call(&sde, &path, "text").unwrap();
    fs::write(&path, "tixt").unwrap();
    let (saved, warned) = warnings(|| sde.checkpoint());
    saved.unwrap_err();
    one_says(&warned, "was deleted or changed before it was saved");
    assert_eq!(place.contents(), 0);
    drop(sde);
    assert_eq!(place.call("report", "text"), 1);
    fs::remove_file(&path).unwrap();
    assert_eq!(place.call("report", "text"), 0);
    // So is one without a store.
    let sde = Sde::new();
    for runs in 1..4 {
        let file = report.call(&sde, &path, "text").unwrap();
        assert!(file.is_unchanged().unwrap());
        report.call(&sde, &path, "text").unwrap();
        assert_eq!(sde.stats().total.computed, runs);
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn an_empty_file_is_one_too() {
    let place = Place::new();
    assert_eq!(place.call("report", ""), 1);
    fs::remove_file(place.file("report")).unwrap();
    assert_eq!(place.call("report", ""), 0);
    place.compact(&Retention::new());
}

/// Another process has given up the only entry that needed a content, or has not made it durable: this one saves its own.
#[test]
fn a_content_that_another_process_saved_is_not_relied_on() {
    let place = Place::new();
    let text = "content ".repeat(20_000);
    place.call("one", &text);
    let sde = place.engine();
    place.compact(&Retention::new().results().max_age(Duration::ZERO));
    report.call(&sde, &place.file("two"), &text).unwrap();
    sde.finish().unwrap();
    drop(sde);
    place.compact(&Retention::new());
    fs::remove_file(place.file("two")).unwrap();
    assert_eq!(place.call("two", &text), 0);
}

#[test]
fn limits_hold_for_contents() {
    let place = Place::new();
    for number in 0..10 {
        place.call("file", &format!("{number} ").repeat(10_000));
    }
    let limit = 100_000;
    assert!(place.bytes() > limit);
    place.compact(&Retention::new().results().capacity(limit));
    assert!(place.bytes() <= limit, "{}", place.bytes());
    // What was saved last stays.
    assert_eq!(place.call("file", &"9 ".repeat(10_000)), 0);
    assert_eq!(place.call("file", &"0 ".repeat(10_000)), 1);
}

/// A bit of a content, of the entry that needs it, of anything between them.
#[test]
fn a_flip_of_any_bit_gives_no_other_content() {
    let place = Place::new();
    let text = "what it holds ".repeat(6);
    place.call("file", &text);
    let mut names = fs::read_dir(place.store().join("entries")).unwrap();
    let path = names.next().unwrap().unwrap().path();
    let bytes = fs::read(&path).unwrap();
    let sde = || {
        let store = StoreOptions::new().read_only().open(place.store()).unwrap();
        Sde::builder()
            .store(store)
            .save(SavePolicy::OnRequest)
            .build()
            .unwrap()
    };
    let mut loaded = 0;
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        fs::write(&path, damaged).unwrap();
        fs::remove_file(place.file("file")).unwrap();
        let sde = sde();
        report.call(&sde, &place.file("file"), &text).unwrap();
        let got = fs::read_to_string(place.file("file")).unwrap();
        assert_eq!(got, text, "{at}");
        loaded += u64::from(sde.stats().total.computed == 0);
    }
    // What is of no entry, and the index.
    assert!(
        (100..bytes.len() as u64 / 2).contains(&loaded),
        "{loaded} of {}",
        bytes.len()
    );
}
