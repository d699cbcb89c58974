//! The program in the document about the store's format, run as it stands there.
//!
//! Needs a Python with cbor2, numpy and pandas, which `SDE_PYTHON` names: `./test` makes one. Without it this
//! is not run at all, see `Cargo.toml`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that fails says where"
)]

#[allow(dead_code, reason = "part of it is for other tests")]
#[path = "program/edited.rs"]
mod edited;
#[allow(
    dead_code,
    unused_imports,
    reason = "it is the kit of the other tests too"
)]
#[path = "program/kit.rs"]
mod kit;

use std::path::Path;
use std::process::Command;

const DOCUMENT: &str = include_str!("../../docs/store-format.md");

fn python() -> Command {
    let python = std::env::var_os("SDE_PYTHON");
    Command::new(python.expect("SDE_PYTHON names a Python with cbor2, numpy and pandas"))
}

/// The first program in a document.
fn code(document: &str) -> &str {
    let (_, code) = document.split_once("```python\n").unwrap();
    code.split_once("```").unwrap().0
}

fn said(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{err}");
    String::from_utf8(output.stdout).unwrap()
}

/// What the program in the document says of a store.
fn read(store: &Path) -> String {
    let program = store.with_file_name("read.py");
    std::fs::write(&program, code(DOCUMENT)).unwrap();
    said(python().arg(&program).arg(store))
}

#[test]
fn the_documented_program_reads_equal_values() {
    let sample = kit::Sample::new();
    let said = read(&sample.path);
    for value in [
        "cli.energy {'basis': 'STO-3G', 'charge': 0} {'result': 6.0}\n",
        "'positions': array([[ 0.,  1.,  2.],\n       [ 4., nan, -0.]])",
        "'guess': array([1., 2., 4.])",
        "'report': {'weights': array([0.5, 1.5], dtype=float32), 'label': 'a label', 'steps': None}",
        "cli.iterate scratch {",
    ] {
        assert!(said.contains(value), "{value} is not in:\n{said}");
    }
}

/// What a compaction has replaced, and what is marked as not to be used, does not count.
#[test]
fn the_documented_program_reads_what_counts() {
    let sample = kit::Sample::new();
    let read = || {
        let said = read(&sample.path);
        let mut lines: Vec<_> = said.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let before = read();
    sde_archives::DirStore::open(&sample.path)
        .unwrap()
        .compact(&sde_archives::Retention::new())
        .unwrap();
    assert_eq!(read(), before);
}

/// The sweep of the README, with few points.
#[sde::app]
fn lyapunov(r: f64) -> f64 {
    r - 3.5
}

/// What the guide does with a table.
#[test]
fn the_guides_program_reads_a_table() {
    let code = code(include_str!("../../docs/guide/05-program.md"));
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("lyapunov.sde");
    let engine = kit::engine(&store);
    for r in [3.4, 3.7, 3.6] {
        lyapunov.call(&engine, r).unwrap();
    }
    engine.finish().unwrap();
    let more = "print(table['r'].dtype, table['result'].shape, table['key'].dtype)\n";
    std::fs::write(folder.path().join("read.py"), format!("{code}{more}")).unwrap();
    let mut table = kit::program();
    table
        .args(["table", "--npz", "lyapunov.npz"])
        .env("SDE_STORE", &store);
    assert!(table.current_dir(folder.path()).status().unwrap().success());
    let said = said(python().arg("read.py").current_dir(folder.path()));
    assert_eq!(said, "3.6\nfloat64 (3,) <U12\n");
}

/// Reads a table twice; tells of each how many rows it has, and how often what the runs were given is there again.
const FRAMES: &str = "
import numpy, pandas, sys
for table in pandas.read_csv('table.csv'), pandas.DataFrame(dict(numpy.load('table.npz'))):
    given = table.drop(columns=['key', *sys.argv[1:]])
    print(len(table), given.duplicated().sum(), *given.columns)
";

/// What `FRAMES` tells of the table of an app.
fn frames(folder: &Path, app: &str, results: &[&str]) -> String {
    for (file, form) in [("table.csv", "--csv"), ("table.npz", "--npz")] {
        let mut table = kit::program();
        table.args(["table", "s.sde", "--force", "--app", app, form]);
        match form {
            "--csv" => table.stdout(std::fs::File::create(folder.join(file)).unwrap()),
            _ => table.arg(file),
        };
        assert!(table.current_dir(folder).status().unwrap().success());
    }
    said(
        python()
            .args(["-c", FRAMES])
            .args(results)
            .current_dir(folder),
    )
}

/// The code is edited, then the helper, and each time a part of the sweep is made again.
#[test]
fn a_data_frame_of_a_half_recomputed_sweep_has_no_row_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (path, store) = (folder.path(), &folder.path().join("s.sde"));
    let told = || frames(path, "code.step", &["by"]);
    edited::program(store, ["1", "a"], 0..8);
    assert_eq!(told(), "8 0 x\n".repeat(2));
    edited::program(store, ["2", "a"], 0..6);
    assert_eq!(told(), "6 0 x\n".repeat(2));
    // Only odd points call the helper.
    edited::program(store, ["2", "b"], [1, 3]);
    assert_eq!(told(), "5 0 x\n".repeat(2));
}

/// One name of a file has had two contents.
#[test]
fn a_data_frame_of_runs_on_an_edited_file_tells_the_contents_apart() {
    let folder = tempfile::tempdir().unwrap();
    for text in ["one", "two"] {
        std::fs::write(folder.path().join("in.txt"), text).unwrap();
        let mut exec = kit::program();
        exec.args(["exec", "-s", "s.sde", "-i", "in.txt", "--", "cat", "in.txt"]);
        assert!(exec.current_dir(folder.path()).status().unwrap().success());
    }
    let told = frames(folder.path(), "cat", &[]);
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.len(), 2);
    for line in lines {
        assert!(line.starts_with("2 0 "), "{told}");
    }
}
