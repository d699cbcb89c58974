//! Values with several arrays in them, and with what is the same on all ranks.

use sde::bulk::Element;
use sde::ranks::{Placement, Redistribution, SavedParts, Transfer};
use sde::{AppError, DistArray, Distributed, Handle};
use serde::{Deserialize, Serialize};

use super::Ranks;
use super::restart::with_store;
use crate::says;

#[derive(Distributed, Serialize, Deserialize)]
struct Solution {
    #[distributed(same)]
    steps: u32,
    ones: DistArray<f64>,
    #[distributed(same)]
    names: Vec<String>,
    more: Two<u64>,
}

#[derive(Distributed, Serialize, Deserialize)]
#[serde(bound = "")]
struct Two<T: Element>(DistArray<T>, DistArray<f64>);

/// The number of steps, 24 ones, and arrays of these.
#[sde::app(name = "ranks.fields.solve", distributed)]
fn solve(sde: &Handle, steps: u32) -> Result<Solution, sde::Error> {
    let ones = DistArray::from_fn(sde, &[12, 2], |_| 1.0)?;
    let hundreds = ones.map(|one| 100.0 * one);
    Ok(Solution {
        steps,
        names: vec!["one".to_owned(); steps as usize],
        more: Two(ones.map(|_| u64::from(steps)), hundreds),
        ones,
    })
}

/// Two arrays, by hand.
#[derive(Serialize, Deserialize)]
struct ByHand(DistArray<f64>, DistArray<f64>);

impl Distributed for ByHand {
    fn part_descriptor(&self) -> Vec<u64> {
        self.0.part_descriptor()
    }

    fn redistribute_parts(
        part: Option<&Self>,
        over: &Redistribution<'_>,
    ) -> Result<Option<Self>, AppError> {
        let first = DistArray::redistribute_parts(part.map(|part| &part.0), over)?;
        let second = DistArray::redistribute_parts(part.map(|part| &part.1), over)?;
        Ok(first.zip(second).map(|(first, second)| Self(first, second)))
    }

    fn assemble(_: &SavedParts<'_, Self>, _: usize, _: usize) -> Result<Self, AppError> {
        Err(AppError::message("it is computed again"))
    }

    fn bind(&self, at: &Placement) {
        self.0.bind(at);
        self.1.bind(at);
    }
}

#[sde::app(name = "ranks.fields.by_hand", distributed)]
fn by_hand(sde: &Handle) -> Result<ByHand, sde::Error> {
    let ones = DistArray::from_fn(sde, &[12, 2], |_| 1.0)?;
    let hundreds = ones.map(|one| 100.0 * one);
    Ok(ByHand(ones, hundreds))
}

#[sde::app(name = "ranks.fields.sum", distributed)]
fn sum(sde: &Handle, array: &DistArray<f64>) -> Result<f64, sde::Error> {
    let mine: f64 = array.local().iter().sum();
    Ok(sde.gather("sums", mine)?.iter().map(|one| **one).sum())
}

/// Found by a program that was given the sum of one array of a pair for both: they had one name.
pub(super) fn each_array_of_a_value_is_known_for_itself(ranks: Ranks<'_>) {
    let sums = ranks.run(|sde| {
        let (derived, hand) = (solve.call(&sde, 3).unwrap(), by_hand.call(&sde).unwrap());
        let sums = || {
            [&derived.ones, &derived.more.1, &hand.0, &hand.1]
                .map(|array| *sum.call(&sde, array).unwrap())
        };
        assert_eq!(sums(), sums());
        assert_eq!(sde.stats().apps["ranks.fields.sum"].computed, 4);
        sums()
    });
    assert_eq!(sums, vec![[24.0, 2400.0, 24.0, 2400.0]; ranks.size()]);
}

/// The value is whole on the ranks of the handle, and known there.
fn check(sde: &Handle, steps: u32) {
    let solution = solve.call(sde, steps).unwrap();
    assert_eq!(solution.steps, steps);
    assert_eq!(solution.names, vec!["one"; steps as usize]);
    assert_eq!(solution.more.0.gather(sde).unwrap(), [u64::from(steps); 24]);
    assert_eq!(*sum.call(sde, &solution.ones).unwrap(), 24.0);
    assert_eq!(*sum.call(sde, &solution.more.1).unwrap(), 2400.0);
}

pub(super) fn a_derived_value_is_split_released_and_put_together(ranks: Ranks<'_>) {
    let folder = ranks.folder();
    let store = folder.path().join("store");
    for size in [4, 3, 1, 5] {
        let made = with_store(ranks.resized(size), &store, |sde, log| {
            check(sde, 3);
            let half = (sde.rank().unwrap() % 2) as u32;
            sde.split_for_with(half, 0, &Transfer::all(), |half_of_ranks| {
                check(half_of_ranks, 3);
                // One is made by each half, and all have both when they are released.
                check(half_of_ranks, 4 + half);
                Ok(())
            })
            .unwrap();
            (3..5 + u32::from(size > 1)).for_each(|steps| check(sde, steps));
            sde.finish().unwrap();
            ["solve", "sum"].map(|app| log.started(&format!("ranks.fields.{app}")))
        });
        let expected = if size == 4 { [2, 4] } else { [0, 0] };
        assert!(
            made.iter().all(|made| *made == expected),
            "{size}: {made:?}"
        );
    }
}

#[sde::app(name = "ranks.fields.other", distributed)]
fn other(sde: &Handle) -> Result<Solution, sde::Error> {
    let ones = DistArray::from_fn(sde, &[2], |_| 1.0)?;
    Ok(Solution {
        steps: sde.rank()? as u32 / 2,
        names: Vec::new(),
        more: Two(ones.map(|_| 1), ones.map(|_| 2.0)),
        ones,
    })
}

pub(super) fn what_is_not_the_same_on_all_ranks_is_an_error(ranks: Ranks<'_>) {
    ranks.run(|sde| {
        for _ in 0..2 {
            let error = other.call(&sde).map(drop).unwrap_err();
            let text = format!("{error:#}");
            says(&text, "\"steps\" is `same` for all ranks, and part 2");
        }
        assert_eq!(sde.stats().apps["ranks.fields.other"].computed, 0);
        check(&sde, 3);
    });
}
