//! A segment is replaced while its writer is in the middle of a write, on a medium where all have each
//! lock: what is acknowledged after that is found.

use std::path::PathBuf;
use std::time::Duration;

use sde::archiver::{ArchiveError, Archiver, Selection};
use sde::ranks::OneProcess;
use sde_archives::{DirStore, Retention};

use crate::engine::{dir, options};
use crate::kit::{CHANGING, Call, Gate, Order, Sim, Then, made};

fn open(sim: &Sim) -> DirStore {
    options(sim).open(dir()).unwrap()
}

fn save(store: &DirStore, number: u64) -> Result<(), ArchiveError> {
    store.save(&made::entries([number])).map(drop)
}

fn lost(sim: &Sim, numbers: impl Iterator<Item = u64>) -> Vec<u64> {
    let store = options(sim).read_only().open(dir()).unwrap();
    let has = |number: &u64| {
        let found = store.find(&made::key(*number)).unwrap();
        let mut results = found.iter().flat_map(|one| &one.results);
        results.any(|one| one.name == made::VALUE && one.payload.is_some())
    };
    numbers.filter(|number| !has(number)).collect()
}

fn compact(sim: &Sim, grace: Duration) {
    let store = options(sim).grace(grace).open(dir()).unwrap();
    store.compact(&Retention::new()).unwrap();
}

/// Does something while a writer is in the middle of its second save; gives what it was told of as saved
/// in the end.
fn meanwhile(sim: &Sim, job: impl FnOnce()) -> Vec<u64> {
    let writer = sim.process();
    let gate = Gate::default();
    let store = open(&writer);
    save(&store, 0).unwrap();
    writer.order_process(Order::of(
        &[Call::Write],
        1,
        Then::StopHalfway(gate.clone()),
    ));
    let saved = std::thread::scope(|scope| {
        let saving = scope.spawn(|| save(&store, 1));
        assert!(gate.wait_for_somebody());
        job();
        gate.open();
        saving.join().unwrap()
    });
    // As if it were killed.
    std::mem::forget(store);
    (0..=u64::from(saved.is_ok())).collect()
}

/// Found by reading: what was written by half was counted as looked at, so that the frame that its writer
/// finished then, and was told of as saved, began in what was replaced.
#[test]
fn what_a_writer_finishes_after_a_compaction_is_found() {
    for grace in [600, 0] {
        let sim = Sim::new();
        sim.lying_locks();
        let saved = meanwhile(&sim, || compact(&sim, Duration::from_secs(grace)));
        // That the name of its file is gone is noticed.
        assert_eq!(saved, [0]);
        assert_eq!(lost(&sim, saved.into_iter()), [0; 0]);
    }
}

/// Found by reading: the writer of a segment was slow, and what it had written came out of order, as on NFS: the frame before
/// the last was not there yet. A compaction passed over that gap, and all to the last frame was replaced; then the frame came,
/// and was acknowledged.
#[test]
fn what_comes_in_a_gap_of_a_segment_that_seems_left_is_found() {
    let sim = Sim::new();
    sim.lying_locks();
    let writer = sim.process();
    let store = open(&writer);
    save(&store, 0).unwrap();
    let segment = || {
        let mut files = sim.files();
        files.retain(|path| path.starts_with(dir().join("entries")));
        files.swap_remove(0)
    };
    let before = sim.content(segment()).len();
    writer.cache_names();
    let both = || store.save(&made::entries([1, 2])).map(drop);
    let (comes, saved) = writer.stopped(&[Call::Sync], 1, both, || {
        let whole = sim.content(segment());
        let mut with_gap = whole.clone();
        with_gap[before..before + 100].fill(0);
        sim.put(segment(), with_gap);
        compact(&sim, Duration::from_secs(600));
        sim.put(segment(), whole);
    });
    assert!(comes);
    saved.unwrap();
    std::mem::forget(store);
    assert_eq!(lost(&sim, 0..3), [0; 0]);
    sim.pass_time(Duration::from_secs(600));
    let compacted = options(&sim)
        .open(dir())
        .unwrap()
        .compact(&Retention::new());
    assert_eq!(compacted.unwrap().replaced, 1);
    assert_eq!(lost(&sim, 0..3), [0; 0]);
}

