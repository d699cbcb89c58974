//! What is live is found again, in its context, and let go in the end.

use sde::{Event, EventLog, MemoryBudget, Sde, Value};
use sde_opencl::driver::simulated::{Simulated, device};
use sde_opencl::{ProgramSpec, memory_budget};

use crate::fixture::{COPY, context, copied, copy, folder, keeping, numbered, quiet, simulated};

#[test]
fn a_kernel_is_made_once_and_each_kernel_of_a_program_is_remembered() {
    let (driver, context) = simulated();
    let (sde, program) = (Sde::new(), copy(&context));
    let first = context.kernel(&sde, 0, &program, "copy").unwrap();
    let again = context.kernel(&sde, 0, &copy(&context), "copy").unwrap();
    assert!(Value::ptr_eq(&first, &again));
    context.kernel(&sde, 0, &program, "move").unwrap();
    assert_eq!(driver.counts().builds, 1);
    assert_eq!(driver.counts().kernels, 2);
    let got = first.program().log();
    assert_eq!(got, format!("{} bytes compiled", COPY.len()));
}

#[test]
fn a_clone_is_the_same_context_and_another_is_not() {
    let driver = Simulated::new();
    let (one, other) = (context(&driver), context(&driver));
    let sde = Sde::new();
    let program = copy(&one);
    one.program(&sde, 0, &program).unwrap();
    one.clone().program(&sde, 0, &program).unwrap();
    assert_eq!(driver.counts().builds, 1);
    other.program(&sde, 0, &program).unwrap();
    assert_eq!(driver.counts().builds, 2);
}

#[test]
fn devices_of_equal_identity_share_a_binary_and_others_do_not() {
    let twins = vec![device("twin", "1"), device("odd", "1"), device("twin", "1")];
    let driver = Simulated::with(twins);
    let context = context(&driver);
    let sde = Sde::new();
    for at in [2, 0, 1] {
        let program = context.describe(at, &ProgramSpec::source(COPY)).unwrap();
        let kernel = context.kernel(&sde, at, &program, "copy").unwrap();
        assert_eq!(kernel.program().device(), at);
    }
    assert_eq!(driver.counts().builds, 2);
    assert_eq!(context.stats().shared, 1);
}

#[test]
fn parts_are_compiled_once_for_all_that_link_them() {
    let (driver, context) = simulated();
    let sde = Sde::new();
    let common = ProgramSpec::source("int common() { return 1; }");
    for n in 0..3 {
        let own = ProgramSpec::source(format!("kernel void k{n}() {{}}"));
        let program = ProgramSpec::linked([own, common.clone()]);
        let program = context.describe(0, &program).unwrap();
        context.kernel(&sde, 0, &program, &format!("k{n}")).unwrap();
    }
    assert_eq!((driver.counts().compiles, driver.counts().links), (4, 3));
}

#[test]
fn an_intermediate_language_is_built_with_its_constants() {
    let mut taking = device("il", "1");
    let refusing = Simulated::with(vec![taking.clone()]);
    taking.il = "SPIR-V_1.2".to_owned();
    let driver = Simulated::with(vec![taking]);
    let spec = ProgramSpec::il(*b"kernel void k(").constant(7, 3_u32.to_le_bytes());
    let sde = Sde::new();
    let with_il = context(&driver);
    let program = with_il.describe(0, &spec).unwrap();
    let kernel = with_il.kernel(&sde, 0, &program, "k").unwrap();
    let binary = String::from_utf8_lossy(&kernel.program().binary().unwrap()).into_owned();
    assert!(binary.contains("7=[3, 0, 0, 0]"), "{binary}");

    let without = context(&refusing);
    let program = without.describe(0, &spec).unwrap();
    let error = without.program(&sde, 0, &program).unwrap_err();
    assert!(matches!(error, sde_opencl::Error::NoIl { .. }), "{error}");
    assert_eq!(refusing.counts().programs, 0);

    // A module that is refused is refused for good, and the driver is asked once.
    let wrong = with_il.describe(0, &ProgramSpec::il(*b"")).unwrap();
    let before = driver.counts().from_il;
    for _ in 0..2 {
        let error = with_il.program(&sde, 0, &wrong).unwrap_err();
        assert!(matches!(error, sde_opencl::Error::NoIl { .. }), "{error}");
        assert!(error.is_permanent());
    }
    assert_eq!(driver.counts().from_il, before + 1);
}

