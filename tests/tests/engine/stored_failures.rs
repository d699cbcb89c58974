//! Failures in a store: who is given one, and who computes again.
//!
//! Two engines with one store each stand for two programs.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use sde::archiver::{Archiver, MemoryArchiver};
use sde::record::{FailureRecord, failure_key};
use sde::store::DirStore;
use sde::{
    AppError, Builder, ErrorKind, Event, Failure, InputFile, Peek, Policy, SavePolicy, Sde, inputs,
};
use sde_tests::{Counter, Made, Watch, number, number_info, says, x, y};
use tempfile::tempdir;

pub fn program(store: &MemoryArchiver) -> Builder {
    let builder = Sde::builder().store(store.clone());
    builder.save(SavePolicy::OnRequest)
}

/// Fails for 1; `calls` counts its bodies.
pub fn fails(calls: Counter, error: impl Fn() -> AppError + Send + Sync + 'static) -> Made {
    number("fails", move |_, n| {
        calls.add();
        if n == 1 { Err(error()) } else { Ok(n) }
    })
}

pub fn no_convergence() -> AppError {
    AppError::message("no convergence")
}

/// The text of the failure of the run for 1.
pub fn text(sde: &Sde, app: &Made) -> String {
    format!("{:#}", sde.run(app, &x(1)).unwrap_err())
}

fn callee(version: &'static str) -> Made {
    number("callee", |_, n| Ok(n)).described(|_| number_info("callee", version))
}

/// The failure that a store has of the run for this number.
fn stored(store: &MemoryArchiver, sde: &Sde, app: &Made, n: u64) -> Option<Arc<FailureRecord>> {
    let key = sde.peek(app, &x(n)).unwrap().key();
    let found = store.look(&failure_key(&key)).unwrap()?;
    found.record.failure
}

pub fn ended(sde: Sde) {
    sde.finish().unwrap();
}

pub fn repeats(watch: &Watch) -> Vec<(u64, bool)> {
    let events = watch.events();
    let repeats = events.iter().filter_map(|event| match event {
        Event::Repeated { runs, ended, .. } => Some((*runs, *ended)),
        _ => None,
    });
    repeats.collect()
}

#[test]
fn it_is_given_in_its_program_and_computed_again_by_the_next() {
    let (store, calls) = (MemoryArchiver::new(), Counter::new());
    let app = fails(calls, no_convergence);
    let first = program(&store).build().unwrap();
    assert!(text(&first, &app).ends_with("failed: no convergence"));
    let given = first.run(&app, &x(1)).unwrap_err();
    assert_eq!(calls.get(), 1);
    let shown = format!("{given:#}");
    says(&shown, "no convergence (it failed ");
    says(&shown, "`Policy::Refresh`, or `--again`, runs it");
    assert!(matches!(given.kind(), ErrorKind::App { .. }));
    ended(first);
    let watch = Watch::new();
    let next = program(&store).observer(watch.clone()).build().unwrap();
    assert!(text(&next, &app).ends_with("failed: no convergence"));
    assert!(text(&next, &app).contains("it failed "));
    assert_eq!(calls.get(), 2);
    assert_eq!(repeats(&watch), [(1, false)]);
}

#[test]
fn how_many_are_computed_again_is_told_at_the_first_and_at_the_end() {
    let (store, calls, watch) = (MemoryArchiver::new(), Counter::new(), Watch::new());
    let app = number("fails", move |_, n| {
        calls.add();
        if n < 5 { Err(no_convergence()) } else { Ok(n) }
    });
    for _ in 0..2 {
        watch.clear();
        let sde = program(&store).observer(watch.clone()).build().unwrap();
        (0..9).for_each(|n| drop(sde.run(&app, &x(n))));
        ended(sde);
    }
    assert_eq!(calls.get(), 9 + 5);
    assert_eq!(repeats(&watch), [(1, false), (5, true)]);
}

#[test]
fn failures_are_kept_on_request() {
    let (store, calls) = (MemoryArchiver::new(), Counter::new());
    let app = fails(calls, no_convergence);
    let first = program(&store).build().unwrap();
    assert!(first.run(&app, &x(1)).is_err());
    ended(first);
    let keeps = program(&store).keep_failures().build().unwrap();
    says(&text(&keeps, &app), "no convergence (it failed");
    let one = program(&store).build().unwrap();
    let kept = one.request(&app, &x(1)).keep_failures().run();
    says(&format!("{:#}", kept.unwrap_err()), "(it failed");
    assert_eq!(calls.get(), 1);
    // Only that call.
    assert!(!text(&one, &app).contains("(it failed"));
    assert_eq!(calls.get(), 2);
}

