//! Code of users runs with no lock of the engine held, and never between the decision whose results stand (`decided.rs`) and
//! the moment in which all who wait have them.
//!
//! Builds with debug assertions panic where the first half is broken (`sde/engine/src/sync/locks.rs`), in any test. Here are
//! the programs that hung, or were given a wrong result.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::{thread, time::Duration};

use sde::archiver::{ArchiveError, Archiver, Batch, EncodedSave, Mark, MemoryArchiver, Saved};
use sde::key::{Encoder, FingerprintError};
use sde::ranks::OneProcess;
use sde::store::Cbor;
use sde::{
    App, AppError, AppInfo, Event, Fingerprint, Handle, Inputs, Parameter, ResultMap, ResultSpec,
    SavePolicy, Sde, inputs,
};
use sde_tests::{Before, Counter, LIMIT, Watchdog, forward, made, number, says, x, y};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Captured, cycle, one_worker};

/// An observer of `Saved`, or of the warning that a save failed, asked for the run that it was told of, whose claim was
/// not given back yet.
fn saves_on_request(store: impl Archiver + 'static) -> sde::Builder {
    Sde::builder().store(store).save(SavePolicy::OnRequest)
}

#[test]
fn an_observer_of_a_save_may_ask_for_what_is_saved() {
    let _dog = Watchdog::new("an observer of a save", LIMIT);
    for fails in [false, true] {
        let captured = Captured::default();
        let app = number("saved", |_, n| Ok(n));
        let (asked, heard) = (app.clone(), Counter::new());
        let observer = move |event: &Event| {
            if matches!(event, Event::Saved { .. } | Event::Warning { .. }) && heard.add() == 0 {
                let sde = captured.get().expect("set below");
                assert_eq!(y(&sde.run(&asked, &x(1)).unwrap()).unwrap(), 1);
            }
        };
        let first = move |_: &Batch| match fails {
            true => Err(ArchiveError::Other("a test".to_owned())),
            false => Ok(()),
        };
        let sde = Sde::builder()
            .store(Before(MemoryArchiver::new(), first))
            .save(SavePolicy::EveryResult)
            .observer(observer)
            .build()
            .expect("a store");
        captured.set(sde.clone()).expect("set once");
        sde.run(&app, &x(1)).expect("no error");
        heard.reach(1);
        assert_eq!(sde.stats().total.computed, 1);
    }
}

/// A value that asks for the run that made it when it is dropped.
#[derive(Serialize, Deserialize)]
struct Asks(u64);

static ASKED: OnceLock<Sde> = OnceLock::new();

impl Drop for Asks {
    fn drop(&mut self) {
        if let Some(sde) = ASKED.get() {
            asks.call(sde, self.0).expect("no error");
        }
    }
}

#[sde::app]
fn asks(n: u64) -> Asks {
    Asks(n)
}

/// The list of what is to be saved held the last of an earlier value, and dropped it with the claim of the later one held.
#[test]
fn what_was_to_be_saved_is_dropped_when_nobody_waits() {
    let _dog = Watchdog::new("a destructor that asks for its run", LIMIT);
    let sde = saves_on_request(MemoryArchiver::new()).build().unwrap();
    asks.call(&sde, 1).expect("no error");
    ASKED.set(sde.clone()).expect("set once");
    for _ in 0..10 {
        sde.clear_app("asks").expect("an app");
        asks.call(&sde, 1).expect("no error");
    }
    // What is left is dropped without a question.
    std::mem::forget(sde);
}

/// Remembered failures were dropped with a shard of the map locked.
#[test]
fn what_failed_is_dropped_with_the_map_free() {
    #[derive(Debug, thiserror::Error)]
    #[error("for good")]
    struct Grave(#[allow(dead_code, reason = "dropped")] PeeksWhenDropped);
    struct PeeksWhenDropped(Captured);
    impl std::fmt::Debug for PeeksWhenDropped {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("PeeksWhenDropped")
        }
    }
    impl Drop for PeeksWhenDropped {
        fn drop(&mut self) {
            let sde = self.0.get().expect("set below");
            let app = number("grave", |_, n| Ok(n));
            sde.peek(&app, &x(1)).expect("a key");
        }
    }
    let _dog = Watchdog::new("a failure that uses the engine when it is dropped", LIMIT);
    let captured = Captured::default();
    let app = number("grave", move |_, _| {
        Err(AppError::from(Grave(PeeksWhenDropped(captured))).permanent())
    });
    let sde = Sde::new();
    captured.set(sde.clone()).expect("set once");
    for _ in 0..10 {
        assert!(sde.run(&app, &x(1)).is_err());
        sde.clear_app("grave").expect("an app");
    }
}

