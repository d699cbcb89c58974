//! `par_map` over ranks and threads.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::{Ranks, all_are};
use sde::ranks::Transfer;
use sde::{
    App, AppError, AppInfo, Cost, ErrorKind, Event, EventLog, Fingerprint, Handle, Inputs,
    ResultMap, ResultSpec, SavePolicy, Sde, inputs,
};

use crate::{Lying, assert_kind, says, until};

#[sde::app(name = "ranks.rank_map.square")]
fn square(x: u64) -> Result<u64, AppError> {
    if x == 13 {
        return Err(AppError::message("thirteen"));
    }
    Ok(x * x)
}

#[sde::app(name = "ranks.rank_map.shared")]
fn shared(sde: &Handle, x: u64) -> Result<u64, sde::Error> {
    Ok(*square.call(sde, 1000)? + x)
}

#[sde::app(name = "ranks.rank_map.inside", distributed)]
fn inside(sde: &Handle, count: u64) -> Result<u64, sde::Error> {
    let results = sde.par_map(&square, &list(count));
    results
        .into_iter()
        .map(|result| Ok(*result?.get::<u64>("result")?))
        .sum()
}

#[sde::app(name = "ranks.rank_map.ordinary")]
fn ordinary(sde: &Handle, count: u64) -> Result<u64, sde::Error> {
    let results = sde.par_map(&square, &list(count));
    results
        .into_iter()
        .map(|result| Ok(*result?.get::<u64>("result")?))
        .sum()
}

#[sde::app(name = "ranks.rank_map.draw", nondeterministic)]
fn draw(x: u64) -> u64 {
    static DRAWN: AtomicUsize = AtomicUsize::new(0);
    x * 1000 + DRAWN.fetch_add(1, Ordering::Relaxed) as u64
}

fn list(count: u64) -> Vec<Inputs> {
    (0..count).map(|x| inputs! { x: x }).collect()
}

fn values(results: Vec<Result<ResultMap, sde::Error>>) -> Vec<u64> {
    let value = |result: Result<ResultMap, sde::Error>| *result.unwrap().get("result").unwrap();
    results.into_iter().map(value).collect()
}

pub(super) fn each_key_is_computed_once_over_all_ranks_and_all_have_all(ranks: Ranks<'_>) {
    let size = ranks.size();
    let computed = ranks.run(|sde| {
        // Twice each, and one that a rank has already.
        let mut twice = list(10);
        twice.extend(list(10));
        if sde.rank().unwrap() == size - 1 {
            square.call(&sde, 3).unwrap();
        }
        let squares = values(sde.par_map(&square, &twice));
        assert_eq!(squares[..10], [0, 1, 4, 9, 16, 25, 36, 49, 64, 81]);
        assert_eq!(squares[..10], squares[10..]);
        let computed = sde.stats().total.computed;
        assert_eq!(values(sde.par_map(&square, &list(10))).len(), 10);
        assert_eq!(sde.stats().total.computed, computed);
        computed
    });
    assert_eq!(computed.iter().sum::<u64>(), 10, "{computed:?}");
}

pub(super) fn in_a_distributed_app_too_and_in_an_ordinary_one_each_rank_for_itself(
    ranks: Ranks<'_>,
) {
    let counts = ranks.run_with_log(|sde, log| {
        assert_eq!(*inside.call(&sde, 7).unwrap(), 91);
        let spread = log.started("ranks.rank_map.square");
        sde.clear_app("ranks.rank_map.square").unwrap();
        assert_eq!(*ordinary.call(&sde, 7).unwrap(), 91);
        (spread, log.started("ranks.rank_map.square") - spread)
    });
    assert_eq!(counts.iter().map(|(spread, _)| spread).sum::<usize>(), 7);
    assert!(counts.iter().all(|(_, alone)| *alone == 7), "{counts:?}");
}

pub(super) fn what_fails_is_the_same_error_on_all_ranks_and_stops_nothing(ranks: Ranks<'_>) {
    let texts = ranks.run(|sde| {
        let results = sde.par_map(&square, &list(20));
        let failed: Vec<_> = (0..20).filter(|at| results[*at].is_err()).collect();
        assert_eq!(failed, [13]);
        let error = format!("{:#}", results[13].as_ref().unwrap_err());
        says(&error, "thirteen");
        error
    });
    assert_eq!(texts.len(), 3);
}

pub(super) fn what_items_share_each_rank_computes_that_needs_it(ranks: Ranks<'_>) {
    let computed = ranks.run(|sde| {
        // One on each.
        let got = values(sde.par_map(&shared, &list(2)));
        assert_eq!(got, [1_000_000, 1_000_001]);
        sde.stats().total.computed
    });
    assert_eq!(computed, [2, 2]);
}

