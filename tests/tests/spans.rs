//! What who listens with `tracing` is told. In a process of its own: whether a span is wanted is remembered for all threads.

#![forbid(unsafe_code)]

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::thread;

use sde::store::DirStore;
use sde::{AppError, Observer, Sde};
use sde_tests::{Gate, LIMIT, Watchdog};
use tracing::{Dispatch, Level, dispatcher};
use tracing_subscriber::fmt::format::FmtSpan;

#[sde::app(name = "spans.double")]
fn double(x: u64) -> Result<u64, AppError> {
    match x {
        13 => Err(AppError::message("no")),
        x => Ok(2 * x),
    }
}

/// What was written so far.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Written {
    /// Somebody who listens at this level, and hears spans when they end.
    fn listener(&self, level: Level) -> Dispatch {
        let own = self.clone();
        let listener = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_span_events(FmtSpan::CLOSE)
            .with_ansi(false)
            .with_writer(move || own.clone());
        Dispatch::new(listener.finish())
    }

    fn lines(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    /// The lines of the spans that ended with this name and outcome.
    fn ended(&self, name: &str, outcome: &str) -> Vec<String> {
        let mut lines = self.lines();
        let outcome = format!("outcome=\"{outcome}\" took=");
        lines.retain(|line| {
            let Some((spans, _)) = line.split_once(": sde: close") else {
                return false;
            };
            let innermost = spans.rsplit("}:").next().unwrap_or(spans);
            let innermost = innermost.rsplit("DEBUG ").next().unwrap_or(innermost);
            innermost.starts_with(&format!("{name}{{")) && innermost.contains(&outcome)
        });
        lines
    }
}

#[test]
fn each_step_of_a_miss_has_a_span_with_outcome_and_duration() {
    let folder = tempfile::tempdir().unwrap();
    let written = Written::default();
    dispatcher::with_default(&written.listener(Level::DEBUG), || {
        let engine = || {
            let store = DirStore::open(folder.path().join("store")).unwrap();
            Sde::builder().store(store).build().unwrap()
        };
        let sde = engine();
        double.call(&sde, 4).unwrap();
        double.call(&sde, 13).unwrap_err();
        sde.finish().unwrap();
        drop(sde);
        double.call(&engine(), 4).unwrap();
    });
    let of_app = |lines: Vec<String>| {
        let named = |line: &String| line.contains("app=\"spans.double\" key=");
        lines.iter().filter(|line| named(line)).count()
    };
    for (name, outcome, times) in [
        ("run", "computed", 1),
        ("run", "loaded", 1),
        ("run", "failed", 1),
        ("execute", "returned", 1),
        ("execute", "failed", 1),
        ("load", "not there", 2),
        ("load", "found", 1),
    ] {
        let ended = of_app(written.ended(name, outcome));
        assert_eq!(ended, times, "{name} {outcome}: {:#?}", written.lines());
    }
    assert!(!written.ended("save", "saved").is_empty());
    assert!(!written.ended("commit", "committed").is_empty());
}

#[test]
fn a_hit_has_none() {
    let sde = Sde::new();
    double.call(&sde, 4).unwrap();
    let written = Written::default();
    dispatcher::with_default(&written.listener(Level::TRACE), || {
        (0..3).for_each(|_| drop(double.call(&sde, 4).unwrap()));
    });
    assert_eq!(written.lines(), Vec::<String>::new());
}

/// Opens when somebody waits.
struct OpensWhenOneWaits(Arc<Gate>);

impl Observer for OpensWhenOneWaits {
    fn observe(&self, event: &sde::Event) {
        if matches!(event, sde::Event::Waiting { .. }) {
            self.0.open();
        }
    }
}

#[test]
fn a_wait_says_how_it_ended() {
    let _dog = Watchdog::new("a wait with a span", LIMIT);
    let (begun, waits) = (Arc::new(Gate::new()), Arc::new(Gate::new()));
    let app = {
        let (begun, waits) = (Arc::clone(&begun), Arc::clone(&waits));
        sde_tests::number("spans.held", move |_, _| {
            begun.open();
            waits.pass();
            Ok(1)
        })
    };
    let observer = OpensWhenOneWaits(Arc::clone(&waits));
    let sde = Sde::builder().observer(observer).build().unwrap();
    let written = Written::default();
    let listener = written.listener(Level::DEBUG);
    thread::scope(|scope| {
        let run = || {
            let run = || sde.run(&app, &sde_tests::x(1)).unwrap();
            dispatcher::with_default(&listener, run);
        };
        // Both listen: whether a span is wanted is asked where it is first met.
        scope.spawn(run);
        begun.pass();
        run();
    });
    assert_eq!(
        written.ended("wait", "shared").len(),
        1,
        "{:#?}",
        written.lines()
    );
    let lines = written.lines();
    assert_eq!(written.ended("run", "waited").len(), 1, "{lines:#?}");
}

#[test]
fn a_job_is_told_in_a_few_lines() {
    let folder = tempfile::tempdir().unwrap();
    let written = Written::default();
    dispatcher::with_default(&written.listener(Level::INFO), || {
        let store = DirStore::open(folder.path().join("store")).unwrap();
        let sde = Sde::builder().store(store).threads(1).build().unwrap();
        double.par_call(&sde, 20..40).unwrap();
        sde.finish().unwrap();
    });
    let told = written.lines();
    let parts = [
        "sde: begins, with the store in",
        "sde: went through spans.double done=20 items=20 took=",
        "sde: saved the checkpoint entries=20",
        "sde: ends computed=20 loaded=0 remembered=0 failed=0",
    ];
    let mut left = told.iter();
    for part in parts {
        assert!(left.any(|line| line.contains(part)), "no {part}: {told:#?}");
    }
    assert!(told.len() <= parts.len(), "{told:#?}");
}
