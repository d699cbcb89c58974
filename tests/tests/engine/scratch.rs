//! The state of an iteration: kept until there is a result, whatever ends the run, and never taken
//! for one.

use std::panic::{AssertUnwindSafe, catch_unwind};

use sde::archiver::{MemoryArchiver, Selection};
use sde::{AppError, Event, Peek, Policy, SavePolicy, Sde};
use sde_tests::{Counter, Gate, LIMIT, Made, Watch, Watchdog, number, number_info, x, y};

const STEPS: u32 = 9;

/// What ends a run before its time.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Error,
    Transient,
    Panic,
}

const ENDS: [End; 3] = [End::Error, End::Transient, End::Panic];

/// An iteration that each call takes `steps` further, and how many steps were made in all.
struct Iteration {
    app: Made,
    made: Counter,
}

fn iteration(steps: u32, end: End) -> Iteration {
    let made = Counter::new();
    let app = number("iteration", move |sde, start| {
        let scratch = sde.scratch::<(u32, f64)>();
        let (mut step, mut at) = scratch.resume_or(|| (0, 1.0 / (start + 2) as f64))?;
        for _ in 0..steps {
            if step == STEPS {
                break;
            }
            made.add();
            // Forgets no bit of where it came from.
            at *= 3.9 * (1.0 - at);
            step += 1;
            scratch.save((step, at))?;
        }
        match end {
            _ if step == STEPS => Ok(at.to_bits()),
            End::Error => Err(AppError::message("interrupted")),
            End::Transient => Err(AppError::message("interrupted").transient()),
            End::Panic => panic!("interrupted"),
        }
    });
    Iteration { app, made }
}

impl Iteration {
    /// One call of it: the result, if it came so far.
    fn go_on(&self, sde: &Sde) -> Option<u64> {
        let run = || sde.run(&self.app, &x(1)).ok().map(|map| y(&map).unwrap());
        catch_unwind(AssertUnwindSafe(run)).unwrap_or_default()
    }
}

fn undisturbed() -> u64 {
    iteration(STEPS, End::Error).go_on(&Sde::new()).unwrap()
}

fn engine(store: &MemoryArchiver, policy: SavePolicy) -> Sde {
    let builder = Sde::builder()
        .store(store.clone())
        .save(SavePolicy::OnRequest);
    builder.save(policy).build().unwrap()
}

#[test]
fn each_run_goes_on_where_the_last_one_ended() {
    for end in ENDS {
        for steps in 1..STEPS {
            let iteration = iteration(steps, end);
            let sde = Sde::new();
            let result = (0..STEPS).find_map(|_| iteration.go_on(&sde));
            assert_eq!(result, Some(undisturbed()), "{end:?} after {steps}");
            let got = iteration.made.get();
            assert_eq!(got, STEPS as usize, "{end:?} after {steps}");
        }
    }
}

#[test]
fn each_process_goes_on_where_the_last_one_was_saved() {
    for (end, policy) in ENDS
        .into_iter()
        .flat_map(|end| [(end, SavePolicy::EveryResult), (end, SavePolicy::OnRequest)])
    {
        for steps in 1..STEPS {
            let iteration = iteration(steps, end);
            let (store, watch) = (MemoryArchiver::new(), Watch::new());
            let mut runs = 0;
            let result = (0..STEPS).find_map(|_| {
                runs += 1;
                let sde = Sde::builder().store(store.clone()).save(policy);
                let sde = sde.observer(watch.clone()).build().unwrap();
                let result = iteration.go_on(&sde);
                sde.checkpoint().unwrap();
                let scratch = store.saved_scratch();
                assert_eq!(scratch.len(), usize::from(result.is_none()));
                let saved = store.saved(Selection::Checkpoint);
                assert_eq!(saved.len(), usize::from(result.is_some()));
                result
            });
            assert_eq!(
                result,
                Some(undisturbed()),
                "{end:?} after {steps}, {policy:?}"
            );
            assert_eq!(iteration.made.get(), STEPS as usize);
            let resumed = watch.count(|event| matches!(event, Event::Resumed { .. }));
            assert_eq!(resumed, runs - 1, "each but the first went on");
        }
    }
}