#[sde::app(failures = "permanent")]
fn refuses(n: u64) -> Result<u64, AppError> {
    Err(AppError::message(format!("there is no {n}")))
}

#[test]
fn a_typed_call_can_keep_failures_and_the_app_error_is_a_text_then() {
    let store = MemoryArchiver::new();
    let first = program(&store).build().unwrap();
    assert!(refuses.call(&first, 3).is_err());
    ended(first);
    let next = program(&store).build().unwrap();
    let error = refuses.request(&next, 3).keep_failures().run().unwrap_err();
    says(&format!("{error:#}"), "there is no 3 (it failed");
    assert!(error.app_error::<std::num::ParseIntError>().is_none());
    assert_eq!(next.stats().total.failures, 1);
}

#[test]
fn what_failed_may_go_well_under_refresh_and_then_there_is_no_failure() {
    let (store, calls) = (MemoryArchiver::new(), Counter::new());
    let app = number("fails", move |_, n| match calls.add() {
        0 => Err(no_convergence()),
        _ => Ok(n),
    });
    let sde = program(&store).build().unwrap();
    assert!(sde.run(&app, &x(1)).is_err());
    sde.request(&app, &x(1))
        .policy(Policy::Refresh)
        .run()
        .unwrap();
    assert_eq!(y(&sde.run(&app, &x(1)).unwrap()).unwrap(), 1);
    ended(sde);
    let keeps = program(&store).keep_failures().build().unwrap();
    assert_eq!(y(&keeps.run(&app, &x(1)).unwrap()).unwrap(), 1);
    assert_eq!(calls.get(), 2);
}

/// A failure that is older than a result is not given, also where that result may not be used.
#[test]
fn a_result_supersedes_a_failure() {
    let (store, calls) = (MemoryArchiver::new(), Counter::new());
    let app = number("fails", move |_, n| match calls.add() {
        0 => Err(no_convergence().permanent()),
        _ => Ok(n),
    });
    let sde = program(&store).build().unwrap();
    assert!(sde.run(&app, &x(1)).is_err());
    sde.request(&app, &x(1))
        .policy(Policy::Refresh)
        .run()
        .unwrap();
    let key = sde.peek(&app, &x(1)).unwrap().key();
    sde.invalidate(&key, "a test").unwrap();
    ended(sde);
    let next = program(&store).build().unwrap();
    assert_eq!(y(&next.run(&app, &x(1)).unwrap()).unwrap(), 1);
    assert_eq!(calls.get(), 3);
}

#[test]
fn a_bypass_leaves_no_failure() {
    let (store, calls) = (MemoryArchiver::new(), Counter::new());
    let app = fails(calls, no_convergence);
    let sde = program(&store).build().unwrap();
    let bypass = || sde.request(&app, &x(1)).policy(Policy::Bypass).run();
    assert!(bypass().is_err());
    assert!(bypass().is_err());
    assert!(sde.run(&app, &x(1)).is_err());
    assert_eq!(calls.get(), 3);
    assert!(bypass().is_err());
    assert_eq!(calls.get(), 4);
}

/// An edited callee is another version of it.
#[test]
fn an_edited_callee_has_it_run_again() {
    let (store, calls) = (MemoryArchiver::new(), Counter::new());
    let caller = move |version: &'static str| {
        let nested = callee(version);
        number("caller", move |sde, n| {
            calls.add();
            y(&sde.run(&nested, &x(n))?)?;
            Err(no_convergence().permanent())
        })
    };
    for (version, expected) in [("1", 1), ("1", 1), ("2", 2), ("2", 2)] {
        let sde = program(&store).build().unwrap();
        sde.run(&callee(version), &x(7)).unwrap();
        assert!(sde.run(&caller(version), &x(1)).is_err());
        assert_eq!(calls.get(), expected, "{version}");
        ended(sde);
    }
}

/// A caller that goes on without depends on all that the failed run rested on, also when that was given.
#[test]
fn who_goes_on_without_rests_on_what_failed() {
    let (store, calls) = (MemoryArchiver::new(), Counter::new());
    let fails = |version: &'static str| {
        let nested = callee(version);
        number("fails", move |sde, n| {
            y(&sde.run(&nested, &x(n))?)?;
            Err(no_convergence().permanent())
        })
    };
    let tolerant = |version: &'static str| {
        let fails = fails(version);
        number("tolerant", move |sde, n| {
            calls.add();
            Ok(sde.run(&fails, &x(1)).map_or(n, |_| 0))
        })
    };
    let run = |version, n| {
        let sde = program(&store).build().unwrap();
        // So that this program is known to have them.
        sde.run(&callee(version), &x(7)).unwrap();
        sde.run(&fails(version), &x(7)).unwrap_err();
        for n in [n, n + 10] {
            sde.run(&tolerant(version), &x(n)).unwrap();
        }
        ended(sde);
        calls.get()
    };
    // Memory gives the failure to 11 and 12, and the store to 2.
    assert_eq!([run("1", 1), run("1", 2), run("1", 2)], [2, 4, 4]);
    assert_eq!([run("2", 1), run("2", 2)], [6, 8]);
}

