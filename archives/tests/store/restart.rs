//! Going on from what was saved.

use std::path::Path;

use sde::archiver::Archiver;
use sde::record::Changed;
use sde::{ErrorKind, MemoryBudget, Outcome, Peek, Policy, SavePolicy, Sde, Source, inputs};
use sde_archives::{DirStore, Retention};
use tempfile::tempdir;

use super::apps::{Table, engine, expected_page, fresh, orbit, page, plain_orbit, records};

fn table(sde: &Sde, n: u64) -> Outcome {
    sde.request(&Table, &inputs! { n: n }).run().unwrap()
}

/// The lengths of all files of a store.
fn lengths(dir: &Path) -> Vec<u64> {
    let mut lengths = Vec::new();
    for part in ["entries", "scratch"] {
        for file in std::fs::read_dir(dir.join(part)).into_iter().flatten() {
            lengths.push(file.unwrap().metadata().unwrap().len());
        }
    }
    lengths.sort_unstable();
    lengths
}

/// The archive of a store, written to a place of its own.
fn archive_of(dir: &Path, to: &Path) {
    let store = DirStore::open_read_only(dir).unwrap();
    store.archive_to(to).unwrap();
}

#[test]
fn a_checkpoint_has_results_and_intermediates() {
    let (dir, sde) = fresh(SavePolicy::OnRequest);
    let first = table(&sde, 4);
    sde.checkpoint().unwrap();

    let (later, _) = engine(dir.path(), SavePolicy::OnRequest);
    let again = table(&later, 4);
    assert_eq!(again.source, Source::Loaded);
    assert_eq!(again.made_by, first.made_by);
    assert_eq!(*again.results.get::<f64>("sum").unwrap(), 30.0);
    let squares = again.results.get::<Vec<f64>>("squares").unwrap();
    assert_eq!(*squares, [0.0, 1.0, 4.0, 9.0, 16.0]);
    let gone = again.results.get::<String>("text").unwrap_err();
    assert!(matches!(gone.kind(), ErrorKind::Gone { .. }), "{gone}");
    assert_eq!(later.stats().total.computed, 0);
}

#[test]
fn an_archive_alone_has_results_but_no_intermediates() {
    let (dir, sde) = fresh(SavePolicy::EveryResult);
    let key = table(&sde, 4).key;
    sde.finish().unwrap();
    let copy = tempdir().unwrap();
    archive_of(dir.path(), copy.path());

    let stored = DirStore::open_read_only(copy.path()).unwrap().find(&key);
    let stored = stored.unwrap().unwrap();
    let saved =
        |result: &sde::archiver::StoredResult| (result.name.clone(), result.payload.is_some());
    let found: Vec<_> = stored.results.iter().map(saved).collect();
    let expected = [("sum", true), ("squares", false), ("text", false)];
    assert_eq!(
        found,
        expected.map(|(name, there)| (name.to_owned(), there))
    );

    let (later, _) = engine(copy.path(), SavePolicy::OnRequest);
    let named = later
        .request(&Table, &inputs! { n: 4_u64 })
        .names(&["sum"])
        .run()
        .unwrap();
    assert_eq!(named.source, Source::Loaded);
    // Without naming it the intermediate is wanted too, and it is not there.
    assert_eq!(table(&later, 4).source, Source::Computed);
}

/// A program that was killed and started again computes nothing itself; its archive
/// must have the results all the same.
#[test]
fn what_is_loaded_from_a_checkpoint_is_archived() {
    let dir = tempdir().unwrap();
    let (killed, _) = engine(dir.path(), SavePolicy::EveryResult);
    let key = table(&killed, 3).key;
    // As after a kill: nothing is dropped, so nothing is archived.
    std::mem::forget(killed);

    let (sde, _) = engine(dir.path(), SavePolicy::OnRequest);
    assert_eq!(table(&sde, 3).source, Source::Loaded);
    sde.finish().unwrap();
    let copy = tempdir().unwrap();
    archive_of(dir.path(), copy.path());
    let archive = DirStore::open_read_only(copy.path()).unwrap();
    assert!(archive.find(&key).unwrap().unwrap().archived);

    // And once is enough.
    let before = lengths(dir.path());
    let (sde, _) = engine(dir.path(), SavePolicy::OnRequest);
    assert_eq!(table(&sde, 3).source, Source::Loaded);
    sde.finish().unwrap();
    assert_eq!(lengths(dir.path()), before);
}