/// A checkpoint in the middle of a run, which then is killed.
#[test]
fn a_checkpoint_from_another_thread_saves_the_latest_state() {
    let _dog = Watchdog::new("a checkpoint during a run", LIMIT);
    let store = MemoryArchiver::new();
    let gates: [Gate; 3] = Default::default();
    let app = number("iteration", move |sde, _| {
        let scratch = sde.scratch::<u64>();
        let from = scratch.load()?.map_or(0, |state| *state);
        for (step, gate) in gates.iter().enumerate().skip(from as usize) {
            scratch.save(step as u64 + 1)?;
            gate.pass();
        }
        Ok(from)
    });
    let sde = engine(&store, SavePolicy::OnRequest);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| sde.run(&app, &x(1)).map(|map| y(&map).unwrap()));
        for (step, gate) in gates.iter().enumerate() {
            gate.arrived(1);
            assert!(matches!(sde.peek(&app, &x(1)).unwrap(), Peek::Wait { .. }));
            let batches = store.batches();
            sde.checkpoint().unwrap();
            assert_eq!(store.batches(), batches + 1);
            // Nothing has changed since.
            sde.checkpoint().unwrap();
            assert_eq!(store.batches(), batches + 1);
            assert_eq!(store.saved_scratch(), ["iteration"]);
            // What a process finds that starts after this one was killed.
            if step == 1 {
                let later = engine(&store.clone(), SavePolicy::OnRequest);
                let other = number("iteration", |sde, _| {
                    Ok(*sde.scratch::<u64>().load()?.unwrap())
                });
                assert_eq!(y(&later.run(&other, &x(1)).unwrap()).unwrap(), 2);
                std::mem::forget(later);
            }
            gate.open();
        }
        assert_eq!(running.join().unwrap().unwrap(), 0);
    });
    sde.checkpoint().unwrap();
    assert_eq!(store.saved_scratch(), Vec::<String>::new());
}

#[test]
fn a_checkpoint_that_failed_is_made_up_for() {
    let store = MemoryArchiver::new();
    let sde = engine(&store, SavePolicy::OnRequest);
    let iteration = iteration(3, End::Error);
    assert!(iteration.go_on(&sde).is_none());
    store.fail_next_save();
    sde.checkpoint().unwrap_err();
    assert_eq!(store.saved_scratch(), Vec::<String>::new());
    sde.checkpoint().unwrap();
    assert_eq!(store.saved_scratch(), ["iteration"]);
}

/// A run that was killed after it had saved a state, for which it had called an app in no slot, went
/// on from that state though the app was another in the next program.
#[test]
fn a_state_made_with_a_callee_that_was_edited_is_not_gone_on_from() {
    let callee = |version| {
        let add = if version == "1" { 1 } else { 100 };
        number("scratch.callee", move |_, n| Ok(n + add))
            .described(|_| number_info("scratch.callee", version))
    };
    // Stops after the first half, and says of the second what the first was made with.
    let halves = |version| {
        number("scratch.halves", move |sde, n| {
            let scratch = sde.scratch::<u64>();
            if let Some(first) = scratch.load()? {
                return Ok(*first * 1000);
            }
            let first = y(&sde.run(&callee(version), &x(n))?)?;
            scratch.save(first)?;
            Err(AppError::message("killed"))
        })
    };
    let program = |store: &MemoryArchiver, version| {
        let watch = Watch::new();
        let sde = Sde::builder()
            .store(store.clone())
            .save(SavePolicy::OnRequest)
            .observer(watch.clone());
        let sde = sde.save(SavePolicy::EveryResult).build().unwrap();
        sde.peek(&callee(version), &x(0)).unwrap();
        let result = sde.run(&halves(version), &x(1)).ok();
        let warned = watch.count(|event| {
            matches!(event, Event::Warning { message, .. }
                if message.contains("scratch.callee (version 1), which is now version 2"))
        });
        (result.map(|map| y(&map).unwrap()), warned, sde)
    };
    let store = MemoryArchiver::new();
    assert_eq!(program(&store, "1").0, None);
    // Edited: it starts afresh, and goes on from that.
    let (result, warned, _) = program(&store, "2");
    assert_eq!((result, warned), (None, 1));
    let (result, warned, sde) = program(&store, "2");
    assert_eq!((result, warned), (Some(101_000), 0));
    // What came of it rests on what the state was made with.
    let records = sde_tests::records(&sde);
    let record = records
        .iter()
        .find(|r| &*r.app == "scratch.halves")
        .unwrap();
    assert_eq!(record.calls.len(), 1);
    assert_eq!(record.dependencies.len(), 1);
}

