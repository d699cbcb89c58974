//! `par_map_on_sets`: points that take several ranks each.

use std::time::Duration;

use sde::{AppError, DistArray, ErrorKind, Handle, Inputs, ResultMap, inputs};

use super::rank_map::with_time;
use super::{Ranks, all_are};
use crate::{assert_kind, says};

#[sde::app(name = "ranks.set_map.square")]
fn square(x: u64) -> u64 {
    x * x
}

/// What ranks do together: all of it goes by another thread on the rank that deals.
#[sde::app(name = "ranks.set_map.point", distributed)]
fn point(sde: &Handle, x: u64, size: usize) -> Result<u64, sde::Error> {
    let (rank, ranks) = (sde.rank()?, sde.ranks()?);
    assert_eq!(ranks, size);
    assert!(
        sde.gather("ranks", rank)?
            .iter()
            .map(|rank| **rank)
            .eq(0..size)
    );
    let list: Vec<_> = (0..3).map(|y| inputs! { x: x + y }).collect();
    let squares = sde.par_map(&square, &list);
    let squares = squares
        .into_iter()
        .map(|one| Ok(*one?.get::<u64>("result")?));
    let squares: u64 = squares.sum::<Result<u64, sde::Error>>()?;
    let alone = sde.split_for(rank as u32, 0, |alone| alone.ranks())?;
    let ones = DistArray::from_fn(sde, &[10], |_| 1.0)?.sum(sde)?;
    Ok(squares + alone as u64 + ones as u64)
}

#[sde::app(name = "ranks.set_map.array", distributed)]
fn array(sde: &Handle, x: u64) -> Result<DistArray<u64>, sde::Error> {
    DistArray::from_fn(sde, &[9], |at| x * at[0] as u64)
}

#[sde::app(name = "ranks.set_map.sweep", distributed)]
fn sweep(sde: &Handle, count: u64, size: usize) -> Result<u64, sde::Error> {
    let results = sde.par_map_on_sets(&point, &points(count, size), size);
    Ok(values(results).into_iter().sum())
}

#[sde::app(name = "ranks.set_map.fails", distributed)]
fn fails(sde: &Handle, x: u64) -> Result<u64, AppError> {
    if x == 3 && sde.rank()? + 1 == sde.ranks()? {
        return Err(AppError::message("three"));
    }
    Ok(x)
}

#[sde::app(name = "ranks.set_map.dice", distributed, nondeterministic)]
fn dice(sde: &Handle, x: u64) -> Result<u64, sde::Error> {
    let drawn = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Ok(x + *sde.gather("drawn", drawn.map_or(0, |drawn| drawn.as_nanos() as u64))?[0])
}

fn points(count: u64, size: usize) -> Vec<Inputs> {
    (0..count).map(|x| inputs! { x: x, size: size }).collect()
}

fn numbers(count: u64) -> Vec<Inputs> {
    (0..count).map(|x| inputs! { x: x }).collect()
}

fn values(results: Vec<Result<ResultMap, sde::Error>>) -> Vec<u64> {
    let value = |result: Result<ResultMap, sde::Error>| *result.unwrap().get("result").unwrap();
    results.into_iter().map(value).collect()
}

fn right(count: u64) -> Vec<u64> {
    let squares = |x: u64| (x..x + 3).map(|x| x * x).sum::<u64>();
    (0..count).map(|x| squares(x) + 11).collect()
}

/// The second time nobody runs anything, and of a longer list only what is new.
pub(super) fn each_point_runs_on_one_set_and_all_ranks_remember_it(ranks: Ranks<'_>) {
    let all = ranks.size();
    for size in 1..=all {
        let started = ranks.run_with_log(|sde, log| {
            let mut started = Vec::new();
            for count in [7, 7, 9] {
                // Each twice: equal inputs are one point.
                let twice = [points(count, size), points(count, size)].concat();
                let got = values(sde.par_map_on_sets(&point, &twice, size));
                assert_eq!(got, [right(count), right(count)].concat());
                started.push(log.started("ranks.set_map.point"));
            }
            assert_eq!(*point.call(&sde, 8, size).unwrap(), right(9)[8]);
            started.push(log.started("ranks.set_map.point"));
            started
        });
        for (at, points) in [7, 7, 9, 9].into_iter().enumerate() {
            let all: usize = started.iter().map(|of_rank| of_rank[at]).sum();
            assert_eq!(all, points * size, "sets of {size}: {started:?}");
        }
    }
}

pub(super) fn in_a_distributed_app_too(ranks: Ranks<'_>) {
    let all = ranks.size();
    ranks.run(|sde| {
        let size = all.div_ceil(2);
        let sum: u64 = right(5).into_iter().sum();
        assert_eq!(*sweep.call(&sde, 5, size).unwrap(), sum);
    });
}

