//! The examples as a person runs them, `water_scan` above all: a process, its output, its exit status, and
//! what is left when it is killed.

mod killed;
mod kit;
mod memory;
mod pages;
mod sweep;
mod told;

use std::fs;
use std::path::{Path, PathBuf};

use kit::{computed, energies, json, path, run, table, words};

#[test]
fn a_dry_run_says_what_would_be_computed_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let scan = ["--scan", "bond 1 2 0.9 1.1 3", "--store", path(&store)];
    let plan = |scan: &[&str]| table(&[scan, &["--dry-run"]].concat());
    let first = plan(&scan);
    assert!(
        first.starts_with("app   to compute  time\nScan           1     -\n"),
        "{first}"
    );
    assert!(first.contains("it was not run before"), "{first}");
    assert!(!store.exists());
    table(&scan);
    assert!(plan(&scan).ends_with("All is remembered: nothing is computed.\n"));
    let other = plan(&["--scan", "bond 1 2 0.9 1.1 4", "--store", path(&store)]);
    assert!(other.contains("Scan: input \"scan\": "), "{other}");
    assert!(other.contains("Computing takes about "), "{other}");
    assert!(
        other.lines().all(|line| line.chars().count() <= 80),
        "{other}"
    );
}

#[test]
fn a_plain_run_shows_the_points_and_what_was_remembered() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let scan = ["--scan", "bond 1 2 0.9 1.1 3", "--store", path(&store)];
    let first = table(&scan);
    assert!(first.starts_with("RHF/STO-3G\n"), "{first}");
    assert_eq!(
        words(&first, "r(1-2)/A"),
        ["r(1-2)/A", "energy/hartree", "rel./kcal/mol", "dipole/D"]
    );
    let report = json(&scan[..2]);
    for (at, value) in ["0.9000", "1.0000", "1.1000"].iter().enumerate() {
        let row = words(&first, value);
        let energy = report["points"][at]["energy"].as_f64().expect("an energy");
        assert_eq!(row[1], format!("{energy:.9}"), "{first}");
        assert_eq!(row.len(), 4, "{first}");
    }
    let got = first.matches(" 0.000 ").count();
    assert_eq!(got, 1, "one point is the lowest: {first}");
    let levels = ["app", "computed", "in", "memory", "time", "saved"];
    assert_eq!(words(&first, "app"), levels);
    assert_eq!(words(&first, "Rhf")[1], "3");
    let told = format!("\n{} computed, ", computed(&report));
    assert!(first.contains(&told), "{told:?} in\n{first}");
    assert!(first.contains("entries saved to"), "{first}");
    let second = table(&scan);
    assert!(
        second.contains("\n0 computed, 1 remembered, 0 duplicates"),
        "{second}"
    );
    assert_eq!(words(&second, "Scan")[3], "1", "loaded");
    assert_eq!(words(&second, "1.0000")[1], words(&first, "1.0000")[1]);
    assert!(table(&["--scan", "none"]).contains("nothing saved"));
}

#[test]
fn the_energy_is_that_of_a_reference_program() {
    for (arguments, expected) in [
        (&["--scan", "none"][..], -74.963_023_163),
        (
            &["--scan", "none", "--basis", "6-31G*", "--spherical"],
            -76.009_108_030,
        ),
        (&["--scan", "none", "--basis", "6-31G*"], -76.010_504_995),
    ] {
        let energy = f64::from_bits(energies(&json(arguments))[0]);
        assert!((energy - expected).abs() < 1e-6, "{arguments:?}: {energy}");
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let one = energies(&json(&["--threads", "1", "--basis", "6-31G"]));
    assert_eq!(one.len(), 9);
    for threads in ["2", "4", "7"] {
        let got = energies(&json(&["--threads", threads, "--basis", "6-31G"]));
        assert_eq!(got, one);
    }
}

#[test]
fn a_second_run_computes_nothing_and_a_longer_one_only_what_is_new() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let scan = |spec: &str| json(&["--store", path(&store), "--scan", spec]);
    let first = scan("bond 1 2 0.9 1.1 3");
    assert_eq!(first["stats"]["duplicates"], 0);
    let second = scan("bond 1 2 0.9 1.1 3");
    assert_eq!(computed(&second), 0);
    assert_eq!(second["stats"]["loads"], 1);
    assert_eq!(energies(&second), energies(&first));
    // Another scan with a point in common: the point is loaded.
    let other = scan("bond 1 2 0.9 1.0 2");
    assert!(computed(&other) > 0);
    assert_eq!(other["stats"]["loads"], 2);
    assert_eq!(energies(&other)[0], energies(&first)[0]);
}