#[test]
fn all_is_given_back_when_engine_and_handles_are_gone() {
    let kept = folder();
    let driver = Simulated::new();
    {
        let context = keeping(&driver, kept.path());
        let sde = Sde::new();
        let parts = [ProgramSpec::source(COPY), ProgramSpec::source("int f() {}")];
        for spec in [ProgramSpec::source(COPY), ProgramSpec::linked(parts)] {
            let program = context.describe(0, &spec).unwrap();
            let kernel = context.kernel(&sde, 0, &program, "copy").unwrap();
            let launches = [kernel.launch().unwrap(), kernel.launch().unwrap()];
            assert_eq!(launches.len(), 2);
        }
        assert!(driver.counts().programs >= 2 && driver.counts().kernels >= 4);
    }
    assert_eq!((driver.counts().programs, driver.counts().kernels), (0, 0));
}

#[test]
fn launches_have_kernels_of_their_own_and_give_them_back() {
    let (driver, context) = simulated();
    let kernel = copied(&context);
    for _ in 0..3 {
        let one = kernel.launch().unwrap();
        let other = kernel.launch().unwrap();
        assert!(one.opencl().is_none());
        drop((one, other));
        assert_eq!(driver.counts().kernels, 2);
    }
    context.release_idle();
    assert_eq!(driver.counts().kernels, 0);
    drop(kernel.launch().unwrap());
    assert_eq!(driver.counts().kernels, 1);
}

/// Those used longest ago go; never one whose kernel somebody holds.
#[test]
fn programs_leave_by_bytes_but_not_those_in_use() {
    let (driver, context) = simulated();
    let log = EventLog::new();
    // Without a store nobody has seen a binary: each counts with some 64 KiB.
    let builder = Sde::builder().observer(log.clone());
    let sde = memory_budget(builder, MemoryBudget::bytes(10 * (64 << 10) + (32 << 10)))
        .build()
        .unwrap();
    let kernel = |n| numbered(&context, &sde, n).unwrap();
    let in_use = kernel(0);
    for n in 1..40 {
        kernel(n);
        assert!(
            driver.counts().programs <= 21,
            "{}",
            driver.counts().programs
        );
    }
    let evicted = log
        .events()
        .iter()
        .filter(|e| matches!(e, Event::Evicted { .. }))
        .count();
    assert!(evicted > 20, "{evicted}");
    let builds = driver.counts().builds;
    assert!(Value::ptr_eq(&in_use, &kernel(0)));
    kernel(39);
    assert_eq!(driver.counts().builds, builds);
    kernel(1);
    assert_eq!(driver.counts().builds, builds + 1);
}

/// Without a budget of the engine's programs stayed for ever, and with one those stayed of which one kernel of many was used: it
/// counted with its part of the program, and held all of it.
#[test]
fn a_context_lets_go_what_is_too_much_by_itself() {
    const PROGRAM: usize = 64 << 10;
    for by_engine in [false, true] {
        let driver = Simulated::new();
        let (mut builder, mut sde) = (quiet(&driver), Sde::builder());
        match by_engine {
            true => sde = memory_budget(sde, MemoryBudget::bytes(10 * PROGRAM)),
            false => builder = builder.memory_limit(10 * PROGRAM),
        }
        let (context, sde) = (builder.build().unwrap(), sde.build().unwrap());
        let kernel = |n: usize| {
            let spec = ProgramSpec::source(format!("kernel void k{n}() {{}} {COPY}{COPY}"));
            let program = context.describe(0, &spec).unwrap();
            context.kernel(&sde, 0, &program, "copy").unwrap()
        };
        let in_use = kernel(0);
        for n in 1..40 {
            kernel(n);
            let programs = driver.counts().programs;
            assert!(programs <= 12, "{programs}, by the engine: {by_engine}");
        }
        let builds = driver.counts().builds;
        assert!(Value::ptr_eq(&in_use, &kernel(0)));
        kernel(39);
        assert_eq!(driver.counts().builds, builds);
    }
    assert_eq!(context(&Simulated::new()).memory_limit(), 1 << 30);
}

/// Found by reading: they are expendable, so under the budget that programs have by default none of them ever left.
#[test]
fn programs_leave_by_default_but_not_those_in_use() {
    let (driver, context) = simulated();
    // There is room for about eight programs, each with one kernel; some are found free later.
    let budget = MemoryBudget::bytes(16 * (64 << 10)).only_saved();
    let sde = Sde::builder().memory_budget(budget).build().unwrap();
    let kernel = |n| numbered(&context, &sde, n).unwrap();
    let in_use = kernel(0);
    for n in 1..40 {
        kernel(n);
        let live = driver.counts().programs;
        assert!(live <= 20, "{live}");
    }
    let builds = driver.counts().builds;
    assert!(Value::ptr_eq(&in_use, &kernel(0)));
    assert_eq!(driver.counts().builds, builds);
}
