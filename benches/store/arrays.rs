//! Row 9: a checkpoint of large arrays goes at the rate of the disk.

use crate::place::Place;
use crate::results::{Scale, engine, wave};
use sde_benches::Tries;
use sde_benches::table::{Aim, Row};
use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

const CHECKPOINT: &str = "checkpoint of large arrays";
const WRITE: &str = "plain write + fdatasync";

fn checkpoint(place: &Place, scale: Scale) -> Duration {
    let folder = place.folder();
    let sde = engine(&folder.path().join("store"));
    for number in 0..scale.arrays {
        wave.call(&sde, number, scale.length).unwrap();
    }
    let begin = Instant::now();
    sde.checkpoint().unwrap();
    begin.elapsed()
}

fn write(place: &Place, arrays: &[Vec<u8>]) -> Duration {
    let folder = place.folder();
    let begin = Instant::now();
    let mut file = File::create_new(folder.path().join("plain")).unwrap();
    for array in arrays {
        file.write_all(array).unwrap();
    }
    file.sync_data().unwrap();
    begin.elapsed()
}

/// Row 9.
pub fn rows(place: &Place, scale: Scale) -> Vec<Row> {
    let bytes = |number| {
        let numbers = (0..scale.length).map(|at| (number * scale.length + at) as f64 * 0.37);
        numbers.flat_map(f64::to_le_bytes).collect()
    };
    let arrays: Vec<Vec<u8>> = (0..scale.arrays).map(bytes).collect();
    let mut tries = Tries::new(scale.rounds, scale.limit);
    tries.case(CHECKPOINT, || checkpoint(place, scale));
    tries.case(WRITE, || write(place, &arrays));
    let measured = tries.run();
    let megabytes = (scale.arrays * scale.length * 8) >> 20;
    vec![Row {
        number: 9,
        work: format!("{CHECKPOINT}, {megabytes} MiB in {}, rate", scale.arrays),
        reference: WRITE.to_owned(),
        // Rates are inverse to times.
        ratio: measured.ratio(WRITE, CHECKPOINT),
        aim: Aim::AtLeast(0.9),
        time: measured.nanoseconds(CHECKPOINT),
        reference_time: measured.nanoseconds(WRITE),
    }]
}
