//! Of the entries and flights of one app: what wins when two computations of one key are published.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::app_cache::{AppCache, Claimed};
use super::entry::{Entry, Served};
use super::record::Record;
use crate::app::{AppId, CodeId};
use crate::event::RunId;
use crate::key::{Digest, Key};
use crate::result_map::{Codec, Content, ErasedValue, Named, Origin, ResultMap, Tag, Tags};

fn key() -> Key {
    Key::from_bytes([7; 32])
}

/// An entry with this number for its result, made by the run of this number.
pub(crate) fn entry(number: u64) -> Arc<Entry> {
    let app = Arc::<str>::from("app");
    let run = RunId { process: 1, number };
    let origin = Origin {
        app: Arc::clone(&app),
        key: key(),
        run,
    };
    let y = Named {
        name: "y".into(),
        tags: None,
        codec: Some(Codec::of::<u64>()),
        size: None,
        content: Content::Held(ErasedValue::new(number)),
    };
    let record = Record {
        app,
        code: CodeId::Version("1".into()),
        id: AppId(Digest::from_bytes([1; 32])),
        key: key(),
        run,
        inputs: Vec::new(),
        setup: Arc::default(),
        calls: Vec::new(),
        dependencies: Vec::new(),
        nondeterministic: false,
        anew: false,
        made_at: SystemTime::UNIX_EPOCH,
        took: Duration::ZERO,
        thread: 0,
        host: "".into(),
        target: "".into(),
    };
    let results = ResultMap::from_parts(origin, vec![y]);
    Arc::new(Entry::new(Arc::new(record), results, 0))
}

fn served(entry: Arc<Entry>) -> Served {
    let map = entry.results.clone();
    Served { entry, map }
}

/// Two computations of one flight; gives the cache, and what won after the second was published.
/// In between the first is visible, and its flight is not complete.
fn published(between: impl FnOnce(&AppCache)) -> (AppCache, Arc<Entry>) {
    let cache = AppCache::new("app".into(), None);
    let Claimed::Mine(flight, None) = cache.claim(key(), None, |_| false) else {
        unreachable!("nobody else is there");
    };
    cache.make_visible(&flight, entry(1), || ());
    between(&cache);
    let winner = cache.publish(&flight, &served(entry(2)), || ());
    (cache, winner)
}

#[test]
fn the_first_stands() {
    let (cache, winner) = published(|_| ());
    assert_eq!(winner.record.run.number, 1);
    assert_eq!(cache.entry(&key()).map(|e| e.record.run.number), Some(1));
}

/// Found by the long stress test: the second was told that the first stands, of which the values
/// were gone.
#[test]
fn the_second_stands_if_the_first_was_cleaned() {
    let (cache, winner) = published(|cache| cache.clean(|_| true, "cleaned"));
    assert_eq!(winner.record.run.number, 2);
    assert_eq!(winner.lacks(), None);
    assert_eq!(cache.entry(&key()).map(|e| e.record.run.number), Some(2));
}

/// Found by threads beside a cleaning: one had claimed what a raised epoch asked to be looked at
/// again, and put the values back that were cleaned meanwhile.
#[test]
fn what_was_cleaned_is_not_put_back() {
    let cache = AppCache::new("app".into(), None);
    assert!(cache.record(&entry(1), cache.generation()));
    let Claimed::Mine(flight, Some(previous)) = cache.claim(key(), None, |_| false) else {
        unreachable!("nobody else is there");
    };
    cache.clean(|_| true, "cleaned");
    assert!(!cache.put_back(&flight, &served(previous)));
    assert!(cache.is_flying(&key()));
}

/// Found by a hostile program: threads that waited for a refresh were woken before the recent hits of all were emptied,
/// and found the earlier result after the new one, 96 times of 284.
#[test]
fn what_a_publication_ends_is_ended_before_those_who_wait_wake() {
    let cache = AppCache::new("app".into(), None);
    let Claimed::Mine(flight, None) = cache.claim(key(), None, |_| false) else {
        unreachable!("nobody else is there");
    };
    let mut was_complete = None;
    let look = || was_complete = Some(flight.flight.is_complete());
    cache.publish(&flight, &served(entry(1)), look);
    assert_eq!(was_complete, Some(false));
    assert!(flight.flight.is_complete());
}

/// What is gone and not needed, as an expendable result is that came from a store, leaves an entry as quick to find as
/// others; one that is needed does not.
#[test]
fn what_is_not_needed_may_be_gone() {
    let without = |tags: Tags| {
        let entry = entry(1);
        let mut results = entry.results.results().to_vec();
        let gone = Named {
            name: "gone".into(),
            tags: Some(tags),
            content: Content::Gone("a test"),
            ..results[0].clone()
        };
        results.push(gone);
        let results = ResultMap::from_parts(entry.origin(), results);
        Entry::new(Arc::clone(&entry.record), results, 0)
    };
    assert!(without(Tag::Expendable.into()).is_whole_and_checked(0));
    assert!(!without(Tags::default()).is_whole_and_checked(0));
}
