//! The engine on ranks of MPI: the tests of `sde_tests::ranks`, which threads run too.

use std::io::Write;
use std::path::{Path, PathBuf};

use sde_tests::mpirun;
use sde_tests::ranks::{Ran, Ranks, load_waves, run_all, save_waves};

use crate::cases::session;
use crate::job;
use crate::world::Job;

/// Where a job finds the stores of others.
const STORES: &str = "SDE_TEST_STORES";

/// What the ranks of [`on`] do.
pub fn run() {
    let job = Job::new(session());
    // The last line tells in which test a job was that failed.
    let begins = |name: &str| {
        if job.rank() == 0 {
            eprintln!("begins: {name}");
        }
    };
    let Ran { run, skipped } = run_all(&job, begins);
    if job.rank() == 0 {
        println!("run: {}", run.join(", "));
        println!("skipped: {}", skipped.join(", "));
    }
}

/// Runs those that are for so many ranks, and says which are not.
fn on(ranks: usize) {
    let ended = job(ranks, "engine");
    ended.succeeded();
    let line = |what: &str| {
        let mut lines = ended.stdout.lines();
        let found = lines.find_map(|line| line.split_once(what)).unwrap();
        found.1.split(", ").collect::<Vec<_>>()
    };
    let (run, skipped) = (line("run: "), line("skipped: "));
    assert!(run.len() > 2, "{ended:#?}");
    let text = format!(
        "\non {ranks} ranks: {} tests run in {:.1} s; for other numbers of ranks, and not run: {}\n",
        run.len(),
        ended.took.as_secs_f64(),
        skipped.join(", ")
    );
    // Past the harness, which keeps what a test prints that is good.
    let _ = std::io::stdout().write_all(text.as_bytes());
}

#[test]
fn what_holds_for_threads_holds_on_1_rank() {
    on(1);
}

#[test]
fn what_holds_for_threads_holds_on_2_ranks() {
    on(2);
}

#[test]
fn what_holds_for_threads_holds_on_3_ranks() {
    on(3);
}

#[test]
fn what_holds_for_threads_holds_on_4_ranks() {
    on(4);
}

/// And what takes several numbers of ranks, in parts of these.
#[test]
fn what_holds_for_threads_holds_on_8_ranks() {
    on(8);
}

fn store(saved_by: usize) -> PathBuf {
    let stores = std::env::var_os(STORES).unwrap();
    Path::new(&stores).join(format!("store-{saved_by}"))
}

/// What ranks of the first jobs do.
pub fn save() {
    let job = Job::new(session());
    let ranks = Ranks::all_of(&job);
    save_waves(ranks, &store(ranks.size()));
}

/// And of those that go on from that: from each of the stores.
pub fn load() {
    let job = Job::new(session());
    for saved_by in 1..=8 {
        if store(saved_by).exists() {
            load_waves(Ranks::all_of(&job), &store(saved_by));
        }
    }
}

/// The same as a test above, between jobs. By default for some numbers of ranks; all pairs up to 8 with
/// `SDE_LONG_TESTS=1`.
#[test]
fn a_job_goes_on_from_what_one_of_any_other_number_of_ranks_saved() {
    let long = std::env::var_os("SDE_LONG_TESTS").is_some();
    let sizes = if long {
        &[1, 2, 3, 4, 5, 6, 7, 8][..]
    } else {
        &[1, 3, 4]
    };
    let folder = tempfile::tempdir().unwrap();
    for case in ["save", "load"] {
        for size in sizes {
            let set = |command: &mut std::process::Command| {
                command.env(STORES, folder.path());
            };
            mpirun::as_ranks_with(*size, "as_rank", case, set).succeeded();
        }
    }
    let stores = folder.path().read_dir().unwrap().count();
    assert_eq!(stores, sizes.len());
}
