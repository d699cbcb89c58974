//! The program as a person runs it.
//!
//! Without a device the tests that need one pass and say that they are skipped.

#![forbid(unsafe_code)]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

const HYDROGEN: &str = "2\nhydrogen\nH 0 0 0\nH 0 0 0.74\n";

fn program(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kernels"));
    // What the machine it runs on has set says nothing of the program.
    command
        .env_remove("SDE_KERNEL_CACHE")
        .env_remove("SDE_OPENCL_BUILD_OPTIONS");
    command
        .args(arguments)
        .output()
        .expect("the program starts")
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn has_device(test: &str) -> bool {
    let there = sde::opencl::devices().is_ok();
    if !there {
        println!("skipped kernels::{test}: there is no OpenCL device here");
    }
    there
}

/// Hydrogen with s functions and one tile: 2 kernels for the integrals and 4 products, of each type of numbers.
struct Small {
    folder: TempDir,
}

impl Small {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("hydrogen.xyz"), HYDROGEN).expect("a file");
        Self { folder }
    }

    fn run(&self, more: &[&str]) -> Output {
        let molecule = self.folder.path().join("hydrogen.xyz");
        let molecule = molecule.to_str().expect("temporary paths are text");
        let small = ["--molecule", molecule, "--basis", "STO-3G", "--tiles", "4"];
        program(&[&small, more].concat())
    }

    fn json(&self, more: &[&str]) -> Value {
        json(&self.run(&[&["--json"], more].concat()))
    }
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", told(output));
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

/// Kernels that were built, loaded and ready in a start.
fn kernels(report: &Value, start: usize) -> [u64; 3] {
    let families = report["starts"][start]["families"]
        .as_array()
        .expect("families");
    ["built", "loaded", "ready"].map(|how| {
        let counts = families
            .iter()
            .map(|family| family[1][how].as_u64().expect("a count"));
        counts.sum()
    })
}

fn all_agree(report: &Value) {
    for start in report["starts"].as_array().expect("starts") {
        let checks = start["checks"].as_array().expect("checks");
        assert!(checks.len() >= 3, "{start}");
        for check in checks {
            let number = |name: &str| check[name].as_f64().expect("a number");
            assert!(number("compared") >= 1.0, "{check}");
            assert!(number("difference") <= number("tolerance"), "{check}");
        }
    }
}

#[test]
fn each_kernel_is_built_once_and_loaded_by_a_new_process() {
    if !has_device("each_kernel_is_built_once_and_loaded_by_a_new_process") {
        return;
    }
    let small = Small::new();
    let cache = small.folder.path().join("cache");
    let cache = cache.to_str().expect("temporary paths are text");
    let report = small.json(&["--cache", cache]);
    let [all, ..] = kernels(&report, 0);
    // On devices that have no double precision half of them.
    assert!(all == 12 || all == 6, "{report}");
    assert_eq!(kernels(&report, 0), [all, 0, 0]);
    assert_eq!(kernels(&report, 1), [0, 0, all]);
    assert_eq!(kernels(&report, 2), [0, all, 0]);
    all_agree(&report);
    // What is in a cache that stays is not built by the next run.
    let report = small.json(&["--cache", cache]);
    assert_eq!(kernels(&report, 0), [0, all, 0]);
    all_agree(&report);
    // For a person.
    let output = small.run(&["--cache", cache]);
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", told(&output));
    for word in [
        "cold",
        "in memory",
        "new process",
        "first launch",
        "compared with",
    ] {
        assert!(table.contains(word), "{word} is not in\n{table}");
    }
    assert!(
        table.lines().all(|line| line.chars().count() <= 100),
        "{table}"
    );
}

#[test]
#[ignore = "long: 78 kernels, some minutes to build"]
fn water_has_more_than_64_kernels_and_its_numbers_agree() {
    if !has_device("water_has_more_than_64_kernels_and_its_numbers_agree") {
        return;
    }
    let report = json(&program(&["--json"]));
    assert_eq!(kernels(&report, 0), [78, 0, 0]);
    assert_eq!(kernels(&report, 1), [0, 0, 78]);
    assert_eq!(kernels(&report, 2), [0, 78, 0]);
    all_agree(&report);
}

