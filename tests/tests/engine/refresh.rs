//! Nothing that was replaced, cleaned or swapped out comes back.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use sde::archiver::{MemoryArchiver, Selection};
use sde::{AppError, Outcome, Peek, Policy, Sde, Source, inputs};
use sde_tests::{Counter, Gate, LIMIT, Lie, Lying, Made, Watchdog, number, x, y};

use super::one_worker;

use super::watched;

/// An app whose results tell in which order they were computed, as if its surroundings changed.
fn counting() -> Made {
    let next = Counter::new();
    number("counting", move |_, _| Ok(next.add() as u64))
}

fn ask(sde: &Sde, app: &Made, policy: Policy) -> Outcome {
    sde.request(app, &x(1))
        .policy(policy)
        .run()
        .expect("no error")
}

/// Threads that have the old result as their last value, or look for it just now.
#[test]
fn no_thread_finds_what_a_refresh_replaced() {
    let _dog = Watchdog::new("threads beside a refresh", LIMIT);
    let sde = Sde::new();
    let app = counting();
    let latest = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    // Whatever was published before we asked must not be older than what we get.
                    let before = latest.load(Ordering::SeqCst);
                    let got = y(&ask(&sde, &app, Policy::Use).results).expect("a result");
                    assert!(got >= before, "{got} after {before}");
                    if before == 300 {
                        return;
                    }
                }
            });
        }
        loop {
            let got = y(&ask(&sde, &app, Policy::Refresh).results).expect("a result");
            latest.fetch_max(got.min(300), Ordering::SeqCst);
            if got >= 300 {
                return;
            }
        }
    });
}

#[test]
fn no_thread_finds_what_was_cleaned_or_invalidated() {
    let _dog = Watchdog::new("threads beside a cleaning", LIMIT);
    let sde = Sde::new();
    let app = counting();
    let key = sde.peek(&app, &x(1)).expect("a key").key();
    // What was computed before this count was cleaned or invalidated.
    let gone = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let before = gone.load(Ordering::SeqCst);
                    let got = y(&ask(&sde, &app, Policy::Use).results).expect("a result");
                    assert!(got >= before, "{got}, and {before} was gone");
                    if before >= 300 {
                        return;
                    }
                }
            });
        }
        let mut round = 0_u64;
        loop {
            // No result is younger than this one, unless a thread computes just now.
            let seen = y(&ask(&sde, &app, Policy::Use).results).expect("a result");
            round += 1;
            match round % 2 {
                0 => sde.clear_app("counting").unwrap(),
                _ => drop(sde.invalidate(&key, "a test").expect("an entry")),
            }
            gone.fetch_max(seen + 1, Ordering::SeqCst);
            if seen >= 300 {
                return;
            }
        }
    });
}

#[test]
fn a_refresh_that_fails_in_any_way_keeps_the_old_result() {
    let sde = Sde::new();
    let calls = Counter::new();
    let app = number("fragile", move |_, _| match calls.add() {
        0 => Ok(7),
        1 => Err(AppError::message("no")),
        2 => Err(AppError::message("no").permanent()),
        3 => Err(AppError::message("no").transient()),
        _ => panic!("no"),
    });
    let made = ask(&sde, &app, Policy::Use).made_by;
    for _ in 1..=4 {
        let refresh = || sde.request(&app, &x(1)).policy(Policy::Refresh).run();
        let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(refresh));
        assert!(failed.is_err() || failed.is_ok_and(|result| result.is_err()));
        let after = ask(&sde, &app, Policy::Use);
        assert!(after.source.is_hit());
        assert_eq!(after.made_by, made);
        // Not by this thread's last value alone.
        let peek = sde.peek(&app, &x(1)).expect("a key");
        assert!(matches!(peek, Peek::Hit { .. }), "{peek:?}");
    }
    assert_eq!(calls.get(), 5);
}

