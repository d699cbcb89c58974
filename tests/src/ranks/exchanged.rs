//! What ordinary results are like when another rank has them.

use std::collections::BTreeSet;

use sde::{Handle, Sde};
use serde::{Deserialize, Serialize};

use super::Ranks;

fn row(rank: u64, number: u64, count: usize) -> Vec<f64> {
    let first = (rank * 1_000_000_000 + number * 1_000_000) as f64;
    (0..count).map(|at| first + at as f64).collect()
}

#[sde::app(name = "ranks.exchanged.numbers")]
fn numbers(rank: u64, number: u64, count: usize) -> Vec<f64> {
    row(rank, number, count)
}

/// What is no list of numbers itself, but has some.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Fields {
    name: String,
    large: Field,
    more: Vec<Field>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Field(#[serde(with = "sde::bulk")] Vec<f64>);

fn fields_of(rank: u64) -> Fields {
    Fields {
        name: format!("of {rank}"),
        large: Field(row(rank, 7, 20_000)),
        more: vec![Field(Vec::new()), Field(row(rank, 8, 30_000))],
    }
}

#[sde::app(name = "ranks.exchanged.fields")]
fn fields(rank: u64) -> Fields {
    fields_of(rank)
}

fn check(sde: &Handle, rank: u64) {
    let counts = [0, 1, 5000, 8191, 8192, 8193, 100_000, 400_000, 1_200_000];
    for (number, count) in (0..).zip(counts.into_iter().chain([6000; 120])) {
        let values = numbers.call(sde, rank, number, count).unwrap();
        assert!(*values == row(rank, number, count), "{number} of {rank}");
    }
    assert_eq!(*fields.call(sde, rank).unwrap(), fields_of(rank));
}

/// Small ones are sent side by side, in several turns; large ones from where they lie, some of them to one block.
pub(super) fn values_of_all_sizes_come_as_they_were(ranks: Ranks<'_>) {
    let records = ranks.run(|sde: Sde| {
        let (rank, size) = (sde.rank().unwrap() as u64, sde.ranks().unwrap() as u64);
        sde.split_for(rank as u32, 0, |part| {
            check(part, rank);
            Ok(())
        })
        .unwrap();
        let computed = sde.stats().total.computed;
        (0..size).for_each(|rank| check(&sde, rank));
        assert_eq!(sde.stats().total.computed, computed);
        let records = crate::records(&sde).into_iter();
        let records: BTreeSet<_> = records.map(|record| format!("{record:?}")).collect();
        records
    });
    // How each was made is known to all, too.
    assert!(records.iter().all(|of_rank| *of_rank == records[0]));
}