#[test]
fn only_what_is_new_is_written() {
    let (dir, sde) = fresh(SavePolicy::OnRequest);
    table(&sde, 1);
    sde.checkpoint().unwrap();
    let one = lengths(dir.path());
    sde.checkpoint().unwrap();
    assert_eq!(lengths(dir.path()), one);
    table(&sde, 2);
    sde.checkpoint().unwrap();
    assert!(lengths(dir.path()) > one);
}

#[test]
fn scratch_is_gone_on_from_and_ends_in_the_same_bits() {
    let dir = tempdir().unwrap();
    let steps = 40_u64;
    let (killed, _) = engine(dir.path(), SavePolicy::EveryResult);
    let inputs = inputs! { steps: steps };
    killed.run(&Interrupted, &inputs).unwrap_err();
    std::mem::forget(killed);

    let (sde, _) = engine(dir.path(), SavePolicy::EveryResult);
    let results = sde.run(&Interrupted, &inputs).unwrap();
    let (from, x) = *results.get::<(u64, f64)>("end").unwrap();
    assert_eq!(from, steps / 2, "it went on from the last state saved");
    assert_eq!(x.to_bits(), plain_orbit(0.3, steps).to_bits());

    // The run is finished: its scratch is of no use, even if it is made again.
    let (sde, _) = engine(dir.path(), SavePolicy::EveryResult);
    let again = sde
        .request(&Interrupted, &inputs)
        .policy(Policy::Refresh)
        .run()
        .unwrap();
    assert_eq!(again.results.get::<(u64, f64)>("end").unwrap().0, 0);
}

/// Fails half-way, the first time.
#[derive(sde::Fingerprint)]
struct Interrupted;

impl sde::App for Interrupted {
    fn info(&self) -> sde::AppInfo {
        sde::AppInfo::new("Interrupted", "1").result(sde::ResultSpec::new::<(u64, f64)>("end"))
    }
    fn run(
        &self,
        sde: &sde::Handle,
        inputs: &sde::Inputs,
    ) -> Result<sde::ResultMap, sde::AppError> {
        static BEFORE: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
        let steps = *inputs.get::<u64>("steps")?;
        let scratch = sde.scratch::<(u64, f64)>();
        let (from, mut x) = scratch.resume_or(|| (0, 0.3))?;
        for step in from..steps {
            if step == steps / 2 && !BEFORE.swap(true, std::sync::atomic::Ordering::SeqCst) {
                return Err(sde::AppError::message("as if it were killed"));
            }
            x = 3.99 * x * (1.0 - x);
            scratch.save((step + 1, x))?;
        }
        Ok(sde::ResultMap::new().with("end", (from, x)))
    }
}

#[test]
fn a_checkpoint_has_the_scratch_of_runs_in_progress() {
    let (dir, sde) = fresh(SavePolicy::EveryResult);
    let got = orbit.call(&sde, 0.3, 25).unwrap().to_bits();
    assert_eq!(got, plain_orbit(0.3, 25).to_bits());
    let store = DirStore::open_read_only(dir.path()).unwrap();
    let key = records(&sde)[0].key;
    assert!(store.find(&key).unwrap().is_some());
    assert!(store.find_scratch(&key).unwrap().is_none(), "it has ended");
}

/// Found by reading: each mark that was ever saved stayed in memory. Of a computation the latest counts.
#[test]
fn what_is_invalidated_and_restored_again_and_again_has_one_mark() {
    let dir = tempdir().unwrap();
    let (sde, _) = engine(dir.path(), SavePolicy::OnRequest);
    let key = sde.request(&page, &inputs! { number: 1_u64 }).run();
    let key = key.unwrap().key;
    for _ in 0..10 {
        sde.invalidate(&key, "a test").unwrap();
        sde.undo_invalidate(&key).unwrap();
        sde.checkpoint().unwrap();
    }
    sde.invalidate(&key, "the last").unwrap();
    sde.checkpoint().unwrap();
    drop(sde);
    let marks = DirStore::open(dir.path()).unwrap().marks().unwrap();
    let marks: Vec<_> = marks
        .iter()
        .map(|mark| (&*mark.reason, mark.undone))
        .collect();
    assert_eq!(marks, [("the last", false)]);
}

