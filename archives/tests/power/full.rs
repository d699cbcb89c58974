//! The medium is full, or read-only: computing goes on, and what was saved before loads.

use sde::SavePolicy;

use crate::engine::{all_load, engine, expected, open, page, read_only};
use crate::kit::Sim;

const BEFORE: u64 = 5;
const AFTER: u64 = 20;

/// A medium with one generation on it, and the engine that made it.
fn one_generation(policy: SavePolicy) -> (Sim, sde::Sde) {
    let sim = Sim::new();
    let sde = engine(open(&sim).unwrap(), policy);
    for number in 0..BEFORE {
        page.call(&sde, number).unwrap();
    }
    sde.checkpoint().unwrap();
    (sim, sde)
}

#[test]
fn full_at_100_levels() {
    let mut failures = 0;
    for level in 0..100 {
        let policy = match level % 2 {
            0 => SavePolicy::OnRequest,
            _ => SavePolicy::EveryResult,
        };
        let (sim, sde) = one_generation(policy);
        sim.room(Some(sim.bytes() + level * 251));
        let mut saved = BEFORE;
        for number in BEFORE..AFTER {
            assert_eq!(*page.call(&sde, number).unwrap(), expected(number));
            match sde.checkpoint() {
                Ok(()) => saved = number + 1,
                Err(_) => failures += 1,
            }
        }
        assert_eq!(sim.misdeeds(), [""; 0]);
        for left in [sim.after_kill(), sim.power_loss(level)] {
            all_load(read_only(&left), 0..saved);
        }
        // When there is room again all of it is saved.
        sim.room(None);
        sde.checkpoint().unwrap();
        all_load(read_only(&sim.power_loss(level)), 0..AFTER);
        std::mem::forget(sde);
    }
    assert!(failures > 300, "{failures}");
}

#[test]
fn read_only_from_one_moment_on() {
    let (sim, sde) = one_generation(SavePolicy::OnRequest);
    sim.read_only(true);
    for number in BEFORE..AFTER {
        assert_eq!(*page.call(&sde, number).unwrap(), expected(number));
        let error = format!("{:#}", sde.checkpoint().unwrap_err());
        assert!(error.contains("os error 30"), "{error}");
    }
    all_load(read_only(&sim), 0..BEFORE);
    let error = format!("{:#}", open(&sim).unwrap_err());
    assert!(error.contains("open_read_only"), "{error}");
    sim.read_only(false);
    sde.checkpoint().unwrap();
    all_load(read_only(&sim.power_loss(1)), 0..AFTER);
    std::mem::forget(sde);
}

#[test]
fn a_full_medium_does_not_fill_with_segments() {
    let (sim, sde) = one_generation(SavePolicy::OnRequest);
    let segments = || {
        let mut files = sim.files();
        files.retain(|path| path.extension().is_some_and(|e| e == "sde"));
        files
    };
    let before = segments();
    for room in 0..100 {
        sim.room(Some(sim.bytes() + room));
        page.call(&sde, BEFORE + room).unwrap();
        sde.checkpoint().unwrap_err();
        assert_eq!(segments(), before);
    }
    sim.room(None);
    sde.checkpoint().unwrap();
    all_load(read_only(&sim.power_loss(1)), 0..BEFORE + 100);
    std::mem::forget(sde);
}
