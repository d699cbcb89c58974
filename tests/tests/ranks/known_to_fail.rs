//! What does not hold yet. Each says what it gives now, and turns red when that is mended: then it belongs to the
//! others.

use std::sync::{Arc, Condvar, Mutex};

use sde::store::Cbor;
use sde::{DistArray, Handle, Inputs, Sde, ThreadGroup};
use sde_tests::{LIMIT, Watchdog, number, x, y};

use super::counting::{Counting, counted};

#[sde::app(name = "ranks.known.array", distributed, tags(distributed))]
fn array(sde: &Handle, number: usize) -> Result<DistArray<f64>, sde::Error> {
    DistArray::from_fn(sde, &[1024], |at| (at[0] + number) as f64)
}

/// Found by a program that split its ranks for a short piece, which took seconds: all arrays that were remembered went
/// with them, and none was asked for.
#[test]
#[should_panic(expected = "bytes of arrays were moved")]
fn a_split_moves_no_array_that_nobody_asks_for() {
    let (moved, _) = counted(
        |sde| (0..20).for_each(|number| drop(array.call(sde, number).unwrap())),
        |sde| {
            let color = sde.rank().unwrap() as u32;
            sde.split_for(color, 0, |_| Ok(())).unwrap();
        },
    );
    assert_eq!(moved, 0, "{moved} bytes of arrays were moved");
}

/// How far the points are.
#[derive(Default)]
struct Progress {
    /// How many of those are done that hold up none.
    done: usize,
    /// A rank has none left to do, and waits for the other.
    is_idle: bool,
}

/// Found by a sweep of which every fourth point was costly: one rank of four had all of these, and three waited. The first
/// point here takes until all others are done, or a rank has none left.
#[test]
#[should_panic(expected = "2 of 3 other points were done")]
fn a_rank_that_is_done_takes_what_another_has_not_begun() {
    let _in_time = Watchdog::new("a sweep on two ranks", LIMIT);
    let progress = Arc::new((Mutex::new(Progress::default()), Condvar::new()));
    let change = |change: fn(&mut Progress)| {
        let progress = Arc::clone(&progress);
        move || {
            change(&mut progress.0.lock().unwrap());
            progress.1.notify_all();
        }
    };
    let (is_done, is_idle) = (
        change(|progress| progress.done += 1),
        Arc::new(change(|progress| progress.is_idle = progress.done > 0)),
    );
    let others = Arc::clone(&progress);
    let point = number("point", move |_, x| {
        if x > 0 {
            is_done();
            return Ok(0);
        }
        let progress = others.0.lock().unwrap();
        let waits = |progress: &mut Progress| progress.done < 3 && !progress.is_idle;
        let progress = others.1.wait_timeout_while(progress, LIMIT, waits).unwrap();
        Ok(progress.0.done as u64)
    });
    let list: Vec<Inputs> = (0..4).map(x).collect();
    let done = ThreadGroup::run(2, |group| {
        let group = Counting {
            group: Box::new(group),
            counts: Arc::default(),
            waits: is_idle.clone(),
        };
        let sde = Sde::builder().threads(1).process_group(group, Cbor);
        let points = sde.build().unwrap().par_map(&point, &list);
        y(points[0].as_ref().unwrap()).unwrap()
    });
    assert!(done[0] == 3, "{} of 3 other points were done", done[0]);
}