/// A failure of an earlier epoch was dropped by the call that claimed its key, before that call was known to be at the run.
#[test]
fn what_failed_may_ask_for_its_run_when_it_is_tried_again() {
    #[derive(thiserror::Error)]
    #[error("for good")]
    struct AsksWhenDropped(Captured, Counter);
    impl std::fmt::Debug for AsksWhenDropped {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("AsksWhenDropped")
        }
    }
    impl Drop for AsksWhenDropped {
        fn drop(&mut self) {
            let app = number("tried again", |_, n| Ok(n));
            let sde = self.0.get().expect("set below");
            let error = sde.run(&app, &x(1)).expect_err("it is going on");
            assert!(cycle(&error).is_some(), "{error}");
            self.1.add();
        }
    }
    let _dog = Watchdog::new("a failure that asks for its run", LIMIT);
    let (captured, dropped) = (Captured::default(), Counter::new());
    let calls = Counter::new();
    let app = number("tried again", move |_, n| match calls.add() {
        0 => Err(AppError::from(AsksWhenDropped(captured, dropped)).permanent()),
        _ => Ok(n),
    });
    let sde = Sde::new();
    captured.set(sde.clone()).expect("set once");
    assert!(sde.run(&app, &x(1)).is_err());
    // Whatever may change an identity has failures tried again.
    sde.apps().register("another", HasDefault).expect("a name");
    sde.run(&app, &x(1)).expect("no error");
    dropped.reach(1);
}

static CATALOGUED: OnceLock<Sde> = OnceLock::new();

/// A default that runs an app, which no engine has seen, when its fingerprint is taken.
struct RunsWhenKeyed;

impl Fingerprint for RunsWhenKeyed {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        if let Some(sde) = CATALOGUED.get() {
            let unknown = number("seen when a default is keyed", |_, n| Ok(n));
            sde.run(&unknown, &x(1)).map_err(FingerprintError::custom)?;
        }
        to.structure("RunsWhenKeyed", |_| Ok(()))
    }

    fn shape(to: &mut sde::key::TypeWriter<'_, '_>) {
        to.declared("RunsWhenKeyed", 0);
    }
}

#[derive(Fingerprint, Default)]
struct HasDefault;

impl App for HasDefault {
    fn info(&self) -> AppInfo {
        AppInfo::new("HasDefault", "1")
            .parameter(Parameter::new("of", RunsWhenKeyed))
            .result(ResultSpec::new::<u64>("y"))
    }

    fn run(&self, _: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        Ok(ResultMap::new().with("y", 1_u64))
    }
}

sde::link_app!(HasDefault);

/// The defaults of linked apps were fingerprinted under the lock of the apps that are known, to which a run adds its own.
#[test]
fn a_default_may_run_an_app_when_it_is_keyed() {
    let _dog = Watchdog::new("a default that runs an app", LIMIT);
    let store = MemoryArchiver::new();
    let calls_it = number("calls HasDefault", |sde, n| {
        sde.run(&HasDefault, &inputs! {})?;
        Ok(n)
    });
    let first = saves_on_request(store.clone()).build().unwrap();
    first.run(&calls_it, &x(1)).expect("no error");
    first.finish().expect("a store");
    let second = saves_on_request(store).build().unwrap();
    CATALOGUED.set(second.clone()).expect("set once");
    second.run(&calls_it, &x(1)).expect("no error");
    assert_eq!(second.stats().apps["calls HasDefault"].computed, 0);
}

/// A value whose `Serialize` runs an app of the engine that saves it.
struct RunsWhenSaved(Captured, Arc<dyn Fn(&Sde) + Send + Sync>);

impl Serialize for RunsWhenSaved {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if let Some(sde) = self.0.get() {
            (self.1)(sde);
        }
        to.serialize_u64(7)
    }
}

impl<'de> Deserialize<'de> for RunsWhenSaved {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        u64::deserialize(from)?;
        Ok(Self(Captured::default(), Arc::new(|_| ())))
    }
}

/// An app that returns such a value, with the result `y`.
fn runs_when_saved(
    name: &'static str,
    captured: Captured,
    then: impl Fn(&Sde) + Send + Sync + 'static,
) -> sde_tests::Made {
    let then = Arc::new(then);
    let info = AppInfo::new(name, "1").result(ResultSpec::new::<RunsWhenSaved>("y"));
    made(info, move |_, _| {
        let value = RunsWhenSaved(captured, then.clone());
        Ok(ResultMap::new().with("y", value))
    })
}

/// A store that shows its values to a format, as one on a disk does, and says when it is asked for what is marked.
struct Shows(MemoryArchiver, Counter);

impl Archiver for Shows {
    fn save(&self, batch: &Batch) -> Result<Saved, ArchiveError> {
        show(batch)?;
        self.0.save(batch)
    }

