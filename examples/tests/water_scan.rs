//! `water_scan` as a person runs it: a process, its output, its exit status, and
//! what is left when it is killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The program, which cargo builds beside the tests.
fn program() -> Command {
    example("water_scan")
}

fn example(name: &str) -> Command {
    let mut path = std::env::current_exe().expect("the test knows where it is");
    path.pop();
    path.pop();
    path.push("examples");
    path.push(name);
    Command::new(path)
}

fn run(arguments: &[&str]) -> Output {
    program()
        .args(arguments)
        .output()
        .expect("water_scan starts")
}

fn json(arguments: &[&str]) -> Value {
    let output = run(&[arguments, &["--json"]].concat());
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {told}");
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

fn energies(report: &Value) -> Vec<u64> {
    let points = report["points"].as_array().expect("points");
    let bits = |point: &Value| point["energy"].as_f64().expect("an energy").to_bits();
    points.iter().map(bits).collect()
}

fn computed(report: &Value) -> u64 {
    report["stats"]["computed"].as_u64().expect("a count")
}

fn path(of: &Path) -> &str {
    of.to_str().expect("temporary paths are text")
}

/// What a plain run writes to its output; nothing but text to its errors, which are piped.
fn table(arguments: &[&str]) -> String {
    let output = run(arguments);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {told}");
    assert!(!told.contains('\x1b'), "{told:?}");
    let table = String::from_utf8(output.stdout).expect("text");
    assert!(!table.contains('\x1b'), "{table:?}");
    table
}

/// The words of the line that begins with this one.
fn words<'t>(table: &'t str, first: &str) -> Vec<&'t str> {
    let mut lines = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let line = lines.find(|words| words.first() == Some(&first));
    line.unwrap_or_else(|| panic!("no line of {first} in\n{table}"))
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
    assert_eq!(
        first.matches(" 0.000 ").count(),
        1,
        "one point is the lowest: {first}"
    );
    let levels = [
        "app", "computed", "last", "value", "map", "waits", "loaded", "time",
    ];
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
    assert_eq!(words(&second, "Scan")[5], "1");
    assert_eq!(words(&second, "1.0000")[1], words(&first, "1.0000")[1]);
    assert!(table(&["--scan", "none"]).contains("nothing saved"));
}

#[test]
fn the_first_steps_are_remembered() {
    let output = example("first_steps").output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("27 -> 1 in 111 steps (Computed)"), "{text}");
    assert!(text.contains("97 -> 1 in 118 steps (LastValue)"), "{text}");
    assert!(text.contains(" remembered"), "{text}");
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
        assert_eq!(
            energies(&json(&["--threads", threads, "--basis", "6-31G"])),
            one
        );
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

/// How much is in the checkpoints of a store.
fn saved_bytes(store: &Path) -> u64 {
    let classes = ["results", "intermediates", "scratch"];
    let files = classes.map(|class| fs::read_dir(store.join(class)).into_iter().flatten());
    files
        .into_iter()
        .flatten()
        .filter_map(|file| Some(file.ok()?.metadata().ok()?.len()))
        .sum()
}

/// Starts a scan and kills it with SIGKILL once it has saved so much more. Says
/// whether it was killed before it ended by itself.
fn killed_after(store: &Path, arguments: &[&str], more: u64) -> bool {
    let enough = saved_bytes(store) + more;
    killed_when(store, arguments, |store| saved_bytes(store) >= enough)
}

/// The same once the store is as is asked for.
fn killed_when(store: &Path, arguments: &[&str], enough: impl Fn(&Path) -> bool) -> bool {
    let mut child = program()
        .args(arguments)
        .args(["--store", path(store)])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("water_scan starts");
    loop {
        if child.try_wait().expect("the child can be asked").is_some() {
            return false;
        }
        if enough(store) {
            child.kill().expect("the child can be killed");
            child.wait().expect("the child ends");
            return true;
        }
        std::thread::yield_now();
    }
}

#[test]
fn killed_again_and_again_it_goes_on_and_ends_in_the_same_bits() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let scan = [
        "--basis",
        "6-31G",
        "--scan",
        "angle 2 1 3 95 115 6",
        "--threads",
        "2",
    ];
    let whole = json(&scan);
    let mut kills = 0;
    // A prime, so that the kills come at different places of what is saved.
    while kills < 12 && killed_after(&store, &scan, 30_011) {
        kills += 1;
    }
    assert!(
        kills >= 3,
        "only {kills} kills: the scan saves less than it did"
    );
    let resumed = json(&[&scan[..], &["--store", path(&store)]].concat());
    assert_eq!(energies(&resumed), energies(&whole));
    assert!(
        computed(&resumed) < computed(&whole),
        "after {kills} kills {} of {} were computed",
        computed(&resumed),
        computed(&whole)
    );
    let again = json(&[&scan[..], &["--store", path(&store)]].concat());
    assert_eq!(computed(&again), 0);
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
    let integrals_saved = |store: &Path| {
        let scratch = fs::read_dir(store.join("scratch")).into_iter().flatten();
        scratch
            .filter_map(|file| Some(file.ok()?.metadata().ok()?.len()))
            .sum::<u64>()
            > 0
    };
    // The kill comes after the first iteration was saved, before the last.
    let store = (0..10)
        .map(|attempt| dir.path().join(format!("store {attempt}")))
        .find(|store| killed_when(store, &point, integrals_saved))
        .expect("it can be killed before it ends");
    let resumed = table(&[&point[..], &["--store", path(&store)]].concat());
    let left = computed_by(&resumed, "Diis");
    assert!(
        left < iterations,
        "{left} of {iterations} iterations:\n{resumed}"
    );
    assert_eq!(computed_by(&resumed, "ElectronRepulsion"), 0, "{resumed}");
    assert_eq!(words(&resumed, "-"), words(&whole, "-"));
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
