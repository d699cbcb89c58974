//! What fails, for whom, and for how long.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use sde::{Sde, Value};
use sde_opencl::driver::faults::Call;
use sde_opencl::driver::simulated::{Simulated, device};
use sde_opencl::{Error, ProgramSpec};

use crate::fixture::{
    OUT_OF_RESOURCES, context, copy, described, faulty, folder, numbered, process, simulated,
};

#[test]
fn a_source_that_does_not_compile_is_tried_once_and_says_why() {
    let (driver, context) = simulated();
    let sde = Sde::new();
    let spec = ProgramSpec::source("#error not on this device").named("picky");
    let program = context.describe(0, &spec).unwrap();
    let errors: Vec<_> = (0..3)
        .map(|_| {
            context
                .kernel(&sde, 0, &program, "k")
                .unwrap_err()
                .to_string()
        })
        .collect();
    assert!(errors[0].contains("picky") && errors[0].contains("error: not on this device"));
    assert_eq!(errors[0], errors[1]);
    assert_eq!(errors[0], errors[2]);
    assert_eq!(driver.counts().builds, 1);
    assert_eq!(driver.counts().programs, 0);
}

#[test]
fn a_failed_build_is_never_kept() {
    let kept = folder();
    for _ in 0..2 {
        let (driver, context) = process(kept.path());
        let program = described(&context, "#error no");
        context.program(&Sde::new(), 0, &program).unwrap_err();
        assert_eq!((driver.counts().builds, context.stats().kept), (1, 0));
    }
}

#[test]
fn a_kernel_that_is_not_there_is_an_error_with_those_that_are() {
    let (_, context) = simulated();
    let error = context
        .kernel(&Sde::new(), 0, &copy(&context), "paste")
        .unwrap_err();
    let got = error.to_string();
    assert_eq!(got, "copy has no kernel \"paste\"; it has: copy, move");
}

#[test]
fn out_of_resources_lets_go_what_is_idle_and_tries_once_more() {
    let (driver, context) = simulated();
    let sde = Sde::new();
    driver.room_for(2);
    let make = |n| numbered(&context, &sde, n);
    let held = make(0).unwrap();
    for n in 1..5 {
        make(n).unwrap();
    }
    // Two fit: the one in use stayed, the others made room for one another.
    assert_eq!(context.stats().out_of_resources, 3);
    assert!(Value::ptr_eq(&held, &make(0).unwrap()));
    assert_eq!(driver.counts().builds, 5);
}

#[test]
fn out_of_resources_for_good_is_an_error_that_is_not_remembered() {
    let (context, faults) = faulty(&Simulated::new());
    let (sde, program) = (Sde::new(), copy(&context));
    faults.fail(&Call::THAT_MAKE_PROGRAMS, 2, OUT_OF_RESOURCES);
    let error = context.program(&sde, 0, &program).unwrap_err();
    assert!(matches!(error, Error::OutOfResources { .. }), "{error}");
    context.program(&sde, 0, &program).unwrap();
    faults.fail(&Call::THAT_MAKE_PROGRAMS, 1, OUT_OF_RESOURCES);
    let other = described(&context, "kernel void k() {}");
    context.program(&sde, 0, &other).unwrap();
    assert_eq!(context.stats().out_of_resources, 2);
}

#[test]
fn a_launch_that_lacks_resources_lets_go_idle_kernels_and_tries_once_more() {
    let driver = Simulated::new();
    let (context, faults) = faulty(&driver);
    let (sde, program) = (Sde::new(), copy(&context));
    let [copy, other] =
        ["copy", "move"].map(|name| context.kernel(&sde, 0, &program, name).unwrap());
    let held = copy.launch().unwrap();
    assert_eq!(driver.counts().kernels, 2);
    faults.fail(&[Call::CreateKernel], 1, OUT_OF_RESOURCES);
    let second = copy.launch().unwrap();
    // The idle one of the other kernel went.
    let counts = (driver.counts().kernels, context.stats().out_of_resources);
    assert_eq!(counts, (2, 1));
    faults.fail(&[Call::CreateKernel], 2, OUT_OF_RESOURCES);
    let error = other.launch().unwrap_err();
    assert!(error.is_out_of_resources(), "{error}");
    drop((held, second));
}