    fn encode(&self, batch: &Batch) -> Result<Option<EncodedSave<'_>>, ArchiveError> {
        show(batch)?;
        let mut shown = Batch::new(batch.selection);
        shown.entries.clone_from(&batch.entries);
        Ok(Some(Box::new(move || self.0.save(&shown))))
    }

    fn marks(&self) -> Result<Vec<Mark>, ArchiveError> {
        self.1.add();
        self.0.marks()
    }

    forward!(0: find, find_scratch, describe);
}

fn show(batch: &Batch) -> Result<(), ArchiveError> {
    for entry in &batch.entries {
        for (value, codec) in entry.results().filter_map(|result| result.value) {
            codec
                .encode(value, serde_json::value::Serializer)
                .map_err(|error| ArchiveError::Other(format!("{error:#}")))?;
        }
    }
    Ok(())
}

/// A store that asks the engine for a save while it writes.
struct SavesWithin(MemoryArchiver, Captured, Counter);

impl Archiver for SavesWithin {
    fn encode(&self, batch: &Batch) -> Result<Option<EncodedSave<'_>>, ArchiveError> {
        let mut encoded = Batch::new(batch.selection);
        encoded.entries.clone_from(&batch.entries);
        Ok(Some(Box::new(move || {
            let asked = self.1.get().expect("set").checkpoint();
            asked.expect_err("a save within a save");
            self.2.add();
            self.0.save(&encoded)
        })))
    }

    forward!(0: save, find, find_scratch, marks, describe);
}

/// Found by an attack: on the thread that writes one part while the next is encoded it waited for itself.
#[test]
fn a_store_that_asks_for_a_save_while_it_writes_is_given_an_error() {
    let _dog = Watchdog::new("a save within a save", LIMIT);
    let (captured, asked) = (Captured::default(), Counter::new());
    let store = SavesWithin(MemoryArchiver::new(), captured, asked);
    let builder = saves_on_request(store);
    let sde = builder.build().expect("a store");
    captured.set(sde.clone()).expect("set once");
    let app = number("many", |_, n| Ok(n));
    (0..400).for_each(|n| drop(sde.run(&app, &x(n)).expect("no error")));
    sde.checkpoint().expect("a store");
    asked.reach(3);
}

/// A save took the lock of the store's exchange for reading, and the run in its `Serialize` took it once more while a
/// `load` waited to take it for writing.
#[test]
fn a_value_may_run_apps_while_it_is_saved_and_another_store_is_loaded() {
    let _dog = Watchdog::new("a value that runs an app while it is saved", LIMIT);
    let captured = Captured::default();
    let (saving, loading) = (Counter::new(), Counter::new());
    let app = runs_when_saved("shown", captured, move |sde| {
        saving.add();
        loading.reach(1);
        let nested = number("nested in a save", |_, n| Ok(n));
        for n in 0..200 {
            sde.run(&nested, &x(n)).expect("no error");
        }
    });
    let store = Shows(MemoryArchiver::new(), Counter::new());
    let builder = Sde::builder().store(store).save(SavePolicy::EveryResult);
    let sde = builder.build().expect("a store");
    captured.set(sde.clone()).expect("set once");
    thread::scope(|scope| {
        scope.spawn(|| sde.run(&app, &x(1)).expect("no error"));
        saving.reach(1);
        sde.load(Shows(MemoryArchiver::new(), loading)).unwrap();
    });
}

/// Asking for the run whose results are being saved is a cycle, on the thread that saves it and on one that it waits for.
#[test]
fn a_value_that_asks_for_its_own_run_while_it_is_saved_is_a_cycle() {
    let _dog = Watchdog::new("a value that asks for its own run", LIMIT);
    for distributed in [false, true] {
        let described = move |info: AppInfo| match distributed {
            true => info.distributed(),
            false => info,
        };
        let captured = Captured::default();
        let asked = Counter::new();
        let app = runs_when_saved("of itself", captured, move |sde| {
            let same = runs_when_saved("of itself", captured, |_| ()).described(described);
            let error = sde.run(&same, &x(1)).expect_err("a cycle");
            let said = format!("{error:#}");
            assert!(said.contains("a run needs its own result"), "{said}");
            asked.add();
        });
        let store = Shows(MemoryArchiver::new(), Counter::new());
        let builder = Sde::builder().store(store).save(SavePolicy::EveryResult);
        let sde = match distributed {
            true => builder.process_group(OneProcess, Cbor).build(),
            false => builder.build(),
        };
        let sde = sde.expect("a store");
        captured.set(sde.clone()).expect("set once");
        sde.run(&app.described(described), &x(1)).expect("no error");
        asked.reach(1);
    }
}

