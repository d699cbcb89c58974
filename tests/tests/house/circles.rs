//! Files beside one another that use one another in a circle: none of them can be read, or tested, before the others.
//!
//! A circle through what a folder's own `mod.rs` declares does not count.

use std::collections::{BTreeMap, BTreeSet};

use super::none;
use super::paths::scan_of;
use super::repository::text_files;

/// The crates of libraries and of the program: names and sources.
const CRATES: &[(&str, &str)] = &[
    ("sde-engine", "sde/engine/src/"),
    ("sde-arrays", "sde/arrays/src/"),
    ("sde-last-value", "sde/last-value/src/"),
    ("sde-macros", "sde/macros/src/"),
    ("sde-mpi", "sde/mpi/src/"),
    ("sde-archives", "archives/src/"),
    ("sde-apps", "apps/src/"),
    ("sde-opencl", "apps/opencl/src/"),
    ("sde-cli", "cli/src/"),
];

/// Circles that are there still: folder, and the files and folders in it. There is to be none more.
const KNOWN: &[(&str, &[&str])] = &[
    (
        "apps/opencl/src",
        &["apps", "capture", "context", "live", "make"],
    ),
    ("archives/src", &["collective", "compact", "store"]),
    ("archives/src/cbor", &["access", "read"]),
    (
        "sde/engine/src",
        &[
            "app",
            "cache",
            "checkpoint",
            "console",
            "engine",
            "entry",
            "error",
            "event",
            "inputs",
            "key",
            "output_file",
            "ranks",
            "result_map",
        ],
    ),
    (
        "sde/engine/src/app",
        &["definition", "info", "instance", "setup", "slot"],
    ),
    ("sde/engine/src/app", &["prepared", "summary"]),
    (
        "sde/engine/src/key",
        &[
            "commitment",
            "encoder",
            "fingerprint",
            "input_file",
            "items",
            "scratch",
            "shape",
            "short",
            "spill",
            "volatile",
        ],
    ),
    ("sde/engine/src/key/by_serde", &["compound", "serializer"]),
];

/// Who uses whom, of the files and folders in one folder.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// The uses within each folder of a crate, by the folder's path.
fn uses(krate: &str, src: &str, files: &[(&str, &str)]) -> BTreeMap<String, Uses> {
    let mut sources = Vec::new();
    for (path, text) in files {
        let Some(inside) = path.strip_prefix(src) else {
            continue;
        };
        let inside = inside.trim_end_matches(".rs").trim_end_matches("/mod");
        let module: Vec<String> = match inside {
            "lib" | "main" => Vec::new(),
            _ => inside.split('/').map(str::to_owned).collect(),
        };
        if let Ok(source) = scan_of(krate, text, &module) {
            sources.push((module, source));
        }
    }
    let modules: BTreeSet<Vec<String>> = sources.iter().map(|(module, _)| module.clone()).collect();
    // What a module gives on under its own name: from which of its children it has that.
    let mut given: BTreeMap<(Vec<String>, String), String> = BTreeMap::new();
    for (module, source) in &sources {
        for path in &source.reexports {
            let path = path.strip_prefix(module.as_slice()).unwrap_or(path);
            if let [child, .., name] = path
                && modules.contains(&[module.as_slice(), std::slice::from_ref(child)].concat())
            {
                given.insert((module.clone(), name.clone()), child.clone());
            }
        }
    }
    let for_tests: Vec<_> = sources
        .iter()
        .flat_map(|(_, source)| source.test_modules.clone())
        .collect();
    let mut found: BTreeMap<String, Uses> = BTreeMap::new();
    for (module, source) in &sources {
        if for_tests.iter().any(|tests| module.starts_with(tests)) {
            continue;
        }
        for named in &source.paths {
            let shared = module
                .iter()
                .zip(&named.segments)
                .take_while(|(a, b)| a == b);
            let shared = shared.count();
            let (folder, [from, ..], [to, ..]) = (
                &module[..shared],
                &module[shared..],
                &named.segments[shared..],
            ) else {
                continue;
            };
            let given = given.get(&(folder.to_vec(), to.clone()));
            let to = given.unwrap_or(to);
            let there = [folder, std::slice::from_ref(to)].concat();
            if to != from && modules.contains(&there) {
                let folder = format!("{src}{}", folder.join("/"));
                let of_folder = found.entry(folder).or_default();
                of_folder
                    .entry(from.clone())
                    .or_default()
                    .insert(to.clone());
            }
        }
    }
    found
}

