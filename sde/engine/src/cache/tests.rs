//! Entries and flights of one app: which of two computations of one key wins when both are published.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::app_cache::{AppCache, Claimed, Decision};
use super::budget::MemoryBudget;
use super::eviction::Uses;
use super::key_state::Change;
use super::ledger::Owner;
use super::memory::Memory;
use super::run_flight::RunFlight;
use super::waits::{Awaited, Until, Verdict, WaitSite, Waits};
use crate::app::{AppId, CodeId, TypeIndex};
use crate::entry::{Entry, Provenance, Record, RecordHead, Served};
use crate::error::Error;
use crate::event::RunId;
use crate::key::{Digest, Key};
use crate::result_map::{Content, ErasedValue, Named, ResultSpec, Tag, Tags};

fn key() -> Key {
    Key::from_bytes([7; 32])
}

/// An entry with this number for its result, made by the run of this number.
pub(crate) fn entry(number: u64) -> Arc<Entry> {
    let app = Arc::<str>::from("app");
    let run = RunId { process: 1, number };
    let y = Named {
        content: Content::Held(ErasedValue::new(number)),
        spec: Arc::new(ResultSpec::new::<u64>("y")),
        tags: Tags::NONE,
    };
    let provenance = Arc::new(Provenance {
        app,
        code: CodeId::Version("1".into()),
        id: AppId(Digest::from_bytes([1; 32])),
        setup: Arc::default(),
        dependencies: Vec::new(),
        host: "".into(),
        user: "".into(),
        target: "".into(),
        job: "".into(),
    });
    let head = RecordHead {
        provenance,
        key: key(),
        run,
        calls: Box::default(),
        nondeterministic: false,
        anew: false,
        made_at: SystemTime::UNIX_EPOCH,
        took: Duration::ZERO,
        thread: 0,
    };
    let record = Record::new(head, []);
    Arc::new(Entry::new(record, [y], 0))
}

fn served(entry: Arc<Entry>) -> Served {
    Served::whole(entry)
}

fn flight(cache: &AppCache) -> Arc<RunFlight> {
    match cache.claim(key(), None, |_| false).0 {
        Claimed::Mine(flight, None) => flight,
        _ => unreachable!("nobody else is there"),
    }
}

#[test]
fn what_is_new_to_a_call_is_not_claimed() {
    let cache = AppCache::new("app".into(), None);
    assert!(cache.record(&entry(1), cache.generation()));
    let (claimed, _) = cache.claim(key(), None, |_| true);
    assert!(matches!(claimed, Claimed::Ready(entry) if entry.record.run.number == 1));
    assert!(!cache.is_flying(&key()));
}

/// Decides on these results and shows them if they stand; says whether they do.
fn stands(cache: &AppCache, flight: &Arc<RunFlight>, entry: Arc<Entry>) -> bool {
    match cache.decide(flight, &entry).0 {
        Decision::Won { flight, is_kept } => {
            cache.show(&flight, &served(entry), is_kept, || ());
            true
        }
        Decision::Lost(_) => false,
    }
}

/// A fixed fault: the second results were saved before the first were decided on, so the store and memory gave other
/// values.
#[test]
fn the_first_that_decides_stands_before_it_is_visible() {
    let cache = AppCache::new("app".into(), None);
    let flight = flight(&cache);
    let first = entry(1);
    let (decision, _) = cache.decide(&flight, &first);
    assert!(matches!(decision, Decision::Won { is_kept: true, .. }));
    assert!(
        matches!(cache.decide(&flight, &entry(2)).0, Decision::Lost(winner) if Arc::ptr_eq(&winner, &first))
    );
    assert!(cache.entry(&key()).is_none());
    assert_eq!(cache.decided(&key()).map(|e| e.record.run.number), Some(1));
    cache.show(&flight, &served(first), true, || ());
    assert!(!stands(&cache, &flight, entry(3)));
    assert_eq!(cache.entry(&key()).map(|e| e.record.run.number), Some(1));
}

/// A call that computed beside a flight that failed takes on a new one; of two such calls the first stands.
#[test]
fn what_was_computed_beside_a_flight_that_failed_is_none_the_worse() {
    let cache = AppCache::new("app".into(), None);
    let flight = flight(&cache);
    cache.fail(&flight, &Error::refused("a test", "so"), false, None);
    assert!(stands(&cache, &flight, entry(1)));
    assert!(!stands(&cache, &flight, entry(2)));
    assert_eq!(cache.entry(&key()).map(|e| e.record.run.number), Some(1));
}

