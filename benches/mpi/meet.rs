//! Row 21: repeated collectives against one allreduce of 8 bytes: a hit of a distributed app, a gather
//! of a number, a halo, a sum.

use sde::Handle;
use sde_arrays::{DistArray, Edge};
use sde_benches::table::{Aim, Row};

use crate::together::Together;

const WORK: &str = "work";
const ALLREDUCE: &str = "allreduce";
/// The number of repetitions in one try.
const TIMES: u32 = 100;
const ROUNDS: usize = 41;

#[sde::app(name = "benches.meet.sum", distributed)]
fn sum(sde: &Handle, term: f64) -> Result<f64, sde::Error> {
    Ok(sde.gather("terms", term)?.iter().map(|term| **term).sum())
}

pub fn rows(together: &Together<'_>) -> Vec<Row> {
    let sde = together.engine();
    let field = DistArray::from_fn(&sde, &[16, 64], |at| at[0] as f64).unwrap();
    let edges = [Edge::Constant(0.0); 2];
    let rows = vec![
        of(together, "a hit of a distributed app", || {
            sum.call(&sde, 1.0).unwrap();
        }),
        of(together, "a gather of a number", || {
            sde.gather("numbers", 1.0).unwrap();
        }),
        of(together, "a halo of rows of 64 numbers", || {
            field.padded(&sde, &[1, 0], &edges).unwrap();
        }),
        of(together, "a sum of 1024 numbers", || {
            field.sum(&sde).unwrap();
        }),
    ];
    sde.finish().unwrap();
    rows
}

fn of(together: &Together<'_>, what: &str, work: impl Fn()) -> Row {
    let mut tries = together.tries(ROUNDS);
    tries.case(WORK, || {
        together.time(|| (0..TIMES).for_each(|_| work())) / TIMES
    });
    tries.case(ALLREDUCE, || {
        together.time(|| (0..TIMES).for_each(|_| together.allreduce())) / TIMES
    });
    let measured = tries.run();
    Row {
        number: 21,
        work: what.to_owned(),
        reference: "an `MPI_Allreduce` of 8 bytes".to_owned(),
        ratio: measured.ratio(WORK, ALLREDUCE),
        aim: Aim::Shown,
        time: measured.nanoseconds(WORK),
        reference_time: measured.nanoseconds(ALLREDUCE),
    }
}