/// One eviction and one more try, not one for each of the devices.
#[test]
fn a_twin_that_lacks_resources_is_tried_twice() {
    let driver = Simulated::with(vec![device("twin", "1"), device("twin", "1")]);
    let (context, faults) = faulty(&driver);
    let program = copy(&context);
    faults.fail(&Call::THAT_MAKE_PROGRAMS, usize::MAX, OUT_OF_RESOURCES);
    let error = context.program(&Sde::new(), 1, &program).unwrap_err();
    assert!(error.is_out_of_resources(), "{error}");
    assert_eq!(context.stats().out_of_resources, 1);
}

/// An engine, and what returns when so many wait for a run of it.
fn counting_waits(number: usize) -> (Sde, impl Fn() + Send + Sync + 'static) {
    let waiting = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&waiting);
    let observer = move |event: &sde::Event| {
        if matches!(event, sde::Event::Waiting { .. }) {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    };
    let all_wait = move || {
        while waiting.load(Ordering::SeqCst) < number {
            thread::yield_now();
        }
    };
    let sde = Sde::builder().observer(observer).build().unwrap();
    (sde, all_wait)
}

/// The engine's promise, kept for builds: one waiter takes over, and nothing is poisoned.
#[test]
fn a_builder_that_panics_is_followed_by_one_that_waits() {
    const WAITING: usize = 8;
    let (driver, context) = simulated();
    let program = copy(&context);
    let (sde, all_wait) = counting_waits(WAITING);
    let tries = Arc::new(AtomicUsize::new(0));
    let hook = Arc::clone(&tries);
    driver.in_build(move |_| {
        if hook.fetch_add(1, Ordering::SeqCst) == 0 {
            all_wait();
            panic!("the compiler fell over");
        }
    });
    let outcomes = thread::scope(|scope| {
        let start = || scope.spawn(|| context.program(&sde, 0, &program).is_ok());
        let threads: Vec<_> = (0..=WAITING).map(|_| start()).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().ok())
            .collect::<Vec<_>>()
    });
    let got = outcomes.iter().filter(|outcome| outcome.is_none()).count();
    assert_eq!(got, 1);
    assert_eq!(
        outcomes
            .iter()
            .filter(|outcome| **outcome == Some(true))
            .count(),
        WAITING
    );
    assert_eq!(tries.load(Ordering::SeqCst), 2);
}

#[test]
fn options_and_parts_that_make_no_sense_are_errors_at_once() {
    let context = context(&Simulated::new());
    let linked = ProgramSpec::linked([ProgramSpec::source("a")]);
    for wrong in [
        ProgramSpec::source("a").option("-D"),
        ProgramSpec::source("a").constant(1, [1]),
        ProgramSpec::linked([]),
        ProgramSpec::linked([linked]),
        ProgramSpec::source("a").reads("gone.h"),
        ProgramSpec::source("a").define("A", "1\n"),
        ProgramSpec::source("a").define("A", "\\"),
        ProgramSpec::source("a").define("A", "1 \\ "),
        ProgramSpec::source("a").define("A", "1 /*"),
        ProgramSpec::il(*b"a").define("A", 1),
        ProgramSpec::il(*b"a").reads_no_other(),
    ] {
        assert!(context.describe(0, &wrong).is_err(), "{wrong:?}");
    }
}

/// What a driver refused once, for reasons of its own, all got who waited for the program. One of them tries
/// again, as after a panic.
#[test]
fn one_spurious_error_is_not_everybodys() {
    const WAITING: usize = 8;
    const DEVICE_NOT_AVAILABLE: i32 = -2;
    let driver = Simulated::new();
    let (context, faults) = faulty(&driver);
    let program = copy(&context);
    let (sde, all_wait) = counting_waits(WAITING);
    // The call after the build.
    faults.fail(&[Call::KernelNames], 1, DEVICE_NOT_AVAILABLE);
    driver.in_build(move |_| all_wait());
    let failed = thread::scope(|scope| {
        let start = || scope.spawn(|| context.program(&sde, 0, &program).is_err());
        let threads: Vec<_> = (0..=WAITING).map(|_| start()).collect();
        let failed = threads.into_iter().map(|thread| thread.join().unwrap());
        failed.filter(|failed| *failed).count()
    });
    let builds = driver.counts().builds;
    assert_eq!(
        failed,
        1,
        "{failed} of {} have failed, after {builds} build",
        WAITING + 1
    );
}
