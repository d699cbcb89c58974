//! Somebody makes the file shorter or longer that a program writes to, or overwrites it with zeros.

use std::path::PathBuf;

use sde::SavePolicy;

use crate::engine::{all_load, engine, expected, open, page, read_only};
use crate::kit::{Call, Sim};
use crate::log::warnings;

/// Pages in one segment, by a program that goes on.
fn saved(numbers: std::ops::Range<u64>) -> (Sim, sde::Sde, PathBuf) {
    let sim = Sim::new();
    let sde = engine(open(&sim).unwrap(), SavePolicy::OnRequest);
    for number in numbers {
        page.call(&sde, number).unwrap();
    }
    sde.checkpoint().unwrap();
    let mut files = sim.files();
    files.retain(|path| path.extension().is_some_and(|e| e == "sde"));
    assert_eq!(files.len(), 1);
    (sim, sde, files.remove(0))
}

#[test]
fn a_segment_of_another_length_is_noticed() {
    let (sim, sde, segment) = saved(0..1);
    let mut bytes = sim.content(&segment);
    bytes.extend([0; 1 << 16]);
    sim.put(&segment, bytes);
    page.call(&sde, 1).unwrap();
    let error = format!("{:#}", sde.checkpoint().unwrap_err());
    assert!(error.contains("bytes where"), "{error}");
    sde.checkpoint().unwrap();
    all_load(read_only(&sim.power_loss(1)), 0..2);
    std::mem::forget(sde);
}

/// It is written where it was to be.
#[test]
fn what_is_saved_to_a_segment_that_was_cut_is_there() {
    let (sim, sde, segment) = saved(0..1);
    let mut bytes = sim.content(&segment);
    bytes.truncate(bytes.len() - 8);
    sim.put(&segment, bytes);
    page.call(&sde, 1).unwrap();
    sde.checkpoint().unwrap();
    all_load(read_only(&sim.power_loss(1)), 1..2);
    std::mem::forget(sde);
}

#[test]
fn zeros_are_not_read() {
    const HOLE: usize = 16 << 20;
    let (sim, sde, segment) = saved(0..3);
    std::mem::forget(sde);
    let mut bytes = sim.content(&segment);
    // The header of the segment stays; what it says of its writer and the first page go.
    let frames: Vec<usize> = bytes
        .windows(4)
        .enumerate()
        .filter(|(_, four)| four == b"SDEf")
        .map(|(at, _)| at)
        .collect();
    bytes[frames[0]..frames[2]].fill(0);
    bytes.resize(bytes.len() + HOLE, 0);
    sim.put(&segment, bytes);
    let before = sim.count(&[Call::Read]);
    let (store, warnings) = warnings(|| read_only(&sim));
    let told = |warning: &String| warning.contains("are zeros where frames should be");
    let got = warnings.iter().filter(|w| told(w)).count();
    assert_eq!(got, 1, "{warnings:?}");
    let reads = sim.count(&[Call::Read]) - before;
    assert!(reads < 64, "{reads}");
    // What comes after zeros is found.
    let sde = engine(store, SavePolicy::OnRequest);
    for number in 0..3 {
        assert_eq!(*page.call(&sde, number).unwrap(), expected(number));
    }
    assert_eq!(sde.stats().total.computed, 1);
    std::mem::forget(sde);
}
