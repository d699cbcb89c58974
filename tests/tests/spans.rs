//! What who listens with `tracing` is told. In a process of its own: whether a span is wanted is remembered for all threads.

#![forbid(unsafe_code)]

use std::io::Write;
use std::sync::{Arc, LazyLock, Mutex};
use std::thread;

use sde::opencl::driver::simulated::Simulated;
use sde::opencl::{Context, ProgramSpec};
use sde::ranks::ThreadGroup;
use sde::store::{Cbor, DirStore, StoreOptions};
use sde::{AppError, Observer, Sde};
use sde_tests::{Gate, LIMIT, Watchdog, one_says};
use tracing::subscriber::NoSubscriber;
use tracing::{Dispatch, Level, dispatcher};
use tracing_subscriber::fmt::format::FmtSpan;

#[sde::app(name = "spans.double")]
fn double(x: u64) -> Result<u64, AppError> {
    match x {
        13 => Err(AppError::message("no")),
        x => Ok(2 * x),
    }
}

#[sde::app(name = "spans.by_all", distributed)]
fn by_all(x: u64) -> u64 {
    x
}

/// A second listener. Where a process has one only, a span that is first met by a thread that does not listen is
/// off for all threads.
static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::new()));

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
    /// A subscriber that listens at this level, and hears spans when they end.
    fn listener(&self, level: Level) -> Dispatch {
        LazyLock::force(&SECOND);
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
            Sde::builder()
                .store(store)
                .save(sde::SavePolicy::OnRequest)
                .build()
                .unwrap()
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

/// Opens when a thread waits.
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
    let run = || {
        dispatcher::with_default(&listener, || sde.run(&app, &sde_tests::x(1)).unwrap());
    };
    // Both listen: a place that is first reached by a thread that does not may stay silent for all.
    thread::scope(|scope| {
        scope.spawn(run);
        begun.pass();
        run();
    });
    let got = written.ended("wait", "shared").len();
    assert_eq!(got, 1, "{:#?}", written.lines());
    let lines = written.lines();
    assert_eq!(written.ended("run", "waited").len(), 1, "{lines:#?}");
}

#[test]
fn what_ranks_do_together_has_spans_on_each() {
    let _dog = Watchdog::new("spans of ranks", LIMIT);
    let folder = tempfile::tempdir().unwrap();
    let written = Written::default();
    let listener = written.listener(Level::DEBUG);
    ThreadGroup::run(2, |group| {
        dispatcher::with_default(&listener, || {
            let path = folder.path().join("store");
            let store = StoreOptions::new().open_together(&path, &group).unwrap();
            let builder = Sde::builder()
                .store(store)
                .save(sde::SavePolicy::OnRequest)
                .process_group(group, Cbor);
            let sde = builder.build().unwrap();
            by_all.call(&sde, 4).unwrap();
            sde.finish().unwrap();
        });
    });
    for rank in 0..2 {
        let mut met = written.ended("collective", "met");
        met.retain(|line| line.contains(&format!("rank={rank} ranks=2")));
        one_says(&met, "runs spans.by_all");
    }
    for (name, outcome) in [("run", "computed"), ("commit", "committed")] {
        let mut ended = written.ended(name, outcome);
        ended.retain(|line| line.contains("ranks=2"));
        assert!(ended.len() >= 2, "{name}: {:#?}", written.lines());
    }
}

#[test]
fn a_build_has_a_span_if_there_is_one() {
    let driver = Simulated::new();
    let context = Context::simulated(&driver).build().unwrap();
    let written = Written::default();
    dispatcher::with_default(&written.listener(Level::DEBUG), || {
        let sde = Sde::new();
        for source in ["kernel void scale() {}", "#error no"] {
            let program = ProgramSpec::source(source).named("spans.scale");
            let program = context.describe(0, &program).unwrap();
            let made: Vec<_> = (0..2).map(|_| context.program(&sde, 0, &program)).collect();
            let mut each = made.iter();
            assert!(each.all(|made| made.is_ok() == (source != "#error no")));
        }
    });
    for outcome in ["built", "failed"] {
        let ended = written.ended("build", outcome);
        assert_eq!(ended.len(), 1, "{outcome}: {:#?}", written.lines());
        assert!(ended[0].contains("program=\"spans.scale\""), "{ended:?}");
    }
}

#[test]
fn a_job_is_told_in_a_few_lines() {
    let folder = tempfile::tempdir().unwrap();
    let written = Written::default();
    dispatcher::with_default(&written.listener(Level::INFO), || {
        let store = DirStore::open(folder.path().join("store")).unwrap();
        let sde = Sde::builder()
            .store(store)
            .save(sde::SavePolicy::OnRequest)
            .threads(1)
            .build()
            .unwrap();
        double.par_call(&sde, 20..40).unwrap();
        sde.finish().unwrap();
    });
    let told = written.lines();
    let parts = [
        "sde: begins, with the store in",
        "sde: went through spans.double done=20 failed=0 items=20 took=",
        "sde: saved the checkpoint entries=20",
        "sde: ends computed=20 loaded=0 remembered=0 failed=0",
    ];
    let mut left = told.iter();
    for part in parts {
        assert!(left.any(|line| line.contains(part)), "no {part}: {told:#?}");
    }
    assert!(told.len() <= parts.len(), "{told:#?}");
}
