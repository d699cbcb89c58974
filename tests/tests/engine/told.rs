//! Processes that people tell to stop. Engines with one store each stand for processes.

use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime};

use sde::store::{DirStore, processes};
use sde::{Error, ErrorKind, Event, ResultMap, Sde, SharedWork};
use sde_tests::{Gate, LIMIT, Made, Watch, Watchdog, number, until, x};
use tempfile::{TempDir, tempdir};

/// A process that goes through a list, in which each item waits at a gate.
struct Process {
    sde: Sde,
    watch: Watch,
    gate: Gate,
}

impl Process {
    fn new(store: &Path) -> Self {
        let (watch, gate) = (Watch::new(), Gate::new());
        let builder = Sde::builder()
            .store(DirStore::open(store).unwrap())
            .save(sde::SavePolicy::OnRequest)
            .observer(watch.clone());
        let sde = builder.threads(1).shared_work(SharedWork::On).build();
        let sde = sde.unwrap();
        Self { sde, watch, gate }
    }

    fn app(&self) -> Made {
        let gate = self.gate;
        number("held up", move |_, n| {
            gate.pass();
            Ok(2 * n)
        })
    }

    /// How many of three items are done, and how many were not begun. Something happens while the first is in hand, and the
    /// process has looked whether it is told to stop.
    fn sweeps(&self, store: &Path, from: u64, meanwhile: impl FnOnce()) -> (usize, usize) {
        let (app, list) = (self.app(), (from..from + 3).map(x).collect::<Vec<_>>());
        let results = thread::scope(|scope| {
            let sweep = scope.spawn(|| self.sde.par_map(&app, &list));
            self.gate.arrived(1);
            let keys = list
                .iter()
                .map(|item| self.sde.peek(&app, item).unwrap().key());
            let keys: Vec<_> = keys.collect();
            until("it tells of a run", || {
                let all = processes::list(store).unwrap();
                let mut runs = all.iter().flat_map(|one| &one.runs);
                runs.any(|run| keys.contains(&run.key) && run.about.is_some())
            });
            meanwhile();
            self.gate.open();
            sweep.join().unwrap()
        });
        let is_left = |result: &&Result<ResultMap, Error>| {
            let error = result.as_ref().err().map(Error::kind);
            error.is_some_and(|kind| matches!(kind, ErrorKind::NotStarted { .. }))
        };
        let done = results.iter().filter(|result| result.is_ok());
        (done.count(), results.iter().filter(is_left).count())
    }

    fn is_told(&self, times: usize) -> Vec<Duration> {
        let is_told = |event: &Event| matches!(event, Event::ToldToStop { .. });
        self.watch.reach(times, is_told);
        let events = self.watch.events();
        let left = |event: &Event| match event {
            Event::ToldToStop { left, .. } => Some(*left),
            _ => None,
        };
        events.iter().filter_map(left).collect()
    }
}

fn watched() -> (Watchdog, TempDir) {
    (
        Watchdog::new("a sweep that is told to stop", LIMIT),
        tempdir().unwrap(),
    )
}

#[test]
fn a_sweep_that_is_told_to_stop_begins_nothing_more_and_a_later_process_is_not_told() {
    let (_dog, folder) = watched();
    let store = folder.path();
    let first = Process::new(store);
    let ended = first.sweeps(store, 0, || {
        let told = processes::tell_to_stop(store, None).unwrap();
        let numbers: Vec<_> = told.iter().map(|one| one.process).collect();
        assert_eq!(numbers, [std::process::id()]);
        assert_eq!(first.is_told(1), [Duration::ZERO]);
        // The request is there while the first is.
        let later = Process::new(store);
        assert_eq!(later.sweeps(store, 10, || {}), (3, 0));
        assert_eq!(later.is_told(0), []);
        assert!(store.join("STOP").exists());
    });
    assert_eq!(ended, (1, 2));
    // What was done is in the store: without a request, since nobody called `finish`.
    drop(first);
    let later = Process::new(store);
    assert!(!store.join("STOP").exists());
    assert_eq!(later.sweeps(store, 0, || {}), (3, 0));
    let of = later.sde.stats().total;
    assert_eq!((of.computed, of.loads), (2, 1));
}

#[test]
fn who_is_told_to_stop_later_goes_on_until_then_and_may_be_told_otherwise() {
    let (_dog, folder) = watched();
    let store = folder.path();
    let process = Process::new(store);
    let hours = |hours: u64| SystemTime::now() + Duration::from_secs(3600 * hours);
    assert_eq!(process.sde.time_left(), None);
    let ended = process.sweeps(store, 0, || {
        processes::tell_to_stop(store, Some(hours(10))).unwrap();
        process.is_told(1);
        let left = process.sde.time_left().unwrap();
        assert!(Duration::from_secs(9 * 3600) < left && left <= Duration::from_secs(36_000));
        assert!(processes::cancel_stop(store).unwrap());
        until("that is taken back", || process.sde.time_left().is_none());
        assert!(!processes::cancel_stop(store).unwrap());
        processes::tell_to_stop(store, Some(hours(20))).unwrap();
        assert_eq!(process.is_told(2).len(), 2);
    });
    assert_eq!(ended, (3, 0));
    assert!(process.sde.time_left() > Some(Duration::from_secs(19 * 3600)));
}
