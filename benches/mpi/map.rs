//! `par_map` on all ranks: points of very different cost, points that cost nothing, and points that are remembered.

use std::time::{Duration, Instant};

use sde::Inputs;
use sde_benches::table::{Aim, Row};

use crate::together::Together;

const MAP: &str = "map";
const REFERENCE: &str = "reference";

/// The time of a costly point: a wait, so that more ranks than cores can be measured.
const COSTLY: Duration = Duration::from_millis(20);
const COSTLY_POINTS: u32 = 40;

#[sde::app(name = "benches.map.uneven")]
fn uneven(point: u64) -> u64 {
    if point.is_multiple_of(4) {
        std::thread::sleep(COSTLY);
    }
    point
}

#[sde::app(name = "benches.map.even")]
fn even(point: u64) -> u64 {
    point
}

pub fn rows(together: &Together<'_>) -> Vec<Row> {
    vec![
        uneven_points(together),
        even_points(together),
        warm_points(together),
    ]
}

fn list(points: u64) -> Vec<Inputs> {
    (0..points)
        .map(|point| sde::inputs! { point: point })
        .collect()
}

/// With one thread of each rank.
fn uneven_points(together: &Together<'_>) -> Row {
    let (list, size) = (list(4 * u64::from(COSTLY_POINTS)), together.size());
    let mut tries = together.tries(7);
    tries.case(MAP, || {
        let sde = together.engine_of(1);
        let took = together.time(|| assert!(sde.par_map(&uneven, &list).iter().all(Result::is_ok)));
        sde.finish().unwrap();
        took
    });
    tries.case(REFERENCE, || {
        let share = COSTLY_POINTS.div_ceil(size as u32);
        together.time(|| (0..share).for_each(|_| std::thread::sleep(COSTLY)))
    });
    let measured = tries.run();
    row(
        &measured,
        "160 points, every fourth costly".to_owned(),
        "the costly ones, shared out evenly",
    )
}

fn even_points(together: &Together<'_>) -> Row {
    let list = list(20_000);
    let mut tries = together.tries(15);
    tries.case(MAP, || {
        let sde = together.engine();
        let took = together.time(|| assert!(sde.par_map(&even, &list).iter().all(Result::is_ok)));
        sde.finish().unwrap();
        took
    });
    tries.case(REFERENCE, || {
        // Each rank alone maps its share.
        let sde = sde::Sde::builder().build().unwrap();
        let share = list.len() / together.size();
        together.time(|| assert!(sde.par_map(&even, &list[..share]).iter().all(Result::is_ok)))
    });
    row(
        &tries.run(),
        format!("{} points that cost nothing", list.len()),
        "a share of them on one rank",
    )
}

fn warm_points(together: &Together<'_>) -> Row {
    let list = list(100_000);
    let sde = together.engine();
    let _points = sde.par_map(&even, &list);
    let alone = sde::Sde::builder().build().unwrap();
    let _points = alone.par_map(&even, &list);
    let mut tries = together.tries(15);
    tries.case(MAP, || {
        together.time(|| assert_eq!(sde.par_map(&even, &list).len(), list.len()))
    });
    tries.case(REFERENCE, || {
        let begin = Instant::now();
        assert_eq!(alone.par_map(&even, &list).len(), list.len());
        begin.elapsed()
    });
    let measured = tries.run();
    sde.finish().unwrap();
    row(
        &measured,
        format!("{} points that all ranks have", list.len()),
        "the same on one rank",
    )
}

fn row(measured: &sde_benches::Measured, work: String, reference: &str) -> Row {
    Row {
        number: 20,
        work: format!("par_map, {work}"),
        reference: reference.to_owned(),
        ratio: measured.ratio(MAP, REFERENCE),
        aim: Aim::Shown,
        time: measured.nanoseconds(MAP),
        reference_time: measured.nanoseconds(REFERENCE),
    }
}
