//! Scratch of a run that goes on: what later states have superseded goes, and the last never does.

use std::path::Path;

use sde::archiver::{ArchiveError, Archiver, Codec, SavedScratch, Selection};
use sde::ranks::OneProcess;
use sde::{ErasedValue, Storable};
use sde_archives::{DirStore, Retention, StoreOptions};

use crate::count;
use crate::engine::{self, dir};
use crate::kit::{CHANGING, Call, Gate, HOME, LOOKING, Order, Sim, Then, made};
use crate::log::warnings;

/// How many bytes a state has.
const STATE: u64 = 4096;
/// One sixteenth of it is how much scratch is put aside at least.
const SEGMENT: u64 = 16 * STATE;

fn options(sim: &Sim) -> StoreOptions {
    engine::options(sim).segment_size(SEGMENT)
}

fn open(sim: &Sim) -> DirStore {
    options(sim).open(dir()).unwrap()
}

fn state<T: Storable>(run: u64, value: T) -> SavedScratch {
    let (value, codec) = (ErasedValue::new(value), Codec::of::<T>());
    SavedScratch::new("unfinished", made::key(run), value, codec)
}

/// So many bytes that tell the step.
fn numbers(step: u64, bytes: u64) -> Vec<u64> {
    vec![step << 32; bytes as usize / 8]
}

fn save(store: &DirStore, run: u64, step: u64) -> Result<(), ArchiveError> {
    save_all(store, [state(run, numbers(step, STATE))])
}

fn save_all<const N: usize>(
    store: &DirStore,
    states: [SavedScratch; N],
) -> Result<(), ArchiveError> {
    store.save(&made::states(states)).map(drop)
}

/// The state that a store has of a run; 0 if it has none.
fn step(store: &DirStore, run: u64) -> u64 {
    let found = store.find_scratch(&made::key(run)).unwrap();
    found.map_or(0, |state| {
        let state = state.decode(&Codec::of::<Vec<u64>>()).unwrap();
        state.downcast::<Vec<u64>>().unwrap()[0] >> 32
    })
}

/// That the store has no earlier states than these of runs 0, 1 and so on, and warns of no loss.
fn check(sim: &Sim, acknowledged: &[u64]) -> Result<(), String> {
    let (store, warned) = warnings(|| open(sim));
    if let Some(loss) = warned.iter().find(|text| text.contains("lost")) {
        return Err(loss.clone());
    }
    for (run, step) in (0..).zip(acknowledged) {
        let found = self::step(&store, run);
        if found < *step {
            return Err(format!("of run {run} step {found} is found, not {step}"));
        }
    }
    Ok(())
}

fn bytes_in(sim: &Sim, folder: &Path) -> u64 {
    let mut files = sim.files();
    files.retain(|path| path.starts_with(folder));
    files
        .iter()
        .map(|path| sim.content(path).len() as u64)
        .sum()
}

fn scratch(sim: &Sim) -> u64 {
    bytes_in(sim, &dir().join("scratch"))
}

/// Found by using it: a run with a state of 32 MB every 2 s had 332 MB on the disk after 24 s, of which the
/// last two states were of use, and `gc` could do nothing about it.
#[test]
fn a_run_that_goes_on_keeps_its_last_states() {
    for commits in [false, true] {
        let sim = Sim::new();
        let store = open(&sim);
        let mut most = 0;
        for step in 1..=count(60, 1_000) {
            save(&store, 0, step).unwrap();
            // It waits for what the save left to a thread.
            store.finish();
            if commits {
                store.commit(Selection::Checkpoint).unwrap();
            }
            most = most.max(scratch(&sim));
            for left in [sim.after_kill(), sim.power_loss(step)] {
                check(&left, &[step]).unwrap_or_else(|why| panic!("step {step}: {why}"));
            }
        }
        assert!(most <= 8 * STATE, "{most}");
        assert_eq!(sim.misdeeds(), [""; 0]);
        std::mem::forget(store);
    }
}

