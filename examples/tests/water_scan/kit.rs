//! Running the program, and reading what it says.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// The program, which cargo builds beside the tests.
pub fn program() -> Command {
    example("water_scan")
}

pub fn example(name: &str) -> Command {
    let mut path = std::env::current_exe().expect("the test knows where it is");
    path.pop();
    path.pop();
    path.push("examples");
    path.push(name);
    Command::new(path)
}

pub fn run(arguments: &[&str]) -> Output {
    program()
        .args(arguments)
        .output()
        .expect("water_scan starts")
}

pub fn json(arguments: &[&str]) -> Value {
    let output = run(&[arguments, &["--json"]].concat());
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {told}");
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

pub fn energies(report: &Value) -> Vec<u64> {
    let points = report["points"].as_array().expect("points");
    let bits = |point: &Value| point["energy"].as_f64().expect("an energy").to_bits();
    points.iter().map(bits).collect()
}

pub fn computed(report: &Value) -> u64 {
    report["stats"]["computed"].as_u64().expect("a count")
}

pub fn path(of: &Path) -> &str {
    of.to_str().expect("temporary paths are text")
}

/// What a plain run writes to its output; nothing but text to its errors, which are piped.
pub fn table(arguments: &[&str]) -> String {
    let output = run(arguments);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {told}");
    assert!(!told.contains('\x1b'), "{told:?}");
    let table = String::from_utf8(output.stdout).expect("text");
    assert!(!table.contains('\x1b'), "{table:?}");
    table
}

/// The words of the line that begins with this one.
pub fn words<'t>(table: &'t str, first: &str) -> Vec<&'t str> {
    let mut lines = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let line = lines.find(|words| words.first() == Some(&first));
    line.unwrap_or_else(|| panic!("no line of {first} in\n{table}"))
}
