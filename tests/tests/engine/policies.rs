//! Policies, `peek`, invalidation, loading another store, and handles out of place.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use sde::{
    App, AppError, AppInfo, Cost, ErrorKind, Fingerprint, Handle, Inputs, MemoryArchiver, Outcome,
    Peek, Policy, ResultMap, ResultSpec, Sde, Source, Tag, Value, inputs,
};

/// Counts how often it was computed, under one number.
#[sde::app(name = "policies.count", version = "1")]
fn count(number: u32) -> Result<u32, AppError> {
    static COMPUTED: [AtomicU32; 16] = [const { AtomicU32::new(0) }; 16];
    static FAIL: AtomicBool = AtomicBool::new(false);
    let computed = COMPUTED[number as usize].fetch_add(1, Ordering::SeqCst) + 1;
    // Number 9 fails when it is computed for the second time.
    if number == 9 && computed == 2 && !FAIL.swap(true, Ordering::SeqCst) {
        return Err(AppError::message("it was told to fail"));
    }
    Ok(computed)
}

fn of(number: u32) -> Inputs {
    inputs! { number: number }
}

fn run(sde: &Sde, number: u32, policy: Policy) -> Outcome {
    sde.request(&count, &of(number))
        .policy(policy)
        .run()
        .unwrap()
}

fn result(outcome: &Outcome) -> u32 {
    *outcome.results.get::<u32>("result").unwrap()
}

#[test]
fn refresh_computes_and_replaces() {
    let sde = Sde::new();
    assert_eq!(result(&run(&sde, 1, Policy::Use)), 1);
    assert_eq!(result(&run(&sde, 1, Policy::Refresh)), 2);
    let after = run(&sde, 1, Policy::Use);
    assert_eq!((result(&after), after.source.is_hit()), (2, true));
}

#[test]
fn a_refresh_that_fails_leaves_what_there_was() {
    let sde = Sde::new();
    assert_eq!(result(&run(&sde, 9, Policy::Use)), 1);
    assert!(
        sde.request(&count, &of(9))
            .policy(Policy::Refresh)
            .run()
            .is_err()
    );
    let after = run(&sde, 9, Policy::Use);
    assert_eq!((result(&after), after.source.is_hit()), (1, true));
}

#[test]
fn bypass_takes_nothing_and_leaves_nothing() {
    let sde = Sde::new();
    assert_eq!(result(&run(&sde, 2, Policy::Bypass)), 1);
    assert!(matches!(
        sde.peek(&count, &of(2)).unwrap(),
        Peek::Miss { .. }
    ));
    assert_eq!(result(&run(&sde, 2, Policy::Use)), 2);
    assert_eq!(result(&run(&sde, 2, Policy::Bypass)), 3);
    assert_eq!(result(&run(&sde, 2, Policy::Use)), 2);
}

#[test]
fn only_if_remembered_computes_nothing() {
    let sde = Sde::new();
    let ask = || {
        sde.request(&count, &of(3))
            .policy(Policy::OnlyIfRemembered)
            .run()
    };
    let error = ask().unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::NotRemembered { .. }),
        "{error}"
    );
    run(&sde, 3, Policy::Use);
    assert!(ask().unwrap().source.is_hit());
}

#[test]
fn invalidation_is_for_one_computation_is_saved_and_can_be_undone() {
    let store = MemoryArchiver::new();
    let sde = Sde::builder().store(store.clone()).build().unwrap();
    let first = run(&sde, 4, Policy::Use);
    sde.invalidate(&first.key, "node 7 has bad memory").unwrap();
    let peek = sde.peek(&count, &of(4)).unwrap();
    assert!(
        matches!(&peek, Peek::Miss { why, .. } if why.contains("node 7")),
        "{peek:?}"
    );
    sde.undo_invalidate(&first.key).unwrap();
    assert!(run(&sde, 4, Policy::Use).source.is_hit());
    sde.invalidate(&first.key, "node 7 has bad memory").unwrap();
    sde.finish().unwrap();

    let later = Sde::builder().store(store.clone()).build().unwrap();
    let again = run(&later, 4, Policy::Use);
    assert_eq!((result(&again), again.source), (2, Source::Computed));
    later.finish().unwrap();

    // The mark was for the first computation only.
    let last = Sde::builder().store(store).build().unwrap();
    assert_eq!(run(&last, 4, Policy::Use).source, Source::Loaded);
}

#[test]
fn whatever_may_change_a_result_empties_the_last_value() {
    let sde = Sde::new();
    let last = |number| {
        run(&sde, number, Policy::Use);
        let outcome = run(&sde, number, Policy::Use);
        assert_eq!(outcome.source, Source::LastValue);
        outcome
    };
    last(5);
    sde.clean_cache("policies.count", []).unwrap();
    assert_eq!(run(&sde, 5, Policy::Use).source, Source::Computed);
    let invalid = last(5);
    sde.invalidate(&invalid.key, "a test").unwrap();
    assert_eq!(run(&sde, 5, Policy::Use).source, Source::Computed);
    last(5);
    let fresh = run(&sde, 5, Policy::Refresh);
    assert_eq!(result(&run(&sde, 5, Policy::Use)), result(&fresh));
    last(5);
    sde.load(MemoryArchiver::new()).unwrap();
    assert_eq!(run(&sde, 5, Policy::Use).source, Source::Computed);
}

