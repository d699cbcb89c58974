//! The totals of `stats`, its table and its processes are one count, however the programs ended.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sde::{AppError, Handle};
use serde_json::Value;
use tempfile::{TempDir, tempdir};

use super::kit::{engine, says, sde};

/// Works for a while.
#[sde::app(name = "stats.step", version = "1")]
fn step(number: u64) -> u64 {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(2) {
        std::hint::spin_loop();
    }
    number
}

#[sde::app(name = "stats.scan", version = "1")]
fn scan(sde: &Handle, steps: u64) -> Result<u64, AppError> {
    let mut sum = 0;
    for number in 0..steps {
        sum += *step.call(sde, number)?;
    }
    Ok(sum)
}

fn place() -> (TempDir, PathBuf) {
    let folder = tempdir().unwrap();
    let path = folder.path().join("store");
    (folder, path)
}

fn run(command: &str, path: &Path, more: &[&str]) -> Value {
    let words = [&[command, path.to_str().unwrap(), "--json"], more].concat();
    sde(words).json()
}

/// The report, of which all three parts have the same sums.
fn stats(path: &Path) -> Value {
    let report = run("stats", path, &[]);
    let sum = |part: &str, of: &str| -> f64 {
        let rows = report[part].as_array().unwrap().iter();
        rows.map(|row| row[of].as_f64().unwrap()).sum()
    };
    let total = &report["total"];
    for part in ["apps", "programs"] {
        let computed = total["computed"].as_f64().unwrap();
        assert!((sum(part, "computed") - computed).abs() < 0.5, "{report}");
        let spent = total["time_spent"].as_f64().unwrap();
        assert!((sum(part, "seconds") - spent).abs() < 1e-6, "{report}");
    }
    report
}

fn of_app<'a>(report: &'a Value, app: &str) -> &'a Value {
    let mut apps = report["apps"].as_array().unwrap().iter();
    apps.find(|one| one["app"] == app).unwrap()
}

fn took(path: &Path, app: &str) -> f64 {
    let listed = sde(["ls", path.to_str().unwrap(), "--json", "--app", app]).well();
    let line = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    let lines = listed.lines().map(line);
    lines.map(|one| one["seconds"].as_f64().unwrap()).sum()
}

/// It added nested times: two apps took twice as long as the program that called them.
#[test]
fn the_table_has_the_times_of_the_programs_own_table() {
    let (_folder, path) = place();
    let engine = engine(&path);
    scan.call(&engine, 3).unwrap();
    scan.call(&engine, 3).unwrap();
    let own = engine.stats().apps;
    engine.finish().unwrap();
    drop(engine);
    let report = stats(&path);
    for app in ["stats.scan", "stats.step"] {
        let seconds = of_app(&report, app)["seconds"].as_f64().unwrap();
        let told = own[app].time_spent.as_secs_f64();
        assert!((seconds - told).abs() < 1e-9, "{app}: {seconds}, {told}");
        let computed = of_app(&report, app)["computed"].as_u64();
        assert_eq!(computed, Some(own[app].computed));
    }
}

/// What a killed process had computed was in the table, and not in the totals above it.
#[test]
fn what_a_killed_process_left_counts_in_the_totals() {
    let (_folder, path) = place();
    let killed = engine(&path);
    scan.call(&killed, 3).unwrap();
    // It never tells what it did.
    std::mem::forget(killed);
    let report = stats(&path);
    assert_eq!(report["total"]["computed"], 4);
    assert_eq!(report["programs"][0]["computed"], 4);
    assert_eq!(report["programs"][0]["program"], Value::Null);
    let text = sde(["stats", path.to_str().unwrap()]).well();
    says(&text, "hits      no program has told what it did\n");
    says(&text, "misses    4 computed; 0 more ended by an error\n");
    // Nested times are not added twice.
    let [all, steps] = ["stats.scan", "stats.step"].map(|app| took(&path, app));
    let seconds = of_app(&report, "stats.scan")["seconds"].as_f64().unwrap();
    assert!((seconds - (all - steps)).abs() < 1e-6, "{report}");
    // Beside it one that ended by itself, which finds half of it.
    let ended = engine(&path);
    scan.call(&ended, 3).unwrap();
    scan.call(&ended, 5).unwrap();
    ended.finish().unwrap();
    drop(ended);
    let report = stats(&path);
    assert_eq!(report["total"]["computed"], 7);
    assert_eq!(report["programs"].as_array().unwrap().len(), 2);
    assert_eq!(report["total"]["loads"], 4);
}

/// 62 computed, said the first line, and 90 the table.
#[test]
fn what_came_after_a_process_told_last_counts() {
    let (_folder, path) = place();
    let killed = engine(&path);
    step.call(&killed, 0).unwrap();
    killed.checkpoint().unwrap();
    assert_eq!(stats(&path)["total"]["computed"], 1);
    // It tells at most once a minute.
    scan.call(&killed, 4).unwrap();
    std::mem::forget(killed);
    let report = stats(&path);
    assert_eq!(report["total"]["computed"], 5);
    assert_eq!(of_app(&report, "stats.step")["computed"], 4);
    assert!(report["programs"][0]["program"].is_string(), "{report}");
}