pub(super) fn non_deterministic_results_are_the_same_on_all_ranks(ranks: Ranks<'_>) {
    let drawn = ranks.run(|sde| [0; 2].map(|_| values(sde.par_map(&draw, &list(6)))));
    assert_eq!(drawn[0], drawn[1]);
    assert_eq!(drawn[0], drawn[2]);
    assert_ne!(drawn[0][0], drawn[0][1]);
}

/// Found by the restart of a sweep of which half was stored, which took half a minute before the first point: each
/// that was missing was compared with all that were there, for a message that nobody had asked for.
pub(super) fn what_is_missing_is_not_compared_with_all_that_is_stored(ranks: Ranks<'_>) {
    let searched = ranks.run_ranks(|rank| {
        let store = Lying::new();
        let sde = rank.join(
            Sde::builder()
                .store(store.clone())
                .save(SavePolicy::OnRequest),
        );
        let sde = sde.save(SavePolicy::EveryResult).build().unwrap();
        for count in [5, 10] {
            let got = values(sde.par_map(&square, &list(count))).len();
            assert_eq!(got, count as usize);
        }
        store.searched()
    });
    assert_eq!(searched, vec![0; ranks.size()]);
}

/// Found by a sweep that went on with a store for each rank: three of four points were computed again on each, though a rank
/// had them in its store. Whether a rank had a point was asked of its store, and given was what it had in memory.
pub(super) fn what_lies_in_the_store_of_one_rank_all_get(ranks: Ranks<'_>) {
    let size = ranks.size() as u64;
    let stores: Vec<Lying> = (0..size).map(|_| Lying::new()).collect();
    let of_all = |each: &(dyn Fn(Sde, u64) -> u64 + Sync)| {
        ranks.run_ranks(|rank| {
            let number = rank.number();
            let builder = Sde::builder()
                .store(stores[number].clone())
                .save(SavePolicy::OnRequest);
            each(rank.join(builder).build().unwrap(), number as u64)
        })
    };
    of_all(&|sde, rank| {
        (0..10).for_each(|x| drop(square.call(&sde, 100 * rank + 20 + x).unwrap()));
        sde.finish().unwrap();
        0
    });
    let computed = of_all(&|sde, _| {
        let points = (0..size).flat_map(|rank| (0..10).map(move |x| 100 * rank + 20 + x));
        let list: Vec<_> = points.clone().map(|x| inputs! { x: x }).collect();
        let right: Vec<_> = points.map(|x| x * x).collect();
        assert_eq!(values(sde.par_map(&square, &list)), right);
        sde.stats().total.computed
    });
    assert_eq!(computed, vec![0; ranks.size()]);
}

#[sde::app(name = "ranks.rank_map.draws", distributed)]
fn draws(sde: &Handle) -> u64 {
    sde.par_map(&draw, &list(1)).len() as u64
}

/// Found by a program in which one rank of three drew a number: the others took the run for deterministic, and
/// waited at a meeting to which the one did not come.
pub(super) fn what_is_random_on_one_rank_is_so_on_all(ranks: Ranks<'_>) {
    let random = ranks.run(|sde| {
        for _ in 0..2 {
            assert_eq!(*draws.call(&sde).unwrap(), 1);
        }
        assert_eq!(sde.stats().apps["ranks.rank_map.draws"].computed, 2);
        let records = crate::records(&sde);
        let of_app = records
            .iter()
            .filter(|record| &*record.app == "ranks.rank_map.draws");
        of_app
            .map(|record| record.nondeterministic)
            .collect::<Vec<_>>()
    });
    all_are(&random, &vec![true]);
}

pub(super) fn lists_that_differ_are_the_same_error_on_all_ranks(ranks: Ranks<'_>) {
    ranks.run(|sde| {
        let count = 3 + sde.rank().unwrap() as u64;
        for result in sde.par_map(&square, &list(count)) {
            let error = result.unwrap_err();
            assert_kind!(error, Disagree);
        }
    });
}

/// Of values that are too large the others get the keys.
pub(super) fn values_that_are_too_large_stay_and_their_keys_are_known(ranks: Ranks<'_>) {
    let there = ranks.run(|sde| {
        let none = Transfer::all().at_most(1);
        let results = sde.par_map_with(&square, &list(4), &none);
        let maps: Vec<_> = results.into_iter().map(Result::unwrap).collect();
        let keys: Vec<_> = maps.iter().map(|map| map.origin().unwrap().key).collect();
        let has = |map: &ResultMap| map.get::<u64>("result").is_ok();
        (maps.iter().map(has).collect::<Vec<_>>(), keys)
    });
    for x in 0..4 {
        assert_ne!(there[0].0[x], there[1].0[x], "{x}");
    }
    assert_eq!(there[0].1, there[1].1);
}

