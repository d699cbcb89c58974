//! A hit allocates nothing: neither among the recent ones nor in the map, neither with typed arguments
//! nor with inputs that were made before. New inputs are one block. A state of a scratch costs what is new.

#![allow(unsafe_code, reason = "an allocator can't be written without")]

mod keys;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use sde::archiver::{ArchiveError, Archiver, Batch, MemoryArchiver, Saved};
use sde::{Inputs, Instance, MemoryBudget, Prepared, SavePolicy, Sde, inputs};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    static BYTES: Cell<usize> = const { Cell::new(0) };
    static FREED: Cell<usize> = const { Cell::new(0) };
}

/// Counts the allocations of each thread.
struct Counting;

fn count(bytes: usize) {
    // A thread that ends has no counter any more.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
    let _ = BYTES.try_with(|count| count.set(count.get() + bytes));
}

fn free(bytes: usize) {
    let _ = FREED.try_with(|freed| freed.set(freed.get() + bytes));
}

// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the allocator's rules.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        free(layout.size());
        // SAFETY: the caller keeps the allocator's rules.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        free(layout.size());
        count(size);
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

fn typed(sde: &Sde, x: usize) -> f64 {
    *distance
        .call(sde, [x as f64, 0.0, 0.0], [0.0; 3], "bohr")
        .expect("no error")
}

fn with(x: usize) -> Inputs {
    inputs! { from: [x as f64, 0.0, 0.0], to: [0.0; 3], unit: "bohr" }
}

/// Leaves no room among the recent hits, and remembers results that were never found there.
fn fill(sde: &Sde) {
    let once = 0..2 * TIMES;
    let twice = (1_000..17_000).flat_map(|x| [x, x]);
    for x in once.chain(twice) {
        typed(sde, x);
    }
}

fn prepared(sde: &Sde) -> Prepared {
    sde.prepare(&Instance::new(distance)).expect("an app")
}

/// Which level answered.
#[derive(Debug, PartialEq)]
enum Level {
    /// The thread's recent hits.
    First,
    Map,
}

/// Hits on one level allocate nothing, once the thread's buffers are there.
fn nothing_allocated(sde: &Sde, level: Level, mut run: impl FnMut(usize)) {
    (TIMES..TIMES + 4).for_each(&mut run);
    let before = sde.stats().total;
    assert_eq!(allocations(|| (0..TIMES).for_each(&mut run)), 0);
    let after = sde.stats().total;
    let first = after.recent_hits - before.recent_hits;
    let map = after.map_hits - before.map_hits;
    assert_eq!(first + map, TIMES as u64);
    match level {
        Level::First => assert_eq!(map, 0),
        Level::Map => assert_eq!(first, 0),
    }
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
}

#[test]
fn a_typed_hit_on_the_first_level() {
    let sde = Sde::new();
    nothing_allocated(&sde, Level::First, |_| {
        typed(&sde, 1);
    });
}

#[test]
fn a_typed_hit_in_the_map() {
    let sde = Sde::new();
    fill(&sde);
    nothing_allocated(&sde, Level::Map, |x| {
        typed(&sde, x);
    });
}

#[test]
fn a_hit_on_the_first_level_with_inputs() {
    let (sde, inputs) = (Sde::new(), with(1));
    let app = prepared(&sde);
    nothing_allocated(&sde, Level::First, |_| {
        sde.run(&app, &inputs).expect("no error");
    });
}

#[test]
fn a_hit_in_the_map_with_inputs() {
    let sde = Sde::new();
    fill(&sde);
    let (app, list) = (prepared(&sde), (0..2 * TIMES).map(with).collect::<Vec<_>>());
    for inputs in &list {
        // They are encoded when first asked for.
        sde.peek(&app, inputs).expect("no error");
    }
    // An outcome that tells how it was got costs no more than the results alone.
    nothing_allocated(&sde, Level::Map, |x| {
        let outcome = sde.request(&app, &list[x]).run().expect("no error");
        assert!(outcome.results.has("result"));
    });
}

/// They are kept in the order of the app.
#[test]
fn a_hit_with_inputs_in_another_order() {
    let (sde, inputs) = (
        Sde::new(),
        inputs! { unit: "bohr", to: [0.0; 3], from: [1.0, 0.0, 0.0] },
    );
    let app = prepared(&sde);
    nothing_allocated(&sde, Level::First, |_| {
        sde.run(&app, &inputs).expect("no error");
    });
}

/// There were nine: numbers and literals had one each.
#[test]
fn new_inputs_of_small_values_are_one_block() {
    #[sde::app]
    fn energy(basis: &str, method: &str, x: f64, y: f64, charge: i32, spherical: bool) -> f64 {
        let sizes = (basis.len() + method.len()) as f64;
        sizes + x * y + f64::from(charge) + f64::from(u8::from(spherical))
    }
    let sde = Sde::new();
    let app = sde.prepare(&Instance::new(energy)).expect("an app");
    let run = |_| {
        let inputs = inputs! {
            basis: "6-31G*", method: "RHF", x: 0.96, y: 104.5, charge: 0, spherical: true
        };
        sde.run(&app, &inputs).expect("no error");
    };
    (0..4).for_each(run);
    assert_eq!(allocations(|| (0..TIMES).for_each(run)), TIMES);
    assert_eq!(sde.stats().total.computed, 1);
}

