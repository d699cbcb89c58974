//! What takes a remembered result out of use, for one computation or for all.

use std::sync::atomic::{AtomicU32, Ordering};

use sde::archiver::MemoryArchiver;
use sde::{Inputs, Outcome, Peek, Policy, Sde, Source, inputs};

/// Counts how often it was computed, under one number.
#[sde::app(name = "invalidation.count", version = "1")]
fn count(number: usize) -> u32 {
    static COMPUTED: [AtomicU32; 6] = [const { AtomicU32::new(0) }; 6];
    COMPUTED[number].fetch_add(1, Ordering::SeqCst) + 1
}

fn of(number: usize) -> Inputs {
    inputs! { number: number }
}

fn run(sde: &Sde, number: usize, policy: Policy) -> Outcome {
    sde.request(&count, &of(number))
        .policy(policy)
        .run()
        .unwrap()
}

fn result(outcome: &Outcome) -> u32 {
    *outcome.results.get::<u32>("result").unwrap()
}

#[test]
fn invalidation_is_for_one_computation_is_saved_and_can_be_undone() {
    let store = MemoryArchiver::new();
    let sde = Sde::builder()
        .store(store.clone())
        .save(sde::SavePolicy::OnRequest)
        .build()
        .unwrap();
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

    let later = Sde::builder()
        .store(store.clone())
        .save(sde::SavePolicy::OnRequest)
        .build()
        .unwrap();
    // It said that there was nothing.
    let inputs = of(4);
    let request = later.request(&count, &inputs);
    let error = request.policy(Policy::OnlyIfRemembered).run().unwrap_err();
    assert!(format!("{error:#}").contains("node 7"), "{error}");
    let again = run(&later, 4, Policy::Use);
    assert_eq!((result(&again), again.source), (2, Source::Computed));
    later.finish().unwrap();

    // The mark was for the first computation only.
    let last = Sde::builder()
        .store(store)
        .save(sde::SavePolicy::OnRequest)
        .build()
        .unwrap();
    assert_eq!(run(&last, 4, Policy::Use).source, Source::Loaded);
}

#[test]
fn whatever_may_change_a_result_empties_the_first_level() {
    let sde = Sde::new();
    let last = |number| {
        run(&sde, number, Policy::Use);
        run(&sde, number, Policy::Use);
        let before = sde.stats().total.recent_hits;
        let outcome = run(&sde, number, Policy::Use);
        assert_eq!(sde.stats().total.recent_hits, before + 1);
        outcome
    };
    // Held, for a recent hit is none any more when its values are gone.
    let _cleaned = last(5);
    sde.clear_app("invalidation.count").unwrap();
    assert_eq!(run(&sde, 5, Policy::Use).source, Source::Computed);
    let invalid = last(5);
    sde.invalidate(&invalid.key, "a test").unwrap();
    assert_eq!(run(&sde, 5, Policy::Use).source, Source::Computed);
    let _replaced = last(5);
    let fresh = run(&sde, 5, Policy::Refresh);
    assert_eq!(result(&run(&sde, 5, Policy::Use)), result(&fresh));
    let _of_another_store = last(5);
    sde.load(MemoryArchiver::new()).unwrap();
    assert_eq!(run(&sde, 5, Policy::Use).source, Source::Computed);
}
