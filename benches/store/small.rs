//! Row 10: a checkpoint of many small results against databases.
//!
//! The databases get only key and value, 132 bytes for each. A checkpoint also writes
//! the origin of each result. So the databases are timed with as many bytes as that too.

use crate::peers::{self, pairs};
use crate::place::Place;
use crate::results::{Scale, bytes_in, engine, notes};
use sde_benches::Tries;
use sde_benches::table::{Aim, Row};
use std::time::{Duration, Instant};

const CHECKPOINT: &str = "checkpoint of small results";

/// The length of a value as a store has it.
const VALUE: usize = 100;

fn checkpoint(place: &Place, scale: Scale) -> (Duration, u64) {
    let folder = place.folder();
    let sde = engine(&folder.path().join("store"));
    notes(&sde, 0..scale.small);
    let begin = Instant::now();
    sde.checkpoint().unwrap();
    (begin.elapsed(), bytes_in(folder.path()))
}

fn with_record(peer: &str) -> String {
    format!("{peer}, as many bytes as the checkpoint")
}

/// Row 10.
pub fn rows(place: &Place, scale: Scale) -> Vec<Row> {
    let whole = checkpoint(place, scale).1 / scale.small - 32;
    let bare = pairs(scale.small, VALUE);
    let whole = pairs(scale.small, whole as usize);
    let mut tries = Tries::new(scale.rounds, scale.limit);
    tries.case(CHECKPOINT, || checkpoint(place, scale).0);
    for (peer, save) in peers::ALL {
        for (name, pairs) in [(peer.to_owned(), &bare), (with_record(peer), &whole)] {
            tries.case(name, move || save(place.folder().path(), pairs));
        }
    }
    let measured = tries.run();
    let bytes = [VALUE, whole[0].1.len()].map(|value| value + 32);
    let row = |peer: String, aim: Aim, bytes: usize| Row {
        number: 10,
        work: format!("{CHECKPOINT}, {} of them", scale.small),
        ratio: measured.ratio(CHECKPOINT, &peer),
        aim,
        time: measured.nanoseconds(CHECKPOINT),
        reference_time: measured.nanoseconds(&peer),
        reference: format!("{peer} ({bytes} each)"),
    };
    let names = peers::ALL.map(|(peer, _)| peer);
    let bare = names.map(|peer| row(peer.to_owned(), Aim::AtMost(0.8), bytes[0]));
    let whole = names.map(|peer| row(with_record(peer), Aim::Shown, bytes[1]));
    bare.into_iter().chain(whole).collect()
}
