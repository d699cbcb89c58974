//! When what is new is saved, and that nobody waits for it who did not choose to.

use std::io::Write;
use std::time::Duration;

use sde::archiver::{Batch, MemoryArchiver, Selection};
use sde::store::DirStore;
use sde::{Event, MemoryBudget, Observer, SavePolicy, Sde, Source};
use sde_tests::{Before, Gate, Watch};

use super::Captured;

#[sde::app]
fn cube(x: u64) -> u64 {
    x * x * x
}

fn is_checkpoint(event: &Event) -> bool {
    matches!(event, Event::Saved { kind, .. } if *kind == Selection::Checkpoint.name())
}

#[test]
fn at_intervals_what_is_new_is_saved_without_being_asked_for() {
    let watch = Watch::new();
    let sde = Sde::builder()
        .store(MemoryArchiver::default())
        .save(SavePolicy::Interval(Duration::from_millis(1)))
        .observer(watch.clone())
        .build()
        .unwrap();
    for number in 1..4 {
        cube.call(&sde, number as u64).unwrap();
        watch.reach(number, is_checkpoint);
    }
}

/// A builder that was given a store and nothing else saved on request only, and let memory grow without bound: what a
/// program computed in a night went with a kill.
#[test]
fn a_store_is_saved_to_unless_something_else_is_said() {
    let watch = Watch::new();
    let builder = || Sde::builder().observer(watch.clone());
    let sde = builder().store(MemoryArchiver::new()).build().unwrap();
    cube.call(&sde, 1).unwrap();
    watch.reach(1, is_checkpoint);
    assert!(sde.stats().memory.is_some());
    drop(sde);
    // Whatever is said first.
    let before = watch.count(is_checkpoint);
    let every = |builder: sde::Builder| builder.save(SavePolicy::EveryResult);
    let with_store = |builder: sde::Builder| builder.store(MemoryArchiver::new());
    for (number, builder) in [every(with_store(builder())), with_store(every(builder()))]
        .into_iter()
        .enumerate()
    {
        let builder = builder.memory_budget(MemoryBudget::unlimited());
        let sde = builder.build().unwrap();
        cube.call(&sde, 2).unwrap();
        assert_eq!(watch.count(is_checkpoint), before + number + 1);
        assert!(sde.stats().memory.is_none());
    }
    let alone = Sde::new();
    assert!(alone.stats().memory.is_none());
    // What can only be read is not tried again and again.
    let folder = tempfile::tempdir().unwrap();
    DirStore::open(folder.path()).unwrap();
    let read = DirStore::open_read_only(folder.path()).unwrap();
    let sde = builder().store(read).build().unwrap();
    cube.call(&sde, 3).unwrap();
    assert!(sde.stats().memory.is_none());
    drop(sde);
    assert_eq!(
        watch.count(|event| matches!(event, Event::Warning { .. })),
        0
    );
}

#[test]
fn nobody_waits_for_a_checkpoint_in_the_background() {
    let (gate, watch) = (Gate::new(), Watch::new());
    let slow = Before(MemoryArchiver::new(), move |_: &Batch| {
        gate.pass();
        Ok(())
    });
    let builder = Sde::builder()
        .store(slow)
        .save(SavePolicy::OnRequest)
        .observer(watch.clone());
    let sde = builder.build().unwrap();
    cube.call(&sde, 1).unwrap();
    sde.checkpoint_in_background().unwrap();
    gate.arrived(1);
    // The disk is at it. Hits and computations go on.
    assert_eq!(*cube.call(&sde, 1).unwrap(), 1);
    assert_eq!(*cube.call(&sde, 2).unwrap(), 8);
    let sources = watch.sources("cube");
    assert_eq!(sources.len(), 3);
    assert_eq!(sources[2], Source::Computed);
    assert_eq!(watch.count(is_checkpoint), 0);
    gate.open();
    watch.reach(1, is_checkpoint);
    // What came after it began is of the next one.
    sde.checkpoint().unwrap();
    assert_eq!(watch.count(is_checkpoint), 2);
}

#[test]
fn an_interval_of_no_time_is_refused() {
    let builder = Sde::builder()
        .store(MemoryArchiver::default())
        .save(SavePolicy::OnRequest);
    let policy = SavePolicy::Interval(Duration::ZERO);
    let error = format!("{:#}", builder.save(policy).build().unwrap_err());
    assert!(error.contains("give a longer one"), "{error}");
}

/// How many batches the store has got when the last `Sde` was dropped.
fn saved_by_the_end(policy: SavePolicy, job: impl FnOnce(&Sde)) -> usize {
    let store = MemoryArchiver::default();
    let builder = Sde::builder()
        .store(store.clone())
        .save(SavePolicy::OnRequest);
    let sde = builder.save(policy).build().unwrap();
    cube.call(&sde, 1).unwrap();
    job(&sde);
    drop(sde);
    store.batches()
}

#[test]
fn what_is_saved_at_the_end_and_what_only_when_it_is_asked_for() {
    // A checkpoint and an archive.
    assert_eq!(saved_by_the_end(SavePolicy::OnRequest, |_| {}), 2);
    assert_eq!(saved_by_the_end(SavePolicy::Never, |_| {}), 0);
    let checkpoint = |sde: &Sde| sde.checkpoint().unwrap();
    assert_eq!(saved_by_the_end(SavePolicy::Never, checkpoint), 1);
    let finish = |sde: &Sde| sde.finish().unwrap();
    assert_eq!(saved_by_the_end(SavePolicy::Never, finish), 2);
}

#[sde::app(tags(intermediate))]
fn passing(x: u64) -> u64 {
    x + 1
}