/// Saves states of runs that save less and less often, until a step. Gives the last step of each, and which writes came in each
/// save.
fn save_rarely(sim: &Sim, steps: u64) -> (Vec<u64>, Vec<std::ops::RangeInclusive<u64>>) {
    // So long that they are no part of their frames.
    const LONG: u64 = 70_000;
    let store = options(sim).segment_size(16 * LONG).open(dir()).unwrap();
    let (mut last, mut writes) = (vec![0; 6], Vec::new());
    for step in 1..=steps {
        for run in (0..6).filter(|run| step % 3_u64.pow(*run) == 0) {
            let before = sim.count(&[Call::Write]);
            let state = state(u64::from(run), numbers(step, LONG));
            save_all(&store, [state]).unwrap();
            // It waits for what the save left to a thread.
            store.finish();
            last[run as usize] = step;
            writes.push(before + 1..=sim.count(&[Call::Write]));
        }
    }
    // As if it were killed.
    std::mem::forget(store);
    (last, writes)
}

/// What is written anew is read back before the states go that it was made of.
#[test]
fn no_state_goes_for_a_copy_that_is_spoilt() {
    const STEPS: u64 = 160;
    let (_, writes) = save_rarely(&Sim::new(), STEPS);
    // After the state itself and an index.
    let copies = writes.into_iter().flat_map(|writes| writes.skip(2));
    let mut tried = 0;
    for at in copies {
        for byte in [100, 2000, 6000] {
            let sim = Sim::new();
            sim.order(Order::of(&[Call::Write], at, Then::Spoil(8 * byte)));
            let (last, _) = save_rarely(&sim, STEPS);
            let checked = check(&sim.after_kill(), &last);
            checked.unwrap_or_else(|why| panic!("write {at}, byte {byte}: {why}"));
            tried += 1;
        }
    }
    assert!(tried > 6, "{tried}");
}

/// Some runs save often, some rarely: those keep no more than their own states.
#[test]
fn runs_that_rarely_save_keep_nobody_elses_states() {
    const RUNS: u64 = 8;
    let sim = Sim::new();
    let store = open(&sim);
    let mut steps = [0; RUNS as usize];
    let mut most = 0;
    for step in 1..=count(600, 4_000) {
        // The first in each step, the second in every third, and so on.
        for run in (0..RUNS).filter(|run| step % 3_u64.pow(*run as u32) == 0) {
            save(&store, run, step).unwrap();
            store.finish();
            steps[run as usize] = step;
        }
        most = most.max(scratch(&sim));
        if step % 20 == 0 {
            check(&sim.power_loss(step), &steps).unwrap();
        }
    }
    let of_use = 2 * RUNS * STATE;
    assert!(most <= 6 * of_use, "{most} of {of_use}");
    check(&sim.power_loss(0), &steps).unwrap();
    std::mem::forget(store);
}

/// A run that has its result needs no scratch, and its states go with those of others.
#[test]
fn a_run_that_has_ended_keeps_no_states() {
    let sim = Sim::new();
    let store = open(&sim);
    for run in 0..count(60, 600) {
        for step in 1..4 {
            save(&store, run, step).unwrap();
        }
        store.save(&made::entries([run])).unwrap();
        store.finish();
        assert!(scratch(&sim) <= 10 * STATE, "{}", scratch(&sim));
    }
    std::mem::forget(store);
}

/// Several runs, now and then a commit or another program's compaction; ends with the power.
fn program(sim: &Sim) -> [u64; 2] {
    let mut steps = [0; 2];
    let Ok(store) = options(sim).open(dir()) else {
        return steps;
    };
    for step in 1..24 {
        let run = usize::from(step % 5 == 0);
        if save(&store, run as u64, step).is_ok() {
            steps[run] = step;
        }
        // Nobody is told of an error.
        match step % 7 {
            3 => drop(store.commit(Selection::Checkpoint)),
            5 => drop(
                options(sim)
                    .open(dir())
                    .map(|one| one.compact(&Retention::new())),
            ),
            _ => {}
        }
    }
    steps
}

