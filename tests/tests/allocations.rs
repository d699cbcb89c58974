//! A hit allocates nothing: neither on the last value nor in the map, neither with typed arguments
//! nor with inputs that were made before.

#![allow(unsafe_code, reason = "an allocator can't be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use sde::{Inputs, Instance, Prepared, Sde, inputs};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

/// Counts the allocations of each thread.
struct Counting;

fn count() {
    // A thread that ends has no counter any more.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the allocator's rules.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the allocator's rules.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the allocator's rules.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How many allocations this thread makes meanwhile.
fn allocations(of: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.get();
    of();
    ALLOCATIONS.get() - before
}

#[sde::app]
fn distance(from: [f64; 3], to: [f64; 3], unit: &str) -> f64 {
    let sum: f64 = from.iter().zip(to).map(|(a, b)| (a - b).powi(2)).sum();
    if unit == "bohr" {
        sum.sqrt() * 1.889_726
    } else {
        sum.sqrt()
    }
}

const TIMES: usize = 100;

fn typed(sde: &Sde, x: f64) -> f64 {
    *distance
        .call(sde, [x, 0.0, 0.0], [0.0; 3], "bohr")
        .expect("no error")
}

fn list() -> [Inputs; 2] {
    [1.0, 2.0].map(|x: f64| inputs! { from: [x, 0.0, 0.0], to: [0.0; 3], unit: "bohr" })
}

fn prepared(sde: &Sde) -> Prepared {
    sde.prepare(&Instance::new(distance)).expect("an app")
}

/// Which level answered.
#[derive(Debug, PartialEq)]
enum Level {
    LastValue,
    /// Most of them: that a hit in the map may become the last value belongs to it.
    Map,
}

/// Hits on one level allocate nothing, once the thread's buffers are there.
fn nothing_allocated(sde: &Sde, level: Level, mut run: impl FnMut(usize)) {
    (0..4).for_each(&mut run);
    let before = sde.stats().total;
    assert_eq!(allocations(|| (0..TIMES).for_each(&mut run)), 0);
    let after = sde.stats().total;
    let last_value = after.last_value_hits - before.last_value_hits;
    let map = after.map_hits - before.map_hits;
    assert_eq!(last_value + map, TIMES as u64);
    match level {
        Level::LastValue => assert_eq!(map, 0),
        Level::Map => assert!(map > last_value, "{map} and {last_value}"),
    }
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
}

#[test]
fn a_typed_hit_on_the_last_value() {
    let sde = Sde::new();
    nothing_allocated(&sde, Level::LastValue, |_| {
        typed(&sde, 1.0);
    });
}

#[test]
fn a_typed_hit_in_the_map() {
    let sde = Sde::new();
    nothing_allocated(&sde, Level::Map, |i| {
        typed(&sde, (i % 2) as f64);
    });
}

#[test]
fn a_hit_on_the_last_value_with_inputs() {
    let (sde, list) = (Sde::new(), list());
    let app = prepared(&sde);
    nothing_allocated(&sde, Level::LastValue, |_| {
        sde.run(&app, &list[0]).expect("no error");
    });
}

#[test]
fn a_hit_in_the_map_with_inputs() {
    let (sde, list) = (Sde::new(), list());
    let app = prepared(&sde);
    // An outcome that tells how it was got costs no more than the results alone.
    nothing_allocated(&sde, Level::Map, |i| {
        let outcome = sde.request(&app, &list[i % 2]).run().expect("no error");
        assert!(outcome.results.has("result"));
    });
}
