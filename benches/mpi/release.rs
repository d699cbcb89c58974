//! Row 15: a process set is released, and every rank gets the results of the others.

use sde_benches::Measured;
use sde_benches::table::{Aim, Row};

use crate::together::Together;

/// The load of one try: each rank computes arrays of so many numbers.
#[derive(Clone, Copy)]
struct Load {
    name: &'static str,
    arrays: u64,
    numbers: u64,
    rounds: usize,
    aim: Aim,
}

const RELEASE: &str = "release";
const GATHER: &str = "gather";
const FRESH: &str = "gather to new memory";

#[sde::app(name = "benches.release.values")]
fn values(rank: u64, number: u64, length: u64) -> Vec<f64> {
    let first = rank * 1_000_000 + number;
    (0..length).map(|n| (first + n) as f64).collect()
}

pub fn rows(together: &Together<'_>) -> Vec<Row> {
    let one = 1 << 17;
    let loads = [
        (
            "1 MiB on each rank, in 1 array",
            1,
            one,
            101,
            Aim::AtMost(3.0),
        ),
        (
            "1 MiB on each rank, in 1024 arrays",
            1024,
            one / 1024,
            31,
            Aim::AtMost(4.0),
        ),
        (
            "16 MiB on each rank, in 16 arrays",
            16,
            one,
            51,
            Aim::AtMost(1.3),
        ),
        (
            "64 MiB on each rank, in 8 arrays",
            8,
            8 * one,
            15,
            Aim::AtMost(1.3),
        ),
    ];
    let loads = loads.map(|(name, arrays, numbers, rounds, aim)| Load {
        name,
        arrays,
        numbers,
        rounds,
        aim,
    });
    loads.iter().flat_map(|load| of(together, *load)).collect()
}

fn of(together: &Together<'_>, load: Load) -> [Row; 2] {
    // CBOR writes an array of numbers as a byte string: tag, length, bytes.
    let bytes = (load.arrays * (8 * load.numbers + 12)) as usize;
    let mine = vec![1_u8; bytes];
    let mut all = vec![0_u8; bytes * together.size()];
    let mut tries = together.tries(load.rounds);
    tries.case(RELEASE, || release(together, load));
    tries.case(GATHER, || {
        together.time(|| together.gather(&mine, &mut all))
    });
    tries.case(FRESH, || {
        together.time(|| {
            let mut all = vec![0_u8; bytes * together.size()];
            together.gather(&mine, &mut all);
            std::hint::black_box(&all);
        })
    });
    let measured = tries.run();
    let row = |reference: &str, text: &str, aim| row(&measured, load, reference, text, aim);
    [
        row(GATHER, "one `MPI_Allgatherv` of as many bytes", load.aim),
        row(FRESH, "the same, to memory that is new", Aim::Shown),
    ]
}

fn release(together: &Together<'_>, load: Load) -> std::time::Duration {
    let sde = together.engine();
    let rank = together.rank() as u64;
    let part = sde.split(rank as u32, 0).unwrap();
    for number in 0..load.arrays {
        values.call(&part, rank, number, load.numbers).unwrap();
    }
    let took = together.time(|| part.release().unwrap());
    sde.finish().unwrap();
    took
}

fn row(measured: &Measured, load: Load, reference: &str, text: &str, aim: Aim) -> Row {
    Row {
        number: 15,
        work: format!("release, {}", load.name),
        reference: text.to_owned(),
        ratio: measured.ratio(RELEASE, reference),
        aim,
        time: measured.nanoseconds(RELEASE),
        reference_time: measured.nanoseconds(reference),
    }
}