#[test]
fn ended_in_each_call_the_last_states_are_there() {
    let all = Sim::new();
    program(&all);
    let calls = all.count(CHANGING);
    assert!(calls > 100, "{calls}");
    for at in 1..=calls {
        let sim = Sim::new();
        sim.seed(at);
        sim.order(Order::of(CHANGING, at, Then::PowerOff));
        let steps = program(&sim);
        let losses = (0..count(4, 40)).map(|seed| sim.power_loss(seed));
        for left in losses.chain([sim.after_kill()]) {
            check(&left, &steps).unwrap_or_else(|why| panic!("ended in call {at}: {why}"));
        }
    }
}

/// Does something with a store of another process, at each of whose calls in turn the run goes on by some
/// states; `done` is told of what came of it.
fn going_on_meanwhile<T: Send>(job: impl Fn(&DirStore) -> T + Sync, done: impl Fn(T)) {
    for at in 1.. {
        let sim = Sim::new();
        let store = open(&sim);
        let go_on = |steps: std::ops::Range<u64>| {
            for step in steps {
                save(&store, 0, step).unwrap();
                store.commit(Selection::Checkpoint).unwrap();
            }
        };
        go_on(1..4);
        let other = sim.process();
        let opened = open(&other);
        let (comes, came) = other.stopped(LOOKING, at, || job(&opened), || go_on(4..12));
        if !comes {
            go_on(4..12);
        }
        done(came);
        check(&sim.power_loss(at), &[11]).unwrap();
        std::mem::forget(store);
        if !comes {
            assert!(at > 3, "{at}");
            break;
        }
    }
}

#[test]
fn who_looks_for_a_state_of_another_finds_one() {
    going_on_meanwhile(
        |store| step(store, 0),
        |found| assert!(found >= 3, "step {found} is found, not 3"),
    );
}

/// Its files go while they are looked at.
#[test]
fn a_compaction_looks_again() {
    going_on_meanwhile(
        |store| store.compact(&Retention::new()),
        |compacted| assert!(compacted.is_ok(), "{compacted:?}"),
    );
}

/// Ranks that append to the disk of their node, and commit now and then.
#[test]
fn a_rank_keeps_its_last_states() {
    let sim = Sim::new();
    let disk = Path::new(HOME).join("disk");
    let store = options(&sim).local(&disk).open_together(dir(), &OneProcess);
    let store = store.unwrap();
    let mut most = 0;
    for step in 1..=count(40, 400) {
        save(&store, 0, step).unwrap();
        store.finish();
        most = most.max(bytes_in(&sim, &disk));
        if step % 15 == 0 {
            let committed = store.commit_together(Selection::Checkpoint, &OneProcess);
            committed.unwrap();
            check(&sim.power_loss(step), &[step]).unwrap();
        }
        assert_eq!(self::step(&store, 0), step);
    }
    assert!(most <= 6 * STATE, "{most}");
    std::mem::forget(store);
}

/// A result that others can read and that is not durable yet supersedes no state.
#[test]
fn what_is_not_durable_supersedes_nothing() {
    // A segment has one state.
    const LONG: u64 = 80 << 10;
    let sim = Sim::new();
    let store = options(&sim).segment_size(64 << 10).open(dir()).unwrap();
    let listing = Gate::default();
    sim.order(Order::of(&[Call::List], 1, Then::Stop(listing.clone())));
    for (run, step) in [(0, 1), (0, 2), (1, 1), (1, 2), (1, 3)] {
        save_all(&store, [state(run, numbers(step, LONG))]).unwrap();
    }
    // The thread that removes superseded states stands before it looks for them.
    assert!(listing.wait_for_somebody());
    store.write_through(&made::entries([0])).unwrap();
    listing.open();
    store.finish();
    assert_eq!(scratch(&sim) / LONG, 4);
    std::mem::forget(store);
}
