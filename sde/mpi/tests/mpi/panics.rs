//! Ranks that panic, at any moment: the job ends soon, fails, names the rank, and what was saved loads.
//!
//! A few by default, two hundred with `SDE_LONG_TESTS=1`. The seed is printed; `SDE_TEST_SEED` gives it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use sde_tests::mpirun::{self, Job};
use sde_tests::ranks::{Rank, Ranks, Threads, journey, load_acknowledged, since_panic};

use crate::cases::session;

const STORE: &str = "SDE_TEST_STORE";
const ACCIDENT: &str = "SDE_TEST_ACCIDENT";
/// Longer than any way to end takes.
const LIMIT: Duration = Duration::from_secs(30);

/// What a rank does.
pub fn run() {
    let session = session();
    let store = std::env::var_os(STORE).unwrap();
    let accident = std::env::var(ACCIDENT).unwrap_or_default();
    let accident = accident
        .split_once(' ')
        .filter(|(rank, _)| rank.parse() == Ok(session.rank()));
    let step = accident.map(|(_, step)| step.parse().unwrap());
    let first = session.rank() == 0;
    let arrived = journey(Rank::of(session.world()), Path::new(&store), step);
    let (bits, computed) = match arrived {
        Ok(arrived) => arrived,
        // What a program does that returns the error from `main`.
        Err(error) => {
            drop(session);
            eprintln!("Error: {error:#}");
            std::process::exit(1);
        }
    };
    if first {
        println!("arrived {computed} {bits:?}");
    }
}

/// So many ranks, of which one panics at a step.
fn travel(ranks: usize, store: &Path, accident: Option<(u64, u64)>) -> Job {
    mpirun::as_ranks_with(ranks, "as_rank", "journey", |command: &mut Command| {
        command.env(STORE, store);
        if let Some((rank, step)) = accident {
            command.env(ACCIDENT, format!("{rank} {step}"));
        }
    })
}

/// What it printed: how much was computed, and what it came to.
fn arrived(job: &Job) -> (u64, String) {
    job.succeeded();
    let mut lines = job.stdout.lines();
    let line = lines.find_map(|line| line.split_once("arrived "));
    let (computed, bits) = line.unwrap().1.split_once(' ').unwrap();
    (computed.parse().unwrap(), bits.to_owned())
}

/// A generator of numbers that are random enough.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

#[test]
fn a_rank_that_panics_at_any_moment_ends_the_job_and_what_was_saved_loads() {
    let long = std::env::var_os("SDE_LONG_TESTS").is_some();
    let seed = std::env::var("SDE_TEST_SEED").ok();
    let seed = seed.and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    println!("SDE_TEST_SEED={seed}");
    let mut random = Random(seed);
    let folder = tempfile::tempdir().unwrap();
    let alone = |rank| journey(rank, &folder.path().join("alone"), None).unwrap();
    let (bits, _) = Ranks::of(&Threads, 1).run_ranks(alone).swap_remove(0);
    let expected = format!("{bits:?}");
    let wanted = if long { 200 } else { 4 };
    let (mut panicked, mut whole, mut longest) = (0, 0, Duration::ZERO);
    let mut store = 0;
    while panicked < wanted {
        let path = folder.path().join(format!("store-{store}"));
        let ranks = 2 + random.below(7);
        let (rank, step) = (random.below(ranks), random.below(70));
        let job = travel(ranks as usize, &path, Some((rank, step)));
        if job.status == Some(0) {
            // It had fewer steps than that.
            assert_eq!(arrived(&job).1, expected);
            (whole, store) = (whole + 1, store + 1);
            assert!(whole < 20 * wanted, "none ever panics");
            continue;
        }
        let ended = since_panic(&path);
        panicked += 1;
        longest = longest.max(ended);
        job.failed_with(&format!("rank {rank} of {ranks} panicked: "));
        assert!(ended < LIMIT, "{ended:?} after the panic: {job:#?}");
        load_acknowledged(&path);
    }
    let last = folder.path().join(format!("store-{store}"));
    assert_eq!(arrived(&travel(3, &last, None)).1, expected);
    assert_eq!(arrived(&travel(2, &last, None)), (0, expected));
    println!("{panicked} ranks panicked, {whole} jobs arrived before; the slowest end {longest:?}");
}
