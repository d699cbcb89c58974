//! Many threads and one program.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rayon::prelude::*;
use sde::{Sde, Value};
use sde_opencl::driver::simulated::Simulated;
use sde_opencl::{Context, KernelDir, ProgramSpec, Settings};

use crate::fixture::{copied, copy, folder, keeping, process, quiet, simulated};

#[test]
fn three_hundred_threads_build_once_and_have_one_kernel() {
    const THREADS: usize = 300;
    let kept = folder();
    let (driver, context) = process(kept.path());
    let (sde, program) = (Sde::new(), copy(&context));
    let barrier = Barrier::new(THREADS);
    let kernels = thread::scope(|scope| {
        let start = || {
            thread::Builder::new()
                .stack_size(256 << 10)
                .spawn_scoped(scope, || {
                    barrier.wait();
                    context.kernel(&sde, 0, &program, "copy").unwrap()
                })
        };
        let threads: Vec<_> = (0..THREADS).map(|_| start().unwrap()).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect::<Vec<_>>()
    });
    let mut each = kernels.iter();
    assert!(each.all(|kernel| Value::ptr_eq(kernel, &kernels[0])));
    assert_eq!((driver.counts().builds, context.stats().kept), (1, 1));
}

/// Two contexts know nothing of each other in memory; in the store they take turns.
#[test]
fn contexts_that_share_a_directory_build_once() {
    let kept = folder();
    let driver = Simulated::new();
    let contexts: Vec<Context> = (0..8).map(|_| keeping(&driver, kept.path())).collect();
    let barrier = Barrier::new(contexts.len());
    thread::scope(|scope| {
        for context in &contexts {
            scope.spawn(|| {
                let program = copy(context);
                barrier.wait();
                context.program(&Sde::new(), 0, &program).unwrap();
            });
        }
    });
    assert_eq!(driver.counts().builds, 1);
}

#[test]
fn launches_on_many_threads_never_share_a_kernel() {
    let (driver, context) = simulated();
    let kernel = copied(&context);
    let all_have_one = Barrier::new(16);
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let launch = kernel.launch().unwrap();
                all_have_one.wait();
                drop(launch);
            });
        }
    });
    assert_eq!(driver.counts().kernels, 16);
}

/// An app that builds with rayon inside, asked for by many of rayon's workers: what hangs elsewhere.
#[sde::app(tags(expendable))]
fn workflow(sde: &sde::Handle, context: &Context, n: usize) -> Result<usize, sde_opencl::Error> {
    let names: Vec<usize> = (0..4)
        .into_par_iter()
        .map(|at| {
            let spec = ProgramSpec::source(format!("kernel void k{}() {{}}", (n + at) % 3));
            let program = context.describe(0, &spec)?;
            Ok(context.program(sde, 0, &program)?.kernel_names().len())
        })
        .collect::<Result<_, sde_opencl::Error>>()?;
    Ok(names.iter().sum())
}

fn under_rayon(workers: usize) {
    let (driver, context) = simulated();
    let sde = Sde::new();
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(workers)
        .build()
        .unwrap();
    let sums: Vec<usize> = pool.install(|| {
        let asked = (0..32).into_par_iter();
        asked
            .map(|n| *workflow.call(&sde, &context, n % 3).unwrap())
            .collect()
    });
    assert_eq!(sums, [4; 32]);
    let duplicates = sde.stats().total.duplicates as usize;
    // Each was built once, but for what is counted.
    assert!(
        driver.counts().builds <= 3 + duplicates,
        "{} builds",
        driver.counts().builds
    );
}

#[test]
fn raw_rayon_inside_and_outside_does_not_hang() {
    for workers in 1..=16 {
        under_rayon(workers);
    }
}

#[test]
#[ignore = "long: a thousand runs"]
fn raw_rayon_inside_and_outside_does_not_hang_in_a_thousand_runs() {
    for run in 0..1000 {
        under_rayon(1 + run % 16);
    }
}

/// A thread that steals a job while it builds comes to the build that it is at itself.
#[test]
fn a_thread_does_not_wait_for_its_own_turn() {
    let kept = folder();
    let driver = Simulated::new();
    // Who waits for himself waits as long as that.
    let settings = Settings::new()
        .dir(kept.path())
        .patience(Duration::from_secs(2));
    let dir = KernelDir::open(settings).unwrap();
    let context = quiet(&driver).keep_in_dir(&dir).build().unwrap();
    let (sde, program) = (Sde::new(), copy(&context));
    let is_first = AtomicBool::new(true);
    driver.in_build(move |_| {
        if is_first.swap(false, Ordering::SeqCst) {
            while let Some(rayon::Yield::Executed) = rayon::yield_now() {}
        }
    });
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    one.unwrap().scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|_| drop(context.program(&sde, 0, &program).unwrap()));
        }
        context.program(&sde, 0, &program).unwrap();
    });
    assert!(driver.counts().builds > 1, "nothing was stolen");
    assert_eq!(dir.stats().waited_for_others, 0);
}