#[test]
fn bypassing_leaves_no_trace() {
    let store = MemoryArchiver::new();
    let sde = Sde::builder()
        .store(store.clone())
        .save(sde::SavePolicy::OnRequest)
        .build()
        .unwrap();
    let app = counting();
    assert_eq!(ask(&sde, &app, Policy::Bypass).source, Source::Computed);
    assert!(sde_tests::records(&sde).is_empty());
    let kept = ask(&sde, &app, Policy::Use);
    let aside = ask(&sde, &app, Policy::Bypass);
    assert_ne!(aside.made_by, kept.made_by);
    let again = ask(&sde, &app, Policy::Use);
    assert_eq!(again.made_by, kept.made_by);
    sde.finish().expect("saved");
    let later = Sde::builder()
        .store(store)
        .save(sde::SavePolicy::OnRequest)
        .build()
        .expect("a store");
    assert_eq!(ask(&later, &app, Policy::Use).made_by, kept.made_by);
}

/// A flight that began before another store was loaded.
#[test]
fn what_began_before_a_load_ends_for_its_waiters_only() {
    let _dog = Watchdog::new("a load during a run", LIMIT);
    let stores = [MemoryArchiver::new(), MemoryArchiver::new()];
    let builder = Sde::builder()
        .store(stores[0].clone())
        .save(sde::SavePolicy::OnRequest);
    let sde = builder.build().expect("a store");
    let gate = Gate::new();
    let app = number("slow", move |_, n| {
        gate.pass();
        Ok(n)
    });
    thread::scope(|scope| {
        let runner = scope.spawn(|| ask(&sde, &app, Policy::Use).source);
        gate.arrived(1);
        sde.load(stores[1].clone()).expect("a store");
        gate.open();
        assert_eq!(runner.join().expect("no panic"), Source::Computed);
    });
    sde.checkpoint().expect("saved");
    sde.archive().expect("saved");
    for store in &stores {
        assert_eq!(store.saved(Selection::Checkpoint), []);
        assert_eq!(store.saved(Selection::Archive), []);
    }
    assert!(sde_tests::records(&sde).is_empty());
    assert_eq!(ask(&sde, &app, Policy::Use).source, Source::Computed);
}

/// Found by attacking: a refresh that computed beside another took the key for itself in what had been loaded meanwhile.
#[test]
fn a_refresh_beside_another_that_began_before_a_load_is_its_callers_alone() {
    let _dog = Watchdog::new("a load during two runs", LIMIT);
    let builder = Sde::builder()
        .store(MemoryArchiver::new())
        .save(sde::SavePolicy::OnRequest);
    let patience = std::time::Duration::ZERO;
    let sde = builder.rayon_patience(patience).build().unwrap();
    let (calls, gates) = (Counter::new(), [Gate::new(), Gate::new()]);
    let app = number("slow", move |_, _| {
        let call = calls.add();
        gates[call].pass();
        Ok(call as u64)
    });
    let ask = |policy| y(&ask(&sde, &app, policy).results).unwrap();
    thread::scope(|scope| {
        let holder = scope.spawn(|| ask(Policy::Use));
        gates[0].arrived(1);
        let beside = scope.spawn(|| one_worker().install(|| ask(Policy::Refresh)));
        gates[1].arrived(1);
        sde.load(MemoryArchiver::new()).unwrap();
        gates[0].open();
        assert_eq!(holder.join().unwrap(), 0);
        gates[1].open();
        assert_eq!(beside.join().unwrap(), 1);
    });
    assert!(sde_tests::records(&sde).is_empty());
}

/// Found by reading: a refresh that lost patience on a rayon worker and computed beside another left the recent
/// hits of other threads as they were.
#[test]
fn a_refresh_beside_another_is_seen_by_all() {
    let _dog = Watchdog::new("two refreshes", LIMIT);
    let patience = std::time::Duration::from_millis(1);
    let sde = Sde::builder().rayon_patience(patience).build().unwrap();
    let gate = Gate::new();
    let next = AtomicU64::new(0);
    let app = number("counting", move |_, _| {
        let count = next.fetch_add(1, Ordering::SeqCst);
        if count == 1 {
            gate.pass();
        }
        Ok(count)
    });
    ask(&sde, &app, Policy::Use);
    for recent_hits in [0, 1] {
        assert_eq!(ask(&sde, &app, Policy::Use).source, Source::Memory);
        assert_eq!(sde.stats().total.recent_hits, recent_hits);
    }
    thread::scope(|scope| {
        let first = scope.spawn(|| ask(&sde, &app, Policy::Refresh));
        gate.arrived(1);
        let second = one_worker().install(|| ask(&sde, &app, Policy::Refresh));
        assert_eq!(second.source, Source::Duplicate);
        assert_eq!(ask(&sde, &app, Policy::Use).made_by, second.made_by);
        gate.open();
        first.join().unwrap();
    });
}

