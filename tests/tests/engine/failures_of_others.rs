//! Failures of other processes: those that a call waited for, and those of an array of jobs.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, SystemTime};

use sde::archiver::{Archiver, Batch, Holder, MemoryArchiver, SavedEntry, Selection};
use sde::record::{Record, failure_key};
use sde::store::DirStore;
use sde::{Event, Key, SavePolicy, Sde, SharedWork, Tags};
use sde_tests::{Counter, Gate, LIMIT, Watch, Watchdog, forward, number, says, until, x};
use tempfile::tempdir;

use super::stored_failures::{ended, fails, no_convergence, program, repeats, text};

/// Who waits for another process is given its failure, whatever the clocks say of when that began.
#[test]
fn a_failing_point_of_two_processes_is_computed_once() {
    let _dog = Watchdog::new("a failure that two wait for", LIMIT);
    let (folder, gate, calls) = (tempdir().unwrap(), Gate::new(), Counter::new());
    let app = number("fails", move |_, _| {
        calls.add();
        gate.pass();
        Err(no_convergence())
    });
    let app = app.taking(Duration::from_secs(60));
    let process = |watch: &Watch| {
        let store = DirStore::open(folder.path()).unwrap();
        let builder = Sde::builder().store(store).save(SavePolicy::OnRequest);
        let builder = builder.observer(watch.clone()).threads(1);
        builder.shared_work(SharedWork::On).build().unwrap()
    };
    let watch = Watch::new();
    let (first, asks) = (
        process(&Watch::new()),
        DirStore::open(folder.path()).unwrap(),
    );
    let key = first.peek(&app, &x(1)).unwrap().key();
    let second = process(&watch);
    thread::scope(|scope| {
        let run = scope.spawn(|| text(&first, &app));
        gate.arrived(1);
        until("it is announced", || asks.announced_by(&key).is_some());
        let waits = scope.spawn(|| text(&second, &app));
        watch.reach(1, |event| matches!(event, Event::WaitingForProcess { .. }));
        gate.open();
        assert!(run.join().unwrap().ends_with("failed: no convergence"));
        says(&waits.join().unwrap(), "no convergence (it failed ");
    });
    assert_eq!(calls.get(), 1);
    assert_eq!(repeats(&watch), []);
    // The next program computes it again.
    drop(first);
    assert!(text(&process(&watch), &app).ends_with("failed: no convergence"));
    assert_eq!((calls.get(), repeats(&watch).len()), (2, 1));
}

/// Another process is at each key, until it is asked a second time; then it has failed.
struct FailsElsewhere(MemoryArchiver, Counter, Record);

impl Archiver for FailsElsewhere {
    forward!(0: save, find, find_scratch, marks, describe);

    fn announced_by(&self, _: &Key) -> Option<Holder> {
        (self.1.add() == 0).then(|| Holder::new("far", 7))
    }

    fn catch_up(&self, _: Duration) {
        let nothing = Vec::<(String, Tags, Option<_>)>::new();
        let mut batch = Batch::new(Selection::Checkpoint);
        let failure = SavedEntry::new(self.2.clone(), Selection::Checkpoint, nothing);
        batch.entries.push(failure);
        self.0.save(&batch).unwrap();
    }
}

/// The clock of the other machine is behind by years.
#[test]
fn a_failure_that_comes_during_a_wait_is_given_whatever_the_clocks_say() {
    let (store, calls) = (MemoryArchiver::new(), Counter::new());
    let app = fails(calls, no_convergence).taking(Duration::from_secs(60));
    let sde = program(&store).build().unwrap();
    assert!(sde.run(&app, &x(1)).is_err());
    sde.checkpoint().unwrap();
    let key = failure_key(&sde.peek(&app, &x(1)).unwrap().key());
    let mut record = store.look(&key).unwrap().unwrap().record;
    record.made_at = SystemTime::UNIX_EPOCH;
    let store = FailsElsewhere(MemoryArchiver::new(), Counter::new(), record);
    let builder = Sde::builder().store(store).save(SavePolicy::OnRequest);
    let waits = builder.shared_work(SharedWork::On).build().unwrap();
    says(&text(&waits, &app), "no convergence (it failed ");
    assert_eq!(calls.get(), 1);
}

/// The clock of the other machine is ahead by a day: nobody knows whether it failed since this program began.
#[test]
fn a_failure_of_tomorrow_is_computed_again() {
    let (store, calls) = (MemoryArchiver::new(), Counter::new());
    let app = fails(calls, no_convergence);
    let sde = program(&store).build().unwrap();
    assert!(sde.run(&app, &x(1)).is_err());
    sde.checkpoint().unwrap();
    let key = failure_key(&sde.peek(&app, &x(1)).unwrap().key());
    let mut record = store.look(&key).unwrap().unwrap().record;
    record.made_at = SystemTime::now() + Duration::from_secs(86_400);
    let store = MemoryArchiver::new();
    let mut batch = Batch::new(Selection::Checkpoint);
    let nothing = Vec::<(String, Tags, Option<_>)>::new();
    let failure = SavedEntry::new(record, Selection::Checkpoint, nothing);
    batch.entries.push(failure);
    store.save(&batch).unwrap();
    assert!(program(&store).build().unwrap().run(&app, &x(1)).is_err());
    assert_eq!(calls.get(), 2);
}

const FOLDER: &str = "SDE_TEST_FOLDER";

/// A job that tells of each body. As a test of its own it has nothing to do.
#[test]
fn a_job() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let folder = std::path::Path::new(&folder);
    let bodies = folder.join("bodies");
    let app = number("fails", move |_, _| {
        let told = fs::read_to_string(&bodies).unwrap_or_default();
        fs::write(&bodies, told + "x").unwrap();
        Err(no_convergence())
    });
    let store = DirStore::open(folder.join("store")).unwrap();
    let sde = Sde::builder().store(store).build().unwrap();
    assert!(sde.run(&app, &x(1)).is_err());
    ended(sde);
}

#[test]
fn jobs_of_one_array_share_their_failures() {
    let folder = tempdir().unwrap();
    let bodies = |name: &str, value: &str| {
        let mut job = Command::new(std::env::current_exe().unwrap());
        job.args(["--exact", "failures_of_others::a_job"]);
        job.env(FOLDER, folder.path()).env_remove("SLURM_JOB_ID");
        let done = job.env(name, value).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        fs::read(folder.path().join("bodies")).unwrap().len()
    };
    assert_eq!(
        [
            bodies("SLURM_ARRAY_JOB_ID", "7"),
            bodies("SLURM_ARRAY_JOB_ID", "7")
        ],
        [1, 1]
    );
    assert_eq!(bodies("SLURM_ARRAY_JOB_ID", "8"), 2);
    // A program that is in no array has none to share with.
    assert_eq!(
        [bodies("UNRELATED", "8"), bodies("SLURM_JOB_ID", "8")],
        [3, 4]
    );
    assert_eq!(
        [
            bodies("PBS_JOBID", "5[1].host"),
            bodies("PBS_JOBID", "5[2].host")
        ],
        [5, 5]
    );
}
