//! Lints apply everywhere they should.
//!
//! Cargo takes over the workspace's table whole or not at all, so packages of programs, which may
//! print and unwrap, have tables of their own. Those must not drift from the workspace's. And
//! `unsafe` has six homes, the crates `sde-engine`, `sde-command`, `sde-last-value`, `sde-mpi`, `sde-opencl` and `sde-python`: every other crate forbids it.

use toml::{Table, Value};

use super::metadata::{Package, metadata};
use super::none;
use super::repository::{read, root};

/// The lints of libraries that programs lack.
const FOR_LIBRARIES: &[&str] = &[
    "exit",
    "expect_used",
    "missing_debug_implementations",
    "panic",
    "print_stderr",
    "print_stdout",
    "unwrap_used",
];

/// Packages of programs: all others are libraries.
const PROGRAMS: &[&str] = &[
    "sde-cli",
    "sde-examples",
    "sde-examples-mpi",
    "sde-examples-opencl",
    "sde-tests",
    "sde-tests-program",
    "sde-benches",
    "sde-benches-memory",
    "sde-benches-mpi",
    "sde-benches-opencl",
    "sde-benches-store",
];

/// Where `unsafe` is needed.
const UNSAFE: &[&str] = &[
    "sde-python",
    "sde-engine",
    "sde-command",
    "sde-last-value",
    "sde-mpi",
    "sde-opencl",
];

fn table(text: &str) -> Table {
    text.parse()
        .unwrap_or_else(|why| panic!("a manifest is not TOML: {why}"))
}

/// What is wrong with a package's `[lints]`, if anything.
fn trouble(name: &str, own: Option<&Value>, workspace: &Table) -> Option<String> {
    let Some(own) = own.and_then(Value::as_table) else {
        return Some(format!("{name} has no [lints]"));
    };
    if own.get("workspace") == Some(&Value::Boolean(true)) {
        return None;
    }
    if !PROGRAMS.contains(&name) {
        return Some(format!(
            "{name} is a library: it needs `[lints] workspace = true`"
        ));
    }
    let mut wanted = workspace.clone();
    for (_, lints) in &mut wanted {
        if let Some(lints) = lints.as_table_mut() {
            lints.retain(|lint, _| !FOR_LIBRARIES.contains(&lint));
        }
    }
    (*own != wanted)
        .then(|| format!("{name}: [lints] must be the workspace's, without {FOR_LIBRARIES:?}"))
}

#[test]
fn every_package_has_the_lints() {
    let workspace = table(&read("Cargo.toml"));
    let lints = workspace["workspace"]["lints"]
        .as_table()
        .expect("[workspace.lints]");
    for lint in FOR_LIBRARIES {
        let is_denied = |lints: &Value| lints.get(lint).and_then(Value::as_str) == Some("deny");
        let mut tables = lints.iter().map(|(_, lints)| lints);
        assert!(tables.any(is_denied), "{lint} in [workspace.lints]");
    }
    let check = metadata().members().filter_map(|package| {
        let manifest = std::fs::read_to_string(&package.manifest_path).expect("reading a manifest");
        trouble(&package.name, table(&manifest).get("lints"), lints)
    });
    none(check);
}

/// The root sources of a package's libraries, as paths from the repository's root.
fn library_roots(package: &Package) -> impl Iterator<Item = String> {
    let libraries = package.targets.iter().filter(|target| {
        target
            .kind
            .iter()
            .any(|kind| kind.contains("lib") || kind == "proc-macro")
    });
    let root = format!("{}/", root().display());
    libraries.map(move |target| target.src_path.trim_start_matches(&root).to_owned())
}

#[test]
fn unsafe_is_forbidden_where_it_is_not_needed() {
    let mut found = Vec::new();
    for package in metadata()
        .members()
        .filter(|package| !UNSAFE.contains(&package.name.as_str()))
    {
        for path in library_roots(package) {
            if !read(&path).contains("#![forbid(unsafe_code)]") {
                found.push(format!("{path} needs #![forbid(unsafe_code)]"));
            }
        }
    }
    none(found);
}

#[test]
fn a_drifted_table_is_noticed() {
    let workspace =
        table("[rust]\nunsafe_code = \"deny\"\n[clippy]\ntodo = \"deny\"\npanic = \"deny\"\n");
    let check = |name: &str, text: &str| trouble(name, table(text).get("lints"), &workspace);
    let program = "[lints.rust]\nunsafe_code = \"deny\"\n[lints.clippy]\ntodo = \"deny\"\n";
    assert_eq!(check("sde-tests", program), None);
    assert_eq!(check("sde", "[lints]\nworkspace = true\n"), None);
    assert!(check("sde", "").is_some());
    assert!(check("sde", program).is_some());
    assert!(check("sde-tests", &program.replace("deny", "warn")).is_some());
}
