//! Row 13: hits during a checkpoint.
//!
//! Each hit is timed on its own, and the 99th percentile counts: a hit that waits for the
//! checkpoint, for a lock or for the processor's caches is among the slow ones.

use crate::place::Place;
use crate::results::{Scale, engine, note, notes};
use sde::Sde;
use sde_benches::Tries;
use sde_benches::table::{Aim, Row};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const DURING: &str = "p99 of hits during a checkpoint";
const WITHOUT: &str = "p99 of hits without one";

/// The number of different results that are hit.
const KEYS: u64 = 1024;
/// The time for which hits are timed without a checkpoint.
const WHILE: Duration = Duration::from_millis(300);
/// Hits that take longer count with this many nanoseconds.
const LONGEST: usize = 1 << 20;

/// Times hits until it is over; gives the 99th percentile.
fn p99(sde: &Sde, over: impl Fn() -> bool) -> Duration {
    let mut counts = vec![0_u32; LONGEST + 1];
    let mut hits = 0_u64;
    while !over() {
        for _ in 0..256 {
            // Steps that visit all results, far apart.
            let number = hits.wrapping_mul(389) % KEYS;
            let begin = Instant::now();
            black_box(note.call(sde, black_box(number)).unwrap());
            let took = begin.elapsed().as_nanos() as usize;
            counts[took.min(LONGEST)] += 1;
            hits += 1;
        }
    }
    let mut slower = hits / 100;
    let nanoseconds = counts.iter().rposition(|count| {
        let passed = u64::from(*count) > slower;
        slower = slower.saturating_sub((*count).into());
        passed
    });
    Duration::from_nanos(nanoseconds.unwrap_or(0) as u64)
}

/// An engine with results that are not saved yet.
fn full(place: &Place, scale: Scale) -> (Sde, tempfile::TempDir) {
    let folder = place.folder();
    let sde = engine(&folder.path().join("store"));
    notes(&sde, 0..2 * scale.small);
    (sde, folder)
}

fn during(place: &Place, scale: Scale) -> Duration {
    let (sde, _folder) = full(place, scale);
    let (begun, done) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            begun.store(true, Ordering::Release);
            sde.checkpoint().unwrap();
            done.store(true, Ordering::Release);
        });
        while !begun.load(Ordering::Acquire) {
            std::hint::spin_loop();
        }
        p99(&sde, || done.load(Ordering::Acquire))
    })
}

fn without(place: &Place, scale: Scale) -> Duration {
    let (sde, _folder) = full(place, scale);
    let begin = Instant::now();
    p99(&sde, || begin.elapsed() > WHILE)
}

/// Row 13.
pub fn rows(place: &Place, scale: Scale) -> Vec<Row> {
    let mut tries = Tries::new(scale.rounds, scale.limit);
    tries.case(DURING, || during(place, scale));
    tries.case(WITHOUT, || without(place, scale));
    let measured = tries.run();
    vec![Row {
        number: 13,
        work: format!("{DURING} of {} results", 2 * scale.small),
        reference: WITHOUT.to_owned(),
        ratio: measured.ratio(DURING, WITHOUT),
        aim: Aim::AtMost(2.0),
        time: measured.nanoseconds(DURING),
        reference_time: measured.nanoseconds(WITHOUT),
    }]
}