/// A state that was saved when it was made was saved once more by each checkpoint.
#[test]
fn what_is_saved_at_once_is_saved_once() {
    let store = MemoryArchiver::new();
    let sde = engine(&store, SavePolicy::EveryResult);
    let iteration = iteration(3, End::Error);
    assert!(iteration.go_on(&sde).is_none());
    // Three states, and the failure.
    assert_eq!(store.batches(), 4);
    sde.checkpoint().unwrap();
    assert_eq!(store.batches(), 4);
    // One that could not be saved is made up for.
    store.fail_next_save();
    assert!(iteration.go_on(&sde).is_none());
    assert_eq!(store.batches(), 7);
    sde.checkpoint().unwrap();
    assert_eq!(store.batches(), 7, "a later state was saved");
}

#[test]
fn it_is_never_a_result() {
    let store = MemoryArchiver::new();
    let sde = engine(&store, SavePolicy::EveryResult);
    let iteration = iteration(3, End::Error);
    assert!(iteration.go_on(&sde).is_none());
    assert!(matches!(
        sde.peek(&iteration.app, &x(1)).unwrap(),
        Peek::Miss { .. }
    ));
    assert_eq!(store.saved(Selection::Checkpoint), []);
    sde.archive().unwrap();
    assert_eq!(store.saved(Selection::Archive), []);
    assert!(sde_tests::records(&sde).is_empty());
    let later = Sde::builder()
        .store(store.archive_only())
        .save(SavePolicy::OnRequest)
        .build()
        .unwrap();
    assert!(matches!(
        later.peek(&iteration.app, &x(1)).unwrap(),
        Peek::Miss { .. }
    ));
}

#[test]
fn cleaning_has_the_next_run_start_afresh() {
    let sde = Sde::new();
    let iteration = iteration(5, End::Error);
    assert!(iteration.go_on(&sde).is_none());
    sde.clear_app("iteration").unwrap();
    assert!(iteration.go_on(&sde).is_none());
    assert_eq!(iteration.go_on(&sde), Some(undisturbed()));
    assert_eq!(iteration.made.get(), 5 + STEPS as usize);
}

/// It was left unused, and nobody was told.
#[test]
fn a_state_of_another_type_is_none_and_is_warned_of() {
    let (store, watch) = (MemoryArchiver::new(), Watch::new());
    let program = |watch: &Watch| {
        let sde = Sde::builder()
            .store(store.clone())
            .save(SavePolicy::OnRequest)
            .observer(watch.clone());
        sde.build().unwrap()
    };
    let calls = Counter::new();
    let app = number("retyped", move |sde, _| {
        if calls.add() == 0 {
            sde.scratch::<u64>().save(7_u64)?;
            return Err(AppError::message("stopped"));
        }
        assert!(sde.scratch::<String>().load()?.is_none());
        assert_eq!(*sde.scratch::<u64>().load()?.expect("it is still there"), 7);
        Err(AppError::message("stopped again"))
    });
    let sde = program(&watch);
    assert!(sde.run(&app, &x(1)).is_err());
    sde.checkpoint().unwrap();
    for sde in [sde, program(&watch)] {
        watch.clear();
        let error = sde.run(&app, &x(1)).unwrap_err();
        assert!(format!("{error:#}").contains("stopped again"), "{error}");
        let warnings = watch.warnings();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].starts_with("the scratch of retyped ["));
        assert!(warnings[0].ends_with("it starts afresh"), "{warnings:?}");
    }
}

#[test]
fn it_belongs_to_a_run() {
    let sde = Sde::new();
    assert!(sde.scratch::<u64>().load().is_err());
    assert!(sde.scratch::<u64>().save(1).is_err());
}

/// A run that leaves the cache alone left its scratch to the next.
#[test]
fn bypassing_runs_share_none() {
    let store = MemoryArchiver::new();
    let sde = engine(&store, SavePolicy::EveryResult);
    let app = number("saves", |sde, n| {
        let scratch = sde.scratch::<u64>();
        assert!(scratch.load()?.is_none());
        scratch.save(n)?;
        Ok(n)
    });
    for _ in 0..3 {
        let inputs = x(1);
        let request = sde.request(&app, &inputs).policy(Policy::Bypass);
        request.run().unwrap();
    }
    assert!(store.saved_scratch().is_empty());
}
