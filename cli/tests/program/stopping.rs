//! Programs that are watched, and told to stop.

#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use sde_archives::DirStore;
use serde_json::Value;
use tempfile::TempDir;

use super::kit::{Done, done, program, says, sde, sde_wide};

const JOB: &str = "SDE_CLI_TEST_SWEEP";

/// A wait of this length is taken for a hang.
const LIMIT: Duration = Duration::from_secs(120);

/// Goes on when its parent writes a line, or has closed the pipe.
#[sde::app(name = "cli.held_up", version = "1")]
fn held_up(x: u64) -> u64 {
    if std::env::var_os(JOB).is_some() {
        println!("\n> at it");
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).unwrap();
    }
    2 * x
}

/// The program that is watched; as a test of its own it has nothing to do.
#[test]
fn job() {
    let Some(store) = std::env::var_os(JOB) else {
        return;
    };
    let sde = sde_archives::builder(store).unwrap().threads(1).build();
    let sde = sde.unwrap();
    println!("\n> ready");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    let from: u64 = line.trim().parse().unwrap();
    let swept = held_up.par_call(&sde, from..from + 3);
    println!("\n> computed {}", sde.stats().total.computed);
    drop(sde);
    std::process::exit(swept.map_or_else(|error| error.exit_code().into(), |_| 0));
}

/// A program at its sweep. It is killed if it is still there when this is dropped.
struct Sweep {
    child: Child,
    stdin: Option<ChildStdin>,
    out: BufReader<ChildStdout>,
    err: BufReader<ChildStderr>,
}

impl Sweep {
    /// Starts a sweep of three items, and waits until the first is in hand.
    fn start(store: &Path, from: u64) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([
            "--exact",
            "stopping::job",
            "--nocapture",
            "--test-threads=1",
        ]);
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = pipes
            .stderr(Stdio::piped())
            .env(JOB, store)
            .spawn()
            .unwrap();
        let mut sweep = Self {
            stdin: child.stdin.take(),
            out: BufReader::new(child.stdout.take().unwrap()),
            err: BufReader::new(child.stderr.take().unwrap()),
            child,
        };
        sweep.told("ready");
        sweep.write(&from.to_string());
        sweep.told("at it");
        sweep
    }

    fn write(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    fn told(&mut self, what: &str) {
        let line = format!("> {what}");
        until(&mut self.out, |found| found == line);
    }

    /// Waits until it shows this; gives the line.
    fn shows(&mut self, what: &str) -> String {
        until(&mut self.err, |line| line.contains(what))
    }

    /// Lets it go on to its end; gives its exit status and how many items it computed.
    fn ends(mut self) -> (i32, String) {
        self.stdin = None;
        let computed = until(&mut self.out, |line| line.starts_with("> computed"));
        (self.child.wait().unwrap().code().unwrap(), computed)
    }

    fn name(&self) -> String {
        format!(":{}", self.child.id())
    }
}

impl Drop for Sweep {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads lines until one is such.
fn until(from: &mut impl BufRead, is_such: impl Fn(&str) -> bool) -> String {
    let mut all = String::new();
    loop {
        let before = all.len();
        assert_ne!(from.read_line(&mut all).unwrap(), 0, "{all}");
        let line = all[before..].trim_end();
        if is_such(line) {
            return line.to_owned();
        }
    }
}

struct Place {
    _folder: TempDir,
    store: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store");
        DirStore::open(&store).unwrap();
        Self {
            _folder: folder,
            store,
        }
    }

    fn sde(&self, command: &str, arguments: &[&str]) -> Done {
        let store = self.store.to_str().unwrap();
        sde([&[command, store], arguments].concat())
    }

    /// The lines of `watch --json`, once they are so.
    fn watch(&self, is_so: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let begun = Instant::now();
        loop {
            let text = self.sde("watch", &["--json"]).well();
            let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
            let lines: Vec<Value> = lines.collect();
            if is_so(&lines) {
                return lines;
            }
            assert!(begun.elapsed() < LIMIT, "{text}");
        }
    }

    /// Waits until as many runs are told of.
    fn runs(&self, number: usize) -> Vec<Value> {
        self.watch(|lines| lines.iter().filter(|line| !line["app"].is_null()).count() == number)
    }

    fn has_request(&self) -> bool {
        self.store.join("STOP").exists()
    }
}

#[test]
fn a_sweep_is_told_to_stop_and_one_that_comes_later_does_the_rest() {
    let place = Place::new();
    let mut first = Sweep::start(&place.store, 0);
    place.runs(1);
    let told = place.sde("stop", &[]).well();
    says(&told, "1 program is told to stop");
    says(&told, &first.name());
    first.shows(": nothing new begins");
    says(&place.sde("watch", &[]).well(), "stops");
    // Others may look and save meanwhile.
    let mut later = Sweep::start(&place.store, 10);
    place.runs(2);
    assert_eq!(later.child.try_wait().unwrap(), None);
    assert_eq!(first.ends(), (75, "> computed 1".to_owned()));
    later.write("");
    assert_eq!(later.ends(), (0, "> computed 3".to_owned()));
    // What was done is there, and is not done again.
    let last = Sweep::start(&place.store, 0);
    assert!(!place.has_request());
    assert_eq!(last.ends(), (0, "> computed 2".to_owned()));
    says(&place.sde("watch", &[]).well(), "nobody is seen at work");
}