#[test]
fn bad_input_is_told_and_leaves_the_store_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| -> PathBuf {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let unknown = write("unknown.xyz", "1\n\nQq 0 0 0\n");
    let odd = write("odd.xyz", "1\n\nH 0 0 0\n");
    let same = write("same.xyz", "2\n\nH 0 0 0\nH 0 0 0\n");
    let cut = write("cut.xyz", "3\n\nO 0 0 0\nH 0 0 1\n");
    let missing = dir.path().join("missing.xyz");
    let store = dir.path().join("store");
    json(&["--scan", "none", "--store", path(&store)]);
    let before = contents(&store);
    let cases: [(&[&str], &str); 12] = [
        (&["--molecule", path(&missing)], "No such file"),
        (&["--molecule", path(&unknown)], "Qq"),
        (&["--molecule", path(&odd)], "odd number of electrons"),
        (&["--molecule", path(&same)], "on top of each other"),
        (&["--molecule", path(&cut)], "cut.xyz"),
        (&["--basis", "7-77G"], "STO-3G"),
        (&["--charge", "1"], "odd number of electrons"),
        (&["--scan", "bond 1 9 1 2 3"], "no atom 9"),
        (&["--scan", "bond 1 2 0 1 3"], "bond length"),
        (&["--scan", "twist 1 2"], "bond, angle, none"),
        (&["--threads", "0"], "1 to 1024"),
        (&["--spherical", "--cartesian"], "exclude one another"),
    ];
    for (arguments, expected) in cases {
        let output = run(&[arguments, &["--store", path(&store)]].concat());
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
        assert!(told.contains(expected), "{arguments:?}: {told}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert_eq!(contents(&store), before, "{arguments:?}");
    }
}

/// Electrons that do not fit were found while computing, after a store had been made.
#[test]
fn what_can_be_known_before_leaves_no_store() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("new");
    let cases: [(&[&str], &str); 4] = [
        (
            &["--charge", "-6"],
            "8 pairs of electrons do not fit into 7",
        ),
        (
            &["--charge", "-2147483648"],
            "pairs of electrons do not fit",
        ),
        (&["--basis", path(dir.path())], "no regular file"),
        (&["--scan", "angle 2 1 3 -5 90 3"], "an angle of -5"),
    ];
    for (arguments, expected) in cases {
        let output = run(&[arguments, &["--store", path(&store)]].concat());
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
        assert!(told.contains(expected), "{arguments:?}: {told}");
        assert!(!store.exists(), "{arguments:?}");
    }
    let output = run(&["--store", ""]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--store needs"));
}

#[test]
fn what_is_no_store_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("thesis.tex"), "do not touch").unwrap();
    let before = contents(dir.path());
    let output = run(&["--store", path(dir.path())]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("not a store"));
    assert_eq!(contents(dir.path()), before);
}

/// Every file below a directory, with what is in it.
fn contents(of: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut next = vec![of.to_owned()];
    while let Some(directory) = next.pop() {
        for file in fs::read_dir(directory).unwrap() {
            let path = file.unwrap().path();
            match path.is_dir() {
                true => next.push(path),
                false => found.push((path.clone(), fs::read(&path).unwrap())),
            }
        }
    }
    found.sort();
    found
}
