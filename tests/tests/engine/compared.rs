//! Two computations of one key are compared where both are at hand: other bits are told, with nothing computed for it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use sde::archiver::{ArchiveError, Archiver, Batch, EncodedSave, MemoryArchiver};
use sde::store::DirStore;
use sde::{AppInfo, Policy, ResultMap, ResultSpec, SavePolicy, Sde, Tag};
use sde_tests::{Counter, Gate, LIMIT, Made, Watch, Watchdog, forward, made, number, one_says, x};

use super::one_worker;

/// An app that gives these results the first time, and those of the second list from then on.
fn varying(
    info: AppInfo,
    results: impl Fn(bool) -> ResultMap + Send + Sync + 'static,
) -> (Made, Counter) {
    let calls = Counter::new();
    let counted = calls;
    let app = made(info, move |_, _| Ok(results(counted.add() == 0)));
    (app, calls)
}

/// One that gives another number, in three ways: a short value, one that a store keeps with a digest of its own, and one that the
/// store does not have.
fn three_kinds() -> (Made, Counter) {
    let info = AppInfo::new("three kinds", "1")
        .result(ResultSpec::new::<u64>("short"))
        .result(ResultSpec::new::<Vec<f64>>("long"))
        .result(ResultSpec::new::<u64>("left").tagged(Tag::Expendable));
    varying(info, |is_first| {
        let number = if is_first { 1.0 } else { 2.0 };
        ResultMap::new()
            .with("short", number as u64)
            .with("long", vec![number; 1 << 14])
            .with("left", 7_u64)
    })
}

fn watched(builder: sde::Builder) -> (Sde, Watch) {
    let watch = Watch::new();
    let builder = builder.observer(watch.clone());
    (builder.build().expect("an engine"), watch)
}

fn opened(store: &Path) -> (Sde, Watch) {
    let store = DirStore::open(store).expect("a store");
    watched(Sde::builder().store(store).save(SavePolicy::EveryResult))
}

fn refresh(sde: &Sde, app: &Made) {
    let inputs = x(1);
    let request = sde.request(app, &inputs).policy(Policy::Refresh);
    request.run().expect("a result");
}

/// Fills a gap where it is not there.
fn ask_for_what_is_left(sde: &Sde, app: &Made) {
    let inputs = x(1);
    let request = sde.request(app, &inputs).names(&["left"]);
    request.run().expect("a result");
}

fn differing(sde: &Sde) -> u64 {
    sde.stats().total.differing
}

/// What is told of results that differ.
fn told(watch: &Watch) -> Vec<String> {
    let warnings = watch.warnings().into_iter();
    warnings.filter(|it| it.contains("other bits")).collect()
}

/// Found by reading: of two threads that counted at once, both or neither said that further keys are only counted.
#[test]
fn one_warning_says_that_further_keys_are_only_counted() {
    for _ in 0..500 {
        let (sde, watch) = watched(Sde::builder());
        let calls = Counter::new();
        let app = number("dice", move |_, _| Ok(calls.add() as u64));
        let all: Vec<_> = (0..12).map(x).collect();
        for inputs in &all {
            sde.run(&app, inputs).expect("a result");
        }
        let together = Barrier::new(4);
        thread::scope(|scope| {
            for some in all.chunks(3) {
                let (sde, app, together) = (&sde, &app, &together);
                scope.spawn(move || {
                    together.wait();
                    for inputs in some {
                        let request = sde.request(app, inputs).policy(Policy::Refresh);
                        request.run().expect("a result");
                    }
                });
            }
        });
        let told = told(&watch);
        let last = told.iter().filter(|it| it.contains("only counted"));
        assert_eq!((differing(&sde), told.len(), last.count()), (12, 10, 1));
    }
}

/// One of two calls that compute a key at once loses, and what it has made was dropped unseen.
#[test]
fn two_calls_that_compute_one_key_at_once_are_compared() {
    let _dog = Watchdog::new("a run beside another", LIMIT);
    let pool = one_worker();
    for do_differ in [false, true] {
        let (sde, watch) = watched(Sde::builder().rayon_patience(Duration::ZERO));
        let (calls, gates) = (Counter::new(), [Gate::new(), Gate::new()]);
        let app = number("beside", move |_, _| {
            let call = calls.add();
            gates[call].pass();
            Ok(700 + u64::from(do_differ && call == 1))
        });
        let run = || sde.run(&app, &x(1)).expect("a result");
        thread::scope(|scope| {
            let holder = scope.spawn(run);
            gates[0].arrived(1);
            let beside = scope.spawn(|| pool.install(run));
            gates[1].arrived(1);
            gates[0].open();
            holder.join().expect("no panic");
            gates[1].open();
            beside.join().expect("no panic");
        });
        let stats = sde.stats();
        assert_eq!(stats.total.duplicates, 1);
        assert_eq!(differing(&sde), u64::from(do_differ));
        assert_eq!(told(&watch).len(), usize::from(do_differ));
        if do_differ {
            let key = sde.peek(&app, &x(1)).expect("a key").key().short();
            let run = sde_tests::records(&sde)[0].run;
            let told = told(&watch);
            for part in [&format!("beside [{key}]"), "\"y\"", &run.to_string()] {
                one_says(&told, part);
            }
            one_says(&told, "`nondeterministic`");
            one_says(&told, "`not_compared`");
            assert!(stats.to_string().contains("other bits"), "{stats}");
        }
    }
}

