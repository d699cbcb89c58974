//! Many programs at once.

use sde::Sde;
use sde_opencl::driver::simulated::{Simulated, device};
use sde_opencl::{Context, Descriptor, Error, ProgramSpec};

use crate::fixture::{copy, quiet, simulated};
use crate::own_store::Own;

fn on(driver: &Simulated, own: &Own) -> Context {
    quiet(driver).keep_in(own.clone()).build().unwrap()
}

fn ten(context: &Context) -> Vec<Descriptor> {
    let spec = |n| ProgramSpec::source(format!("kernel void k{n}() {{}}"));
    let all = (0..10).map(|n| context.describe(0, &spec(n)).unwrap());
    all.collect()
}

/// Has the kernel of each of them, and launches it.
fn launch_ten(sde: &Sde, context: &Context) {
    for (n, program) in ten(context).iter().enumerate() {
        let kernel = context.kernel(sde, 0, program, &format!("k{n}")).unwrap();
        kernel.launch().unwrap().enqueued();
    }
}

#[test]
fn programs_that_are_not_live_are_asked_for_in_one_call() {
    let own = Own::default();
    let driver = Simulated::new();
    let first = on(&driver, &own);
    let all = ten(&first);
    let programs = first.programs(&Sde::new(), 0, &all);
    assert!(programs.iter().all(Result::is_ok));
    assert_eq!(driver.counts().builds, 10);
    // Each is kept when it was built: a process that is killed loses no build that ended.
    assert_eq!(own.calls(), (vec![10], vec![1; 10]));
    drop((programs, first));

    let driver = Simulated::new();
    let second = on(&driver, &own);
    let (sde, all) = (Sde::new(), ten(&second));
    let live = second.program(&sde, 0, &all[3]).unwrap();
    own.calls();
    let programs = second.programs(&sde, 0, &all);
    for (n, program) in programs.iter().enumerate() {
        let names = program.as_ref().unwrap().kernel_names();
        assert_eq!(names, [format!("k{n}")]);
    }
    assert!(sde::Value::ptr_eq(programs[3].as_ref().unwrap(), &live));
    assert_eq!(own.calls(), (vec![9], vec![]));
    let stats = second.stats();
    assert_eq!((stats.builds, stats.loads), (0, 10));
    // All are live now.
    second.programs(&sde, 0, &all);
    assert_eq!(own.calls(), (vec![], vec![]));
}

/// A device that is like another has its programs by way of that one.
#[test]
fn a_twin_asks_for_what_the_first_device_has_not() {
    let own = Own::default();
    let twins = || Simulated::with(vec![device("twin", "1"), device("twin", "1")]);
    for builds in [10, 0] {
        let driver = twins();
        let context = on(&driver, &own);
        let programs = context.programs(&Sde::new(), 1, &ten(&context));
        assert!(programs.iter().all(Result::is_ok));
        assert_eq!(driver.counts().builds, builds);
        assert_eq!(own.calls().0[0], 10);
        drop((programs, context));
    }
}

#[test]
fn one_that_fails_keeps_no_other_from_being_had() {
    let (_, context) = simulated();
    let mut all = ten(&context);
    let wrong = ProgramSpec::source("#error no");
    all.insert(4, context.describe(0, &wrong).unwrap());
    // What can't be remembered is built each time, beside the others.
    let now = ProgramSpec::source("kernel void k() { char *now = __TIME__; }");
    all.push(context.describe(0, &now).unwrap());
    let programs = context.programs(&Sde::new(), 0, &all);
    for (n, program) in programs.iter().enumerate() {
        match (n, program) {
            (4, Err(Error::Build { .. })) => {}
            (n, Ok(_)) if n != 4 => {}
            (n, other) => panic!("{n}: {other:?}"),
        }
    }
}