/// The text of an error that is remembered was made, to be counted, with the claim held and nobody knowing that this thread has it.
#[test]
fn an_error_that_asks_for_its_own_run_when_it_is_shown_is_a_cycle() {
    struct AsksWhenShown(Captured, Counter);
    impl std::fmt::Debug for AsksWhenShown {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("AsksWhenShown")
        }
    }
    impl std::fmt::Display for AsksWhenShown {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            let sde = self.0.get().expect("set below");
            let app = number("shown when it failed", |_, n| Ok(n));
            if self.1.add() == 0 {
                let error = sde.run(&app, &x(1)).expect_err("it is going on");
                assert!(cycle(&error).is_some(), "{error}");
            }
            f.write_str("shown")
        }
    }
    impl std::error::Error for AsksWhenShown {}
    let _dog = Watchdog::new("an error that asks for its run", LIMIT);
    let (captured, shown) = (Captured::default(), Counter::new());
    let app = number("shown when it failed", move |_, _| {
        Err(AppError::from(AsksWhenShown(captured, shown)).permanent())
    });
    let budget = sde::MemoryBudget::bytes(1 << 20);
    let sde = Sde::builder().memory_budget(budget).build().unwrap();
    captured.set(sde.clone()).expect("set once");
    assert!(sde.run(&app, &x(1)).is_err());
    shown.reach(1);
}

/// Asking for a save from within one is an error.
#[test]
fn a_value_that_saves_while_it_is_saved_is_told_so() {
    let _dog = Watchdog::new("a value that saves", LIMIT);
    let captured = Captured::default();
    let asked = Counter::new();
    let app = runs_when_saved("saves", captured, move |sde| {
        let error = sde.checkpoint().expect_err("it is being saved");
        says(&error, "asks for a save");
        asked.add();
    });
    let store = Shows(MemoryArchiver::new(), Counter::new());
    let sde = saves_on_request(store).build().expect("a store");
    captured.set(sde.clone()).expect("set once");
    sde.run(&app, &x(1)).expect("no error");
    sde.checkpoint().expect("a store");
    asked.reach(1);
}

static STOLEN: OnceLock<ResultMap> = OnceLock::new();

/// A value whose `Deserialize` has its thread steal a job that asks for this value.
#[derive(Serialize)]
struct Steals(u64);

impl<'de> Deserialize<'de> for Steals {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        static DEPTH: AtomicU64 = AtomicU64::new(0);
        let value = u64::deserialize(from)?;
        if let Some(results) = STOLEN.get()
            && DEPTH.fetch_add(1, Ordering::Relaxed) == 0
        {
            rayon::scope(|scope| {
                scope.spawn(|_| assert_eq!(results.get::<Self>("result").unwrap().0, 7));
            });
        }
        Ok(Self(value))
    }
}

#[sde::app]
fn steals() -> Steals {
    Steals(7)
}

/// A stored value was read within a cell that others wait for: a worker that read it stole a job that wanted it, and waited for
/// itself.
#[test]
fn a_value_may_be_wanted_by_what_its_reader_steals() {
    let _dog = Watchdog::new("a value that is wanted by its reader", LIMIT);
    let folder = tempfile::tempdir().expect("a folder");
    let store = || sde::store::DirStore::open(folder.path().join("store")).unwrap();
    let first = saves_on_request(store()).build().unwrap();
    steals.call(&first).expect("no error");
    first.finish().expect("a store");
    let later = saves_on_request(store()).build().unwrap();
    let results = later.run(&steals, &inputs! {}).expect("no error");
    STOLEN.set(results).expect("set once");
    let results = STOLEN.get().expect("set above");
    one_worker().install(|| assert_eq!(results.get::<Steals>("result").unwrap().0, 7));
}

/// A body asked for a save while a value that was being saved asked for that body's run.
#[test]
fn a_save_within_a_run_does_not_wait_for_one_that_waits_for_the_run() {
    let _dog = Watchdog::new("two saves", LIMIT);
    let captured = Captured::default();
    let (computing, saving) = (Counter::new(), Counter::new());
    let awaited = number("saves within", move |_, n| {
        computing.add();
        saving.reach(1);
        let error = captured.get().expect("set below").checkpoint();
        says(&error.unwrap_err(), "another thread saves");
        Ok(n)
    });
    let asked = awaited.clone();
    let saved = runs_when_saved("waits when it is saved", captured, move |sde| {
        saving.add();
        sde.run(&asked, &x(1)).expect("no error");
    });
    let store = Shows(MemoryArchiver::new(), Counter::new());
    let builder = saves_on_request(store)
        // A budget asks the value for its size.
        .memory_budget(sde::MemoryBudget::unlimited())
        .rayon_patience(Duration::ZERO);
    let sde = builder.build().expect("a store");
    captured.set(sde.clone()).expect("set once");
    sde.run(&saved, &x(1)).expect("no error");
    thread::scope(|scope| {
        scope.spawn(|| sde.run(&awaited, &x(1)).expect("no error"));
        computing.reach(1);
        sde.checkpoint().expect("a store");
    });
}
