//! Values whose destructors use the engine: nothing is dropped while a lock of the cache is held.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use sde::archiver::{Archiver, MemoryArchiver};
use sde::{Outcome, Policy, ResultMap, SavePolicy, Sde, Source, inputs};
use sde_tests::{LIMIT, Made, Watchdog, forward, made, x};

use super::Captured;

static ENGINE: std::sync::Mutex<Option<Sde>> = std::sync::Mutex::new(None);

/// Runs the app that made it when it is dropped.
struct Guard(u64);

impl Drop for Guard {
    fn drop(&mut self) {
        let sde = ENGINE.lock().expect("no panic").clone();
        if let Some(sde) = sde {
            // The same key, and so the same lock of the map.
            sde.peek(&guard, &inputs! { n: self.0 }).expect("a key");
        }
    }
}

#[sde::app(tags(expendable))]
fn guard(n: u64) -> Guard {
    Guard(n)
}

/// Found by a hostile program: what was published while `clear_app` walked through the map was dropped there, with a shard of it
/// locked. The same for what a publication, a refresh or `load` replaced.
#[test]
fn nothing_is_dropped_with_the_map_locked() {
    let _dog = Watchdog::new("a destructor that runs an app", LIMIT);
    let sde = Sde::new();
    *ENGINE.lock().expect("no panic") = Some(sde.clone());
    let done = AtomicBool::new(false);
    let rounds = AtomicU64::new(0);
    thread::scope(|scope| {
        for thread in 0..3_u64 {
            let (sde, done, rounds) = (&sde, &done, &rounds);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let n = rounds.fetch_add(1, Ordering::Relaxed) % 4;
                    let policy = match thread {
                        0 => Policy::Refresh,
                        _ => Policy::Use,
                    };
                    let inputs = inputs! { n: n };
                    sde.request(&guard, &inputs)
                        .policy(policy)
                        .run()
                        .expect("no error");
                }
            });
        }
        for _ in 0..3_000 {
            sde.clear_app("guard").expect("an app");
            sde.load(MemoryArchiver::new()).expect("a store");
        }
        done.store(true, Ordering::Relaxed);
    });
    *ENGINE.lock().expect("no panic") = None;
}

/// Found by a hostile program: `load` dropped what it forgets with the saves locked out, and a destructor whose run is saved
/// at once waited for itself.
#[test]
fn nothing_is_dropped_while_the_store_is_exchanged() {
    struct Noting;
    impl Drop for Noting {
        fn drop(&mut self) {
            let sde = NOTES.get().expect("set below");
            noted.call(sde).expect("no error");
        }
    }
    static NOTES: OnceLock<Sde> = OnceLock::new();
    #[sde::app]
    fn noted() -> u64 {
        1
    }
    #[sde::app(tags(expendable))]
    fn noting() -> Noting {
        Noting
    }
    let _dog = Watchdog::new("a destructor that saves", LIMIT);
    let builder = Sde::builder()
        .store(MemoryArchiver::new())
        .save(SavePolicy::OnRequest);
    let sde = builder
        .save(SavePolicy::EveryResult)
        .build()
        .expect("a store");
    NOTES.set(sde.clone()).expect("set once");
    noting.call(&sde).expect("no error");
    sde.load(MemoryArchiver::new()).expect("a store");
    assert_eq!(sde.stats().apps["noted"].computed, 1);
}

/// Found by attacking: `load` dropped the store that was there with the lock held that every run takes, and its destructor
/// waited for itself.
#[test]
fn a_store_that_another_takes_the_place_of_may_use_the_engine() {
    struct Asking(MemoryArchiver, Captured);
    impl Archiver for Asking {
        forward!(0: save, find, find_scratch, marks, describe);
    }
    impl Drop for Asking {
        fn drop(&mut self) {
            asked
                .call(self.1.get().expect("set below"))
                .expect("no error");
        }
    }
    #[sde::app]
    fn asked() -> u64 {
        1
    }
    let _dog = Watchdog::new("a store that asks when it is dropped", LIMIT);
    let captured = Captured::default();
    let store = Asking(MemoryArchiver::new(), captured);
    let sde = Sde::builder()
        .store(store)
        .save(SavePolicy::OnRequest)
        .build()
        .expect("a store");
    captured.set(sde.clone()).expect("set once");
    sde.load(MemoryArchiver::new()).expect("a store");
    assert_eq!(sde.stats().apps["asked"].computed, 1);
}

/// A destructor finds a result while `clear_app` walks through the map; `clear_app` ends that recent hit too.
#[test]
fn what_is_found_during_a_cleaning_is_cleaned() {
    struct Finds(u64);
    impl Drop for Finds {
        fn drop(&mut self) {
            if let Some(sde) = CLEANED.get() {
                let other = 1 - self.0;
                let find = || sde.request(&finds, &inputs! { n: other }).run();
                let found = [find(), find(), find()].map(|found| found.expect("no error"));
                let _ = FOUND.set((other, found));
            }
        }
    }
    static CLEANED: OnceLock<Sde> = OnceLock::new();
    static FOUND: OnceLock<(u64, [Outcome; 3])> = OnceLock::new();
    #[sde::app(tags(expendable))]
    fn finds(n: u64) -> Finds {
        Finds(n)
    }
    let _dog = Watchdog::new("a destructor within a cleaning", LIMIT);
    let sde = Sde::new();
    finds.call(&sde, 0).expect("no error");
    finds.call(&sde, 1).expect("no error");
    CLEANED.set(sde.clone()).expect("set once");
    sde.clear_app("finds").expect("an app");
    // Held, for a recent hit is none any more when its values are gone.
    let (n, [.., last]) = FOUND.get().expect("one was dropped");
    assert_eq!(last.source, Source::Memory);
    assert!(sde.stats().total.recent_hits > 0);
    let again = sde.request(&finds, &inputs! { n: *n }).run();
    assert_eq!(again.expect("no error").source, Source::Computed);
}

/// A value whose destructor uses the cache that it is dropped from.
#[test]
fn destructors_may_use_the_engine() {
    struct Curious(Captured);
    impl Drop for Curious {
        fn drop(&mut self) {
            if let Some(sde) = self.0.get() {
                for i in 0..200 {
                    sde.run(&curious(self.0), &x(i)).expect("no error");
                }
            }
        }
    }
    fn curious(captured: Captured) -> Made {
        let info = sde::AppInfo::new("curious", "1")
            .result(sde::ResultSpec::unsaved::<Option<Curious>>("y"));
        // One of them only, or there would be no end of it.
        made(info, move |_, inputs| {
            let first = *inputs.get::<u64>("x")? == 1000;
            Ok(ResultMap::new().with("y", first.then(|| Curious(captured))))
        })
    }
    let _dog = Watchdog::new("a destructor that uses the cache", LIMIT);
    let captured = Captured::default();
    let sde = Sde::new();
    captured.set(sde.clone()).expect("set once");
    let app = curious(captured);
    for policy in [Policy::Use, Policy::Refresh] {
        sde.request(&app, &x(1000))
            .policy(policy)
            .run()
            .expect("no error");
    }
    sde.clear_app("curious").unwrap();
    sde.run(&app, &x(1000)).expect("no error");
    sde.load(MemoryArchiver::new()).expect("a store");
    assert!(sde.stats().total.computed > 200);
}
