//! Row 11: a result that is durable before the call returns, against the disk's time for it.

use crate::place::Place;
use crate::results::{Scale, bytes_in, note, notes};
use sde::{SavePolicy, Sde};
use sde_archives::DirStore;
use sde_benches::Tries;
use sde_benches::table::{Aim, Row};
use std::cell::Cell;
use std::fs::OpenOptions;
use std::io::Write;
use std::time::{Duration, Instant};

const RESULT: &str = "one durable result";
const APPEND: &str = "append + fdatasync";

/// Row 11.
pub fn rows(place: &Place, scale: Scale) -> Vec<Row> {
    let folder = place.folder();
    let engine = |name: &str| {
        let store = DirStore::open(folder.path().join(name)).unwrap();
        let builder = Sde::builder().store(store).save(SavePolicy::EveryResult);
        builder.build().unwrap()
    };
    notes(&engine("other"), 0..100);
    let bytes = vec![7; (bytes_in(&folder.path().join("other")) / 100) as usize];
    let sde = engine("store");
    // The first result makes the file, which is not to be timed.
    notes(&sde, 0..10);
    let plain = folder.path().join("plain");
    let mut plain = OpenOptions::new()
        .append(true)
        .create_new(true)
        .open(plain)
        .unwrap();
    let next = Cell::new(1000);
    let mut tries = Tries::new(scale.rounds * 4, scale.limit);
    tries.case(RESULT, || {
        each(scale.single, || {
            note.call(&sde, next.replace(next.get() + 1)).unwrap();
        })
    });
    tries.case(APPEND, || {
        each(scale.single, || {
            plain.write_all(&bytes).unwrap();
            plain.sync_data().unwrap();
        })
    });
    let measured = tries.run();
    vec![Row {
        number: 11,
        work: format!("{RESULT}, {} bytes", bytes.len()),
        reference: APPEND.to_owned(),
        ratio: measured.ratio(RESULT, APPEND),
        aim: Aim::AtMost(0.9),
        time: measured.nanoseconds(RESULT),
        reference_time: measured.nanoseconds(APPEND),
    }]
}

/// The average time of `work`, over `count` calls.
fn each(count: u64, mut work: impl FnMut()) -> Duration {
    let begin = Instant::now();
    for _ in 0..count {
        work();
    }
    begin.elapsed() / count as u32
}