/// A body that reads a clock warned once for each key of a sweep.
#[test]
fn an_app_is_warned_of_ten_times() {
    let (sde, watch) = watched(Sde::builder());
    let calls = Counter::new();
    let app = number("clock", move |_, _| Ok(calls.add() as u64));
    for key in 0..12 {
        let inputs = x(key);
        for policy in [Policy::Use, Policy::Refresh] {
            let request = sde.request(&app, &inputs).policy(policy);
            request.run().expect("a result");
        }
    }
    assert_eq!((differing(&sde), told(&watch).len()), (12, 10));
    one_says(&told(&watch), "are only counted");
}

/// A store that lets nobody encode before a gate is open.
struct Gated(MemoryArchiver, Gate);

impl Archiver for Gated {
    forward!(0: save, find, find_scratch, marks, describe);

    fn encode(&self, batch: &Batch) -> Result<Option<EncodedSave<'_>>, ArchiveError> {
        self.1.pass();
        self.0.encode(batch)
    }
}

/// Both bodies have ended before it is decided whose results stand.
#[test]
fn the_one_that_loses_is_compared_with_the_one_that_wins() {
    let _dog = Watchdog::new("two that have ended", LIMIT);
    let pool = one_worker();
    let gate = Gate::new();
    let builder = Sde::builder().rayon_patience(Duration::ZERO);
    let builder = builder.store(Gated(MemoryArchiver::new(), gate));
    let (sde, watch) = watched(builder.save(SavePolicy::EveryResult));
    let calls = Counter::new();
    let app = number("at once", move |_, _| Ok(calls.add() as u64));
    let run = || sde.run(&app, &x(1)).expect("a result");
    thread::scope(|scope| {
        scope.spawn(run);
        gate.arrived(1);
        scope.spawn(|| pool.install(run));
        gate.arrived(2);
        gate.open();
    });
    assert_eq!((differing(&sde), told(&watch).len()), (1, 1));
}

/// A run that fills a gap computes results once more that another process has saved. These are compared unread.
#[test]
fn a_run_that_fills_a_gap_is_compared_with_what_is_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let (app, calls) = three_kinds();
    let (first, watch) = opened(folder.path());
    first.run(&app, &x(1)).expect("a result");
    first.finish().expect("a store");
    let (second, told_later) = opened(folder.path());
    ask_for_what_is_left(&second, &app);
    assert_eq!(calls.get(), 2);
    assert_eq!((differing(&first), differing(&second)), (0, 1));
    assert_eq!(told(&watch).len(), 0);
    let told = told(&told_later);
    assert_eq!(told.len(), 1);
    one_says(&told, "other bits for \"short\", \"long\"");
    // What was dropped from memory leaves nothing to compare with; what stays is.
    let (third, told_last) = watched(Sde::builder());
    let (app, _) = three_kinds();
    third.run(&app, &x(1)).expect("a result");
    third
        .clear_tagged("three kinds", [Tag::Expendable])
        .expect("an app");
    ask_for_what_is_left(&third, &app);
    assert_eq!(self::told(&told_last).len(), 1);
}

#[test]
fn a_refresh_is_compared_with_what_it_replaces() {
    let folder = tempfile::tempdir().expect("a folder");
    let (app, _) = three_kinds();
    let (sde, watch) = watched(Sde::builder());
    sde.run(&app, &x(1)).expect("a result");
    refresh(&sde, &app);
    assert_eq!((differing(&sde), told(&watch).len()), (1, 1));
    // In a later process it lies in the store.
    let (app, _) = three_kinds();
    let (sde, _) = opened(folder.path());
    sde.run(&app, &x(1)).expect("a result");
    sde.finish().expect("a store");
    let (sde, watch) = opened(folder.path());
    refresh(&sde, &app);
    assert_eq!((differing(&sde), told(&watch).len()), (1, 1));
}

/// Two processes that knew nothing of each other have written one key: who loads it sees both.
#[test]
fn what_two_processes_have_saved_is_compared_when_it_is_loaded() {
    for do_differ in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let (sde, _) = opened(folder.path());
        let (other, _) = opened(folder.path());
        let apps = [three_kinds().0, three_kinds().0];
        let [one, two] = &apps;
        if do_differ {
            // Its first computation is elsewhere.
            Sde::new().run(two, &x(1)).expect("a result");
        }
        sde.run(one, &x(1)).expect("a result");
        other.run(two, &x(1)).expect("a result");
        assert_eq!((differing(&sde), differing(&other)), (0, 0));
        let (later, watch) = opened(folder.path());
        later.run(one, &x(1)).expect("a result");
        assert_eq!(later.stats().total.loads, 1);
        assert_eq!(differing(&later), u64::from(do_differ));
        assert_eq!(told(&watch).len(), usize::from(do_differ));
        // The store gives both at each look.
        later.clear_app("three kinds").expect("an app");
        later.run(one, &x(1)).expect("a result");
        assert_eq!(later.stats().total.loads, 2);
        assert_eq!(differing(&later), u64::from(do_differ));
        // One that is marked as wrong need not agree with any.
        let key = later.peek(one, &x(1)).expect("a key").key();
        later.invalidate(&key, "a test").expect("an entry");
        later.finish().expect("a save");
        let (last, _) = opened(folder.path());
        last.run(one, &x(1)).expect("a result");
        assert_eq!((last.stats().total.loads, differing(&last)), (0, 0));
    }
}

