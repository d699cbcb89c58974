//! What a person sees of it.

use std::path::Path;
use std::process::Command;

use sde::{AppError, SharedWork};
use tempfile::tempdir;
use tracing::span::{Attributes, Id, Record};

use super::child::{Program, tell};
use super::{compute, left_to_compute};

/// Wants warnings, and forgets them.
struct Subscriber;

impl tracing::Subscriber for Subscriber {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &tracing::Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// A program on a damaged store, which meets the damage twice.
pub fn warns(store: &Path, quiet: bool, subscribes: bool) {
    if subscribes {
        tracing::subscriber::set_global_default(Subscriber).unwrap();
    }
    let builder = sde::builder(store).unwrap().without_signals();
    let sde = match quiet {
        true => builder.quiet(),
        false => builder,
    };
    let sde = sde.build().unwrap();
    compute(&sde);
    sde.load(sde::store::DirStore::open(store).unwrap())
        .unwrap();
    compute(&sde);
    tell("computed");
}

/// Changes a byte in the middle of each file of results.
fn damage(store: &Path) {
    for file in std::fs::read_dir(store.join("entries")).unwrap() {
        let path = file.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 3;
        bytes[middle] ^= 1;
        std::fs::write(path, bytes).unwrap();
    }
}

/// Found by using it: a full disk, a damaged entry, a store that fails: nobody saw anything unless the program had installed an observer or
/// a subscriber, and nothing said that it should.
#[test]
fn a_warning_is_seen_once_unless_somebody_else_sees_to_it() {
    let shown = |job: &str| {
        let folder = tempdir().unwrap();
        let store = folder.path().join("store");
        left_to_compute(&store);
        damage(&store);
        let (status, _, error) = Program::start(job, &store).ended();
        assert!(status.success(), "{error}");
        error
    };
    let error = shown("warns");
    let lines: Vec<&str> = error.lines().collect();
    assert!(!lines.is_empty());
    assert!(
        lines.iter().all(|line| line.starts_with("sde: warning: ")),
        "{error}"
    );
    let mut once = lines.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), lines.len(), "{error}");
    assert_eq!(shown("warns quietly"), "");
    assert_eq!(shown("warns a subscriber"), "");
}

pub fn fails_to_save(store: &Path) {
    let sde = sde::open(store).unwrap();
    compute(&sde);
}

/// Found by reading: what led to a trouble stood at the end of its warning, which was cut before it; and one trouble at the end
/// was told four times.
#[test]
fn a_warning_has_its_cause() {
    let folder = tempdir().unwrap();
    let store = folder.path().join("a long name ".repeat(10));
    drop(sde::open(&store).unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"trap "" XFSZ; ulimit -f 0; exec "$0" "$@""#]);
    shell.arg(std::env::current_exe().unwrap());
    let (status, _, error) = Program::by(shell, "fails to save", &store).ended();
    assert!(status.success(), "{error}");
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines.len(), 2, "{error}");
    for (line, what) in lines.iter().zip(["checkpoint", "archive"]) {
        let begins = format!("sde: warning: the {what} at the end failed: ");
        assert!(line.starts_with(&begins), "{error}");
        assert!(line.contains("File too large"), "{error}");
    }
}

const FAILS: u64 = 99;

/// Long enough for a bar, as far as a person can tell.
#[sde::app]
fn slow(x: u64) -> Result<u64, AppError> {
    std::thread::sleep(std::time::Duration::from_millis(100));
    match x {
        FAILS => Err(AppError::message("as it is told to")),
        x => Ok(x),
    }
}

pub fn progresses(store: &Path) {
    let builder = sde::builder(store).unwrap().threads(1);
    // In the order of the items.
    let sde = builder.shared_work(SharedWork::Off).build().unwrap();
    slow.par_call(&sde, 0..10).unwrap();
    // What ends early ends its bar, and so does not show up in that of the same app.
    assert!(slow.par_call(&sde, (10..12).chain([FAILS, 19])).is_err());
    let failing = slow.try_par_call(&sde, (40..56).chain([FAILS]).rev());
    assert_eq!(failing.iter().filter(|one| one.is_err()).count(), 1);
    slow.par_call_each(&sde, (20..24).filter(|x| x % 2 == 0), |_, _| {})
        .unwrap();
    slow.par_call(&sde, 30..32).unwrap();
}

/// On a terminal, which the program `script` makes.
#[test]
fn long_work_shows_a_bar_on_a_terminal() {
    let on_terminal = |ci: bool| {
        let folder = tempdir().unwrap();
        let program = std::env::current_exe().unwrap();
        let mut script = Command::new("script");
        script.args(["--quiet", "--return", "--command"]);
        let ci = if ci { "CI=true" } else { "CI=" };
        script.arg(format!(
            "stty cols 80; {ci} exec '{}' --exact child::job --nocapture --test-threads=1",
            program.display()
        ));
        script.arg("/dev/null").env("TERM", "xterm");
        let (status, out, error) = Program::script(script, "progresses", folder.path()).ended();
        assert!(status.success(), "{out}{error}");
        out
    };
    let out = on_terminal(false);
    assert!(out.contains("slow ") && out.contains(" of 10 "), "{out}");
    assert!(out.contains(" of 17, 1 failed "), "{out}");
    assert!(!on_terminal(true).contains(" of 10"));
    // A pipe is no terminal.
    let folder = tempdir().unwrap();
    let (_, out, error) = Program::start("progresses", folder.path()).ended();
    assert!(!(out + &error).contains(" of 10"));
}
