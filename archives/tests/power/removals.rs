//! What was given up or replaced does not come back: the record of a removal stays as long as its source may.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sde::archiver::{Archiver, Batch, Selection};
use sde::ranks::OneProcess;
use sde_archives::{Compacted, DirStore, Retention, StoreOptions};
use tracing::Level;

use crate::engine::{dir, options, read_only};
use crate::kit::{CHANGING, Call, Error, Gate, LOOKING, Order, Sim, Then, made};
use crate::log::{listening, warnings};

const HOUR: Duration = Duration::from_secs(3600);

fn open(sim: &Sim, grace: Duration) -> DirStore {
    options(sim).grace(grace).open(dir()).unwrap()
}

/// Has a generation made that lists a new segment of scratch.
fn commit(store: &DirStore, step: u64) -> Result<(), sde::archiver::ArchiveError> {
    store.save(&made::states([made::scratch(9, step)]))?;
    store.commit(Selection::Checkpoint)
}

/// A process saves entry 1 and ends, and a compaction gives it up. Gives a store of the process that compacted.
fn given_up(sim: &Sim, grace: Duration) -> DirStore {
    let store = open(sim, grace);
    store.save(&made::entries([1])).unwrap();
    store.commit(Selection::Checkpoint).unwrap();
    drop(store);
    let store = open(sim, grace);
    let nothing = Retention::new().results().capacity(0);
    assert_eq!(store.compact(&nothing).unwrap().given_up, 1);
    store
}

fn is_back(sim: &Sim) -> bool {
    read_only(sim).find(&made::key(1)).unwrap().is_some()
}

/// The segment was removed, and the next generation did not tell of it any more; the power failed before the name of the
/// file was off the medium.
pub fn back_after_a_power_failure(sim: &Sim, seed: u64) -> Option<String> {
    let store = given_up(sim, Duration::ZERO);
    for step in 1..4 {
        commit(&store, step).unwrap();
        sim.pass_time(HOUR);
    }
    std::mem::forget(store);
    is_back(&sim.power_loss(seed)).then(|| "what was given up is back".to_owned())
}

/// Found by reading: the next generation told nothing of a segment that was not there any more, and the segment was there
/// again after a power failure, with all that had been given up in it.
#[test]
fn a_removal_that_the_power_undoes_is_told_of() {
    for seed in 0..100 {
        assert_eq!(
            back_after_a_power_failure(&Sim::new(), seed),
            None,
            "{seed}"
        );
    }
}

/// Found by reading: a process that could not read a replaced segment for a moment took it for gone, and its generation told
/// nothing of the removal: what was given up came back.
#[test]
fn a_segment_that_cannot_be_read_for_a_moment_stays_replaced() {
    const OPEN: &[Call] = &[Call::Open];
    let mut opens = 0;
    let pairs = (1..20).flat_map(|first| (first + 1..20).map(move |second| (first, second)));
    for (first, second) in pairs {
        let sim = Sim::new();
        let store = given_up(&sim, HOUR);
        // No generation that is kept lists it any more.
        (5..8).for_each(|step| commit(&store, step).unwrap());
        drop(store);
        let process = sim.process();
        // The record is old enough to go.
        process.pass_time(HOUR / 2);
        for at in [first, second] {
            process.order_process(Order::of(OPEN, at, Then::Fail(Error::Io)));
        }
        let opened = options(&process).grace(HOUR).open(dir());
        let committed = opened.and_then(|store| commit(&store, 1));
        opens = process.calls_of_process(OPEN).max(opens);
        assert!(!is_back(&sim), "{first} and {second} failed: {committed:?}");
    }
    assert!((6..20).contains(&opens), "{opens}");
}

/// A process is stopped in each call of a commit, while another has a run go on, whose superseded states are removed: the
/// generation of the first lists what the other has removed, and that is no loss.
#[test]
fn a_generation_that_was_long_in_the_making_tells_of_no_loss() {
    for at in 1.. {
        let sim = Sim::new();
        let slow = sim.process();
        let writer = options(&sim).segment_size(1 << 12).open(dir()).unwrap();
        let go_on = |steps: std::ops::Range<u64>| {
            for step in steps {
                writer
                    .save(&made::states([made::scratch(8, step)]))
                    .unwrap();
                writer.commit(Selection::Checkpoint).unwrap();
            }
        };
        go_on(1..6);
        let store = open(&slow, HOUR);
        let job = || commit(&store, 1);
        let all: Vec<_> = LOOKING.iter().chain(CHANGING).copied().collect();
        let (comes, committed) = slow.stopped(all.leak(), at, job, || go_on(6..30));
        let (opened, warned) = warnings(|| read_only(&sim));
        assert!(
            !warned.iter().any(|text| text.contains(" lost")),
            "call {at}: {committed:?}, {warned:?}"
        );
        std::mem::forget([store, writer, opened]);
        if !comes {
            assert!(at > 20, "{at}");
            break;
        }
    }
}