/// A call that computed beside a flight that failed does not replace results made since.
#[test]
fn what_was_computed_after_a_flight_failed_stands() {
    let cache = AppCache::new("app".into(), None);
    let failed = flight(&cache);
    cache.fail(&failed, &Error::refused("a test", "so"), false, None);
    let later = flight(&cache);
    assert!(stands(&cache, &later, entry(1)));
    assert!(!stands(&cache, &failed, entry(2)));
    assert_eq!(cache.entry(&key()).map(|e| e.record.run.number), Some(1));
}

/// Found by the stress test: a flight that began while `load` swapped the contents was taken out of the map with the
/// earlier ones, and its waiters never got the decided results.
#[test]
fn a_flight_that_is_not_in_the_map_any_more_reaches_its_waiters() {
    let cache = AppCache::new("app".into(), None);
    let flight = flight(&cache);
    cache.map.remove(&key());
    assert!(stands(&cache, &flight, entry(1)));
    assert!(flight.is_complete());
    assert_eq!(cache.entry(&key()).map(|e| e.record.run.number), Some(1));
}

#[test]
fn a_flight_that_is_not_in_the_map_any_more_leaves_the_next_one_there() {
    let cache = AppCache::new("app".into(), None);
    let gone = flight(&cache);
    cache.map.remove(&key());
    let next = flight(&cache);
    assert!(stands(&cache, &gone, entry(1)));
    assert!(cache.is_flying(&key()));
    assert!(stands(&cache, &next, entry(2)));
    assert_eq!(cache.entry(&key()).map(|e| e.record.run.number), Some(2));
}

/// A decided flight does not fail any more: its results are on their way to the disk.
#[test]
fn the_holder_fails_and_what_was_decided_stands() {
    let cache = AppCache::new("app".into(), None);
    let flight = flight(&cache);
    let beside = entry(1);
    let (_decision, _) = cache.decide(&flight, &beside);
    cache.fail(
        &flight,
        &Error::refused("a test", "so"),
        false,
        Some(entry(9)),
    );
    assert!(!flight.is_complete());
    cache.show(&flight, &served(beside), true, || ());
    assert_eq!(cache.entry(&key()).map(|e| e.record.run.number), Some(1));
}

/// Found by threads beside a cleaning: one had claimed a key to check its entry in a raised epoch, and put back values
/// that were cleaned meanwhile.
#[test]
fn what_was_cleaned_is_not_put_back() {
    let cache = AppCache::new("app".into(), None);
    assert!(cache.record(&entry(1), cache.generation()));
    let Claimed::Mine(flight, Some(previous)) = cache.claim(key(), None, |_| false).0 else {
        unreachable!("nobody else is there");
    };
    cache.clear(|_| true, "cleaned");
    let cleaned = |entry: &Entry| !entry.serves_all();
    assert!(!cleaned(&previous));
    cache.fail(&flight, &Error::refused("a test", "so"), false, None);
    assert!(cache.entry(&key()).is_some_and(|entry| cleaned(&entry)));
}

/// A cleaning that looked at an earlier entry does not lose the one that came since.
#[test]
fn what_comes_while_a_flight_is_cleaned_stays_and_is_cleaned() {
    let cache = AppCache::new("app".into(), None);
    assert!(cache.record(&entry(1), cache.generation()));
    let (claimed, _) = cache.claim(key(), None, |_| false);
    assert!(matches!(claimed, Claimed::Mine(..)));
    let came = std::cell::Cell::new(Some(entry(2)));
    let drops = |_: &Named| {
        came.take()
            .is_none_or(|came| cache.record(&came, cache.generation()))
    };
    cache.clear(drops, "cleaned");
    let there = cache
        .entry(&key())
        .map(|e| (e.record.run.number, !e.serves_all()));
    assert_eq!(there, Some((2, true)));
}

/// Found by a hostile program: threads that waited for a refresh woke before the recent hits of all threads were
/// emptied, and got the earlier result after the new one, 96 times of 284.
#[test]
fn what_a_publication_ends_is_ended_before_those_who_wait_wake() {
    let cache = AppCache::new("app".into(), None);
    let flight = flight(&cache);
    let mut was_complete = None;
    let look = || was_complete = Some(flight.is_complete());
    cache.show(&flight, &served(entry(1)), true, look);
    assert_eq!(was_complete, Some(false));
    assert!(flight.is_complete());
}