pub(super) fn values_on_several_ranks_lie_on_all_ranks_afterwards(ranks: Ranks<'_>) {
    let all = ranks.size();
    let started = ranks.run_with_log(|sde, log| {
        let size = all.min(2);
        for _ in 0..2 {
            let arrays = sde.par_map_on_sets(&array, &numbers(5), size);
            for (x, results) in (0..).zip(arrays) {
                let lies = results.unwrap().get::<DistArray<u64>>("result").unwrap();
                assert_eq!(lies.sum(&sde).unwrap(), 36 * x);
            }
        }
        log.started("ranks.set_map.array")
    });
    assert_eq!(started.iter().sum::<usize>(), 5 * all.min(2));
}

pub(super) fn what_fails_on_one_rank_of_a_set_is_the_same_error_on_all(ranks: Ranks<'_>) {
    let all = ranks.size();
    let texts = ranks.run(|sde| {
        let results = sde.par_map_on_sets(&fails, &numbers(6), all.min(2));
        let failed: Vec<_> = (0..6).filter(|at| results[*at].is_err()).collect();
        assert_eq!(failed, [3]);
        let error = format!("{:#}", results[3].as_ref().unwrap_err());
        says(&error, "three");
        assert!(error.matches("on rank").count() <= 1, "{error}");
        // Nothing is broken by that.
        assert_eq!(*square.call(&sde, 4).unwrap(), 16);
        assert_eq!(sde.gather("ranks", 1).unwrap().len(), all);
        error
    });
    all_are(&texts, &texts[0]);
}

pub(super) fn what_can_not_be_dealt_to_sets_is_refused_on_all_ranks(ranks: Ranks<'_>) {
    let all = ranks.size();
    ranks.run(|sde| {
        let refused = |results: Vec<Result<ResultMap, sde::Error>>, why: &str| {
            assert_eq!(results.len(), 2);
            for result in results {
                let error = result.unwrap_err();
                says(&error, why);
                assert_kind!(error, Refused);
            }
        };
        refused(
            sde.par_map_on_sets(&fails, &numbers(2), 0),
            "one rank at least",
        );
        refused(
            sde.par_map_on_sets(&square, &numbers(2), 1),
            "not distributed",
        );
        let too_large = sde.par_map_on_sets(&fails, &numbers(2), all + 1);
        match all {
            // A program for many ranks runs on one as it is.
            1 => assert_eq!(values(too_large), [0, 1]),
            _ => refused(
                too_large,
                &format!("{} ranks, and there are {all}", all + 1),
            ),
        }
        if all > 1 {
            let other = 1 + sde.rank().unwrap() % 2;
            for result in sde.par_map_on_sets(&fails, &numbers(2), other) {
                assert_kind!(result.unwrap_err(), Disagree);
            }
            let other = sde.rank().unwrap() * (all + 1) + 1;
            let results = sde.par_map_on_sets(&fails, &numbers(2), other);
            assert!(results.iter().all(Result::is_err));
        }
        assert_eq!(*fails.call(&sde, 5).unwrap(), 5);
    });
}

pub(super) fn non_deterministic_results_are_those_of_their_sets(ranks: Ranks<'_>) {
    let all = ranks.size();
    let drawn = ranks.run_with_log(|sde, log| {
        let size = all.min(2);
        let drawn = [0; 2].map(|_| values(sde.par_map_on_sets(&dice, &numbers(3), size)));
        assert_ne!(drawn[0], drawn[1]);
        (drawn, log.started("ranks.set_map.dice"))
    });
    // Ranks tell one another one result for each key: of equal items all would get that.
    ranks.run(|sde| {
        let equal = [numbers(1), numbers(1)].concat();
        for result in sde.par_map_on_sets(&dice, &equal, 1) {
            says(&result.unwrap_err(), "`replica`");
        }
    });
    assert!(drawn.iter().all(|(of_rank, _)| *of_rank == drawn[0].0));
    let started: usize = drawn.iter().map(|(_, started)| started).sum();
    assert_eq!(started, 2 * 3 * all.min(2));
}

/// What the ranks remember all get, the rest none.
pub(super) fn without_time_sets_begin_nothing_and_all_ranks_say_so_alike(ranks: Ranks<'_>) {
    let none = |_| Duration::ZERO;
    let size = ranks.size().min(2);
    let came = with_time(ranks, none, |sde| {
        let known = sde.run(&array, &inputs! { x: 1_u64 });
        let known = known.is_ok();
        let list: Vec<_> = (0..4_u64).map(|x| inputs! { x: x }).collect();
        let came = sde.par_map_on_sets(&array, &list, size);
        let is_known = |item: &Result<_, sde::Error>| match item {
            Ok(_) => true,
            Err(error) if matches!(error.kind(), ErrorKind::NotStarted { .. }) => false,
            Err(error) => panic!("{error}"),
        };
        (known, came.iter().map(is_known).collect::<Vec<_>>())
    });
    all_are(&came, &(true, vec![false, true, false, false]));
}