#[test]
fn who_goes_on_without_an_ordinary_failure_is_not_looked_up() {
    let (store, calls, good) = (MemoryArchiver::new(), Counter::new(), Counter::new());
    let fails = number("fails", move |_, n| match good.get() {
        0 => Err(no_convergence()),
        _ => Ok(n),
    });
    let tolerant = number("tolerant", move |sde, n| {
        calls.add();
        Ok(sde.run(&fails, &x(n)).map_or(99, |_| 1))
    });
    let got = |sde: &Sde| y(&sde.run(&tolerant, &x(1)).unwrap()).unwrap();
    let sde = program(&store).build().unwrap();
    assert_eq!([got(&sde), got(&sde)], [99, 99]);
    ended(sde);
    good.add();
    assert_eq!(got(&program(&store).build().unwrap()), 1);
    assert_eq!(calls.get(), 3);
}

/// Each level has its failure. The outer ones are given too, though they rest on a failure that may go well.
#[test]
fn each_level_of_nesting_has_its_failure() {
    let (store, calls) = (MemoryArchiver::new(), Counter::new());
    let inner = fails(calls, no_convergence);
    let outer = number("outer", move |sde, n| {
        calls.add();
        Ok(y(&sde.run(&inner, &x(n))?)?)
    });
    let sde = program(&store).build().unwrap();
    assert!(sde.run(&outer, &x(1)).is_err());
    sde.checkpoint().unwrap();
    let failure = stored(&store, &sde, &outer, 1).unwrap();
    says(&failure.message, "no convergence");
    says(&text(&sde, &outer), "no convergence (it failed");
    assert_eq!(calls.get(), 2);
}

#[test]
fn an_input_file_that_changed_is_another_run() {
    let (store, calls, folder) = (MemoryArchiver::new(), Counter::new(), tempdir().unwrap());
    let path = folder.path().join("input");
    let app = number("reads", move |_, _| {
        calls.add();
        Err(no_convergence())
    });
    let run = |sde: &Sde, content: &str| {
        fs::write(&path, content).unwrap();
        sde.run(&app, &inputs! { file: InputFile::new(&path), x: 1_u64 })
            .unwrap_err();
        calls.get()
    };
    let sde = program(&store).build().unwrap();
    assert_eq!(
        ["one", "one", "two", "two"].map(|content| run(&sde, content)),
        [1, 1, 2, 2]
    );
}

/// The body writes to its own input: its failure may be that of the new content, under the key of the old.
#[test]
fn what_failed_while_its_input_changed_is_run_again() {
    let (store, calls, folder) = (MemoryArchiver::new(), Counter::new(), tempdir().unwrap());
    let path = folder.path().join("input");
    let written = path.clone();
    let app = number("writes", move |_, _| {
        fs::write(&written, "another").unwrap();
        calls.add();
        Err(no_convergence().permanent())
    });
    let sde = program(&store).build().unwrap();
    for runs in 1..=2 {
        fs::write(&path, "one").unwrap();
        sde.run(&app, &inputs! { file: InputFile::new(&path), x: 1_u64 })
            .unwrap_err();
        assert_eq!(calls.get(), runs);
    }
}

#[test]
fn panics_and_transient_failures_are_seen_and_not_given() {
    let (store, calls) = (MemoryArchiver::new(), Counter::new());
    let app = number("fails", move |_, n| {
        calls.add();
        match n {
            1 => panic!("out of range"),
            _ => Err(AppError::message("busy").transient().with_output("step 7")),
        }
    });
    for runs in [2, 4] {
        let watch = Watch::new();
        let sde = program(&store).keep_failures();
        let sde = sde.observer(watch.clone()).build().unwrap();
        let panics = catch_unwind(AssertUnwindSafe(|| sde.run(&app, &x(1))));
        assert!(panics.is_err() && sde.run(&app, &x(2)).is_err());
        assert_eq!(calls.get(), runs);
        ended(sde);
        // They are made again in any case, so nobody is told how to leave them.
        assert_eq!(repeats(&watch), []);
    }
    let sde = program(&store).build().unwrap();
    let of = |n| {
        let failure = stored(&store, &sde, &app, n).unwrap();
        assert_eq!(failure.lasts, Failure::Transient);
        (failure.message.clone(), failure.output.clone())
    };
    assert_eq!(
        of(1),
        ("it panicked: out of range".to_owned(), String::new())
    );
    assert_eq!(of(2), ("busy".to_owned(), "step 7".to_owned()));
    let Peek::Miss { why, .. } = sde.peek(&app, &x(2)).unwrap() else {
        panic!("a miss")
    };
    assert_eq!(why, "it failed before: busy");
}

