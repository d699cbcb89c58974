//! Ranks that are sent SIGTERM, as a batch system does before it kills them: the next job goes on from a state that was
//! saved then.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sde::{AppError, Event, Handle, SavePolicy};
use sde_tests::mpirun::{Job, as_ranks_with, case};

/// Where the store of a job is.
const STORE: &str = "SDE_TEST_STORE";

/// At which step the first rank is sent the signal; each other is one step later.
const STEP: u64 = 5;

/// This rank in the whole job.
static RANK: AtomicU64 = AtomicU64::new(0);

/// A solver that goes on until its process ends; in the next job it gives the step at which it has gone on.
#[sde::app(name = "signalled.solve", distributed)]
fn solve(sde: &Handle, set: u64) -> Result<u64, AppError> {
    let scratch = sde.scratch::<(u64, u64)>();
    if let Some(state) = scratch.load()? {
        assert_eq!(state.0, set);
        return Ok(state.1);
    }
    for step in 1.. {
        sde.gather("residuals", step)?;
        scratch.save((set, step))?;
        if step == STEP + RANK.load(Ordering::Relaxed) {
            terminate();
        }
    }
    Ok(0)
}

/// Sends this process the signal.
fn terminate() {
    let own = std::process::id().to_string();
    let sent = Command::new("kill").args(["-TERM", &own]).status();
    assert!(sent.is_ok_and(|status| status.success()));
}

/// The program of a rank, if this is one: solves on sets of two ranks.
#[test]
fn as_rank() {
    if case().is_none() {
        return;
    }
    let store = std::env::var_os(STORE).expect("where the store is");
    let builder = sde::mpi::builder(store).expect("a store");
    let sde = builder.with(|builder| {
        // Nothing but the signal saves. Sets wait for one another until the job ends, about.
        let builder = builder.save(SavePolicy::OnRequest);
        let builder = builder.time_limit(Duration::from_secs(9));
        builder.observer(|event: &Event| {
            if let Event::Resumed { app, .. } = event {
                println!("resumed {app}");
            }
        })
    });
    let sde = sde.build().expect("an engine");
    let rank = sde.rank().expect("its rank") as u64;
    RANK.store(rank, Ordering::Relaxed);
    let step = match sde.ranks().expect("ranks") {
        2 => solve.call(&sde, 0),
        _ => sde.split_for(rank as u32 / 2, 0, |part| solve.call(part, rank / 2)),
    };
    println!("rank {rank} went on from {}", *step.expect("a step"));
    sde.finish().expect("saved");
}

fn job(ranks: usize, store: &Path) -> Job {
    as_ranks_with(ranks, "signalled::as_rank", "solve", |command| {
        command.env(STORE, store);
    })
}

/// Found by use: of a run on more than one rank no state was saved, without a word, and the next job began anew.
#[test]
fn a_solver_on_sets_of_two_ranks_goes_on_from_a_state_that_was_saved_at_the_signal() {
    for ranks in [2, 4] {
        let folder = tempfile::tempdir().expect("a folder");
        let store = folder.path().join("store");
        let ended = job(ranks, &store);
        assert_ne!(ended.status, Some(0), "{ended:#?}");
        assert!(!ended.stdout.contains("went on"), "{ended:#?}");
        assert!(!ended.stderr.contains("is not saved"), "{ended:#?}");
        let next = job(ranks, &store);
        next.succeeded();
        assert_eq!(
            next.stdout.matches("resumed signalled.solve").count(),
            ranks
        );
        for rank in 0..ranks {
            let says = format!("rank {rank} went on from ");
            let mut lines = next.stdout.lines();
            let step = lines.find_map(|line| line.split_once(&*says)?.1.parse::<u64>().ok());
            let first = STEP + rank as u64 / 2 * 2;
            assert!(step.is_some_and(|step| step >= first), "{next:#?}");
        }
    }
}