#[test]
fn a_scratch_state_copies_no_earlier_calls() {
    #[sde::app]
    fn step(n: u64) -> u64 {
        n + 1
    }
    thread_local! {
        static OF_SAVES: Cell<[usize; 2]> = const { Cell::new([0; 2]) };
    }
    const STEPS: u64 = 2_000;
    #[sde::app]
    fn iterate(sde: &sde::Handle) -> Result<u64, sde::Error> {
        let mut of_saves = [0; 2];
        for n in 0..STEPS {
            step.call(sde, n)?;
            let before = BYTES.get();
            sde.scratch::<u64>().save(n)?;
            of_saves[usize::from(n >= STEPS / 2)] += BYTES.get() - before;
        }
        OF_SAVES.set(of_saves);
        Ok(STEPS)
    }
    iterate.call(&Sde::new()).expect("no error");
    let [first, second] = OF_SAVES.get();
    assert!(
        second < 2 * first,
        "{first} bytes for the first half, {second} for the second"
    );
}

#[sde::app]
fn cube(x: u64) -> u64 {
    x * x * x
}

/// A store that acknowledges each save, and keeps nothing.
struct Acknowledges(MemoryArchiver);

impl Archiver for Acknowledges {
    fn save(&self, _: &Batch) -> Result<Saved, ArchiveError> {
        Ok(Saved::default())
    }

    fn is_one_store(&self) -> bool {
        true
    }

    sde_tests::forward!(0: find, find_scratch, marks, describe);
}

/// Found by hostile use: 10^6 small results took 2.1 GiB.
#[test]
fn a_small_result_takes_little_memory_once_it_is_saved() {
    const RESULTS: usize = 10_000;
    let builder = Sde::builder()
        .store(Acknowledges(MemoryArchiver::new()))
        .save(SavePolicy::OnRequest);
    let budget = MemoryBudget::bytes(usize::MAX - 1);
    let sde = builder.memory_budget(budget).build().expect("a store");
    let before = BYTES.get() - FREED.get();
    taken_by(&sde, 0..RESULTS as u64);
    sde.checkpoint().expect("a save");
    let each = (BYTES.get() - FREED.get() - before) / RESULTS;
    assert!(each < 500, "{each} bytes");
}

/// A weak reference keeps the block of its value allocated, and these values lie in theirs.
#[test]
fn a_value_that_left_takes_no_memory_once_the_program_lets_it_go() {
    const LENGTH: usize = size_of::<[[u64; 32]; 32]>();
    #[sde::app]
    fn block(x: u64) -> [[u64; 32]; 32] {
        [[x; 32]; 32]
    }
    const RESULTS: usize = 100;
    let budget = MemoryBudget::bytes(2 * LENGTH);
    let sde = Sde::builder()
        .memory_budget(budget)
        .build()
        .expect("an engine");
    let taken = || BYTES.get() - FREED.get();
    let before = taken();
    let call = |x| block.call(&sde, x).expect("no error");
    let held: Vec<_> = (0..RESULTS as u64).map(call).collect();
    let computed = sde.stats().total.computed;
    let again: Vec<_> = (0..RESULTS as u64).map(call).collect();
    assert_eq!(sde.stats().total.computed, computed, "they are held");
    assert!(taken() - before > RESULTS * LENGTH);
    drop((held, again));
    // A few entries are looked at each time.
    for x in RESULTS as u64..2 * RESULTS as u64 {
        call(x);
    }
    let left = taken() - before;
    assert!(left < RESULTS * LENGTH / 4, "{left} bytes");
}

/// Without a budget nobody looks at references later.
#[test]
fn a_value_that_was_evicted_without_a_budget_takes_no_memory() {
    const LENGTH: usize = size_of::<[[u64; 32]; 32]>();
    #[sde::app(name = "allocations.evicted")]
    fn evicted(x: u64) -> [[u64; 32]; 32] {
        [[x; 32]; 32]
    }
    const RESULTS: usize = 100;
    let sde = Sde::new();
    let taken = || BYTES.get() - FREED.get();
    let before = taken();
    for x in 0..RESULTS as u64 {
        evicted.call(&sde, x).expect("no error");
    }
    assert_eq!(sde.evict("allocations.evicted", 0), RESULTS * LENGTH);
    let left = taken() - before;
    assert!(left < RESULTS * LENGTH / 2, "{left} bytes");
}

/// How much more memory these results take, as the thread has asked for it.
fn taken_by(sde: &Sde, numbers: std::ops::Range<u64>) -> usize {
    let taken = || BYTES.get() - FREED.get();
    let before = taken();
    for x in numbers {
        cube.call(sde, x).expect("no error");
    }
    taken() - before
}

/// What is to be saved is held anyway; that it is to be saved took 176 bytes each.
#[test]
fn a_list_of_what_is_to_be_saved_takes_little_memory() {
    const RESULTS: usize = 10_000;
    let with = sde_tests::Lying::new();
    let [without, with] = [
        Sde::builder(),
        Sde::builder()
            .store(with)
            .save(SavePolicy::OnRequest)
            .memory_budget(MemoryBudget::unlimited()),
    ]
    .map(|builder| {
        let sde = builder.build().expect("a store");
        taken_by(&sde, 0..RESULTS as u64) / RESULTS
    });
    let each = with - without;
    assert!(each < 100, "{each} bytes");
}
