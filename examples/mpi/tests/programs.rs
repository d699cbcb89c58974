//! The programs under `mpirun`, run as a person runs them.

#![forbid(unsafe_code)]

use std::path::Path;
use std::process::Command;

use sde_tests::mpirun::{Job, mpirun, run};
use serde_json::Value;

const WATER_SCAN: &str = env!("CARGO_BIN_EXE_water_scan_mpi");
const TWO_METHODS: &str = env!("CARGO_BIN_EXE_two_methods");
const ARRAY: &str = env!("CARGO_BIN_EXE_array_mpi");
const SWEEP: &str = env!("CARGO_BIN_EXE_sweep_mpi");
const SCAN: [&str; 5] = ["--scan", "bond 1 2 0.9 1.0 5", "--threads", "1", "--json"];

fn job(ranks: usize, program: &str, arguments: &[&str]) -> Job {
    let mut command: Command = mpirun(ranks);
    command.arg(program).args(arguments);
    run(&mut command)
}

/// What a scan prints and tells.
struct Scan {
    /// As they were printed.
    energies: Vec<String>,
    stats: Value,
    /// Of all ranks, each with its app and key, in order.
    computed: Vec<String>,
}

impl Scan {
    fn of(ranks: usize, more: &[&str]) -> Self {
        let job = job(ranks, WATER_SCAN, &[&SCAN[..], more].concat());
        job.succeeded();
        let said: Value = serde_json::from_str(&job.stdout).expect("one JSON object");
        let points = said["points"].as_array().expect("points");
        let computed = job.stderr.lines().filter_map(|line| {
            let (_, run) = line.split_once(": computed ")?;
            Some(run.to_owned())
        });
        let mut computed: Vec<_> = computed.collect();
        computed.sort_unstable();
        Self {
            energies: points
                .iter()
                .map(|point| point["energy"].to_string())
                .collect(),
            stats: said["stats"].clone(),
            computed,
        }
    }

    /// A number of the statistics by its name.
    fn count(&self, name: &str) -> u64 {
        self.stats[name].as_u64().expect("a number")
    }
}

/// Each point is computed once over all ranks. The scan itself is run by all of them, and what a point needs may be
/// computed for two points at a time.
#[test]
fn water_scan_gives_the_same_bits_on_any_number_of_ranks() {
    let mut alone = Scan::of(1, &["--verbose"]);
    assert_eq!(alone.energies.len(), 5);
    assert_eq!(alone.count("computed"), alone.computed.len() as u64);
    alone.computed.dedup();
    for ranks in [2, 4] {
        let mut scan = Scan::of(ranks, &["--verbose"]);
        assert_eq!(scan.energies, alone.energies, "{ranks} ranks");
        assert_eq!(scan.count("ranks"), ranks as u64);
        let points = |run: &&String| run.starts_with("Rhf ");
        assert_eq!(scan.computed.iter().filter(points).count(), 5);
        scan.computed.dedup();
        assert_eq!(scan.computed, alone.computed, "{ranks} ranks");
    }
}

/// Jobs that are too short for all points: each ends by itself with 75, and no point is computed twice.
#[test]
fn a_sweep_over_ranks_ends_in_time_and_the_next_job_computes_the_rest() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("sweep.sde");
    let (mut computed, mut jobs) = (0, 0);
    loop {
        jobs += 1;
        assert!(jobs <= 40, "they do not get on");
        let mut command = mpirun(4);
        command.env("SDE_TIME_LIMIT", "3").arg(SWEEP).arg(&store);
        let job = run(&mut command);
        let told = job.stderr.lines();
        let told = told.filter_map(|line| line.strip_prefix("computed "));
        computed += told
            .map(|number| number.parse::<u32>().unwrap())
            .sum::<u32>();
        match job.status {
            Some(75) => {}
            _ => {
                job.succeeded();
                assert_eq!(job.stdout.trim(), "885");
                break;
            }
        }
    }
    assert!(jobs > 1);
    assert_eq!(computed, 60);
}

#[test]
fn water_scan_goes_on_on_another_number_of_ranks() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("store");
    let store = store.to_str().expect("a path in Unicode");
    let first = Scan::of(3, &["--store", store]);
    for ranks in [1, 2, 4] {
        let again = Scan::of(ranks, &["--store", store]);
        assert_eq!(again.energies, first.energies);
        assert_eq!(again.count("computed"), 0, "{ranks} ranks");
    }
}

/// What a person got wrong is said once, not by each rank.
#[test]
fn bad_input_is_told_once_and_ends_the_job() {
    let job = job(3, WATER_SCAN, &["--basis", "no such set"]);
    job.failed_with("no such set");
    assert_eq!(job.stderr.matches("error: ").count(), 1, "{job:#?}");
}

fn two_methods(ranks: usize, store: &Path) -> (Vec<String>, u64) {
    let store = store.to_str().expect("a path in Unicode");
    let job = job(ranks, TWO_METHODS, &["--size", "12", "--store", store]);
    job.succeeded();
    let lines: Vec<_> = job.stdout.lines().map(str::to_owned).collect();
    let (computed, rest) = lines.split_last().expect("some lines");
    let computed = computed.rsplit(' ').next().expect("a number");
    // The first line is the number of ranks.
    (rest[1..].to_vec(), computed.parse().expect("a number"))
}

#[test]
fn two_methods_on_halves_of_the_ranks_agree_and_are_remembered_by_any_number() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut said = Vec::new();
    for ranks in [1, 2, 3, 4, 8] {
        let store = folder.path().join(format!("store-{ranks}"));
        let (lines, computed) = two_methods(ranks, &store);
        assert!(computed > 0);
        let (again, computed) = two_methods(5 - ranks.min(4), &store);
        assert_eq!((&again, computed), (&lines, 0), "{ranks} ranks");
        said.push(lines);
    }
    // The same bits, since sums are taken in one order.
    said.dedup();
    assert_eq!(said.len(), 1, "{said:#?}");
}

#[test]
fn an_array_is_remembered_by_any_number_of_ranks() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("store");
    let store = store.to_str().expect("a path in Unicode");
    for (ranks, computed) in [(3, 1), (2, 0), (1, 0)] {
        let job = job(ranks, ARRAY, &[store]);
        job.succeeded();
        let expected = format!("[1.000, 1.000, 1.000], {computed} computed\n");
        assert_eq!(job.stdout, expected, "{ranks} ranks");
    }
}

/// MPI is ended, as the library asks for, also where the program ends early.
#[test]
fn a_job_that_can_not_open_its_store_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = folder.path().join("a file");
    std::fs::write(&other, "no store").expect("a file");
    let job = job(2, ARRAY, &[other.to_str().expect("a path in Unicode")]);
    job.failed_with("a store can't be used");
}
