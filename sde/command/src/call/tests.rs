use std::fs;
use std::path::Path;
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use sde_engine::{Event, Sde};

use crate::{Command, CommandError, Ran, Trace};

/// A command that tells that it runs by a line in `started`, and goes on once somebody writes into the pipe `go`.
fn waits(folder: &Path) -> Command {
    let at = |name: &str| folder.join(name).display().to_string();
    let line = format!(
        "echo x >> {}; read x < {}; echo done",
        at("started"),
        at("go")
    );
    Command::new("sh").args(["-c", &line]).text(line)
}

fn until_started(folder: &Path, count: usize) {
    let began = Instant::now();
    let started = || fs::read_to_string(folder.join("started")).unwrap_or_default();
    while started().lines().count() < count {
        assert!(began.elapsed() < Duration::from_secs(60));
        thread::sleep(Duration::from_millis(5));
    }
}

/// Whoever asks for a trace is not content with a run that had none, nor whoever does not with one that was refused.
#[test]
fn calls_at_once_get_what_they_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let made = std::process::Command::new("mkfifo").arg(&go).status();
    assert!(made.unwrap().success());
    let run = |sde: &Sde, trace: Option<Trace>| {
        let command = waits(folder.path());
        let command = match trace {
            Some(trace) => command.trace(trace),
            None => command,
        };
        command.run(sde)
    };
    let printed = |ran: &Ran| ran.stdout().unwrap() == b"done\n";
    let strict = Some(Trace::Strict);
    for (first, second) in [(None, strict), (strict, None), (strict, strict)] {
        let (told, waits) = mpsc::channel();
        let told = Mutex::new(told);
        let observer = move |event: &Event| {
            if let Event::Waiting { .. } = event {
                let _ = told.lock().unwrap().send(());
            }
        };
        let sde = Sde::builder().observer(observer).build().unwrap();
        let _ = fs::remove_file(folder.path().join("started"));
        thread::scope(|scope| {
            let one = scope.spawn(|| run(&sde, first));
            until_started(folder.path(), 1);
            let other = scope.spawn(|| run(&sde, second));
            waits.recv_timeout(Duration::from_secs(60)).unwrap();
            fs::write(&go, "x\n").unwrap();
            let one = one.join().unwrap();
            until_started(folder.path(), 2);
            fs::write(&go, "x\n").unwrap();
            let other = other.join().unwrap();
            for (trace, done) in [(first, one), (second, other)] {
                match (trace, done) {
                    (None, Ok(ran)) => assert!(printed(&ran) && ran.traced().is_none()),
                    (Some(_), Err(CommandError::Untraced(untraced))) => {
                        assert!(printed(&untraced.ran));
                        assert!(!untraced.ran.traced().unwrap().is_clean());
                    }
                    (trace, done) => panic!("{trace:?}: {done:?}"),
                }
            }
        });
    }
}
