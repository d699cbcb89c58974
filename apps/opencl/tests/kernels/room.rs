//! A directory that may hold only so much.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use sde::Sde;
use sde_archives::Removal;
use sde_opencl::driver::simulated::Simulated;
use sde_opencl::{Context, KernelDir, ProgramSpec, Settings};

use crate::failing_disk::Failing;
use crate::fixture::{folder, quiet};

const CAPACITY: u64 = 1 << 20;

/// A program takes some 35 kB, half of it source.
fn spec(n: usize) -> ProgramSpec {
    let filling = "int f() { return 1; } ".repeat(800);
    ProgramSpec::source(format!("kernel void k{n}() {{}} {filling}"))
}

fn limited(driver: &Simulated, kept: &Path, order: Removal) -> Context {
    let settings = Settings::new().dir(kept).capacity(CAPACITY).order(order);
    in_dir(driver, settings)
}

fn in_dir(driver: &Simulated, settings: Settings) -> Context {
    let dir = KernelDir::open(settings).unwrap();
    quiet(driver).keep_in_dir(&dir).build().unwrap()
}

fn make(context: &Context, n: usize) {
    let program = context.describe(0, &spec(n)).unwrap();
    context.program(&Sde::new(), 0, &program).unwrap();
}

/// How long the files of the binaries are.
fn bytes(kept: &Path) -> u64 {
    let files = std::fs::read_dir(kept.join("entries"))
        .into_iter()
        .flatten();
    files
        .filter_map(|file| Some(file.unwrap().metadata().ok()?.len()))
        .sum()
}

/// Of the first programs, those that a new process finds.
fn there(kept: &Path, programs: usize) -> Vec<usize> {
    let found = |n: &usize| {
        let driver = Simulated::new();
        make(&in_dir(&driver, Settings::new().dir(kept)), *n);
        driver.counts().builds == 0
    };
    (0..programs).filter(found).collect()
}

/// A process that only finds what it wants notes its uses in a file of its own.
#[test]
fn processes_that_use_what_is_there_do_not_leave_files_for_ever() {
    let kept = folder();
    let driver = Simulated::new();
    let mut most = 0;
    for _ in 0..100 {
        make(&in_dir(&driver, Settings::new().dir(kept.path())), 0);
        let files = std::fs::read_dir(kept.path().join("entries")).unwrap();
        most = most.max(files.count());
    }
    assert_eq!(driver.counts().builds, 1);
    assert!((20..80).contains(&most), "{most} files");
}

#[test]
fn writers_stay_within_the_room_and_what_they_are_just_writing() {
    const WRITERS: usize = 4;
    let kept = folder();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let kept = kept.path();
            scope.spawn(move || {
                let context = limited(&Simulated::new(), kept, Removal::FirstIn);
                for n in 0..60 {
                    make(&context, 1000 * writer + n);
                    // An eighth too much, what is copied while room is made, and two files that each is writing.
                    let limit = 2 * CAPACITY + (WRITERS as u64) * (128 << 10);
                    let bytes = bytes(kept);
                    assert!(bytes <= limit, "{bytes} of {limit} bytes");
                }
                assert_eq!(context.stats().store_failures, 0);
            });
        }
    });
    // Who ends sees to it once more.
    make(
        &limited(&Simulated::new(), kept.path(), Removal::FirstIn),
        0,
    );
    let bytes = bytes(kept.path());
    assert!(bytes <= CAPACITY + CAPACITY / 8, "{bytes} bytes");
}

#[test]
fn the_first_in_go_first_or_those_used_longest_ago() {
    for (order, used_stays) in [
        (Removal::FirstIn, false),
        (Removal::LeastRecentlyUsed, true),
    ] {
        let kept = folder();
        let mut builds_of_the_used = 0;
        for n in 0..80 {
            // A new process each time: its uses are noted when it ends.
            let driver = Simulated::new();
            let context = limited(&driver, kept.path(), order);
            make(&context, 0);
            builds_of_the_used += driver.counts().builds;
            make(&context, n);
        }
        let stays = builds_of_the_used == 1;
        assert_eq!(stays, used_stays, "{order:?}: {builds_of_the_used}");
        let there = there(kept.path(), 4);
        assert!(!there.contains(&1), "{order:?}: {there:?}");
    }
}

/// A process looks when it keeps something, or ends.
#[test]
fn what_is_too_old_goes_by_itself() {
    let kept = folder();
    let keep = |age: Duration, programs: &[usize]| {
        let settings = Settings::new().dir(kept.path()).max_age(age);
        let context = in_dir(&Simulated::new(), settings);
        programs.iter().for_each(|n| make(&context, *n));
    };
    keep(Duration::from_secs(3600), &[0, 1]);
    assert_eq!(there(kept.path(), 2), [0, 1]);
    keep(Duration::ZERO, &[2]);
    assert!(!there(kept.path(), 2).contains(&0));
}

/// Only who kept something let go what is too old: a process that finds all that it wants let nothing go, nor when it ended.
#[test]
fn what_is_too_old_goes_when_a_process_ends_that_kept_nothing() {
    let kept = folder();
    let run = |hours_later: u64, programs: &[usize]| {
        let clock = Failing::default();
        clock.hours_later.store(hours_later, Ordering::Relaxed);
        let settings = Settings::new().dir(kept.path()).vfs(Arc::new(clock));
        let driver = Simulated::new();
        let context = in_dir(&driver, settings.max_age(Duration::from_secs(3600)));
        programs.iter().for_each(|n| make(&context, *n));
        driver.counts().builds
    };
    assert_eq!(run(0, &[0, 1]), 2);
    // Too old, and used before it is let go; so it stays.
    assert_eq!(run(2, &[0]), 0);
    assert_eq!(there(kept.path(), 2), [0]);
}

/// Readers find it or they don't; nothing else, and no error.
#[test]
fn readers_go_on_while_somebody_makes_room() {
    let kept = folder();
    let context = limited(&Simulated::new(), kept.path(), Removal::FirstIn);
    for n in 0..10 {
        make(&context, n);
    }
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut reads = 0;
                while !done.load(Ordering::Relaxed) || reads == 0 {
                    let driver = Simulated::new();
                    let context = limited(&driver, kept.path(), Removal::FirstIn);
                    for n in 0..10 {
                        make(&context, n);
                    }
                    let (stats, counts) = (context.stats(), driver.counts());
                    let counts = (stats.unfit, stats.store_failures, counts.damaged);
                    assert_eq!(counts, (0, 0, 0));
                    assert_eq!(stats.builds + stats.loads, 10);
                    reads += 1;
                }
            });
        }
        for n in 100..200 {
            make(&context, n);
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(context.stats().store_failures, 0);
}
