//! Iterations that are interrupted go on from what they saved, and end in the same
//! bits.

use std::sync::atomic::{AtomicU32, Ordering};

use sde::{AppError, Event, EventLog, Handle, MemoryArchiver, SavePolicy, Sde, Selection};

const STEPS: u32 = 7;
/// After how many steps each run stops; one counter for each test.
static LIMITS: [AtomicU32; 4] = [const { AtomicU32::new(u32::MAX) }; 4];
static MADE: [AtomicU32; 4] = [const { AtomicU32::new(0) }; 4];

/// The logistic map, which forgets no bit of where it came from.
#[sde::app(name = "scratch.iterate", version = "1")]
fn iterate(sde: &Handle, test: usize, from: f64) -> Result<f64, AppError> {
    let scratch = sde.scratch::<(u32, f64)>();
    let (mut step, mut x) = scratch.load()?.map_or((0, from), |state| *state);
    let mut here = 0;
    while step < STEPS {
        if here == LIMITS[test].load(Ordering::SeqCst) {
            return Err(AppError::message("interrupted"));
        }
        x = 3.9 * x * (1.0 - x);
        step += 1;
        here += 1;
        MADE[test].fetch_add(1, Ordering::SeqCst);
        scratch.save((step, x))?;
    }
    Ok(x)
}

fn undisturbed(from: f64) -> f64 {
    *iterate.call(&Sde::new(), 0, from).unwrap()
}

#[test]
fn interrupted_at_each_save_it_goes_on_in_the_next_process() {
    let expected = undisturbed(0.3);
    for limit in 1..STEPS {
        let store = MemoryArchiver::new();
        MADE[1].store(0, Ordering::SeqCst);
        LIMITS[1].store(limit, Ordering::SeqCst);
        let log = EventLog::new();
        let mut runs = 0;
        let x = loop {
            runs += 1;
            let sde = Sde::builder()
                .store(store.clone())
                .save(SavePolicy::EveryResult)
                .observer(log.clone())
                .build()
                .unwrap();
            if let Ok(x) = iterate.call(&sde, 1, 0.3) {
                break *x;
            }
            assert_eq!(store.saved_scratch(), ["scratch.iterate"]);
            assert!(
                store.saved(Selection::Checkpoint).is_empty(),
                "scratch is no result"
            );
        };
        assert_eq!(x.to_bits(), expected.to_bits());
        let resumed = |event: &Event| matches!(event, Event::Resumed { app, .. } if &**app == "scratch.iterate");
        let resumed = log.events().iter().filter(|event| resumed(event)).count();
        assert_eq!(resumed, runs - 1, "each but the first went on");
        assert_eq!(
            MADE[1].load(Ordering::SeqCst),
            STEPS,
            "no step was made twice"
        );
        assert!(
            store.saved_scratch().is_empty(),
            "it is gone once there is a result"
        );
    }
}

#[test]
fn a_failed_run_goes_on_within_one_process_too() {
    let sde = Sde::new();
    LIMITS[2].store(3, Ordering::SeqCst);
    while iterate.call(&sde, 2, 0.4).is_err() {}
    assert_eq!(MADE[2].load(Ordering::SeqCst), STEPS);
    let expected = undisturbed(0.4);
    assert_eq!(
        iterate.call(&sde, 2, 0.4).unwrap().to_bits(),
        expected.to_bits()
    );
}
