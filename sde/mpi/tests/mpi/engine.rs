//! The engine on ranks of MPI: the tests of `sde_tests::ranks`, which threads run too.

use std::io::Write;
use std::path::{Path, PathBuf};

use sde_tests::mpirun;
use sde_tests::ranks::{Ranks, Sizes, TESTS, load_waves, run_all, save_waves};

use crate::cases::session;
use crate::world::Job;
use crate::{SIZES, job};

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
    let run = run_all(&job, begins);
    if job.rank() == 0 {
        println!("run: {run}");
    }
}

/// Runs those that are for so many ranks, and says how many these are.
fn on(ranks: usize) {
    let ended = job(ranks, "engine");
    ended.succeeded();
    let mut lines = ended.stdout.lines();
    let (_, run) = lines.find_map(|line| line.split_once("run: ")).unwrap();
    assert!(run.parse::<usize>().unwrap() > 2, "{ended:#?}");
    let (all, seconds) = (TESTS.len(), ended.took.as_secs_f64());
    let text = format!("\non {ranks} ranks: {run} of {all} tests in {seconds:.1} s\n");
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

/// None is left out: each is for numbers of ranks that there are jobs of.
#[test]
fn each_test_of_ranks_is_run_on_all_of_its_numbers() {
    for test in TESTS {
        let are_there = match test.sizes {
            Sizes::Each(sizes) => sizes.iter().all(|size| SIZES.contains(size)),
            Sizes::UpTo(most) => most <= 8,
        };
        assert!(are_there, "{}: {:?}", test.name, test.sizes);
    }
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