#[test]
fn long_messages_are_cut() {
    let (store, calls) = (MemoryArchiver::new(), Counter::new());
    let app = fails(calls, || {
        AppError::message("é".repeat(4000) + "x").with_output("y".to_owned() + &"é".repeat(4000))
    });
    let sde = program(&store).build().unwrap();
    assert!(sde.run(&app, &x(1)).is_err());
    sde.checkpoint().unwrap();
    let failure = stored(&store, &sde, &app, 1).unwrap();
    let expected = "é".repeat(2048);
    assert_eq!((&failure.message, &failure.output), (&expected, &expected));
}

/// A cancelled call tells nothing of the run.
#[test]
fn what_was_cancelled_has_not_failed() {
    let (store, token) = (MemoryArchiver::new(), sde::CancelToken::new());
    let cancels = token.clone();
    let app = number("stops", move |sde, _| {
        cancels.cancel();
        assert!(sde.is_cancelled());
        Err(AppError::message("stopped early"))
    });
    let sde = program(&store).build().unwrap();
    assert!(sde.with_cancel(&token).run(&app, &x(1)).is_err());
    sde.checkpoint().unwrap();
    assert_eq!(stored(&store, &sde, &app, 1), None);
}

/// It goes on from its state, and comes further each time.
#[test]
fn what_saved_a_state_is_not_given_its_failure() {
    let store = MemoryArchiver::new();
    let app = number("steps", |sde, _| {
        let step = sde.scratch::<u64>().load()?.map_or(0, |step| *step);
        sde.scratch::<u64>().save(step + 1)?;
        if step < 2 {
            Err(AppError::message("not yet"))
        } else {
            Ok(step)
        }
    });
    let sde = program(&store).build().unwrap();
    assert!(sde.run(&app, &x(1)).is_err());
    assert!(sde.run(&app, &x(1)).is_err());
    assert_eq!(y(&sde.run(&app, &x(1)).unwrap()).unwrap(), 2);
}

#[test]
fn a_store_in_a_directory_has_failures() {
    let (folder, calls) = (tempdir().unwrap(), Counter::new());
    let app = fails(calls, || no_convergence().permanent());
    let program = || {
        let store = DirStore::open(folder.path()).unwrap();
        let builder = Sde::builder().store(store);
        builder.save(SavePolicy::EveryResult).build().unwrap()
    };
    for _ in 0..2 {
        let sde = program();
        assert!(sde.run(&app, &x(1)).is_err());
        ended(sde);
    }
    assert_eq!(calls.get(), 1);
}

/// A caller may take a failure that may go well for one that lasts.
#[test]
fn what_rests_on_an_ordinary_failure_is_not_permanent() {
    let (store, calls) = (MemoryArchiver::new(), Counter::new());
    let inner = fails(Counter::new(), no_convergence);
    let outer = number("outer", move |sde, n| {
        calls.add();
        let done = sde.run(&inner, &x(n));
        done.map_err(|_| AppError::message("never").permanent())?;
        Ok(n)
    });
    for runs in 1..=2 {
        let sde = program(&store).build().unwrap();
        // So that this program is known to have it.
        drop(sde.run(&fails(Counter::new(), no_convergence), &x(2)));
        assert!(sde.run(&outer, &x(1)).is_err() && sde.run(&outer, &x(1)).is_err());
        assert_eq!(calls.get(), runs);
        ended(sde);
    }
}

#[test]
fn a_failure_can_be_invalidated() {
    let (store, calls) = (MemoryArchiver::new(), Counter::new());
    let app = fails(calls, || no_convergence().permanent());
    let sde = program(&store).build().unwrap();
    assert!(sde.run(&app, &x(1)).is_err());
    sde.checkpoint().unwrap();
    let key = failure_key(&sde.peek(&app, &x(1)).unwrap().key());
    sde.invalidate(&key, "a test").unwrap();
    assert!(sde.run(&app, &x(1)).is_err());
    assert_eq!(calls.get(), 2);
}
