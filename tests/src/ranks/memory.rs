//! What ranks made together is in a cache like any other: limits, cleaning and looking hold for it.

use sde::store::DirStore;
use sde::{DistArray, Handle, MemoryBudget, Peek, SavePolicy, Sde, Tag, inputs};

use super::{Rank, Ranks, all_are, names};
use crate::Watch;

const ROWS: usize = 1024;
const NAME: &str = "ranks.memory.array";

#[sde::app(name = "ranks.memory.array", distributed)]
fn array(sde: &Handle, number: usize) -> Result<DistArray<f64>, sde::Error> {
    DistArray::from_fn(sde, &[ROWS], |at| (at[0] * number) as f64)
}

fn make(sde: &Sde, numbers: std::ops::Range<usize>) {
    for number in numbers {
        let made = array.call(sde, number).unwrap();
        assert_eq!(made.gather(sde).unwrap()[2], 2.0 * number as f64);
    }
}

/// Has room for four arrays on each rank.
fn limited(rank: Rank, ranks: usize, store: Option<DirStore>, policy: SavePolicy) -> Sde {
    let limit = 4 * ROWS * size_of::<f64>() / ranks;
    let mut builder = Sde::builder()
        .memory_budget_of(NAME, MemoryBudget::bytes(limit))
        .save(policy);
    if let Some(store) = store {
        builder = builder.store(store);
    }
    rank.join(builder).build().unwrap()
}

/// Found by a program of many arrays, of which none ever left memory.
pub(super) fn what_passes_a_limit_leaves_and_is_made_again(ranks: Ranks<'_>) {
    let size = ranks.size();
    let left = ranks.run_ranks(|rank| {
        let sde = limited(rank, size, None, SavePolicy::OnRequest);
        make(&sde, 0..10);
        let evicted = sde.stats().total.evicted;
        make(&sde, 9..10);
        assert_eq!(sde.stats().total.computed, 10);
        make(&sde, 0..1);
        assert_eq!(sde.stats().total.computed, 11);
        evicted
    });
    assert!(left.iter().all(|evicted| *evicted >= 6), "{left:?}");
}

#[sde::app(name = "ranks.memory.other", distributed)]
fn other(sde: &Handle, number: usize) -> Result<DistArray<f64>, sde::Error> {
    DistArray::from_fn(sde, &[ROWS], |at| (at[0] + number) as f64)
}

/// What was used longest ago of all that ranks made together left, whatever budget it counts for. Only the first rank has
/// limits.
pub(super) fn who_is_over_a_budget_takes_nothing_from_another(ranks: Ranks<'_>) {
    let size = ranks.size();
    ranks.run_ranks(|rank| {
        let arrays = |count: usize| match rank.number() {
            0 => MemoryBudget::bytes(count * ROWS * size_of::<f64>() / size),
            _ => MemoryBudget::unlimited(),
        };
        let builder = Sde::builder().memory_budget_of(NAME, arrays(40));
        let builder = builder.memory_budget_of("ranks.memory.other", arrays(4));
        let sde = rank.join(builder).build().unwrap();
        make(&sde, 0..4);
        for number in 0..10 {
            other.call(&sde, number).unwrap();
        }
        let evicted = sde.stats().total.evicted;
        assert!((6..10).contains(&evicted), "{evicted}");
        make(&sde, 0..4);
        assert_eq!(sde.stats().total.computed, 14);
    });
}

/// One rank has less room than the others, and holds its parts: what leaves leaves on all, and no other is touched.
pub(super) fn what_leaves_one_rank_leaves_all(ranks: Ranks<'_>) {
    let size = ranks.size();
    let there = ranks.run_ranks(|rank| {
        let is_first = rank.number() == 0;
        let arrays = if is_first { 5 } else { 50 };
        let budget = arrays * ROWS * size_of::<f64>() / size;
        let builder = Sde::builder().memory_budget_of(NAME, MemoryBudget::bytes(budget));
        let sde = rank.join(builder).build().unwrap();
        let held: Vec<_> = (0..20).map(|number| array.call(&sde, number)).collect();
        let is_there = |number: &usize| {
            let peek = sde.peek(&array, &inputs! { number: *number }).unwrap();
            matches!(peek, Peek::Hit { .. })
        };
        let there: Vec<_> = (0..20).filter(is_there).collect();
        assert_eq!(sde.stats().total.evicted as usize, 20 - there.len());
        drop(held);
        there
    });
    all_are(&there, &there[0]);
    assert!((2..12).contains(&there[0].len()), "{there:?}");
    assert_eq!(there[0].last(), Some(&19), "the last to be used stays");
}

