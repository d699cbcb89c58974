//! Looking in other stores: what they have is found, and nothing in them is changed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sde::archiver::Archiver;
use sde::record::Record;
use sde::{Key, OutputFile, Policy, SavePolicy, Sde, Source, Value, inputs};
use sde_archives::inspect::Item;
use sde_archives::{DirStore, Retention, StoreOptions};
use tempfile::{TempDir, tempdir};

use super::apps::{Echo, Table, engine, expected_page, page, records, state};
use super::child::{Worker, setting, tell, wait_for_parent};
use super::log::warnings;
use super::looking::{entries, items};
use super::says::{one_says, says};

/// A folder for stores.
pub struct Stores(pub TempDir);

impl Stores {
    pub fn new() -> Self {
        Self(tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Makes a store in which these pages are.
    pub fn with_pages(&self, name: &str, pages: impl IntoIterator<Item = u64>) -> PathBuf {
        let (sde, _) = engine(&self.path(name), SavePolicy::OnRequest);
        for number in pages {
            page.call(&sde, number).unwrap();
        }
        sde.finish().unwrap();
        self.path(name)
    }

    pub fn options(&self, others: &[&str]) -> StoreOptions {
        looking_in(self.0.path(), others)
    }

    /// The store `mine`, that looks in others too.
    pub fn store(&self, others: &[&str]) -> DirStore {
        self.options(others).open(self.path("mine")).unwrap()
    }

    pub fn engine(&self, others: &[&str]) -> Sde {
        on(self.store(others))
    }

    pub fn remove(&self, name: &str) {
        fs::remove_dir_all(self.path(name)).unwrap();
    }
}

/// Options of a store that looks in these stores of the folder too.
pub fn looking_in(dir: &Path, others: &[&str]) -> StoreOptions {
    let others = others.iter().map(|name| dir.join(name));
    others.fold(StoreOptions::new(), StoreOptions::also)
}

pub fn on(store: DirStore) -> Sde {
    let builder = Sde::builder().store(store).save(SavePolicy::OnRequest);
    builder.build().unwrap()
}

/// How many runs it took to have these pages.
pub fn computed(sde: &Sde, pages: impl IntoIterator<Item = u64>) -> u64 {
    let before = sde.stats().total.computed;
    for number in pages {
        assert_eq!(*page.call(sde, number).unwrap(), expected_page(number));
    }
    sde.stats().total.computed - before
}

pub fn key_of(sde: &Sde, number: u64) -> Key {
    sde.peek(&page, &inputs! { number: number }).unwrap().key()
}

/// The files of a store, with what is in them.
pub fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => drop(all.insert(path.clone(), fs::read(path).unwrap())),
            }
        }
    }
    all
}

fn invalidate(sde: &Sde, number: u64) {
    page.call(sde, number).unwrap();
    sde.invalidate(&key_of(sde, number), "a bad node").unwrap();
    sde.finish().unwrap();
}

#[test]
fn what_any_of_the_stores_has_is_found_and_none_but_ones_own_changes() {
    let stores = Stores::new();
    let (a, b) = (stores.with_pages("a", [1]), stores.with_pages("b", [2]));
    stores.with_pages("mine", [3]);
    let before = [files(&a), files(&b)];
    let sde = stores.engine(&["a", "b"]);
    assert_eq!(computed(&sde, [1, 2, 3]), 0);
    assert_eq!(computed(&sde, [4]), 1);
    sde.finish().unwrap();
    drop(sde);
    assert_eq!([files(&a), files(&b)], before);
    // Without the list only what is short, and so was copied.
    assert_eq!(computed(&stores.engine(&[]), [1, 2, 3, 4]), 0);
}

