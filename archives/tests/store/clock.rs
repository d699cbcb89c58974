//! Clocks that are wrong: what was computed last is what counts, whatever they say.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sde::archiver::{ArchiveError, Archiver, Batch, Saved, SavedEntry, SavedResult, Selection};
use sde::record::Record;
use sde::{Policy, SavePolicy, Sde, Source, inputs};
use sde_archives::DirStore;

/// A store on a machine whose clock is ahead.
struct Ahead(DirStore, Duration);

impl Archiver for Ahead {
    fn save(&self, batch: &Batch) -> Result<Saved, ArchiveError> {
        let result = |result: SavedResult<'_>| {
            let value = result.value.map(|(value, codec)| (value.clone(), codec));
            (result.name.to_owned(), result.tags, value)
        };
        let entry = |entry: &SavedEntry| {
            let mut record = Record::clone(entry.record());
            record.made_at += self.1;
            SavedEntry::new(record, batch.selection, entry.results().map(result))
        };
        let mut ahead = Batch::new(batch.selection);
        ahead.entries = batch.entries.iter().map(entry).collect();
        ahead.marks.clone_from(&batch.marks);
        self.0.save(&ahead)
    }

    fn commit(&self, selection: Selection) -> Result<(), ArchiveError> {
        self.0.commit(selection)
    }

    crate::forward!(0: find, find_scratch, marks, describe);
}

static COMPUTED: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// Another value each time, as if what it depends on changed.
#[sde::app(name = "archives.clock.changing")]
fn changing(which: usize) -> u64 {
    COMPUTED[which].fetch_add(1, Ordering::SeqCst)
}

fn engine(store: &Path, ahead: Duration) -> Sde {
    let store = Ahead(DirStore::open(store).unwrap(), ahead);
    let builder = Sde::builder().store(store).save(SavePolicy::EveryResult);
    builder.build().unwrap()
}

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn a_refreshed_result_counts_although_the_clock_was_set_back() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let inputs = inputs! { which: 0_usize };
    let run = |ahead, policy| {
        let sde = engine(&store, ahead);
        let outcome = sde
            .request(&changing, &inputs)
            .policy(policy)
            .run()
            .unwrap();
        sde.finish().unwrap();
        (
            *outcome.results.get::<u64>("result").unwrap(),
            outcome.source,
        )
    };
    assert_eq!(run(HOUR, Policy::Use), (0, Source::Computed));
    assert_eq!(run(Duration::ZERO, Policy::Refresh), (1, Source::Computed));
    assert_eq!(run(Duration::ZERO, Policy::Use), (1, Source::Loaded));
}

#[test]
fn what_takes_the_place_of_an_invalid_result_is_found_although_the_clock_was_set_back() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let ahead = engine(&store, HOUR);
    assert_eq!(*changing.call(&ahead, 1).unwrap(), 0);
    ahead.finish().unwrap();
    let sde = engine(&store, Duration::ZERO);
    let key = sde
        .peek(&changing, &inputs! { which: 1_usize })
        .unwrap()
        .key();
    sde.invalidate(&key, "a test").unwrap();
    assert_eq!(*changing.call(&sde, 1).unwrap(), 1);
    sde.finish().unwrap();
    for _ in 0..2 {
        let later = engine(&store, Duration::ZERO);
        assert_eq!(*changing.call(&later, 1).unwrap(), 1);
        later.finish().unwrap();
        DirStore::open(&store)
            .unwrap()
            .compact(&sde_archives::Retention::new())
            .unwrap();
    }
}

/// The name of a file in the store is no reason to panic.
#[test]
fn a_manifest_with_the_last_number_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    engine(&store, Duration::ZERO).finish().unwrap();
    let name = format!("{}-x.manifest", u64::MAX);
    std::fs::create_dir_all(store.join("manifests")).unwrap();
    std::fs::write(store.join("manifests").join(name), "").unwrap();
    let sde = engine(&store, Duration::ZERO);
    changing.call(&sde, 2).unwrap();
    sde.checkpoint().unwrap();
    sde.finish().unwrap();
    let names = std::fs::read_dir(store.join("manifests")).unwrap();
    let names: Vec<_> = names.map(|one| one.unwrap().file_name()).collect();
    let is_next = |name: &std::ffi::OsString| name.to_string_lossy().starts_with("000000000");
    assert!(names.iter().any(is_next), "{names:?}");
}
