//! The program of the README: run, killed, and run again.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::kit::{example, words};

fn sweep(dir: &Path) -> Command {
    let mut program = example("sweep");
    program.current_dir(dir);
    program
}

/// What it printed, and how many points it computed and loaded.
fn run(dir: &Path) -> (String, u64, u64) {
    let output = sweep(dir).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    let (points, table) = text.split_at(text.find("app ").expect("a table"));
    let head = table.replace("in memory", "memory");
    let column = |name| {
        let at = words(&head, "app").iter().position(|word| *word == name);
        at.map_or(0, |at| {
            words(table, "lyapunov")[at].parse().expect("a number")
        })
    };
    (points.to_owned(), column("computed"), column("loaded"))
}

#[test]
fn a_sweep_goes_on_after_a_kill_and_is_loaded_afterwards() {
    let dir = tempfile::tempdir().unwrap();
    let mut first = sweep(dir.path())
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    // Nobody signals that the background has saved.
    let generations = dir.path().join("lyapunov.sde/manifests");
    let deadline = Instant::now() + Duration::from_secs(120);
    while !std::fs::read_dir(&generations).is_ok_and(|mut all| all.next().is_some()) {
        assert!(Instant::now() < deadline, "nothing was saved");
        std::thread::sleep(Duration::from_millis(5));
    }
    first.kill().expect("it is there");
    first.wait().expect("it ends");
    let (points, computed, loaded) = run(dir.path());
    assert!(
        loaded > 0 && computed + loaded == 200,
        "{computed} and {loaded}"
    );
    assert_eq!(run(dir.path()), (points, 0, 200));
}

/// The README shows the program that is tested here.
#[test]
fn the_readme_has_this_program() {
    let readme = include_str!("../../../README.md");
    let program = include_str!("../../01_sweep.rs");
    let (_, code) = program.split_once("\n\n").expect("a line of documentation");
    assert!(
        readme.contains(&format!("```rust,no_run\n{code}```")),
        "{code}"
    );
}