#[test]
fn an_invalidation_in_any_of_the_stores_counts() {
    let stores = Stores::new();
    let (a, _) = (stores.with_pages("a", [1, 2]), stores.with_pages("b", []));
    invalidate(&on(DirStore::open(&a).unwrap()), 1);
    let sde = stores.engine(&["a", "b"]);
    let peeked = sde.peek(&page, &inputs! { number: 1_u64 }).unwrap();
    says(&peeked.to_string(), "it was invalidated: a bad node");
    assert_eq!(computed(&sde, [1, 2]), 1);
    drop(sde);
    stores.remove("mine");
    // One's own mark of what another has: it counts at once, and lies in one's own store.
    let before = files(&a);
    let sde = stores.engine(&["a", "b"]);
    let key = key_of(&sde, 2);
    sde.invalidate(&key, "a bad node").unwrap();
    assert_eq!(computed(&sde, [2]), 1);
    drop(sde);
    stores.remove("mine");
    let sde = stores.engine(&["a"]);
    sde.invalidate(&key, "a bad node").unwrap();
    sde.finish().unwrap();
    drop(sde);
    assert_eq!(files(&a), before);
    let sde = stores.engine(&["b", "a"]);
    says(
        &sde.peek(&page, &inputs! { number: 2_u64 })
            .unwrap()
            .to_string(),
        "it was invalidated: a bad node",
    );
    assert_eq!(computed(&sde, [2]), 1);
    sde.finish().unwrap();
    // The computation made since is another.
    assert_eq!(computed(&stores.engine(&["a"]), [2]), 0);
}

/// The mark came to the other store when this program had read all marks.
#[test]
fn a_mark_that_the_engine_does_not_know_yet_counts_too() {
    let stores = Stores::new();
    let a = stores.with_pages("a", [1]);
    let store = stores.store(&["a"]);
    let sde = on(store.clone());
    let key = key_of(&sde, 1);
    invalidate(&on(DirStore::open(&a).unwrap()), 1);
    until(|| {
        let found = store.look(&key).unwrap().unwrap();
        // A miss has it look again.
        let _ = store.look(&key_of(&sde, 99)).unwrap();
        found.results[0].payload.is_none()
    });
    assert_eq!(computed(&sde, [1]), 1);
}

/// A computation in another store, with the marks that are made there and here, one after another.
#[test]
fn others_take_no_mark_of_ones_own_back_and_one_takes_back_theirs() {
    let stores = Stores::new();
    let (sde, _) = engine(&stores.path("a"), SavePolicy::OnRequest);
    // Too long to be copied.
    assert!(!loads(&sde, 70));
    drop(sde);
    stores.with_pages("mine", []);
    let of = |name: &str| match name {
        "mine" => stores.engine(&["a"]),
        other => on(DirStore::open(stores.path(other)).unwrap()),
    };
    let given = inputs! { kilobytes: 70_u64 };
    let key = of("a").peek(&text(70), &given).unwrap().key();
    let mark = |name: &str| drop(of(name).invalidate(&key, "a bad node").unwrap());
    let take_back = |name: &str| of(name).undo_invalidate(&key).unwrap();
    let is_used = || {
        let store = stores.options(&["a"]).read_only();
        loads(&on(store.open(stores.path("mine")).unwrap()), 70)
    };
    assert!(is_used());
    mark("mine");
    assert!(!is_used());
    mark("a");
    take_back("a");
    assert!(!is_used(), "it was another's to take back");
    take_back("mine");
    assert!(is_used());
    mark("a");
    assert!(!is_used());
    take_back("mine");
    assert!(is_used());
}