/// An entry without a result that is not needed, such as an expendable one from a store, is found as quickly as others.
/// An entry without a needed result is not.
#[test]
fn what_is_not_needed_may_be_gone() {
    let without = |tags: Tags| {
        let entry = entry(1);
        let mut results = entry.results.to_vec();
        let gone = Named {
            content: Content::Gone("a test"),
            spec: Arc::new(ResultSpec::new::<u64>("gone")),
            tags,
        };
        results.push(gone);
        let entry = Entry::unchecked(entry.full_record(), results);
        entry.set_checked(0);
        entry
    };
    assert!(without(Tag::Expendable.into()).is_whole_and_checked(0));
    assert!(!without(Tags::default()).is_whole_and_checked(0));
}

/// The locks of the map come from another crate, and count as ours.
#[cfg(debug_assertions)]
#[test]
fn code_of_users_with_the_map_locked_panics() {
    let cache = AppCache::new("app".into(), None);
    assert!(cache.record(&entry(1), cache.generation()));
    let user_code = || crate::sync::user_code("a destructor");
    let panics = |job: &dyn Fn()| {
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
        assert!(panicked.is_err());
        user_code();
    };
    panics(&|| _ = cache.look_ready(&key(), |_| user_code()));
    panics(&|| _ = cache.change(key(), |_| (user_code(), Change::Keep)));
}

/// A flight that began before a swap of the contents gives its results to its waiters only.
#[test]
fn what_began_before_a_swap_is_not_kept() {
    let cache = AppCache::new("app".into(), None);
    let (flight, generation) = (flight(&cache), cache.generation());
    let later = cache.new_flight(key());
    let (decision, _) = cache.decide(&flight, &entry(1));
    assert!(matches!(decision, Decision::Won { is_kept: true, .. }));
    drop(cache.forget_all());
    assert!(!cache.record(&entry(1), generation));
    let (decision, _) = cache.decide(&later, &entry(2));
    assert!(matches!(decision, Decision::Won { is_kept: false, .. }));
    cache.show(&flight, &served(entry(1)), true, || ());
    assert!(flight.is_complete());
    assert!(cache.entry(&key()).is_none());
}

/// A caller that gives up its wait takes it off the list. Left there, the wait would close a cycle when the caller's
/// run is made again.
#[test]
fn a_wait_that_was_given_up_closes_no_cycle() {
    struct GoesOn;
    impl Awaited for GoesOn {
        fn is_over(&self) -> bool {
            false
        }

        fn wake(&self) {}
    }
    let (waits, awaited) = (Waits::new(), Arc::new(GoesOn));
    let wait = |from, to| {
        let site = WaitSite {
            ancestry: vec![from],
            stack: vec![from],
        };
        waits.begin(site, to, &awaited, Until::Made)
    };
    assert!(matches!(wait(1, 2), Verdict::Wait(_)));
    let waiting = wait(2, 1);
    assert!(matches!(waiting, Verdict::Wait(_)));
    assert!(matches!(wait(1, 2), Verdict::Cycle(_)));
}

/// It counted as the value's coming back, of which the order of eviction learned that what left is soon asked for again;
/// and as a value that was read in no time, so that stored ones seemed to cost nothing.
#[test]
fn references_that_are_dropped_are_no_use_and_no_reading() {
    let memory = Memory::new(MemoryBudget::bytes(1 << 20));
    let owner = Owner::App(TypeIndex::of("app"));
    let cache = AppCache::new("app".into(), memory.map(|memory| (memory, owner)));
    let first = entry(1);
    assert!(cache.record(&first, cache.generation()));
    let refers = Arc::new(first.downgraded(|_| true));
    assert!(cache.replace_unless_flying(&first, Some(Arc::clone(&refers))));
    drop(first);
    let saved = entry(2);
    saved.set_saved(true);
    let look = |entry: &Entry| (Uses::of(&entry.uses).last(), cache.cost(&saved));
    let before = look(&refers);
    let now = cache.update_values(refers);
    assert!(!now.values_may_change());
    assert_eq!(look(&now), before);
}
