//! The time of inserting and evicting, by the number of entries.

use std::time::Instant;

use super::ours::Ours;
use super::peers::Cache;
use super::random::Random;
use super::traces::Item;

/// Prints nanoseconds: for an insertion with room, and for one that evicts another entry.
pub fn print() {
    println!("| entries | comes | comes and another leaves |\n|---:|---:|---:|");
    for entries in [1_000, 10_000, 100_000, 1_000_000, 10_000_000_u32] {
        let mut random = Random::new(u64::from(entries));
        let mut item = || Item {
            bytes: 1,
            cost: (1e9 * random.log_normal(2.0)) as u64,
        };
        let more = entries.min(1_000_000);
        let mut ours = Ours::new(u64::from(entries), (entries + more) as usize);
        let mut put = |numbers: std::ops::Range<u32>| {
            let count = numbers.len() as u128;
            let start = Instant::now();
            numbers.for_each(|number| ours.put(number, item()));
            start.elapsed().as_nanos() / count
        };
        let comes = put(0..entries);
        let leaves = put(entries..entries + more);
        println!("| {entries} | {comes} ns | {leaves} ns |");
    }
}
