//! How a program ends, and what the next one still has to compute.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sde::archiver::{Batch, MemoryArchiver};
use sde::store::DirStore;
use sde::{Builder, Event, SavePolicy};
use sde_tests::{Before, Gate, until};
use tempfile::{TempDir, tempdir};

use super::child::{Program, tell, wait};
use super::{POINTS, compute, left_to_compute};

const ALL: u64 = POINTS + 1;

/// Computes, and has saved nothing when it is ended.
pub fn waits(store: &Path) {
    let builder = sde::builder(store).unwrap().save(SavePolicy::OnRequest);
    let sde = builder.build().unwrap();
    compute(&sde);
    tell("computed");
    wait();
    tell("still there");
    std::mem::forget(sde);
}

pub fn waits_without_signals(store: &Path) {
    let builder = sde::builder(store).unwrap().save(SavePolicy::OnRequest);
    let sde = builder.without_signals().build().unwrap();
    compute(&sde);
    tell("computed");
    wait();
    std::mem::forget(sde);
}

/// A program that has computed, and its store.
fn computed(job: &str) -> (TempDir, Program) {
    let folder = tempdir().unwrap();
    let mut program = Program::start(job, folder.path());
    program.told("computed");
    (folder, program)
}

/// Found by using it: Ctrl-C lost everything, also where checkpoints on signals were asked for.
#[test]
fn what_is_ended_by_a_signal_is_saved_before() {
    for (name, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        let (folder, program) = computed("waits");
        program.signal(name);
        let (status, _, error) = program.ended();
        assert_eq!(status.signal(), Some(number));
        let line =
            format!("sde: SIG{name}: saving what is new, then ending; once more ends at once\n");
        assert_eq!(error, line);
        assert_eq!(left_to_compute(folder.path()), 0);
    }
}

/// Nobody else can write to it, as to a pager or a terminal that stands still.
pub fn holds_standard_error(store: &Path) {
    let held = std::io::stderr().lock();
    let other = std::thread::spawn(|| {
        for number in 0..50 {
            sde::warning!("the trouble {number} of another thread");
        }
    });
    let builder = sde::builder(store).unwrap();
    let sde = builder.save(SavePolicy::OnRequest).build().unwrap();
    compute(&sde);
    for number in 0..10 {
        sde::warning!("the trouble {number} of this one");
    }
    tell("computed");
    wait();
    drop(held);
    other.join().unwrap();
    std::mem::forget(sde);
}

/// Found by a hostile program: a thread that warned held a lock while it wrote, and a signal was told before anything was saved: with
/// nobody to read, the program stood still, and nothing but `kill -9` ended it.
#[test]
fn who_can_not_be_told_holds_up_nothing() {
    let (folder, program) = computed("holds standard error");
    program.signal("TERM");
    assert_eq!(program.ended().0.signal(), Some(15));
    assert_eq!(left_to_compute(folder.path()), 0);
}

#[test]
fn usr1_saves_and_the_program_goes_on() {
    let (folder, mut program) = computed("waits");
    program.signal("USR1");
    program.showed("SIGUSR1: saving what is new\n");
    program.signal("TERM");
    assert_eq!(program.ended().0.signal(), Some(15));
    assert_eq!(left_to_compute(folder.path()), 0);
}

#[test]
fn signals_can_be_left_alone() {
    let (folder, program) = computed("waits without signals");
    program.signal("INT");
    let (status, _, error) = program.ended();
    assert_eq!((status.signal(), &*error), (Some(2), ""));
    assert_eq!(left_to_compute(folder.path()), ALL);
}

/// As under `nohup`.
#[test]
fn an_ignored_signal_stays_ignored() {
    let folder = tempdir().unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]);
    shell.arg(std::env::current_exe().unwrap());
    let mut program = Program::by(shell, "waits", folder.path());
    program.told("computed");
    program.signal("HUP");
    program.go_on();
    program.told("still there");
    let (status, _, error) = program.ended();
    assert!(status.success());
    assert_eq!(error, "");
}

/// A program with a handler of its own.
pub fn handles(store: &Path) {
    let came = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&came)).unwrap();
    let sde = sde::open(store).unwrap();
    compute(&sde);
    tell("computed");
    wait();
    // Whichever thread the signal is given to may come to it later than this one is told to go on.
    until("the handler ran", || came.load(Ordering::SeqCst));
    tell("handled");
}

#[test]
fn a_handled_signal_stays_the_programs_own() {
    let (folder, mut program) = computed("handles");
    program.signal("INT");
    program.go_on();
    program.told("handled");
    assert!(program.ended().0.success());
    // It ended in the ordinary way, which saves too.
    assert_eq!(left_to_compute(folder.path()), 0);
}

/// Has a store that never comes to the end of a save.
pub fn hangs() {
    let hanging = Before(MemoryArchiver::new(), |_: &Batch| {
        tell("saving");
        Gate::new().pass();
        Ok(())
    });
    let builder = Builder::for_program().store(hanging);
    let sde = builder.save(SavePolicy::OnRequest).build().unwrap();
    compute(&sde);
    tell("computed");
    wait();
}

#[test]
fn a_second_signal_ends_at_once() {
    for (name, number) in [("INT", 2), ("TERM", 15)] {
        let mut program = Program::start("hangs", Path::new(""));
        program.told("computed");
        program.signal(name);
        program.told("saving");
        program.signal(name);
        assert_eq!(program.ended().0.signal(), Some(number));
    }
}

/// Tells when the background has saved, and waits to be killed.
pub fn saves_and_waits(store: &Path) {
    let told = |event: &Event| {
        if let Event::Saved { .. } = event {
            tell("saved");
        }
    };
    let sde = sde::builder(store).unwrap().observer(told).build().unwrap();
    compute(&sde);
    wait();
}

#[test]
fn what_the_background_saved_survives_a_kill() {
    let folder = tempdir().unwrap();
    let mut program = Program::start("saves and waits", folder.path());
    program.told("saved");
    program.signal("KILL");
    assert_eq!(program.ended().0.signal(), Some(9));
    // All was computed before the first time.
    assert_eq!(left_to_compute(folder.path()), 0);
}

/// In whatever way a program ends that calls nothing.
#[test]
fn a_program_that_just_ends_has_saved() {
    let folder = tempdir().unwrap();
    let sde = sde::open(folder.path().join("store")).unwrap();
    assert_eq!(compute(&sde), ALL);
    drop(sde);
    assert!(DirStore::open_read_only(folder.path().join("store")).is_ok());
    assert_eq!(left_to_compute(&folder.path().join("store")), 0);
}
