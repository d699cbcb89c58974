//! Which package may depend on which.
//!
//! The engine knows nothing of MPI, OpenCL or CBOR, its siblings never import one another, and nothing
//! imports the examples, tests and benchmarks (but the tests of what needs MPI use the test kit, and
//! its benchmarks those of the rest). Without this the engine can't be built on a machine
//! that lacks one of them, and a change in one room is felt in all the others. Dependencies of tests
//! count: they are arrows too.

use super::metadata::metadata;
use super::none;

/// Each package and the packages of the workspace it may depend on.
const ARROWS: &[(&str, &[&str])] = &[
    ("sde-macros", &[]),
    // Their examples and tests name the crate that programs add.
    ("sde-last-value", &["sde"]),
    ("sde-engine", &["sde-last-value", "sde-macros", "sde"]),
    ("sde-arrays", &["sde-engine", "sde"]),
    // Stores are in its tests.
    ("sde-command", &["sde-engine", "sde-archives"]),
    ("sde-mpi", &["sde-engine", "sde-tests"]),
    // Arrays are values in its tests.
    ("sde-archives", &["sde-engine", "sde-arrays"]),
    // Where its binaries are kept.
    ("sde-opencl", &["sde-engine", "sde-archives"]),
    (
        "sde",
        &[
            "sde-engine",
            "sde-arrays",
            "sde-archives",
            "sde-command",
            "sde-mpi",
            "sde-opencl",
        ],
    ),
    ("sde-apps", &["sde-engine"]),
    ("sde-table", &["sde-engine", "sde-archives", "sde-command"]),
    ("sde-python", &["sde", "sde-archives", "sde-table"]),
    (
        "sde-cli",
        &["sde-engine", "sde-archives", "sde-command", "sde-table"],
    ),
    ("sde-examples", &["sde", "sde-apps"]),
    ("sde-examples-mpi", &["sde", "sde-apps", "sde-tests"]),
    ("sde-examples-opencl", &["sde", "sde-apps"]),
    ("sde-tests", &["sde", "sde-apps"]),
    ("sde-tests-program", &["sde"]),
    ("sde-benches", &["sde-engine"]),
    ("sde-benches-memory", &["sde-engine"]),
    (
        "sde-benches-store",
        &["sde-engine", "sde-archives", "sde-benches"],
    ),
    (
        "sde-benches-opencl",
        &["sde-engine", "sde-opencl", "sde-benches"],
    ),
    (
        "sde-benches-mpi",
        &[
            "sde-engine",
            "sde-arrays",
            "sde-archives",
            "sde-mpi",
            "sde-benches",
        ],
    ),
];

/// What the engine must never be built with, directly or through something else.
const NOT_IN_SDE: &[&str] = &[
    "mpi",
    "mpi-sys",
    "rsmpi",
    "opencl3",
    "cl3",
    "ocl",
    "ciborium",
    "minicbor",
    "serde_cbor",
];

fn breaches(package: &str, dependencies: &[&str]) -> Vec<String> {
    let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == package) else {
        return vec![format!(
            "{package} has no place in ARROWS (tests/tests/house/arrows.rs): give it one"
        )];
    };
    let is_forbidden = |name: &&&str| !allowed.contains(name);
    let breach = |name: &&str| {
        format!(
            "{package} depends on {name}, but may depend on {allowed:?} only: put what they share in sde-engine"
        )
    };
    dependencies
        .iter()
        .filter(is_forbidden)
        .map(breach)
        .collect()
}

#[test]
fn packages_depend_only_along_the_arrows() {
    let mut found = Vec::new();
    for package in metadata().members() {
        let inside = package
            .dependencies
            .iter()
            .filter(|dependency| dependency.path.is_some());
        let names: Vec<&str> = inside.map(|dependency| dependency.name.as_str()).collect();
        found.extend(breaches(&package.name, &names));
    }
    none(found);
}

#[test]
fn every_arrow_starts_at_a_package_that_exists() {
    let exists = |name: &str| metadata().members().any(|package| package.name == name);
    let gone = ARROWS.iter().filter(|(name, _)| !exists(name));
    none(gone.map(|(name, _)| format!("there is no package {name}: take it out of ARROWS")));
}

#[test]
fn the_engine_is_built_without_its_adapters() {
    let built_with = metadata().built_with("sde-engine");
    let found = NOT_IN_SDE.iter().filter(|name| built_with.contains(*name));
    none(found.map(|name| {
        format!("sde-engine is built with {name}: `cargo tree -p sde-engine -i {name}`")
    }));
}

#[test]
fn a_wrong_arrow_is_noticed() {
    none(breaches("sde-archives", &["sde-engine"]));
    let got = breaches("sde-archives", &["sde-engine", "sde-apps"]).len();
    assert_eq!(got, 1);
    assert_eq!(breaches("sde-engine", &["sde-tests"]).len(), 1);
    assert!(breaches("sde-new", &[])[0].contains("no place"));
}