/// Tries again and again, with a bound that no machine needs.
pub fn until(mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn another_computation_serves_where_ones_own_was_invalidated() {
    let stores = Stores::new();
    stores.with_pages("a", [1]);
    stores.with_pages("mine", [1]);
    invalidate(&stores.engine(&[]), 1);
    assert_eq!(computed(&stores.engine(&["a"]), [1]), 0);
    assert_eq!(computed(&stores.engine(&["a"]), [1]), 0);
    assert_eq!(
        entries(&stores.path("mine")).len(),
        1,
        "a copy would serve nobody"
    );
    assert_eq!(computed(&stores.engine(&[]), [1]), 1);
}

fn record(dir: &Path, number: u64) -> Record {
    let sde = on(DirStore::open(dir).unwrap());
    computed(&sde, [number]);
    records(&sde).remove(0)
}

#[test]
fn a_short_entry_is_copied_as_it_is_and_once() {
    let stores = Stores::new();
    let a = stores.with_pages("a", [1]);
    let made = record(&a, 1);
    for _ in 0..2 {
        let sde = stores.engine(&["a"]);
        computed(&sde, [1]);
        sde.finish().unwrap();
    }
    stores.remove("a");
    assert_eq!(entries(&stores.path("mine")).len(), 1);
    let copied = record(&stores.path("mine"), 1);
    let told = |record: &Record| {
        let record = record.clone();
        (
            record.run,
            record.made_at,
            record.took,
            record.host.clone(),
            record.inputs,
        )
    };
    assert_eq!(told(&copied), told(&made));
    for item in items(&stores.path("mine")) {
        if let Item::Journal(saved) = item {
            assert!(saved.journal.apps.values().all(|app| app.computed == 0));
        }
    }
}

fn text(kilobytes: usize) -> Echo<String> {
    Echo {
        app: "text",
        value: Some(Value::new("x".repeat(kilobytes << 10))),
    }
}

/// Whether it was loaded.
pub fn loads(sde: &Sde, kilobytes: usize) -> bool {
    let number = inputs! { kilobytes: kilobytes as u64 };
    let ran = sde.request(&text(kilobytes), &number).run().unwrap();
    let value = ran.results.get::<String>("value").unwrap();
    assert_eq!(value.len(), kilobytes << 10);
    ran.source == Source::Loaded
}

#[test]
fn a_long_entry_stays_where_it_is() {
    let stores = Stores::new();
    let (sde, _) = engine(&stores.path("a"), SavePolicy::OnRequest);
    assert!(!loads(&sde, 63) && !loads(&sde, 64));
    sde.finish().unwrap();
    let sde = stores.engine(&["a"]);
    assert!(loads(&sde, 63) && loads(&sde, 64));
    sde.finish().unwrap();
    drop(sde);
    assert_eq!(entries(&stores.path("mine")).len(), 1);
    stores.remove("a");
    let (sde, warned) = warnings(|| stores.engine(&["a"]));
    one_says(&warned, "nothing is looked up in");
    assert!(loads(&sde, 63) && !loads(&sde, 64));
}

/// Its results are of two classes, and one is not saved at all.
#[test]
fn all_classes_of_an_entry_are_copied() {
    let stores = Stores::new();
    let table = |sde: &Sde| {
        let ran = sde.request(&Table, &inputs! { n: 9_u64 }).run().unwrap();
        ran.results.get::<Vec<f64>>("squares").unwrap();
        ran.source
    };
    let (sde, _) = engine(&stores.path("a"), SavePolicy::OnRequest);
    table(&sde);
    sde.finish().unwrap();
    let sde = stores.engine(&["a"]);
    assert_eq!(table(&sde), Source::Loaded);
    sde.checkpoint().unwrap();
    drop(sde);
    stores.remove("a");
    let store = DirStore::open(stores.path("mine")).unwrap();
    store.compact(&Retention::new()).unwrap();
    assert_eq!(table(&on(store)), Source::Loaded);
}

#[sde::app]
fn report(to: &Path, kilobytes: usize) -> std::io::Result<OutputFile> {
    fs::write(to, "x".repeat(kilobytes << 10))?;
    OutputFile::new(to)
}

#[test]
fn output_files_are_put_back_from_another_store_and_short_ones_are_copied() {
    let stores = Stores::new();
    let file = stores.path("report");
    let put = |sde: &Sde, kilobytes: usize| {
        let _ = fs::remove_file(&file);
        report.call(sde, &file, kilobytes).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().len(), (kilobytes << 10) as u64);
        sde.stats().total.computed
    };
    let (sde, _) = engine(&stores.path("a"), SavePolicy::EveryResult);
    assert_eq!((put(&sde, 63), put(&sde, 64)), (1, 2));
    drop(sde);
    let sde = stores.engine(&["a"]);
    assert_eq!((put(&sde, 63), put(&sde, 64)), (0, 0));
    sde.finish().unwrap();
    drop(sde);
    stores.remove("a");
    let store = DirStore::open(stores.path("mine")).unwrap();
    store.compact(&Retention::new()).unwrap();
    let sde = on(store);
    assert_eq!((put(&sde, 63), put(&sde, 64)), (0, 1));
}