/// A rest of an own computation is filled from what another process has saved, whose other results are there too.
#[test]
fn what_is_loaded_is_compared_with_what_is_left_in_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let info = || {
        AppInfo::new("two halves", "1")
            .result(ResultSpec::new::<u64>("here"))
            .result(ResultSpec::new::<u64>("there").tagged(Tag::Intermediate))
    };
    let results = |is_first: bool| {
        let here = u64::from(is_first);
        ResultMap::new().with("here", here).with("there", 7_u64)
    };
    let (app, calls) = varying(info(), results);
    let store = DirStore::open(folder.path()).expect("a store");
    let (sde, watch) = watched(
        Sde::builder()
            .store(store.clone())
            .save(SavePolicy::OnRequest),
    );
    sde.run(&app, &x(1)).expect("a result");
    sde.clear_tagged("two halves", [Tag::Intermediate])
        .expect("an app");
    let (other, _) = opened(folder.path());
    other.run(&app, &x(1)).expect("a result");
    store.catch_up(Duration::MAX);
    sde.run(&app, &x(1)).expect("a result");
    assert_eq!((calls.get(), sde.stats().total.loads), (2, 1));
    assert_eq!((differing(&sde), told(&watch).len()), (1, 1));
}

/// A map in another order, a number that is none, what the app declares, and what has no encoding.
#[test]
fn what_need_not_agree_is_not_told() {
    let map = || -> HashMap<u64, f64> { (0..100).map(|i| (i, f64::NAN)).collect() };
    let info = AppInfo::new("alike", "1")
        .result(ResultSpec::new::<HashMap<u64, f64>>("map"))
        .result(ResultSpec::new::<f64>("none"))
        .result(ResultSpec::new::<String>("date").not_compared())
        .result(ResultSpec::unsaved::<Arc<u64>>("here"));
    let (app, calls) = varying(info, move |is_first| {
        let date = if is_first { "today" } else { "tomorrow" };
        ResultMap::new()
            .with("map", map())
            .with("none", f64::NAN)
            .with("date", date.to_owned())
            .with("here", Arc::new(u64::from(is_first)))
    });
    let folder = tempfile::tempdir().expect("a folder");
    let (sde, watch) = opened(folder.path());
    sde.run(&app, &x(1)).expect("a result");
    let (later, told_later) = opened(folder.path());
    refresh(&later, &app);
    refresh(&sde, &app);
    assert_eq!(calls.get(), 3);
    assert_eq!((told(&watch).len(), told(&told_later).len()), (0, 0));
}

#[test]
fn computations_that_need_not_agree_are_not_compared() {
    let (sde, watch) = watched(Sde::builder());
    let (app, _) = three_kinds();
    let random = app.clone().described(|info| info.nondeterministic());
    sde.run(&app, &x(1)).expect("a result");
    let key = sde.peek(&app, &x(1)).expect("a key").key();
    sde.invalidate(&key, "a test").expect("an entry");
    sde.run(&app, &x(1)).expect("a result");
    let sde = Sde::builder()
        .observer(watch.clone())
        .build()
        .expect("an engine");
    for _ in 0..2 {
        sde.run(&random, &x(1)).expect("a result");
    }
    // One that rests on a run that was made anew, which is told itself.
    let (inner, _) = three_kinds();
    let called = inner.clone();
    let outer = number("outer", move |sde, n| {
        Ok(*sde.run(&called, &x(n))?.get::<u64>("short")?)
    });
    sde.run(&outer, &x(1)).expect("a result");
    refresh(&sde, &inner);
    assert_eq!(told(&watch).len(), 1);
    refresh(&sde, &outer);
    assert_eq!((differing(&sde), told(&watch).len()), (1, 1));
}

#[sde::app(name = "compared.dated", not_compared)]
fn dated() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static DAY: AtomicU64 = AtomicU64::new(1);
    format!("day {}", DAY.fetch_add(1, Ordering::Relaxed))
}

#[test]
fn a_function_declares_its_result() {
    let (sde, watch) = watched(Sde::builder());
    let first = dated.call(&sde).expect("a result");
    let inputs = sde::inputs! {};
    let request = sde.request(&dated, &inputs).policy(Policy::Refresh);
    let again = request.run().expect("a result");
    assert_ne!(
        *again.results.get::<String>("result").expect("a text"),
        *first
    );
    assert_eq!((differing(&sde), told(&watch).len()), (0, 0));
}