/// What is never saved unless that is asked for was held by the list of what is to be saved, on all ranks but the first.
pub(super) fn what_left_is_not_to_be_saved(ranks: Ranks<'_>) {
    let folder = ranks.folder();
    let store = folder.path().join("store");
    let size = ranks.size();
    let saved = ranks.run_ranks(|rank| {
        let watch = Watch::new();
        let limit = 4 * ROWS * size_of::<f64>() / size;
        let builder = Sde::builder().memory_budget_of(NAME, MemoryBudget::bytes(limit));
        let builder = builder.store(DirStore::open(&store).unwrap());
        let builder = builder.save(SavePolicy::Never).observer(watch.clone());
        let sde = rank.join(builder).build().unwrap();
        make(&sde, 0..30);
        assert!(sde.stats().total.evicted > 20);
        sde.checkpoint_all().unwrap();
        watch.saved()
    });
    // A part, and on the first a list of the parts.
    assert!(saved.iter().all(|entries| *entries < 20), "{saved:?}");
}

/// It is saved before it goes, each part by its rank.
pub(super) fn what_has_left_is_loaded(ranks: Ranks<'_>) {
    for policy in [SavePolicy::EveryResult, SavePolicy::OnRequest] {
        let folder = ranks.folder();
        let store = folder.path().join("store");
        let size = ranks.size();
        let left = ranks.run_ranks(|rank| {
            let store = DirStore::open(&store).unwrap();
            let sde = limited(rank, size, Some(store), policy);
            make(&sde, 0..10);
            let evicted = sde.stats().total.evicted;
            // Each looks at what others have saved.
            sde.checkpoint_all().unwrap();
            make(&sde, 0..1);
            let stats = sde.stats().total;
            sde.finish().unwrap();
            (evicted, stats.computed, stats.loads)
        });
        for (evicted, computed, loads) in left {
            assert!(evicted >= 6, "{evicted}");
            assert_eq!((computed, loads), (10, 1), "{policy:?}");
        }
    }
}

/// One rank alone may have cleaned: the others have it yet.
pub(super) fn what_was_cleaned_is_loaded(ranks: Ranks<'_>) {
    let folder = ranks.folder();
    let store = folder.path().join("store");
    let sources = ranks.run_ranks(|rank| {
        let log = sde::EventLog::new();
        let builder = Sde::builder()
            .store(DirStore::open(&store).unwrap())
            .save(SavePolicy::OnRequest);
        let builder = builder.save(SavePolicy::EveryResult).observer(log.clone());
        let sde = rank.join(builder).build().unwrap();
        make(&sde, 3..4);
        if sde.rank().unwrap() == 0 {
            sde.clear_app(NAME).unwrap();
        }
        make(&sde, 3..4);
        sde.finish().unwrap();
        names(log.sources(NAME))
    });
    for (rank, sources) in sources.iter().enumerate() {
        let second = if rank == 0 { "Loaded" } else { "Memory" };
        assert_eq!(sources, &["Computed", second]);
    }
}

#[sde::app(name = "ranks.memory.plain")]
fn plain(x: u64) -> u64 {
    x
}

#[sde::app(name = "ranks.memory.passing", tags(intermediate))]
fn passing(x: u64) -> u64 {
    x
}

/// What came from another rank and was not asked for yet.
pub(super) fn of_what_came_that_goes_which_is_cleaned(ranks: Ranks<'_>) {
    let started = ranks.run_with_log(|sde, log| {
        let rank = sde.rank().unwrap() as u64;
        sde.split_for(rank as u32, 0, |alone| {
            plain.call(alone, rank)?;
            passing.call(alone, rank).map(drop)
        })
        .unwrap();
        for app in ["ranks.memory.plain", "ranks.memory.passing"] {
            sde.clear_tagged(app, [Tag::Intermediate]).unwrap();
        }
        for x in 0..sde.ranks().unwrap() as u64 {
            plain.call(&sde, x).unwrap();
            passing.call(&sde, x).unwrap();
        }
        ["plain", "passing"].map(|app| log.started(&format!("ranks.memory.{app}")))
    });
    let size = ranks.size();
    all_are(&started, &[1, 1 + size]);
}

pub(super) fn who_looks_finds_what_ranks_made(ranks: Ranks<'_>) {
    ranks.run(|sde| {
        let planned = inputs! { number: 5_usize };
        let peek = || sde.peek(&array, &planned).unwrap();
        assert!(matches!(peek(), Peek::Miss { .. }));
        make(&sde, 5..6);
        assert!(matches!(peek(), Peek::Hit { .. }));
    });
}

#[sde::app(name = "ranks.memory.itself", distributed)]
fn itself(sde: &Handle, x: u64) -> Result<bool, sde::Error> {
    let color = sde.rank()? as u32;
    let mut is_cycle = false;
    sde.split_for(color, 0, |part| {
        let error = itself.call(part, x).err().map(|error| format!("{error:#}"));
        is_cycle = error.is_some_and(|text| text.contains("needs its own result"));
        Ok(())
    })?;
    Ok(is_cycle)
}

/// The cache of a process set knows of no run on another.
pub(super) fn a_run_that_needs_itself_on_a_part_is_told_so(ranks: Ranks<'_>) {
    let told = ranks.run(|sde| *itself.call(&sde, 1).unwrap());
    assert!(told.iter().all(|told| *told), "{told:?}");
}