/// A program that opens a store is stopped in each of its calls, while another compacts it: what the other has replaced and
/// removed is no loss.
#[test]
fn who_opens_a_store_that_is_compacted_is_told_of_no_loss() {
    for at in 1.. {
        let sim = Sim::new();
        for number in 0..3 {
            let store = open(&sim, Duration::ZERO);
            store.save(&made::entries([number])).unwrap();
            store.commit(Selection::Checkpoint).unwrap();
        }
        let reader = sim.process();
        let opens = || warnings(|| read_only(&reader));
        let compacts = || {
            let store = open(&sim, Duration::ZERO);
            for step in 1..4 {
                store.compact(&Retention::new()).unwrap();
                commit(&store, step).unwrap();
                store.save(&made::entries([step])).unwrap();
            }
        };
        let (comes, (_, warned)) = reader.stopped(LOOKING, at, opens, compacts);
        assert!(
            !warned.iter().any(|text| text.contains(" lost")),
            "call {at}: {warned:?}"
        );
        if !comes {
            assert!(at > 20, "{at}");
            break;
        }
    }
}

/// Found by reading: a limit gave up the computation that counts of a key, and one before it, in a segment that is being
/// written, counted again.
#[test]
fn what_a_limit_gives_up_gives_way_to_no_earlier_computation() {
    let sim = Sim::new();
    let save = |store: &DirStore, version: u64| {
        let mut batch = Batch::new(Selection::Checkpoint);
        let entry = made::entry(1, version, batch.selection);
        batch.entries.push(entry);
        store.save(&batch).unwrap();
    };
    let going_on = open(&sim, Duration::ZERO);
    save(&going_on, 1);
    save(&open(&sim, Duration::ZERO), 2);
    let nothing = Retention::new().results().capacity(0);
    open(&sim, Duration::ZERO).compact(&nothing).unwrap();
    let found = read_only(&sim).find(&made::key(1)).unwrap();
    std::mem::forget(going_on);
    assert!(
        found.is_none_or(|found| found.record.run.number == 2),
        "an earlier computation is back"
    );
}

/// Entry 1 was computed twice, by two processes that saved others too. Gives the options of one that takes it out.
fn computed_twice(sim: &Sim) -> StoreOptions {
    for (version, other) in [(1, 2), (2, 3)] {
        let store = open(sim, Duration::ZERO);
        let mut batch = Batch::new(Selection::Checkpoint);
        let entry = made::entry(1, version, batch.selection);
        batch.entries.push(entry);
        store.save(&batch).unwrap();
        store.save(&made::entries([other])).unwrap();
        store.commit(Selection::Checkpoint).unwrap();
    }
    options(&sim.process()).grace(Duration::ZERO)
}

fn take_out(options: StoreOptions) -> Option<Compacted> {
    let wanted = made::key(1);
    let store = options.open(dir()).ok()?;
    store.remove(|one| *one.key == wanted).ok()
}

/// What is left of entry 1: its run's number, which counts the computations.
fn left_of_it(sim: &Sim) -> Option<u64> {
    let store = read_only(sim);
    for other in [2, 3] {
        assert!(store.find(&made::key(other)).unwrap().is_some(), "{other}");
    }
    let found = store.find(&made::key(1)).unwrap();
    found.map(|found| found.record.run.number)
}

/// A removal is ended in each of its calls, by a kill or by the power: an entry is as it was, or gone with what was before it.
#[test]
fn a_removal_that_is_cut_off_takes_out_all_or_nothing() {
    let mut seen = [0; 2];
    for at in 1.. {
        let sim = Sim::new();
        let process = computed_twice(&sim);
        sim.seed(at);
        sim.order(Order::of(CHANGING, at, Then::PowerOff));
        let done = take_out(process);
        let cut_off = sim.is_off();
        let losses = (0..3).map(|seed| sim.power_loss(seed));
        for left in [sim.after_kill()].into_iter().chain(losses) {
            let left = left_of_it(&left);
            assert!(
                matches!(left, None | Some(2)),
                "cut off in call {at}: {left:?}"
            );
            assert!(done.is_none() || left.is_none(), "call {at}: it is back");
            seen[usize::from(left.is_none())] += 1;
        }
        if !cut_off {
            break;
        }
    }
    assert!(seen.iter().all(|times| *times > 10), "{seen:?}");
}