#[test]
fn who_is_killed_is_gone() {
    let place = Place::new();
    let mut sweep = Sweep::start(&place.store, 0);
    place.runs(1);
    sweep.child.kill().unwrap();
    sweep.child.wait().unwrap();
    assert_eq!(place.runs(1)[0]["alive"], false);
    says(&place.sde("watch", &[]).well(), "gone");
    let text = place.sde("stop", &["--wait"]).well();
    says(&text, "nobody is told to stop");
    assert!(!place.has_request());
}

#[test]
fn who_is_told_and_killed_is_not_waited_for() {
    let place = Place::new();
    let mut sweep = Sweep::start(&place.store, 0);
    place.runs(1);
    let text = place.sde("stop", &["--wait", "--timeout", "1ms"]);
    assert_eq!(text.status, 1);
    says(&text.out, "1 program goes on: ");
    let mut waits = program();
    waits.args(["stop", "--wait"]).arg(&place.store);
    let waits = waits.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut waits = waits.spawn().unwrap();
    let mut first = [0];
    waits
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut first)
        .unwrap();
    sweep.child.kill().unwrap();
    assert_eq!(done(waits.wait_with_output().unwrap()).status, 0);
    // It is over with the next that uses the store.
    DirStore::open(&place.store).unwrap();
    assert!(!place.has_request());
}

#[test]
fn nobody_is_told_where_nobody_is() {
    let place = Place::new();
    for arguments in [&[][..], &["--after", "2h"], &["--wait"]] {
        says(
            &place.sde("stop", arguments).well(),
            "nobody is told to stop",
        );
    }
    says(&place.sde("stop", &["--cancel"]).well(), "nobody was told");
    assert!(!place.has_request());
    let text = place.sde("stop", &["--json"]).json();
    assert_eq!(text["told"].as_array().unwrap().len(), 0);
    assert_eq!(place.sde("watch", &["--json"]).well(), "");
    for command in ["watch", "stop"] {
        let nowhere = sde([command, "/nowhere"]);
        assert_eq!(nowhere.status, 2);
        says(&nowhere.err, "is not a store");
    }
    let wrong = place.sde("stop", &["--after", "noon"]);
    assert_eq!(wrong.status, 2);
    says(&wrong.err, "18:00 is today");
}

#[test]
fn a_damaged_request_stops_nobody() {
    let place = Place::new();
    std::fs::write(place.store.join("STOP"), "SDE stop, format 1\nstop").unwrap();
    let mut sweep = Sweep::start(&place.store, 0);
    sweep.shows("STOP is not followed");
    place.runs(1);
    assert_eq!(place.sde("stop", &["--after", "10h"]).status, 0);
    sweep.shows("told to stop in 3");
    assert_eq!(sweep.ends(), (0, "> computed 3".to_owned()));
}

#[test]
fn a_time_to_stop_is_shown_and_taken_back() {
    let place = Place::new();
    let mut sweep = Sweep::start(&place.store, 0);
    place.runs(1);
    let text = place.sde("stop", &["--after", "3h"]).well();
    says(&text, "told to stop at ");
    sweep.shows("told to stop in 10");
    let at = place.runs(1)[0]["stop_at"].as_str().unwrap().to_owned();
    assert!(at.parse::<jiff::Timestamp>().unwrap() > jiff::Timestamp::now());
    let told = place.sde("watch", &[]).well();
    says(&told, "stops ");
    says(&place.sde("stop", &["--cancel"]).well(), "is taken back");
    assert!(place.runs(1)[0]["stop_at"].is_null());
    assert_eq!(sweep.ends(), (0, "> computed 3".to_owned()));
}

#[test]
fn a_run_that_takes_ten_times_as_long_is_told() {
    let place = Place::new();
    let usual = sde_archives::builder(&place.store).unwrap().quiet().build();
    let usual = usual.unwrap();
    let never = place.runs(0);
    assert!(never.is_empty());
    let sweep = Sweep::start(&place.store, 0);
    let unknown = &place.runs(1)[0];
    assert_eq!(unknown["app"], "cli.held_up");
    assert!(unknown["usual_seconds"].is_null() && unknown["ten_times"] == false);
    // Nothing here waits for a line.
    held_up.par_call(&usual, 100..105).unwrap();
    usual.finish().unwrap();
    let known = place.watch(|lines| lines[0]["ten_times"] == true);
    let (took, usual) = (&known[0]["seconds"], &known[0]["usual_seconds"]);
    assert!(took.as_f64().unwrap() > 10.0 * usual.as_f64().unwrap());
    let text = place.sde("watch", &[]).well();
    says(&text, "10x");
    says(&text, &sweep.name());
    for width in [80, 40] {
        let text = sde_wide(width, ["watch", place.store.to_str().unwrap()]).well();
        assert!(
            text.lines().all(|line| line.chars().count() <= width),
            "{text}"
        );
        says(&text, "10x");
    }
}
