//! Ranks that are killed, at any moment: the job ends soon, fails, and what was saved loads.
//!
//! A few by default, two hundred with `SDE_LONG_TESTS=1`. The seed is printed; `SDE_TEST_SEED` gives it.

#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sde_tests::mpirun::{is_open_mpi, mpirun, run};
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_water_scan_mpi");
/// Longer than any way to end takes.
const LIMIT: Duration = Duration::from_secs(30);

fn scan(ranks: usize, store: &Path) -> Command {
    let mut command = mpirun(ranks);
    command.arg(PROGRAM).arg("--store").arg(store);
    command.args(["--scan", "bond 1 2 0.8 1.2 24", "--threads", "1", "--json"]);
    command
}

/// The energies as they are printed, and how much was computed.
fn energies(ranks: usize, store: &Path) -> (Vec<String>, u64) {
    let job = run(&mut scan(ranks, store));
    job.succeeded();
    let said: Value = serde_json::from_str(&job.stdout).expect("one JSON object");
    let points = said["points"].as_array().expect("points");
    let energies = points.iter().map(|point| point["energy"].to_string());
    let computed = said["stats"]["computed"].as_u64().expect("a number");
    (energies.collect(), computed)
}

/// The processes of the program's ranks that have come from this one.
fn ranks_of(parent: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    for child in children.unwrap_or_default().split_whitespace() {
        let Ok(child) = child.parse() else { continue };
        let program = fs::read_link(format!("/proc/{child}/exe")).unwrap_or_default();
        if program == Path::new(PROGRAM) {
            found.push(child);
        }
        found.extend(ranks_of(child));
    }
    found
}

/// A process and those that have come from it: number, name, state.
fn family(parent: u32) -> String {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    let children = children.unwrap_or_default();
    let state = fs::read_to_string(format!("/proc/{parent}/stat")).unwrap_or_default();
    let state = state
        .split_whitespace()
        .take(3)
        .collect::<Vec<_>>()
        .join(" ");
    let children = children.split_whitespace().flat_map(str::parse);
    children.fold(state, |all, child| format!("{all}, {}", family(child)))
}

/// The number that the launcher gave to a process.
fn rank_of(process: u32) -> Option<usize> {
    let name = match is_open_mpi() {
        true => "OMPI_COMM_WORLD_RANK=",
        false => "PMI_RANK=",
    };
    let variables = fs::read(format!("/proc/{process}/environ")).ok()?;
    let mut variables = variables.split(|byte| *byte == 0);
    let rank = variables.find_map(|variable| variable.strip_prefix(name.as_bytes()))?;
    std::str::from_utf8(rank).ok()?.parse().ok()
}

/// What is said of a rank that was killed, by Open MPI's `mpirun` or a guard.
fn names(rank: usize, ranks: usize) -> String {
    match is_open_mpi() {
        true => format!("process rank {rank} with PID"),
        false => format!("rank {rank} of {ranks} (process "),
    }
}

/// Gives the status, unless it takes too long.
fn wait(child: &mut Child, limit: Duration) -> Option<std::process::ExitStatus> {
    let start = Instant::now();
    while start.elapsed() < limit {
        if let Some(status) = child.try_wait().expect("waiting for a child") {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    None
}

/// Whether a process has a file of the store open.
fn is_at_work(process: u32, store: &Path) -> bool {
    let files = fs::read_dir(format!("/proc/{process}/fd"));
    let mut files = files.into_iter().flatten().flatten();
    files.any(|file| fs::read_link(file.path()).is_ok_and(|file| file.starts_with(store)))
}

/// Waits until all ranks have come to MPI: `mpirun` of Open MPI 4.1 hangs, with its children dead, if one
/// is killed while it connects to it. They have if one of them is at work.
fn wait_for_ranks(job: &mut Child, ranks: usize, store: &Path) {
    let at_work = |job: &Child| {
        let there = ranks_of(job.id());
        there.len() == ranks && there.iter().any(|rank| is_at_work(*rank, store))
    };
    while !at_work(job) && job.try_wait().expect("waiting for a child").is_none() {
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A generator of numbers that are random enough.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % limit
    }
}

#[test]
fn a_killed_rank_ends_the_job_and_what_was_saved_loads() {
    let long = std::env::var_os("SDE_LONG_TESTS").is_some();
    let seed = std::env::var("SDE_TEST_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    println!("SDE_TEST_SEED={seed}");
    let mut random = Random(seed);
    let folder = tempfile::tempdir().expect("a folder");
    let (expected, _) = energies(1, &folder.path().join("whole"));
    let errors = folder.path().join("errors");
    let (mut killed, mut ended, mut slowest) = (0, 0, Duration::ZERO);
    let wanted = if long { 200 } else { 6 };
    let mut store = 0;
    while killed < wanted {
        let path = folder.path().join(format!("store-{store}"));
        let ranks = 2 + random.below(7) as usize;
        let mut job = scan(ranks, &path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&errors).expect("a file"))
            .spawn()
            .expect("mpirun");
        wait_for_ranks(&mut job, ranks, &path);
        std::thread::sleep(Duration::from_millis(random.below(400)));
        let victims = ranks_of(job.id());
        let victim = match victims.len() {
            0 => None,
            count => victims.get(random.below(count as u64) as usize),
        };
        if let Some((victim, rank)) = victim.and_then(|victim| Some((*victim, rank_of(*victim)?))) {
            let begin = Instant::now();
            let mut kill = Command::new("kill");
            kill.args(["-9", &victim.to_string()]).stderr(Stdio::null());
            let kill = kill.status().expect("kill");
            let Some(status) = wait(&mut job, LIMIT) else {
                let left = family(job.id());
                let _ = job.kill();
                let said = fs::read_to_string(&errors).unwrap_or_default();
                panic!(
                    "the job does not end in half a minute after rank {rank} of {ranks}, process \
                     {victim}, was killed; left are {left}; SDE_TEST_SEED={seed}\n{said}"
                );
            };
            // One that had ended its session already is no loss.
            if kill.success() && !status.success() {
                let said = fs::read_to_string(&errors).expect("what was said");
                let took = begin.elapsed();
                if said.contains(&names(rank, ranks)) {
                    killed += 1;
                    slowest = slowest.max(took);
                    continue;
                }
                // Under Hydra nobody names one that has ended its session and is about to exit: then
                // there is nothing left to compute.
                let (_, computed) = energies(1, &path);
                assert!(!is_open_mpi() && computed == 0, "rank {rank}: {said}");
            }
        } else {
            wait(&mut job, Duration::from_secs(120)).expect("the job ends");
        }
        ended += 1;
        // The job was done: what it left, and what those before it left, is whole.
        assert_eq!(energies(1, &path).0, expected, "SDE_TEST_SEED={seed}");
        store += 1;
        assert!(ended < 20 * wanted, "no rank is ever caught");
    }
    let last = folder.path().join(format!("store-{store}"));
    let (got, _) = energies(3, &last);
    assert_eq!(got, expected, "SDE_TEST_SEED={seed}");
    let (again, computed) = energies(2, &last);
    assert_eq!((again, computed), (expected, 0), "SDE_TEST_SEED={seed}");
    println!("{killed} ranks killed, {ended} jobs were done before; the slowest end {slowest:?}");
}