/// What comes in one call is checked as what comes alone.
#[test]
fn a_store_that_lies_or_fails_is_not_believed() {
    let own = Own::default();
    let driver = Simulated::new();
    let first = on(&driver, &own);
    first.programs(&Sde::new(), 0, &ten(&first));
    drop(first);
    {
        let mut kept = own.kept.lock().unwrap();
        let keys: Vec<_> = kept.keys().copied().collect();
        let other = kept[&keys[1]].clone();
        kept.get_mut(&keys[0]).unwrap()[100] ^= 1;
        kept.insert(keys[2], other);
    }
    let driver = Simulated::new();
    let second = on(&driver, &own);
    let programs = second.programs(&Sde::new(), 0, &ten(&second));
    for (n, program) in programs.iter().enumerate() {
        let names = program.as_ref().unwrap().kernel_names();
        assert_eq!(names, [format!("k{n}")]);
    }
    let stats = second.stats();
    assert_eq!((stats.builds, stats.loads, stats.unfit), (2, 8, 2));
    assert_eq!((stats.kept, driver.counts().damaged), (2, 0));
    *own.fails.lock().unwrap() = true;
    let driver = Simulated::new();
    let third = on(&driver, &own);
    let programs = third.programs(&Sde::new(), 0, &ten(&third));
    assert!(programs.iter().all(Result::is_ok));
    assert_eq!(driver.counts().builds, 10);
}

/// What was launched is asked for, and put, in one call, but 64 at a time.
#[test]
fn what_was_launched_is_kept_in_one_call() {
    let own = Own::default();
    let context = on(&Simulated::new(), &own);
    let sde = Sde::new();
    launch_ten(&sde, &context);
    own.calls();
    assert_eq!(context.keep_launched(), 10);
    assert_eq!(own.calls(), (vec![10], vec![10]));
    let got = (context.keep_launched(), own.calls());
    assert_eq!(got, (0, (vec![], vec![])));
    for n in 0..70 {
        let spec = ProgramSpec::source(format!("kernel void m{n}() {{}}"));
        let program = context.describe(0, &spec).unwrap();
        let kernel = context.kernel(&sde, 0, &program, &format!("m{n}"));
        kernel.unwrap().launch().unwrap().enqueued();
    }
    own.calls();
    assert_eq!(context.keep_launched(), 70);
    assert_eq!(own.calls(), (vec![64, 6], vec![64, 6]));
    // Another process finds that all is there.
    let next = on(&Simulated::new(), &own);
    launch_ten(&Sde::new(), &next);
    own.calls();
    assert_eq!((next.keep_launched(), own.calls().1), (0, vec![]));
}

/// What could not be put is tried again, once its kernels were launched.
#[test]
fn what_could_not_be_put_is_tried_again() {
    let own = Own::default();
    let context = on(&Simulated::new(), &own);
    let sde = Sde::new();
    *own.fails.lock().unwrap() = true;
    launch_ten(&sde, &context);
    assert_eq!(context.keep_launched(), 0);
    *own.fails.lock().unwrap() = false;
    assert_eq!((context.keep_launched(), context.keep_launched()), (10, 0));
}

/// Of two devices of equal identity each launched another kernel: each took the place of the other's binary for ever.
#[test]
fn twins_that_launch_different_kernels_do_not_replace_one_another() {
    let own = Own::default();
    let driver = Simulated::with(vec![device("twin", "1"), device("twin", "1")]);
    driver.freeze_binaries();
    let context = on(&driver, &own);
    let sde = Sde::new();
    for (device, name) in [(0, "copy"), (1, "move")] {
        let kernel = context.kernel(&sde, device, &copy(&context), name);
        kernel.unwrap().launch().unwrap().enqueued();
    }
    own.calls();
    assert_eq!(context.keep_launched(), 1);
    assert_eq!((context.keep_launched(), own.calls().1), (0, vec![1]));
    drop((sde, context));
    // Whoever loads it and launches what it lacks has both.
    let next = on(&driver, &own);
    let sde = Sde::new();
    let kernel = next.kernel(&sde, 0, &copy(&next), "move").unwrap();
    kernel.launch().unwrap().enqueued();
    assert_eq!(next.keep_launched(), 1);
    drop((sde, next));
    let last = on(&driver, &own);
    let sde = Sde::new();
    for name in ["copy", "move"] {
        let kernel = last.kernel(&sde, 0, &copy(&last), name);
        kernel.unwrap().launch().unwrap().enqueued();
    }
    assert_eq!(last.keep_launched(), 0);
}

/// It is the same program, whoever asked for it in which way.
#[test]
fn a_program_asked_for_twice_in_one_list_is_built_once() {
    let (driver, context) = simulated();
    let programs = vec![copy(&context); 5];
    let programs = context.programs(&Sde::new(), 0, &programs);
    assert!(programs.iter().all(Result::is_ok));
    assert_eq!(driver.counts().builds, 1);
}