/// Ranks take in the segments of an earlier job, and a writer that seemed dead goes on in a gap of one.
#[test]
fn what_comes_in_a_gap_of_a_segment_that_ranks_take_in_is_found() {
    let sim = Sim::new();
    sim.lying_locks();
    for number in 3..40 {
        save(&open(&sim), number).unwrap();
    }
    let before = sim.files();
    let writer = sim.process();
    let store = open(&writer);
    save(&store, 0).unwrap();
    let mut segment = sim.files();
    segment.retain(|path| !before.contains(path) && path.starts_with(dir().join("entries")));
    let before = sim.content(&segment[0]).len();
    writer.cache_names();
    let take_in = |number| {
        let store = options(&sim).open_together(dir(), &OneProcess).unwrap();
        save(&store, number).unwrap();
        let committed = store.commit_together(Selection::Checkpoint, &OneProcess);
        committed.unwrap();
    };
    let names = || sim.files().into_iter();
    let both = || store.save(&made::entries([1, 2])).map(drop);
    let (comes, saved) = writer.stopped(&[Call::Sync], 1, both, || {
        let whole = sim.content(&segment[0]);
        let mut with_gap = whole.clone();
        with_gap[before..before + 100].fill(0);
        sim.put(&segment[0], with_gap.clone());
        take_in(40);
        let now = names().find(|path| sim.content(path) == with_gap);
        sim.put(now.unwrap(), whole);
    });
    assert!(comes);
    saved.unwrap();
    std::mem::forget(store);
    assert_eq!(lost(&sim, 0..41), [0; 0]);
    let stem = segment[0].file_stem().unwrap().to_str().unwrap();
    let is_there = || names().any(|path| path.to_string_lossy().contains(stem));
    assert!(is_there());
    for number in 41..44 {
        sim.pass_time(Duration::from_secs(600));
        for more in 0..40 {
            save(&open(&sim), 100 * number + more).unwrap();
        }
        take_in(number);
    }
    assert!(!is_there(), "it was not taken in when a grace was over");
    assert_eq!(lost(&sim, 0..44), [0; 0]);
}

/// A segment that its writer has left loses its name, and has not got the other for good when the power fails. What is lost.
pub fn lost_by_closing(sim: &Sim, seed: u64) -> Option<String> {
    sim.lying_locks();
    let store = open(sim);
    save(&store, 0).unwrap();
    compact(sim, Duration::from_secs(600));
    std::mem::forget(store);
    let lost = lost(&sim.power_loss(seed), 0..1);
    (!lost.is_empty()).then(|| "what was in a closed segment is lost".to_owned())
}

#[test]
fn a_segment_that_is_closed_is_there_after_a_power_failure() {
    for seed in 0..100 {
        assert_eq!(lost_by_closing(&Sim::new(), seed), None, "{seed}");
    }
}

/// Ranks take in a segment whose writer is in the middle of a save.
#[test]
fn what_a_writer_finishes_after_ranks_took_it_in_is_found() {
    let sim = Sim::new();
    sim.lying_locks();
    // So many that they are written anew.
    for number in 2..40 {
        save(&open(&sim), number).unwrap();
    }
    let saved = meanwhile(&sim, || {
        let store = options(&sim).open_together(dir(), &OneProcess).unwrap();
        save(&store, 40).unwrap();
        store
            .commit_together(Selection::Checkpoint, &OneProcess)
            .unwrap();
    });
    // That the name of its file is gone is noticed.
    assert_eq!(saved, [0]);
    assert_eq!(lost(&sim, saved.into_iter().chain(2..41)), [0; 0]);
}

/// A replaced segment loses its name before it is looked at for the last time: what its writer saves from then on goes
/// elsewhere, or is not acknowledged.
#[test]
fn what_is_saved_while_a_replaced_segment_is_removed_is_found() {
    let mut removals = 0;
    for at in 1.. {
        let sim = Sim::new();
        sim.lying_locks();
        let store = open(&sim.process());
        save(&store, 0).unwrap();
        let compacting = sim.process();
        let mut saved = vec![0];
        let job = || compact(&compacting, Duration::ZERO);
        let more = || saved.extend(save(&store, 1).is_ok().then_some(1));
        let (comes, ()) = compacting.stopped(&[Call::Remove], at, job, more);
        assert_eq!(lost(&sim, saved.into_iter()), [0; 0], "{at}");
        std::mem::forget(store);
        if !comes {
            break;
        }
        removals += 1;
    }
    assert!(removals > 0);
}

/// What a killed writer has left by half keeps nobody from removing the rest.
#[test]
fn a_segment_that_ends_in_the_middle_of_a_frame_is_removed_once_it_is_replaced() {
    let sim = Sim::new();
    let segments = || -> Vec<PathBuf> {
        let mut files = sim.files();
        files.retain(|path| path.extension().is_some_and(|e| e == "sde"));
        files
    };
    let writer = sim.process();
    let store = open(&writer);
    save(&store, 0).unwrap();
    let left = segments();
    writer.order_process(Order::of(CHANGING, 1, Then::PowerOff));
    save(&store, 1).unwrap_err();
    drop(store);
    compact(&sim, Duration::ZERO);
    let there: Vec<_> = segments();
    assert!(left.iter().all(|path| !there.contains(path)), "{there:?}");
    assert_eq!(lost(&sim, 0..1), [0; 0]);
}
