//! Row 8: a hit allocates nothing.
#![allow(
    unsafe_code,
    reason = "an allocator that counts is the only way to see allocations"
)]

use crate::work::{Arguments, Trace, energy};
use sde::{Instance, Sde};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, and a count for each thread.
pub struct Counting;

fn count() {
    // A thread that ends has already lost its counter.
    let _ = COUNT.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: every call goes to the system's allocator as it came; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is the one we need.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

fn allocations(work: impl FnOnce()) -> u64 {
    let before = COUNT.get();
    work();
    COUNT.get() - before
}

fn typed(sde: &Sde, with: &Arguments) {
    drop(with.call(sde).unwrap());
}

/// The number of allocations of each kind of hit, and the number of hits that it was counted over.
pub fn lines() -> Vec<(&'static str, u64, u64)> {
    let trace = Trace::new();
    let sde = Sde::new();
    let app = sde.prepare(&Instance::new(energy)).unwrap();
    for inputs in &trace.inputs {
        sde.run(&app, inputs).unwrap();
    }
    let calls = 1000;
    let (inputs, arguments) = (&trace.inputs, &trace.arguments);
    let run = |at: usize| drop(sde.run(&app, &inputs[at]).unwrap());
    let results = [
        (
            "first hit on each of the inputs, which enters the first level, typed call",
            allocations(|| (0..calls).for_each(|at| typed(&sde, &arguments[at]))),
        ),
        (
            "hit on different inputs, `run` with kept `Inputs`",
            allocations(|| (0..calls).for_each(run)),
        ),
        ("hit on the same inputs, typed call", {
            typed(&sde, &arguments[0]);
            typed(&sde, &arguments[0]);
            allocations(|| (0..calls).for_each(|_| typed(&sde, &arguments[0])))
        }),
        ("hit on the same inputs, `run` with kept `Inputs`", {
            allocations(|| (0..calls).for_each(|_| run(0)))
        }),
        (
            "to compare: hit on different inputs, `run` with new `Inputs`",
            allocations(|| {
                let run = |at: usize| drop(sde.run(&app, &arguments[at].inputs()).unwrap());
                (0..calls).for_each(run);
            }),
        ),
    ];
    let stats = sde.stats().total;
    assert_eq!(stats.computed, inputs.len() as u64, "all calls were hits");
    results
        .into_iter()
        .map(|(name, allocations)| (name, allocations, calls as u64))
        .collect()
}