#[test]
fn what_makes_no_sense_is_told_and_nothing_is_built() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.to_str().expect("temporary paths are text").to_owned()
    };
    let (atom, odd) = (
        file("he.xyz", "1\n\nHe 0 0 0\n"),
        file("h.xyz", "1\n\nH 0 0 0\n"),
    );
    for (arguments, expected) in [
        (&["--bogus"][..], "--help"),
        (&["--molecule"], "--help"),
        (&["--molecule", "not-there.xyz"], "not-there.xyz"),
        (&["--molecule", &atom], "two atoms or more"),
        (&["--molecule", &odd], "odd number of electrons"),
        (&["--basis", "nothing"], "nothing"),
        (&["--basis", "cc-pVTZ"], "f functions"),
        (&["--tiles", "4,x"], "\"x\""),
        (&["--tiles", "64"], "64"),
        (&["--tiles", ""], "--tiles"),
        (&["--device", "-1"], "--help"),
        (&["--cache", ""], "--cache"),
        (&["more"], "--help"),
    ] {
        let output = program(arguments);
        let said = told(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(
            said.starts_with("error: ") && said.contains(expected),
            "{arguments:?}: {said}"
        );
        assert_eq!(said.lines().count(), 1, "{arguments:?}: {said}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_device_that_is_not_there_is_told() {
    if !has_device("a_device_that_is_not_there_is_told") {
        return;
    }
    let output = program(&["--device", "99"]);
    assert_eq!(output.status.code(), Some(2), "{}", told(&output));
    assert!(told(&output).contains("no device 99"), "{}", told(&output));
    assert_eq!(told(&output).lines().count(), 1, "{}", told(&output));
    let listed = program(&["--devices"]);
    assert!(
        listed.status.success() && listed.stdout.starts_with(b"0  "),
        "{listed:?}"
    );
}

/// The loader is told to look for drivers where there are none; where there is no loader, all the better.
#[test]
fn without_a_device_it_says_what_to_install() {
    let nowhere = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_kernels"));
    for name in ["OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH"] {
        command.env(name, Path::join(nowhere.path(), "none"));
    }
    // Names drivers beside those of the folder.
    command.env_remove("OCL_ICD_FILENAMES");
    let output = command.output().expect("the program starts");
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    assert!(
        told(&output).contains("pocl-opencl-icd"),
        "{}",
        told(&output)
    );
}

#[test]
fn the_help_fits_a_terminal_and_names_each_option() {
    let output = program(&["--help"]);
    assert!(output.status.success());
    let help = String::from_utf8(output.stdout).expect("text");
    assert!(
        help.lines().all(|line| line.chars().count() <= 90),
        "{help}"
    );
    for option in [
        "molecule", "basis", "tiles", "device", "devices", "cache", "json", "help",
    ] {
        assert!(help.contains(&format!("--{option} ")), "{option}");
    }
}

/// What one run built the next one has from a file, and a file that is damaged is no program.
#[test]
fn blobs_in_files_take_the_place_of_builds() {
    if !has_device("blobs_in_files_take_the_place_of_builds") {
        return;
    }
    let (folder, drivers) = (
        tempfile::tempdir().expect("a folder"),
        tempfile::tempdir().expect("a folder"),
    );
    let run = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_blobs"));
        let own = sde::opencl::DRIVER_CACHES;
        command.envs(own.iter().map(|name| (name, drivers.path())));
        command.env_remove("SDE_OPENCL_BUILD_OPTIONS");
        let output = command.arg(folder.path()).output().expect("it starts");
        assert!(output.status.success(), "{}", told(&output));
        String::from_utf8(output.stdout).expect("what it says is text")
    };
    let built = run();
    assert!(built.ends_with("[2.0, 4.0, 6.0]\n1 builds\n"), "{built}");
    assert_eq!(run(), "[2.0, 4.0, 6.0]\n0 builds\n");
    let mut files = std::fs::read_dir(folder.path()).expect("the folder");
    let file = files.next().expect("a blob").expect("a blob").path();
    let mut bytes = std::fs::read(&file).expect("the blob");
    bytes[100] ^= 1;
    std::fs::write(&file, bytes).expect("the blob");
    let built = run();
    assert!(
        built.contains("checksum") && built.ends_with("1 builds\n"),
        "{built}"
    );
    assert_eq!(run(), "[2.0, 4.0, 6.0]\n0 builds\n");
}
