//! How jobs end of which one rank fails.

use std::process::Command;
use std::time::Duration;

use sde_tests::mpirun;

use crate::cases::SIGNAL;
use crate::job;

/// Longer than any way to end takes, and shorter than a hang.
const SECONDS: Duration = Duration::from_secs(60);

#[test]
fn a_rank_that_panics_ends_the_job_by_name() {
    for size in [1, 2, 4, 8] {
        let job = job(size, "panic");
        let last = size - 1;
        job.failed_with(&format!("rank {last} of {size} panicked: no way on ("));
        job.failed_with("; ending the job");
        nobody_else_is_named(&job);
        assert!(job.took < SECONDS, "{job:#?}");
    }
}

/// The other ranks are killed because of it, which is nothing to be told.
fn nobody_else_is_named(job: &mpirun::Job) {
    assert!(!job.stderr.contains("was killed"), "{job:#?}");
}

#[test]
fn a_panic_that_is_survived_ends_nothing() {
    for size in [1, 3] {
        job(size, "survived").succeeded();
    }
}

#[test]
fn a_rank_that_returns_early_is_named_by_those_that_wait() {
    for size in [2, 4, 8] {
        let job = job(size, "early");
        job.failed_with(&format!("rank {} has left", size - 1));
        assert!(job.took < SECONDS, "{job:#?}");
    }
}

/// A job whose last rank is ended by a signal, which nobody else is named for.
fn ended_by_a_signal(size: usize, case: &str) -> mpirun::Job {
    let job = job(size, case);
    // MPICH tells the process, and a guard the rank: that of no other.
    let last = size - 1;
    if mpirun::is_open_mpi() {
        job.failed_with(&format!("process rank {last} with PID"));
    } else {
        job.failed_with(&format!("rank {last} of {size} (process "));
        assert_eq!(job.stderr.matches("was killed").count(), 1, "{job:#?}");
    }
    assert!(job.took < SECONDS, "{job:#?}");
    job
}

#[test]
fn a_rank_that_is_killed_ends_the_job() {
    for size in [2, 4, 8] {
        let job = ended_by_a_signal(size, "killed");
        let all = [job.stdout.as_str(), &job.stderr].concat();
        assert!(all.contains("Killed"), "{job:#?}");
    }
}

/// Found under MPICH: beside the rank that had aborted one was named that was killed for it.
#[test]
fn a_rank_that_aborts_ends_the_job_and_no_other_is_named() {
    for size in [2, 4, 8] {
        ended_by_a_signal(size, "aborts");
    }
}

#[test]
fn a_rank_that_exits_ends_the_job() {
    for size in [2, 4] {
        let job = job(size, "exit");
        let last = size - 1;
        job.failed_with(&format!("rank {last} of {size} exits without having ended"));
        nobody_else_is_named(&job);
        assert!(job.took < SECONDS, "{job:#?}");
    }
}

#[test]
fn a_session_is_started_once() {
    job(2, "twice").succeeded();
}

#[test]
#[ignore = "long: it says so after ten seconds"]
fn a_rank_that_waits_at_the_end_says_so() {
    let job = job(2, "slow");
    job.succeeded();
    let said = job.stderr.matches("rank 0 of 2 has ended its session");
    assert_eq!(said.count(), 1, "{job:#?}");
}

/// Found by using MPICH, whose start sets a handler of SIGUSR1 and loads a library that sets some of SIGTERM, SIGINT and SIGHUP:
/// they were taken for the program's own, and the signal that a batch system sends before the time limit saved nothing.
#[test]
fn a_rank_saves_at_a_signal_whatever_the_start_of_mpi_has_set() {
    for signal in ["USR1", "TERM", "INT", "HUP"] {
        let set = |command: &mut Command| {
            command.env(SIGNAL, signal);
        };
        let job = mpirun::as_ranks_with(1, "as_rank", "signal", set);
        assert!(job.stdout.contains("saved"), "SIG{signal}: {job:#?}");
        assert_eq!(job.status == Some(0), signal == "USR1", "{job:#?}");
    }
}