#[test]
fn an_invalidated_entry_stays_invalid_in_checkpoint_and_archive() {
    let (dir, sde) = fresh(SavePolicy::EveryResult);
    let first = table(&sde, 6);
    sde.archive().unwrap();
    sde.invalidate(&first.key, "that node had bad memory")
        .unwrap();
    sde.checkpoint().unwrap();
    let copy = tempdir().unwrap();
    archive_of(dir.path(), copy.path());

    for place in [dir.path(), copy.path()] {
        let store = DirStore::open_read_only(place).unwrap();
        let marks = store.marks().unwrap();
        assert_eq!(marks.len(), 1);
        assert_eq!(marks[0].reason, "that node had bad memory");
        let (later, _) = engine(place, SavePolicy::OnRequest);
        let again = table(&later, 6);
        assert_eq!(again.source, Source::Computed);
        assert_ne!(again.made_by, first.made_by);
        std::mem::forget(later);
    }

    let (sde, _) = engine(dir.path(), SavePolicy::OnRequest);
    sde.undo_invalidate(&first.key).unwrap();
    sde.finish().unwrap();
    let (later, _) = engine(dir.path(), SavePolicy::OnRequest);
    assert_eq!(table(&later, 6).source, Source::Loaded);
}

#[test]
fn a_refreshed_entry_takes_the_place_of_the_old_one() {
    let (dir, sde) = fresh(SavePolicy::EveryResult);
    let first = table(&sde, 5);
    let inputs = inputs! { n: 5_u64 };
    let again = sde.request(&Table, &inputs).policy(Policy::Refresh).run();
    let again = again.unwrap();
    assert_ne!(again.made_by, first.made_by);
    let (later, _) = engine(dir.path(), SavePolicy::EveryResult);
    assert_eq!(table(&later, 5).made_by, again.made_by);
}

#[test]
fn another_store_can_be_loaded() {
    let (a, b) = (tempdir().unwrap(), tempdir().unwrap());
    let (sde, _) = engine(a.path(), SavePolicy::EveryResult);
    page.call(&sde, 1).unwrap();
    let (sde, log) = engine(b.path(), SavePolicy::EveryResult);
    sde.load(DirStore::open(a.path()).unwrap()).unwrap();
    page.call(&sde, 1).unwrap();
    assert_eq!(log.sources("page"), [Source::Loaded]);
}

/// It was looked for in memory only, which knows nothing when a month-long scan is begun again.
#[test]
fn a_miss_names_the_nearest_run_of_an_earlier_process() {
    let (dir, sde) = fresh(SavePolicy::EveryResult);
    table(&sde, 4);
    let near = table(&sde, 6).key;
    page.call(&sde, 7).unwrap();
    // Read from end to end at first, and by its index then.
    for sealed in [false, true] {
        let (later, _) = engine(dir.path(), SavePolicy::OnRequest);
        let peek = later.peek(&Table, &inputs! { n: 7_u64 }).unwrap();
        let Peek::Miss { nearest, .. } = peek else {
            panic!("{peek:?}");
        };
        let nearest = nearest.expect("a run of the app in the store");
        assert_eq!(nearest.key, near, "the latest of those as near");
        let [only] = &nearest.differences[..] else {
            panic!("{:?}", nearest.differences);
        };
        assert_eq!(only.part, Changed::Input("n".to_owned()));
        assert_eq!(only.earlier.as_deref(), Some("6"));
        assert_eq!(only.later.as_deref(), Some("7"));
        assert_eq!(later.stats().total.loads, 0, "it was looked at only");
        std::mem::forget(later);
        if !sealed {
            sde.finish().unwrap();
            DirStore::open(dir.path())
                .unwrap()
                .compact(&Retention::new())
                .unwrap();
        }
    }
}

/// Room was made in memory: reading it again is enough.
#[test]
fn what_was_dropped_to_make_room_is_loaded() {
    let dir = tempdir().unwrap();
    let builder = Sde::builder()
        .store(DirStore::open(dir.path()).unwrap())
        .save(SavePolicy::OnRequest);
    // A page is 128 numbers: two of them, but not three.
    let sde = builder
        .memory_budget_of("page", MemoryBudget::bytes(2_500))
        .build()
        .unwrap();
    for number in 0..5 {
        page.call(&sde, number).unwrap();
        sde.checkpoint().unwrap();
        sde.archive().unwrap();
    }
    assert!(sde.stats().total.evicted > 0);
    for number in 0..5 {
        assert_eq!(*page.call(&sde, number).unwrap(), expected_page(number));
    }
    let stats = sde.stats().total;
    assert_eq!(stats.computed, 5);
    assert!(stats.loads > 0);
}
