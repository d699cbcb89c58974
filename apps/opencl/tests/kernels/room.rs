//! A directory that may hold only so much.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use sde::Sde;
use sde_archives::Order;
use sde_opencl::driver::simulated::Simulated;
use sde_opencl::{Context, KernelDir, ProgramSpec, Settings};

use crate::fixture::{folder, quiet};

const CAPACITY: u64 = 200_000;

fn spec(n: usize) -> ProgramSpec {
    let filling = "int f() { return 1; } ".repeat(40);
    ProgramSpec::source(format!("kernel void k{n}() {{}} {filling}"))
}

fn limited(driver: &Simulated, kept: &std::path::Path, order: Order) -> (KernelDir, Context) {
    let settings = Settings::new().dir(kept).capacity(CAPACITY).order(order);
    let dir = KernelDir::open(settings).unwrap();
    let context = quiet(driver).keep_in(dir.clone()).build().unwrap();
    (dir, context)
}

fn make(context: &Context, n: usize) {
    let program = context.describe(0, &spec(n)).unwrap();
    context.program(&Sde::new(), 0, &program).unwrap();
}

/// Of the first programs, those that a new process finds.
fn there(kept: &std::path::Path, programs: usize) -> Vec<usize> {
    let found = |n: &usize| {
        let driver = Simulated::new();
        let settings = Settings::new().dir(kept);
        let context = quiet(&driver)
            .keep_in(KernelDir::open(settings).unwrap())
            .build()
            .unwrap();
        let program = context.describe(0, &spec(*n)).unwrap();
        let sde = Sde::new();
        context.program(&sde, 0, &program).unwrap();
        driver.counts().builds == 0
    };
    (0..programs).filter(found).collect()
}

/// A process that only finds what it wants notes its uses in a file of its own.
#[test]
fn processes_that_use_what_is_there_do_not_leave_files_for_ever() {
    let kept = folder();
    let driver = Simulated::new();
    let files = || {
        std::fs::read_dir(kept.path().join("store/entries"))
            .unwrap()
            .count()
    };
    let mut most = 0;
    for _ in 0..200 {
        let dir = KernelDir::open(Settings::new().dir(kept.path())).unwrap();
        let context = quiet(&driver).keep_in(dir).build().unwrap();
        make(&context, 0);
        drop(context);
        most = most.max(files());
    }
    assert_eq!(driver.counts().builds, 1);
    assert!((50..140).contains(&most), "{most} files");
}

#[test]
fn writers_stay_within_the_room_and_what_they_are_just_writing() {
    const WRITERS: u64 = 4;
    let kept = folder();
    thread::scope(|scope| {
        for writer in 0..WRITERS as usize {
            let kept = kept.path();
            scope.spawn(move || {
                let (dir, context) = limited(&Simulated::new(), kept, Order::FirstIn);
                for n in 0..100 {
                    make(&context, 1000 * writer + n);
                    // A quarter too much, three quarters copied, and one that each is just putting.
                    let limit = 2 * CAPACITY + WRITERS * 5_000;
                    let bytes = dir.bytes();
                    assert!(bytes <= limit, "{bytes} of {limit} bytes");
                }
                assert_eq!(context.stats().store_failures, 0);
            });
        }
    });
    let (dir, _) = limited(&Simulated::new(), kept.path(), Order::FirstIn);
    dir.tidy().unwrap();
    assert!(dir.bytes() <= CAPACITY, "{} bytes", dir.bytes());
}

#[test]
fn the_first_in_go_first_or_those_used_longest_ago() {
    for (order, used_stays) in [(Order::FirstIn, false), (Order::LeastRecentlyUsed, true)] {
        let kept = folder();
        let mut builds_of_the_used = 0;
        for n in 0..120 {
            // A new process each time: its uses are noted when it ends.
            let driver = Simulated::new();
            let (_, context) = limited(&driver, kept.path(), order);
            make(&context, 0);
            builds_of_the_used += driver.counts().builds;
            make(&context, n);
        }
        assert_eq!(
            builds_of_the_used == 1,
            used_stays,
            "{order:?}: {builds_of_the_used}"
        );
        let there = there(kept.path(), 4);
        assert!(!there.contains(&1), "{order:?}: {there:?}");
    }
}

#[test]
fn what_is_too_old_goes() {
    let kept = folder();
    let (_, context) = limited(&Simulated::new(), kept.path(), Order::FirstIn);
    make(&context, 0);
    drop(context);
    let dir = |age| KernelDir::open(Settings::new().dir(kept.path()).max_age(age)).unwrap();
    assert_eq!(
        dir(std::time::Duration::from_secs(3600))
            .tidy()
            .unwrap()
            .given_up,
        0
    );
    assert_eq!(dir(std::time::Duration::ZERO).tidy().unwrap().given_up, 1);
    assert!(there(kept.path(), 1).is_empty());
}

/// Nobody calls `tidy`: a process looks once, when it first keeps something.
#[test]
fn what_is_too_old_goes_by_itself_when_a_process_first_keeps_something() {
    let kept = folder();
    let keep = |settings: Settings, programs: &[usize]| {
        let dir = KernelDir::open(settings.dir(kept.path())).unwrap();
        let context = quiet(&Simulated::new()).keep_in(dir).build().unwrap();
        programs.iter().for_each(|n| make(&context, *n));
    };
    let none = || Settings::new().max_age(std::time::Duration::ZERO);
    keep(Settings::new(), &[0]);
    // Who only reads leaves it there, and it is used.
    keep(none(), &[0]);
    assert_eq!(there(kept.path(), 1), [0]);
    keep(none().unlimited(), &[1, 2]);
    assert_eq!(there(kept.path(), 3), [1, 2]);
}

/// Readers find it or they don't; nothing else, and no error.
#[test]
fn readers_go_on_while_somebody_makes_room() {
    let kept = folder();
    let (dir, context) = limited(&Simulated::new(), kept.path(), Order::FirstIn);
    for n in 0..20 {
        make(&context, n);
    }
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut reads = 0;
                while !done.load(Ordering::Relaxed) || reads == 0 {
                    let driver = Simulated::new();
                    let (_, context) = limited(&driver, kept.path(), Order::FirstIn);
                    for n in 0..20 {
                        make(&context, n);
                    }
                    let (stats, counts) = (context.stats(), driver.counts());
                    assert_eq!(
                        (stats.unfit, stats.store_failures, counts.damaged),
                        (0, 0, 0)
                    );
                    assert_eq!(stats.builds + stats.loads, 20);
                    reads += 1;
                }
            });
        }
        for n in 100..160 {
            make(&context, n);
            dir.tidy().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(context.stats().store_failures, 0);
}