/// What it is to see anew may have changed since.
#[test]
fn a_refresh_is_not_given_what_began_before_it() {
    let _dog = Watchdog::new("a refresh that waits", LIMIT);
    let (sde, watch) = watched();
    let (gate, next) = (Gate::new(), AtomicU64::new(0));
    let app = number("counting", move |_, _| {
        let count = next.fetch_add(1, Ordering::SeqCst);
        if count == 0 {
            gate.pass();
        }
        Ok(count)
    });
    let ask = |policy| y(&ask(&sde, &app, policy).results).expect("a result");
    thread::scope(|scope| {
        let first = scope.spawn(|| ask(Policy::Use));
        gate.arrived(1);
        let refresh = scope.spawn(|| ask(Policy::Refresh));
        watch.waiting("counting", 1);
        gate.open();
        assert_eq!((first.join().unwrap(), refresh.join().unwrap()), (0, 1));
    });
}

#[test]
fn a_refresh_computes_and_replaces() {
    let sde = Sde::new();
    let app = counting();
    let ask = |policy| y(&ask(&sde, &app, policy).results).expect("a result");
    let got = [Policy::Use, Policy::Refresh, Policy::Use].map(ask);
    assert_eq!(got, [0, 1, 1]);
}

/// A refreshed result that was cleaned before it was saved gave way to the older
/// one in the store.
#[test]
fn an_older_stored_result_does_not_come_back() {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    #[sde::app(name = "refresh.count", version = "1")]
    fn count() -> u64 {
        COUNT.fetch_add(1, Ordering::SeqCst)
    }
    let sde = Sde::builder()
        .store(MemoryArchiver::new())
        .save(sde::SavePolicy::OnRequest)
        .build()
        .unwrap();
    let run = |policy| {
        let outcome = sde
            .request(&count, &inputs! {})
            .policy(policy)
            .run()
            .unwrap();
        *outcome.results.get::<u64>("result").unwrap()
    };
    assert_eq!(run(Policy::Use), 0);
    sde.checkpoint().unwrap();
    assert_eq!(run(Policy::Refresh), 1);
    sde.clear_app("refresh.count").unwrap();
    assert_eq!(run(Policy::Use), 2);
}

/// The earlier result was made by a process whose clock is ahead.
#[test]
fn what_is_refreshed_is_later_whatever_the_clocks_say() {
    let (store, app) = (Lying::new(), counting());
    let process = || {
        Sde::builder()
            .store(store.clone())
            .save(sde::SavePolicy::OnRequest)
            .build()
            .unwrap()
    };
    let got = |sde: &Sde, policy| y(&ask(sde, &app, policy).results).unwrap();
    let first = process();
    assert_eq!(got(&first, Policy::Use), 0);
    first.finish().unwrap();
    store.tell(Lie::Ahead);
    let sde = process();
    assert_eq!(got(&sde, Policy::Refresh), 1);
    sde.clear_app("counting").unwrap();
    assert_eq!(got(&sde, Policy::Use), 2);
}

/// The earlier entry can't leave while its key is computed again: a run that made room within that computation took it
/// as a victim for ever.
#[test]
fn what_is_computed_again_is_no_victim_meanwhile() {
    use super::budget::{KIB, field, with};

    #[sde::app(name = "refresh.wide")]
    fn wide(sde: &sde::Handle, number: u64) -> Result<Vec<u8>, sde::Error> {
        for n in 0..3 {
            field.call(sde, 10 * number + n, 50)?;
        }
        Ok(vec![1; 100 * KIB])
    }
    let _dog = Watchdog::new("a run that is made again", LIMIT);
    let order = sde::EvictionOrder::LeastRecentlyUsed;
    let sde = with(sde::MemoryBudget::bytes(120 * KIB).order(order));
    drop(wide.call(&sde, 1).expect("no error"));
    let inputs = inputs! { number: 1_u64 };
    let before = sde.peek(&wide, &inputs).expect("a key");
    assert!(matches!(before, sde::Peek::Hit { .. }), "{before}");
    let again = sde.request(&wide, &inputs).policy(Policy::Refresh).run();
    assert_eq!(again.expect("no error").source, Source::Computed);
}