#[test]
fn states_of_unfinished_runs_are_not_taken_from_others() {
    let stores = Stores::new();
    let key = Key::from_bytes([7; 32]);
    DirStore::open(stores.path("a"))
        .unwrap()
        .save(&state(key, 3_u64))
        .unwrap();
    let store = stores.store(&["a"]);
    assert!(store.find_scratch(&key).unwrap().is_none());
}

/// An archive has a record of it and no value.
#[sde::app(tags(intermediate))]
fn draft(number: u64) -> u64 {
    number
}

/// Nothing can be saved, and nothing has to be.
#[test]
fn a_store_that_is_only_read_looks_in_others_too() {
    let stores = Stores::new();
    let (made, _) = engine(&stores.with_pages("a", [1]), SavePolicy::EveryResult);
    draft.call(&made, 1).unwrap();
    std::mem::forget(made);
    let mine = stores.with_pages("mine", []);
    let before = files(&mine);
    let store = stores.options(&["a"]).read_only().open(&mine).unwrap();
    let sde = on(store.clone());
    assert_eq!(computed(&sde, [1]), 0);
    draft.call(&sde, 1).unwrap();
    assert_eq!(sde.stats().total.computed, 0);
    sde.finish().unwrap();
    let key = key_of(&sde, 1);
    assert_eq!(store.found_in(&key).unwrap(), Some(&*stores.path("a")));
    assert_eq!(store.found_in(&key_of(&sde, 9)).unwrap(), None);
    assert_eq!(files(&mine), before);
}

/// A refresh is one's own, and counts from then on.
#[test]
fn ones_own_computation_counts() {
    let stores = Stores::new();
    stores.with_pages("a", [1]);
    let sde = stores.engine(&["a"]);
    let one = inputs! { number: 1_u64 };
    let made = sde.request(&page, &one).policy(Policy::Refresh).run();
    let made = made.unwrap().made_by;
    sde.finish().unwrap();
    drop(sde);
    let sde = stores.engine(&["a"]);
    assert_eq!(sde.request(&page, &one).run().unwrap().made_by, made);
}

/// A worker's job: pages that others have, and one of its own.
pub fn share(dir: &Path) {
    let sde = on(looking_in(dir, &["a", "b"]).open(dir.join("mine")).unwrap());
    tell(format_args!("ready"));
    wait_for_parent();
    let new = computed(&sde, (0..40).chain([100 + setting("number").unwrap()]));
    sde.finish().unwrap();
    tell(format_args!("computed {new}"));
}

#[test]
fn two_processes_with_one_list_find_all_and_copy_all() {
    let stores = Stores::new();
    stores.with_pages("a", 0..20);
    stores.with_pages("b", 20..40);
    let dir = stores.0.path();
    let mut both = [0, 1].map(|number| Worker::start("share", dir, &[("number", number)]));
    both.iter_mut().for_each(|worker| worker.wait_for("ready"));
    both.iter_mut().for_each(|worker| worker.stdin = None);
    for worker in &mut both {
        assert_eq!(worker.rest(), ["computed 1"]);
    }
    stores.remove("a");
    stores.remove("b");
    let sde = stores.engine(&[]);
    assert_eq!(computed(&sde, (0..40).chain([100, 101])), 0);
}