/// The same where not the size is the reason but what the caller wants: none is computed twice. Later
/// all of them may be wanted.
pub(super) fn values_that_are_not_wanted_stay_and_their_keys_are_known(ranks: Ranks<'_>) {
    let there = ranks.run(|sde| {
        let none = Transfer::all().only(|_, _, _| false);
        let is_there = |(x, result): (u64, &Result<ResultMap, sde::Error>)| match result
            .as_ref()
            .unwrap()
            .get::<u64>("result")
        {
            Ok(value) => *value == x * x,
            Err(error) => !matches!(error.kind(), ErrorKind::Gone { .. }),
        };
        let there = [0; 2].map(|_| {
            let results = sde.par_map_with(&square, &list(4), &none);
            (0..).zip(&results).map(is_there).collect::<Vec<_>>()
        });
        let computed = sde.stats().total.computed as usize;
        assert_eq!(values(sde.par_map(&square, &list(4))), [0, 1, 4, 9]);
        assert_eq!(sde.stats().total.computed as usize, computed);
        (there, computed)
    });
    for (rank, (there_of_rank, computed)) in there.iter().enumerate() {
        let [first, second] = there_of_rank;
        assert_eq!(first, second);
        assert_eq!(first.iter().filter(|there| **there).count(), *computed);
        let other = &there[1 - rank].0[0];
        assert!(
            first.iter().zip(other).all(|(own, other)| own != other),
            "{there:?}"
        );
    }
}

/// Two results, of which one may be all that a caller wants.
#[derive(Clone, Fingerprint)]
struct Pair;

impl App for Pair {
    fn info(&self) -> AppInfo {
        AppInfo::new("ranks.rank_map.pair", "1")
            .result(ResultSpec::new::<u64>("small"))
            .result(ResultSpec::new::<u64>("large"))
    }

    fn run(&self, _: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let x = *inputs.get::<u64>("x")?;
        Ok(ResultMap::new().with("small", x).with("large", 1000 * x))
    }
}

/// What is wanted of a result map comes, and serves who asks for nothing else.
pub(super) fn of_several_values_those_that_are_wanted_come(ranks: Ranks<'_>) {
    let computed = ranks.run(|sde| {
        let rank = sde.rank().unwrap() as u64;
        let small = Transfer::all().only(|_, name, _| name == "small");
        let maps = sde.par_map_with(&Pair, &list(2), &small);
        for (x, map) in (0..).zip(&maps) {
            let map = map.as_ref().unwrap();
            assert_eq!(*map.get::<u64>("small").unwrap(), x);
            assert_eq!(map.get::<u64>("large").is_ok(), x == rank);
        }
        let other = inputs! { x: 1 - rank };
        let asked = sde.request(&Pair, &other).names(&["small"]).run();
        assert_eq!(
            *asked.unwrap().results.get::<u64>("small").unwrap(),
            1 - rank
        );
        let large = Transfer::all().only(|_, name, _| name == "large");
        for (x, map) in (0..).zip(&sde.par_map_with(&Pair, &list(2), &large)) {
            let map = map.as_ref().unwrap();
            let got = ["small", "large"].map(|name| *map.get::<u64>(name).unwrap());
            assert_eq!(got, [x, 1000 * x]);
        }
        sde.stats().total.computed
    });
    assert_eq!(computed, [1, 1]);
}

/// Points of which the first takes until all others are done, on whatever rank.
#[derive(Clone, Fingerprint)]
struct FirstIsLast {
    /// How many there are.
    count: u64,
    /// What the first says that it costs; nothing where it is not known.
    cost: Option<u64>,
}

impl App for FirstIsLast {
    fn info(&self) -> AppInfo {
        AppInfo::new("ranks.rank_map.first_is_last", "1").result(ResultSpec::new::<u64>("result"))
    }

    fn run(&self, _: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let x = *inputs.get::<u64>("x")?;
        let folder = inputs.get::<String>("folder")?;
        let place = |x: u64| Path::new(&*folder).join(x.to_string());
        if x > 0 {
            std::fs::write(place(x), [])?;
        }
        let others_are = || (1..self.count).all(|other| place(other).exists());
        until("the others are done", || x > 0 || others_are());
        Ok(ResultMap::new().with("result", x))
    }

