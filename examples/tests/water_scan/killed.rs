//! Killed with SIGKILL at random moments and started again: it goes on from what it acknowledged, to
//! the last bit.
//!
//! With `--verbose` the program tells of each run and save once it is durable. What it told before a
//! kill, it must not do again: an app that was computed is loaded, and an iteration whose state was
//! saved is gone on from.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use crate::kit::{computed, energies, json, path, program, table, words};
use crate::told::Told;

/// Numbers that look random and are the same for the same seed (`SplitMix64`).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }
}

/// A scan that runs, and what it says.
struct Running {
    child: Child,
    lines: BufReader<ChildStderr>,
}

impl Running {
    fn start(arguments: &[&str], store: &Path) -> Self {
        let mut child = program()
            .args(arguments)
            .args(["--verbose", "--store", path(store)])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("water_scan starts");
        let lines = BufReader::new(child.stderr.take().expect("it is piped"));
        Self { child, lines }
    }

    /// A line, with its end; `None` if there are no more.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.lines.read_line(&mut line).expect("text");
        (read > 0).then_some(line)
    }

    /// Kills it after so many lines, those not counted of what it loads, and so much time more. Gives
    /// all that it said, and whether it was killed before it ended by itself.
    fn killed_after(mut self, lines: u64, more: Duration) -> (String, bool) {
        let mut said = String::new();
        let mut counted = 0;
        while counted < lines
            && let Some(line) = self.line()
        {
            counted += u64::from(!line.contains(": loaded "));
            said += &line;
        }
        let moment = Instant::now() + more;
        while Instant::now() < moment {
            std::thread::yield_now();
        }
        self.child.kill().expect("the child can be killed");
        self.lines.read_to_string(&mut said).expect("text");
        let status = self.child.wait().expect("the child ends");
        assert!(status.code().is_none_or(|code| code == 0), "{said}");
        (said, status.code().is_none())
    }

    /// When a line says this, kills it. Gives whether it was killed before it ended by itself.
    fn killed_when(mut self, says: &str) -> bool {
        while let Some(line) = self.line() {
            if line.contains(says) {
                self.child.kill().expect("the child can be killed");
                break;
            }
        }
        let status = self.child.wait().expect("the child ends");
        status.code().is_none()
    }
}

/// Nothing acknowledged is computed twice, whenever it is killed, and the energies are the same.
#[test]
fn killed_at_random_moments_it_goes_on_and_ends_in_the_same_bits() {
    let (kills, points) = match std::env::var_os("SDE_LONG_TESTS") {
        Some(_) => (200, 40),
        None => (12, 6),
    };
    let seed = match std::env::var("SDE_TEST_SEED") {
        Ok(seed) => seed.parse().expect("SDE_TEST_SEED is a number"),
        Err(_) => RandomState::new().hash_one(()),
    };
    println!("SDE_TEST_SEED={seed}");
    let mut random = Random(seed);
    let spec = format!("angle 2 1 3 95 115 {points}");
    let scan = |threads| ["--basis", "6-31G", "--scan", &*spec, "--threads", threads];
    let whole = json(&scan("2"));
    let dir = tempfile::tempdir().unwrap();
    let (mut killed, mut scans, mut told) = (0, 0, Told::default());
    while killed < kills {
        scans += 1;
        let store = dir.path().join(scans.to_string());
        told.begins_anew();
        while killed < kills {
            let threads = ["1", "2"][random.below(2) as usize];
            let lines = random.below(24);
            let more = Duration::from_micros(random.below(2000));
            let running = Running::start(&scan(threads), &store);
            let (said, was_killed) = running.killed_after(lines, more);
            told.session(&said);
            if !was_killed {
                break;
            }
            killed += 1;
        }
        ends_as(&whole, &scan("2"), &store, &mut told);
    }
    println!("{killed} kills in {scans} scans: {}", told.counts());
    assert!(told.counts().resumed > 0, "no kill came within a point");
}

/// Lets a scan come to its end, which is that of one that was never killed.
fn ends_as(whole: &serde_json::Value, scan: &[&str], store: &Path, told: &mut Told) {
    let mut running = Running::start(scan, store);
    let mut said = String::new();
    running.lines.read_to_string(&mut said).expect("text");
    assert!(running.child.wait().expect("it ends").success(), "{said}");
    told.session(&said);
    let again = json(&[scan, &["--store", path(store)]].concat());
    assert_eq!(computed(&again), 0);
    assert_eq!(energies(&again), energies(whole));
}

/// How often an app computed in a run that is shown as a table.
fn computed_by(table: &str, app: &str) -> u64 {
    words(table, app)[1].parse().expect("a count")
}

/// Within one point the iterations go on: those before the kill are not made again.
#[test]
fn killed_within_a_point_it_goes_on_from_the_iteration() {
    let dir = tempfile::tempdir().unwrap();
    let point = ["--scan", "none", "--basis", "6-311G**", "--threads", "1"];
    let whole = table(&point);
    let iterations = computed_by(&whole, "Diis");
    assert!(iterations >= 6, "{whole}");
    // The kill comes after the first iteration was saved, before the last.
    let store = (0..10)
        .map(|attempt| dir.path().join(format!("store {attempt}")))
        .find(|store| Running::start(&point, store).killed_when("states: 1"))
        .expect("it can be killed before it ends");
    assert!(fs::read_dir(store.join("scratch")).unwrap().count() > 0);
    let resumed = table(&[&point[..], &["--store", path(&store)]].concat());
    let left = computed_by(&resumed, "Diis");
    assert!(
        left < iterations,
        "{left} of {iterations} iterations:\n{resumed}"
    );
    assert_eq!(computed_by(&resumed, "ElectronRepulsion"), 0, "{resumed}");
    assert_eq!(words(&resumed, "-"), words(&whole, "-"));
}

/// A batch system says so with a signal, which ends a program that does not wait for it.
#[test]
fn told_that_time_is_nearly_up_it_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let scan = ["--scan", "bond 1 2 0.8 1.2 12", "--threads", "1"];
    let mut running = Running::start(&scan, &store);
    while !running.line().expect("it tells").contains(": computed ") {}
    let process = running.child.id().to_string();
    let signal = Command::new("kill").args(["-USR1", &process]).status();
    assert!(signal.expect("kill").success());
    let mut rest = String::new();
    running.lines.read_to_string(&mut rest).expect("text");
    let status = running.child.wait().expect("the child ends");
    assert!(status.success(), "{status}: {rest}");
    let again = json(&[&scan[..], &["--store", path(&store)]].concat());
    assert_eq!(computed(&again), 0);
}