#[sde::app(tags(expendable))]
fn cheap(x: u64) -> u64 {
    x
}

#[sde::app(tags(no_cache))]
fn unkept(x: u64) -> u64 {
    x
}

/// Found by using it: an app whose only result is an intermediate was no hit in the next process, with the default policy or
/// an interval that had not passed: it is in no archive, and nobody had made a checkpoint.
#[test]
fn after_the_end_nothing_is_computed_again() {
    use SavePolicy::{EveryResult, InBackground, Interval, OnRequest};
    let hour = Interval(Duration::from_secs(3600));
    for policy in [OnRequest, hour, EveryResult, InBackground] {
        for finish in [true, false] {
            let store = MemoryArchiver::default();
            for computed in [2, 0] {
                let builder = Sde::builder()
                    .store(store.clone())
                    .save(SavePolicy::OnRequest);
                let sde = builder.save(policy).build().unwrap();
                assert_eq!(*passing.call(&sde, 1).unwrap(), 2);
                assert_eq!(*cube.call(&sde, 2).unwrap(), 8);
                assert_eq!(sde.stats().total.computed, computed, "{policy:?}");
                // But for these two.
                assert_eq!(*cheap.call(&sde, 2).unwrap(), 2);
                assert_eq!(*unkept.call(&sde, 2).unwrap(), 2);
                assert_eq!(sde.stats().total.computed, computed + 2, "{policy:?}");
                if finish {
                    sde.finish().unwrap();
                }
            }
        }
    }
}

#[test]
fn without_a_store_there_is_nothing_to_save_to() {
    let error = Sde::new().checkpoint_in_background().unwrap_err();
    assert!(
        format!("{error:#}").contains("there is no store"),
        "{error}"
    );
}

/// Tells the parent process of each checkpoint.
struct Tell;

impl Observer for Tell {
    fn observe(&self, event: &Event) {
        if is_checkpoint(event) {
            let mut out = std::io::stdout().lock();
            writeln!(out, "saved").unwrap();
            out.flush().unwrap();
        }
    }
}

const CHILD: &str = "SDE_TEST_SIGNALS";

#[cfg(unix)]
#[test]
fn signals_of_a_batch_system_make_a_checkpoint() {
    use std::os::unix::process::ExitStatusExt;
    if std::env::var_os(CHILD).is_some() {
        return signalled();
    }
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "save_policies::signals_of_a_batch_system_make_a_checkpoint",
        ])
        .args(["--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout);
    assert_eq!(child.status.signal(), Some(15), "{text}");
    assert_eq!(text.matches("saved\n").count(), 2, "{text}");
}

/// What the child does: it saves on SIGUSR1 and goes on, saves on SIGTERM and ends by it.
#[cfg(unix)]
fn signalled() {
    let watch = Watch::new();
    let sde = Sde::builder()
        .store(MemoryArchiver::default())
        .save(SavePolicy::OnRequest)
        .checkpoint_on_signals()
        .observer(watch.clone())
        .observer(Tell)
        .build()
        .unwrap();
    let send = |signal: &str| {
        let pid = std::process::id().to_string();
        let sent = std::process::Command::new("kill")
            .args([signal, &pid])
            .status();
        assert!(sent.unwrap().success());
    };
    cube.call(&sde, 1).unwrap();
    send("-USR1");
    watch.reach(1, is_checkpoint);
    cube.call(&sde, 2).unwrap();
    send("-TERM");
    // The signal ends this process.
    watch.reach(usize::MAX, is_checkpoint);
}

/// Saving 100,000 results took half a minute without a word.
#[test]
fn a_long_save_says_how_far_it_has_come() {
    let watch = Watch::new();
    let builder = Sde::builder()
        .store(MemoryArchiver::default())
        .save(SavePolicy::OnRequest);
    let sde = builder.observer(watch.clone()).build().unwrap();
    for x in 0..1000 {
        cube.call(&sde, x).unwrap();
    }
    sde.checkpoint().unwrap();
    let mut told = progress(&watch).into_iter();
    assert_eq!(told.next(), Some((64, 1000)));
    assert_eq!(told.last(), Some((1000, 1000)));
    assert_eq!(watch.count(is_checkpoint), 1);
}

/// What was told of a checkpoint: how much is done, and of how much.
fn progress(watch: &Watch) -> Vec<(usize, usize)> {
    let events = watch.events().into_iter();
    let told = events.filter_map(|event| match event {
        Event::Progress {
            label,
            done,
            total,
            nested: false,
            ..
        } => {
            assert_eq!(&*label, "saving the checkpoint");
            Some((done, total))
        }
        _ => None,
    });
    told.collect()
}

/// Found by attacking: when another store came meanwhile, nothing more was told, and the bar of the save stayed on the console.
#[test]
fn a_long_save_that_finds_another_store_says_that_it_is_over() {
    let (captured, watch) = (Captured::default(), Watch::new());
    let exchange = move |event: &Event| {
        if let (Event::Progress { done: 64, .. }, Some(sde)) = (event, captured.get()) {
            sde.load(MemoryArchiver::new()).unwrap();
        }
    };
    let builder = Sde::builder()
        .store(MemoryArchiver::new())
        .save(SavePolicy::OnRequest);
    let builder = builder.observer(watch.clone()).observer(exchange);
    let sde = builder.build().unwrap();
    captured.set(sde.clone()).unwrap();
    for x in 0..200 {
        cube.call(&sde, x).unwrap();
    }
    sde.checkpoint().unwrap();
    assert_eq!(progress(&watch), [(64, 200), (64, 64)]);
}