    fn cost(&self, inputs: &Inputs) -> Option<Cost> {
        let x = *inputs.get::<u64>("x").ok()?;
        let time = Duration::from_secs(self.cost.filter(|_| x == 0).map_or(1, |cost| cost));
        self.cost.map(|_| Cost::new(time))
    }
}

/// Of each rank how many of these points it was to begin with, and how many it has computed, with one thread.
fn begun_and_computed(ranks: Ranks<'_>, app: &FirstIsLast) -> Vec<(usize, u64)> {
    let folder = ranks.folder();
    ranks.run_ranks(|rank| {
        let log = EventLog::new();
        let sde = rank.join(Sde::builder().threads(1).observer(log.clone()));
        let sde = sde.build().unwrap();
        let folder = folder.path().to_str().unwrap().to_owned();
        let list: Vec<_> = (0..app.count)
            .map(|x| inputs! { x: x, folder: folder.clone() })
            .collect();
        let right: Vec<u64> = (0..app.count).collect();
        assert_eq!(values(sde.par_map(app, &list)), right);
        let totals = log.events().into_iter().filter_map(|event| match event {
            Event::Progress { done: 0, total, .. } => Some(total),
            _ => None,
        });
        (totals.min().unwrap(), sde.stats().total.computed)
    })
}

pub(super) fn what_is_dealt_out_is_dealt_out_by_its_cost(ranks: Ranks<'_>) {
    let app = FirstIsLast {
        count: 8,
        cost: Some(100),
    };
    let begun = begun_and_computed(ranks, &app);
    assert_eq!((begun[0].0, begun[1].0), (1, 7));
}

/// Found by a sweep of which every fourth point was costly: one rank of four had all of these, and three waited.
pub(super) fn a_rank_that_is_done_takes_what_another_has_not_begun(ranks: Ranks<'_>) {
    let app = FirstIsLast {
        count: 5 * ranks.size() as u64,
        cost: None,
    };
    let begun = begun_and_computed(ranks, &app);
    assert!(begun.iter().all(|(begun, _)| *begun == 5), "{begun:?}");
    let computed = begun.iter().map(|(_, computed)| computed);
    assert_eq!(computed.sum::<u64>(), app.count, "{begun:?}");
}

/// Ranks whose engine has this time left, rank by rank.
pub(super) fn with_time<R: serde::Serialize + serde::de::DeserializeOwned>(
    ranks: Ranks<'_>,
    left: impl Fn(usize) -> Duration + Sync,
    program: impl Fn(Sde) -> R + Sync,
) -> Vec<R> {
    ranks.run_ranks(|rank| {
        let builder = Sde::builder().time_limit(left(rank.number()));
        program(rank.join(builder).build().unwrap())
    })
}

const HOUR: Duration = Duration::from_secs(3600);

pub(super) fn the_shortest_time_of_any_rank_is_that_of_all(ranks: Ranks<'_>) {
    let size = ranks.size();
    let shortest = |rank| if rank + 1 == size { HOUR } else { 10 * HOUR };
    let left = with_time(ranks, shortest, |sde| sde.time_left().unwrap());
    assert!(
        left.iter().all(|left| *left <= HOUR && *left > HOUR / 2),
        "{left:?}"
    );
}

/// One rank knew that the time was up, and its share failed; the others computed on.
pub(super) fn without_time_ranks_begin_nothing_and_all_say_so_alike(ranks: Ranks<'_>) {
    let size = ranks.size();
    let one_has_none = |rank| {
        if rank + 1 == size {
            Duration::ZERO
        } else {
            HOUR
        }
    };
    let came = with_time(ranks, one_has_none, |sde| {
        let all = square.par_call(&sde, 0..9).unwrap_err();
        let each = square.par_call_each(&sde, 0..9, |_, _| ()).unwrap_err();
        let tried = square.try_par_call(&sde, 0..9);
        let tried = tried
            .iter()
            .map(|one| one.as_ref().unwrap_err().to_string());
        let says = |error: &sde::Error| match error.kind() {
            ErrorKind::OutOfTime { done, left, .. } => (*done, *left, error.exit_code()),
            _ => panic!("{error}"),
        };
        let computed = sde.stats().total.computed;
        (says(&all), says(&each), tried.collect::<Vec<_>>(), computed)
    });
    let ended = (0, Some(9), 75);
    let not_begun = "ranks.rank_map.square was not begun: the job has too little time left; run the program \
                     again, which takes up the rest";
    let expected = (ended, ended, vec![not_begun.to_owned(); 9], 0);
    all_are(&came, &expected);
}
