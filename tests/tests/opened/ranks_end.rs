//! How a program on several ranks is ended by a signal, and where the next one goes on. Threads stand for ranks.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sde::ranks::ThreadGroup;
use sde::store::{Cbor, DirStore};
use sde::{AppError, Event, Handle, SavePolicy, Sde};
use tempfile::tempdir;

use super::child::{Program, tell, wait};

/// At which step a program tells that it is there.
const STEP: u64 = 5;

/// Before which step the second rank waits.
static WAITS_BEFORE: AtomicU64 = AtomicU64::new(u64::MAX);

/// A solver that goes on until its process ends; in the next program it gives the step at which it has gone on.
#[sde::app(name = "ends.inner", distributed)]
fn inner(sde: &Handle) -> Result<u64, AppError> {
    let scratch = sde.scratch::<u64>();
    if let Some(step) = scratch.load()? {
        return Ok(*step);
    }
    for step in 1.. {
        sde.gather("residuals", step)?;
        if sde.rank()? == 1 && step == WAITS_BEFORE.load(Ordering::Relaxed) {
            tell("one waits");
            wait();
        }
        scratch.save(step)?;
        if sde.rank()? == 0 && step == STEP {
            tell("computing");
        }
    }
    Ok(0)
}

/// A solver that calls the other in its steps.
#[sde::app(name = "ends.outer", distributed)]
fn outer(sde: &Handle) -> Result<(u64, u64), AppError> {
    let scratch = sde.scratch::<u64>();
    let mut step = scratch.resume_or(|| 0)?;
    if step == 0 {
        for _ in 0..STEP {
            sde.gather("a first guess", step)?;
            step += 1;
            scratch.save(step)?;
        }
    }
    Ok((step, *inner.call(sde)?))
}

/// What two ranks do with the store.
fn on_ranks<T: Send>(store: &Path, program: impl Fn(&Sde) -> T + Sync) -> Vec<T> {
    let store = DirStore::open(store).unwrap();
    ThreadGroup::run(2, |group| {
        let builder = Sde::builder().store(store.clone());
        let builder = builder.save(SavePolicy::OnRequest).checkpoint_on_signals();
        // Who waits for a rank in vain does so until the job ends.
        let builder = builder.time_limit(Duration::from_secs(9));
        let builder = builder.observer(|event: &Event| {
            if let Event::Warning { message, .. } = event {
                eprintln!("{message}");
            }
        });
        let sde = builder.process_group(group, Cbor).build().unwrap();
        program(&sde)
    })
}

pub fn solves(store: &Path, one_waits: bool) {
    if one_waits {
        WAITS_BEFORE.store(2 * STEP, Ordering::Relaxed);
    }
    on_ranks(store, |sde| outer.call(sde).map(|_| ()));
}

/// Found by use: of a run of two ranks no state was saved when the batch system asked the job to end, and nobody was
/// told. That of the run in which it was nested was not either.
#[test]
fn ranks_save_a_state_in_common_before_they_end() {
    let folder = tempdir().unwrap();
    let mut program = Program::start("solves on ranks", folder.path());
    program.told("computing");
    program.signal("TERM");
    let (status, _, error) = program.ended();
    assert_eq!(status.signal(), Some(15), "{error}");
    assert!(!error.contains("is not saved"), "{error}");
    let came = on_ranks(folder.path(), |sde| *outer.call(sde).unwrap());
    let (of_outer, of_inner) = came[0];
    assert_eq!((came[0], of_outer), (came[1], STEP));
    assert!(of_inner >= STEP, "gone on from step {of_inner}");
}

#[test]
#[ignore = "long: the others wait for eight seconds"]
fn a_rank_that_does_not_come_holds_up_the_end_for_a_while_and_its_runs_are_named() {
    let folder = tempdir().unwrap();
    let mut program = Program::start("solves on ranks of which one waits", folder.path());
    program.told("one waits");
    program.signal("TERM");
    let (status, _, error) = program.ended();
    assert_eq!(status.signal(), Some(15), "{error}");
    for run in ["ends.inner [", "ends.outer ["] {
        let named = error.lines().find(|line| line.contains("is not saved"));
        assert!(named.is_some_and(|line| line.contains(run)), "{error}");
    }
}