#[test]
fn load_takes_another_store_and_forgets_what_was_there() {
    let full = MemoryArchiver::new();
    let sde = Sde::builder().store(full.clone()).build().unwrap();
    let made = run(&sde, 6, Policy::Use);
    sde.finish().unwrap();
    sde.load(MemoryArchiver::new()).unwrap();
    assert!(matches!(
        sde.peek(&count, &of(6)).unwrap(),
        Peek::Miss { .. }
    ));
    sde.load(full).unwrap();
    let peek = sde.peek(&count, &of(6)).unwrap();
    assert!(
        matches!(peek, Peek::Load { made_by, .. } if made_by == made.made_by),
        "{peek:?}"
    );
    assert_eq!(run(&sde, 6, Policy::Use).made_by, made.made_by);
}

#[test]
fn cleaning_by_tag_leaves_the_rest_and_the_record() {
    let sde = Sde::new();
    let made = run(&sde, 7, Policy::Use);
    sde.clean_cache("policies.count", [Tag::Intermediate])
        .unwrap();
    assert!(run(&sde, 7, Policy::Use).source.is_hit());
    sde.clean_cache("policies.count", []).unwrap();
    assert_eq!(result(&made), 1, "what was given out stays");
    assert_eq!(sde.records().len(), 1);
    let gone = sde.peek(&count, &of(7)).unwrap();
    assert!(
        matches!(&gone, Peek::Miss { why, .. } if why.contains("gone")),
        "{gone:?}"
    );
}

static KEPT: Mutex<Option<Handle>> = Mutex::new(None);

#[sde::app(name = "policies.leaks_its_handle")]
fn leaks_its_handle(sde: &Handle) -> u32 {
    *KEPT.lock().unwrap() = Some(sde.clone());
    1
}

#[test]
fn a_handle_used_after_its_run_is_an_error() {
    let sde = Sde::new();
    leaks_its_handle.call(&sde).unwrap();
    let handle = KEPT.lock().unwrap().take().unwrap();
    let error = count.call(&handle, 8).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::StaleHandle { .. }),
        "{error}"
    );
    let error = sde.scratch::<u8>().load().unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::OutsideRun { .. }),
        "{error}"
    );
    assert!(sde.parameter::<u8>("any").is_err());
}

#[test]
fn a_hit_tells_which_computation_made_it_and_shares_the_value() {
    let sde = Sde::new();
    let first = run(&sde, 10, Policy::Use);
    let hit = run(&sde, 10, Policy::Use);
    assert_eq!(hit.made_by, first.made_by);
    let value = |outcome: &Outcome| outcome.results.get::<u32>("result").unwrap();
    assert!(Value::ptr_eq(&value(&first), &value(&hit)));
}

/// An app that knows what it takes.
#[derive(Fingerprint)]
struct Estimated;

impl App for Estimated {
    fn info(&self) -> AppInfo {
        AppInfo::new("policies.Estimated", "1").result(ResultSpec::new::<u32>("result"))
    }

    fn run(&self, _: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        Ok(ResultMap::new().with("result", *inputs.get::<u32>("number")?))
    }

    fn cost(&self, inputs: &Inputs) -> Option<Cost> {
        let number = *inputs.get::<u32>("number").ok()?;
        Some(estimate(number))
    }
}

fn estimate(number: u32) -> Cost {
    Cost {
        time: Duration::from_secs(number.into()),
        memory: u64::from(number) << 20,
    }
}

#[test]
fn an_estimate_costs_nothing_once_it_is_remembered() {
    let store = MemoryArchiver::new();
    let sde = Sde::builder().store(store.clone()).build().unwrap();
    assert_eq!(sde.cost(&count, &of(11)).unwrap(), None, "it can't tell");
    let cost = |sde: &Sde, number| sde.cost(&Estimated, &of(number)).unwrap().unwrap();
    assert_eq!(cost(&sde, 7), estimate(7));
    assert_eq!(cost(&sde, 8), estimate(8));
    sde.run(&Estimated, &of(7)).unwrap();
    assert_eq!(cost(&sde, 7), Cost::default());
    assert_eq!(cost(&sde, 8), estimate(8));
    sde.finish().unwrap();
    let later = Sde::builder().store(store).build().unwrap();
    assert_eq!(cost(&later, 7), Cost::default(), "it would be read");
    sde.clean_cache("policies.Estimated", []).unwrap();
    assert_eq!(cost(&sde, 7), Cost::default(), "it would be read");
    let nowhere = Sde::new();
    assert_eq!(cost(&nowhere, 7), estimate(7));
}
