//! Ranks that are killed, at any moment: the job ends soon, fails, names the rank, and what was
//! acknowledged is there.
//!
//! Each job goes on with the store of those that were killed before it. What a rank has told of as
//! computed it has saved before; no later job may compute it again.
//!
//! A few by default, two hundred with `SDE_LONG_TESTS=1`. The seed is printed; `SDE_TEST_SEED` gives it.

#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

mod acknowledged;
mod heat;
mod processes;
mod signalled;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use acknowledged::Acknowledged;
use processes::{family, rank_of, ranks_of, wait, wait_for_ranks};
use sde_tests::mpirun::{is_open_mpi, mpirun, run};
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_water_scan_mpi");
/// Longer than any way to end takes.
const LIMIT: Duration = Duration::from_secs(120);
/// Longer than a whole scan takes.
const WHOLE: Duration = Duration::from_secs(300);

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

/// What is said of a rank that was killed, by Open MPI's `mpirun` or a guard.
fn names(rank: usize, ranks: usize) -> String {
    match is_open_mpi() {
        true => format!("process rank {rank} with PID"),
        false => format!("rank {rank} of {ranks} (process "),
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

/// How a job came to its end.
enum End {
    /// The rank was killed, and named.
    Killed(Duration),
    /// It was done before.
    Done,
}

/// Jobs that are killed, one after another.
struct Kills {
    random: Random,
    folder: PathBuf,
    stores: usize,
    acknowledged: Acknowledged,
}

impl Kills {
    fn store(&self) -> PathBuf {
        self.folder.join(format!("store-{}", self.stores))
    }

    fn errors(&self) -> PathBuf {
        self.folder.join("errors")
    }

    fn said(&self) -> String {
        fs::read_to_string(self.errors()).expect("what was said")
    }

    /// Starts a job and kills one of its ranks at any moment.
    fn job(&mut self) -> End {
        let ranks = 2 + self.random.below(7) as usize;
        let mut job = scan(ranks, &self.store())
            .arg("--verbose")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(self.errors()).expect("a file"))
            .spawn()
            .expect("mpirun");
        wait_for_ranks(&mut job, PROGRAM, ranks, &self.store());
        std::thread::sleep(Duration::from_millis(self.random.below(400)));
        let there = ranks_of(job.id(), PROGRAM);
        let chosen = self.random.below(there.len().max(1) as u64) as usize;
        let victim = there.get(chosen).copied();
        let end = match victim.and_then(|victim| Some((victim, rank_of(victim)?))) {
            Some((victim, rank)) => self.kill(&mut job, victim, rank, ranks),
            None => {
                wait(&mut job, WHOLE).expect("the job ends");
                End::Done
            }
        };
        self.acknowledged.job(&self.said());
        end
    }

    fn kill(&self, job: &mut Child, victim: u32, rank: usize, ranks: usize) -> End {
        let begin = Instant::now();
        let mut kill = Command::new("kill");
        kill.args(["-9", &victim.to_string()]).stderr(Stdio::null());
        let kill = kill.status().expect("kill");
        let Some(status) = wait(job, LIMIT) else {
            let left = family(job.id());
            let _ = job.kill();
            panic!(
                "the job does not end in two minutes after rank {rank} of {ranks}, process \
                 {victim}, was killed; left are {left}\n{}",
                self.said()
            );
        };
        // One that had ended its session already is no loss.
        if !kill.success() || status.success() {
            return End::Done;
        }
        let (took, said) = (begin.elapsed(), self.said());
        // Hydra kills the others some milliseconds after one has died: where no core is free the guard of one of those may
        // be the first to run.
        let named = |rank: usize| said.contains(&names(rank, ranks));
        if named(rank) || !is_open_mpi() && (0..ranks).any(named) {
            return End::Killed(took);
        }
        // Under Hydra nobody names one that has ended its session and is about to exit: then
        // there is nothing left to compute.
        let (_, computed) = energies(1, &self.store());
        assert!(!is_open_mpi() && computed == 0, "rank {rank}: {said}");
        End::Done
    }
}

fn random() -> Random {
    let given = std::env::var("SDE_TEST_SEED").ok();
    let seed = given.and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    println!("SDE_TEST_SEED={seed}");
    Random(seed)
}

#[test]
fn a_killed_rank_ends_the_job_and_what_was_saved_loads() {
    let wanted = match std::env::var_os("SDE_LONG_TESTS") {
        Some(_) => 200,
        None => 6,
    };
    let folder = tempfile::tempdir().expect("a folder");
    let (expected, _) = energies(1, &folder.path().join("whole"));
    let mut kills = Kills {
        random: random(),
        folder: folder.path().to_owned(),
        stores: 0,
        acknowledged: Acknowledged::default(),
    };
    let (mut killed, mut done, mut slowest) = (0, 0, Duration::ZERO);
    while killed < wanted {
        match kills.job() {
            End::Killed(took) => {
                killed += 1;
                slowest = slowest.max(took);
            }
            End::Done => {
                done += 1;
                // What it left, and what those before it left, is whole.
                assert_eq!(energies(1, &kills.store()).0, expected);
                kills.stores += 1;
                kills.acknowledged.begins_anew();
                assert!(done < 20 * wanted, "no rank is ever caught");
            }
        }
    }
    assert_eq!(energies(3, &kills.store()).0, expected);
    assert_eq!(energies(2, &kills.store()), (expected, 0));
    let acknowledged = kills.acknowledged.count();
    assert!(acknowledged > 0, "nothing was acknowledged before a kill");
    println!(
        "{killed} ranks killed, {done} jobs were done before; the slowest end {slowest:?}; {acknowledged} \
         runs acknowledged before a kill, none of them computed again"
    );
}