/// The circles, each as the names on it, sorted.
fn circles(uses: &Uses) -> BTreeSet<Vec<String>> {
    let reached = |from: &String| {
        let mut seen = BTreeSet::new();
        let mut open: Vec<&String> = uses.get(from).into_iter().flatten().collect();
        while let Some(next) = open.pop() {
            if seen.insert(next.clone()) {
                open.extend(uses.get(next).into_iter().flatten());
            }
        }
        seen
    };
    let all: BTreeMap<_, _> = uses.keys().map(|name| (name, reached(name))).collect();
    let on_a_circle = all
        .iter()
        .filter(|(name, reached)| reached.contains(**name));
    let circle = |(name, reached): (&&String, &BTreeSet<String>)| {
        let back = |other: &&String| all.get(other).is_some_and(|all| all.contains(*name));
        reached.iter().filter(back).cloned().collect()
    };
    on_a_circle.map(circle).collect()
}

fn breaches(
    there: &BTreeMap<String, BTreeSet<Vec<String>>>,
    known: &[(&str, &[&str])],
) -> Vec<String> {
    let names = |files: &[&str]| {
        files
            .iter()
            .map(|file| (*file).to_owned())
            .collect::<Vec<_>>()
    };
    let is_known = |folder: &str, circle: &Vec<String>| {
        known
            .iter()
            .any(|(of, files)| *of == folder && names(files) == *circle)
    };
    let mut found = Vec::new();
    for (folder, circles) in there {
        let new = circles.iter().filter(|circle| !is_known(folder, circle));
        found.extend(new.map(|circle| {
            format!("{folder}: {circle:?} use one another; move down what they share")
        }));
    }
    for (folder, files) in known {
        if !there
            .get(*folder)
            .is_some_and(|circles| circles.contains(&names(files)))
        {
            found.push(format!(
                "{folder}: {files:?} is no circle any more: take it out of KNOWN"
            ));
        }
    }
    found
}

#[test]
fn files_beside_one_another_use_one_another_one_way() {
    let files: Vec<_> = text_files()
        .iter()
        .filter(|file| file.is(".rs"))
        .map(|file| (file.path.as_str(), file.text.as_str()))
        .collect();
    let mut there = BTreeMap::new();
    for (krate, src) in CRATES {
        for (folder, uses) in uses(krate, src, &files) {
            there.insert(folder.trim_end_matches('/').to_owned(), circles(&uses));
        }
    }
    assert!(there.len() > CRATES.len(), "{there:?}");
    none(breaches(&there, KNOWN));
}

#[test]
fn a_circle_is_noticed() {
    let files = [
        // The macro has a module's name.
        (
            "x/src/lib.rs",
            "mod a; mod b; mod c; use c::Given; pub use y::a;",
        ),
        ("x/src/a.rs", "use crate::b::B; use super::c::C;"),
        ("x/src/b.rs", "use crate::Given;"),
        ("x/src/c/mod.rs", "mod d; pub(crate) use d::D;"),
        ("x/src/c/d.rs", "use crate::a::A; use super::C;"),
    ];
    let uses = uses("x", "x/src/", &files);
    let there = |files: &[&str]| BTreeSet::from([files.iter().map(|f| (*f).to_owned()).collect()]);
    let found: BTreeMap<_, _> = uses
        .iter()
        .map(|(folder, uses)| (folder.trim_end_matches('/').to_owned(), circles(uses)))
        .collect();
    assert_eq!(found["x/src"], there(&["a", "b", "c"]));
    assert_eq!(found.len(), 1);
    assert_eq!(breaches(&found, &[]).len(), 1);
    none(breaches(&found, &[("x/src", &["a", "b", "c"])]));
    assert_eq!(breaches(&found, &[("x/src", &["a", "b"])]).len(), 2);
}
