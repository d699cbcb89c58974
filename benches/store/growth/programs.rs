//! 33 short programs fill one store with small results. Measured are the time and memory of the next program, which
//! asks for one result and merges all that they left. The memory of a program alone is beside it.

use std::path::Path;
use std::time::Instant;

use sde::{SavePolicy, Sde};
use sde_archives::DirStore;

use crate::measured::{call, folder};

const PROGRAMS: usize = 33;

/// Prints the rows of a table, in MiB and seconds; `in_a_process` runs this program with an argument.
pub fn measure(largest: usize, in_a_process: impl Fn(&str) -> String) {
    println!(
        "\n| results of {PROGRAMS} programs | at most, in one alone | the next: opened, and asked for one | before `finish` | at most | `finish`, which merges |"
    );
    println!("|---:|---:|---:|---:|---:|---:|");
    let sizes = [10_usize.pow(6), 10_usize.pow(7)];
    for results in sizes.into_iter().filter(|size| *size <= largest) {
        let shared = folder();
        let of = |number: usize, each: usize, dir: &Path| {
            let line = in_a_process(&format!("program={number},{each},{}", dir.display()));
            let words = line.split_whitespace().map(str::to_owned);
            words.collect::<Vec<_>>()
        };
        let each = results / PROGRAMS;
        let alone = folder();
        let alone = of(0, each, alone.path());
        (0..PROGRAMS).for_each(|number| drop(of(number, each, shared.path())));
        let next = of(PROGRAMS, 0, shared.path());
        println!(
            "| {results} | {} | {} | {} | {} | {} |",
            alone[1], next[3], next[0], next[1], next[2]
        );
    }
}

/// One of the programs: its number, the number of its results, and the store.
pub fn run(argument: &str) {
    let mut parts = argument.splitn(3, ',');
    let mut next = || parts.next().unwrap();
    let (number, each): (usize, usize) = (next().parse().unwrap(), next().parse().unwrap());
    let begun = Instant::now();
    let store = DirStore::open(next()).unwrap();
    let builder = Sde::builder().store(store).save(SavePolicy::OnRequest);
    let sde = builder.build().unwrap();
    call(&sde, number * each..number * each + each);
    if each == 0 {
        call(&sde, 0..1);
        assert_eq!(sde.stats().total.computed, 0);
    }
    let opened = begun.elapsed();
    let (before, ended) = (memory("VmRSS"), Instant::now());
    sde.finish().unwrap();
    let took = ended.elapsed();
    println!(
        "{before} {} {:.1} {:.1}",
        memory("VmHWM"),
        took.as_secs_f64(),
        opened.as_secs_f64()
    );
}

/// A figure of this process, in MiB.
fn memory(what: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(what)).unwrap();
    let kib: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib / 1024
}
