//! What each process has done is kept: for those who ask later.

use std::path::Path;

use sde::archiver::Journal;
use sde::{AppError, SavePolicy, Sde};
use sde_archives::inspect::{Computations, Inspection, Listed};
use sde_archives::{DirStore, Retention, StoreOptions};
use tempfile::tempdir;

#[sde::app]
fn half(number: u64) -> Result<u64, AppError> {
    match number % 2 {
        0 => Ok(number / 2),
        _ => Err(AppError::message("it is odd")),
    }
}

fn on(store: DirStore) -> Sde {
    let builder = Sde::builder().store(store).save(SavePolicy::OnRequest);
    builder.save(SavePolicy::OnRequest).build().unwrap()
}

/// The latest of each process, those that began first first.
fn journals(dir: &Path) -> Vec<Journal> {
    let mut found = Computations::<()>::default();
    for segment in Inspection::open(dir).unwrap().segments().unwrap() {
        let each = |item| found.add(item, |_| None);
        segment.walk_wanted(Listed::is_journal, each).unwrap();
    }
    let saved = found.resolve(|(), ()| ()).journals.into_iter().rev();
    saved.map(|saved| saved.journal).collect()
}

fn counts(journal: &Journal) -> [u64; 4] {
    let of = journal.apps.values().next().unwrap();
    [of.computed, of.loads, of.hits(), of.failures]
}

#[test]
fn each_process_leaves_one_that_outlives_compactions() {
    let dir = tempdir().unwrap();
    let first = on(DirStore::open(dir.path()).unwrap());
    half.call(&first, 2).unwrap();
    first.finish().unwrap();
    // It goes on, and says so in place of what it said.
    half.call(&first, 2).unwrap();
    half.call(&first, 4).unwrap();
    half.call(&first, 3).unwrap_err();
    first.finish().unwrap();
    drop(first);
    let second = on(DirStore::open(dir.path()).unwrap());
    half.call(&second, 2).unwrap();
    second.finish().unwrap();
    let stats = second.stats().apps.into_values().next().unwrap();
    drop(second);
    let told = journals(dir.path());
    let expected = [[2, 0, 1, 1], [0, 1, 0, 0]];
    assert_eq!(told.iter().map(counts).collect::<Vec<_>>(), expected);
    assert!(told[0].started < told[1].started && told[0].rank.is_none());
    let saved = told[1].apps.values().next().unwrap().time_saved;
    assert_eq!(saved, stats.time_saved);
    let store = StoreOptions::new().grace(std::time::Duration::ZERO);
    let store = store.open(dir.path()).unwrap();
    assert_eq!(store.compact(&Retention::new()).unwrap().written, 1);
    assert_eq!(journals(dir.path()), told);
}

#[test]
fn a_program_that_only_loads_may_be_told_to_write_nothing() {
    let dir = tempdir().unwrap();
    let run = |uses| {
        let options = StoreOptions::new();
        let options = if uses {
            options
        } else {
            options.without_uses()
        };
        let store = options.open(dir.path()).unwrap();
        let sde = on(store);
        half.call(&sde, 2).unwrap();
        sde.finish().unwrap();
        drop(sde);
        Inspection::open(dir.path())
            .unwrap()
            .segments()
            .unwrap()
            .len()
    };
    assert_eq!((run(false), journals(dir.path())), (1, Vec::new()));
    let got = (run(false), run(true), journals(dir.path()).len());
    assert_eq!(got, (1, 2, 1));
}