/// Another process saves, compacts and takes out the same, while a removal stops in each of its calls.
#[test]
fn a_removal_beside_others_is_as_if_it_were_alone() {
    for at in 1.. {
        let sim = Sim::new();
        let process = computed_twice(&sim);
        let stopped = sim.process();
        let options = options(&stopped).grace(Duration::ZERO);
        let removes = || take_out(options);
        let meanwhile = || {
            let store = open(&sim, Duration::ZERO);
            store.save(&made::entries([4])).unwrap();
            store.compact(&Retention::new()).unwrap();
            store.commit(Selection::Checkpoint).unwrap();
            take_out(process.clone());
        };
        let all: Vec<_> = LOOKING.iter().chain(CHANGING).copied().collect();
        let (comes, done) = stopped.stopped(all.leak(), at, removes, meanwhile);
        assert!(
            done.is_some_and(|done| done.left == 0),
            "call {at}: {done:?}"
        );
        for left in [sim.after_kill(), sim.power_loss(at)] {
            assert_eq!(left_of_it(&left), None, "call {at}");
            let store = read_only(&left);
            assert!(store.find(&made::key(4)).unwrap().is_some() || !comes);
        }
        if !comes {
            assert!(at > 20, "{at}");
            break;
        }
    }
}

/// What a commit of all ranks supersedes goes when they have acknowledged it, whatever the grace is.
#[test]
fn ranks_that_commit_again_and_again_leave_few_files() {
    let sim = Sim::new();
    let options = options(&sim).grace(HOUR);
    let store = options.open_together(dir(), &OneProcess).unwrap();
    let mut most = 0;
    for number in 0..60 {
        store.save(&made::entries([number])).unwrap();
        store
            .save(&made::states([made::scratch(1000, number)]))
            .unwrap();
        store
            .commit_together(Selection::Checkpoint, &OneProcess)
            .unwrap();
        most = most.max(sim.files().len());
    }
    std::mem::forget(store);
    assert!(most < 12, "{most} files are left");
}

/// What others have written is synced once by each process that vouches for it, and no more.
#[test]
fn a_commit_syncs_what_is_new_only() {
    let sim = Sim::new();
    for number in 0..20 {
        let store = open(&sim, HOUR);
        store.save(&made::entries([number])).unwrap();
    }
    let store = open(&sim, HOUR);
    let syncs = |step| {
        let before = sim.count(&[Call::Sync, Call::SyncDir]);
        commit(&store, step).unwrap();
        sim.count(&[Call::Sync, Call::SyncDir]) - before
    };
    let [first, second] = [1, 2].map(syncs);
    assert!(first >= 20 && second < 10, "{first} and {second} syncs");
}

/// What a manifest lists of a file says nothing of what was written to it later.
#[test]
fn what_is_written_after_a_manifest_is_synced_by_another_that_vouches_for_it() {
    for seed in 0..100 {
        let sim = Sim::new();
        let process = sim.process();
        let writer = open(&process, HOUR);
        writer.save(&made::entries([1])).unwrap();
        commit(&writer, 1).unwrap();
        let gate = Gate::default();
        process.order_process(Order::of(&[Call::Sync], 1, Then::Stop(gate.clone())));
        std::thread::scope(|scope| {
            scope.spawn(|| writer.save(&made::entries([2])));
            assert!(gate.wait_for_somebody());
            let other = open(&sim, HOUR);
            commit(&other, 2).unwrap();
            let (_, warned) = warnings(|| open(&sim.power_loss(seed), HOUR));
            gate.open();
            let lost = warned.iter().find(|text| text.contains("lost"));
            assert_eq!(lost, None, "{seed}");
        });
    }
}

/// Found by reading: a warning was told while locks of the store were held, and a subscriber that used the store hung.
#[test]
fn who_is_warned_may_use_the_store() {
    let sim = Sim::new();
    let process = sim.process();
    let store = open(&process, HOUR);
    commit(&store, 1).unwrap();
    let other = open(&sim, HOUR);
    commit(&other, 1).unwrap();
    let mut manifests = sim.files();
    manifests.retain(|path| path.starts_with(dir().join("manifests")));
    let newest = manifests.pop().unwrap();
    sim.put(&newest, vec![0; 100]);
    let told = Arc::new(AtomicUsize::new(0));
    let used = (store.clone(), Arc::clone(&told));
    let listener = move |_| {
        let (store, told) = &used;
        store.refresh().unwrap();
        told.fetch_add(1, Ordering::Relaxed);
    };
    listening(Level::WARN, listener, || {
        store.refresh().unwrap();
        store.save(&made::states([made::scratch(9, 2)])).unwrap();
        other.save(&made::states([made::scratch(8, 2)])).unwrap();
        // That of what the other has written.
        process.order_process(Order::of(&[Call::Sync], 1, Then::Fail(Error::Io)));
        store.commit(Selection::Checkpoint).unwrap();
    });
    assert_eq!(told.load(Ordering::Relaxed), 2);
}
