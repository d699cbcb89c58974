//! Faults that are known and not mended yet. Each test says what must be, and passes by failing in the way
//! that is expected of it now; it turns red on the day that the fault is mended, and moves to where it belongs.
//!
//! One can have no test: the settings of a kernel cache can't be asked for (`Settings` and `KernelDir` have no getters), where oneDNN's proposal
//! has one for each.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use sde::Sde;
use sde_opencl::driver::faults::Call;
use sde_opencl::driver::simulated::Simulated;
use sde_opencl::{Environment, ProgramSpec};

use crate::fixture::{context, copy, faulty, quiet};

/// That no build of this source is kept: a file that it reads may be changed without anybody seeing it.
fn must_not_be_kept(source: &str) {
    let context = context(&Simulated::new());
    let program = context.describe(0, &ProgramSpec::source(source)).unwrap();
    let why = program.is_cacheable().err();
    assert!(why.is_some(), "it is kept: {source}");
}

/// Found by reading: an include that is not found is noted as missing, and the program is kept. A driver may have
/// directories of its own, and find it: it builds with a file that is not in the key.
#[test]
#[should_panic(expected = "it is kept: #include <of_the_driver.h>")]
fn an_include_that_only_the_driver_may_find() {
    must_not_be_kept("#include <of_the_driver.h>\nkernel void k() {}");
}

#[test]
#[should_panic(expected = "it is kept: #if X")]
fn an_include_under_a_condition_that_only_the_driver_may_find() {
    must_not_be_kept("#if X\n#include \"of_the_driver.h\"\n#endif\nkernel void k() {}");
}

/// Found by reading: the words that ask which files there are were looked for as they are written, and a macro puts
/// them together.
#[test]
#[should_panic(expected = "it is kept: #define CAT")]
fn a_question_for_a_file_that_a_macro_puts_together() {
    must_not_be_kept("#define CAT(a, b) a##b\n#if CAT(__has_,include)(\"a.h\")\n#endif");
}

/// The same for an assembler's directive, since compilers join texts that stand beside one another.
#[test]
#[should_panic(expected = "it is kept: __asm__(")]
fn a_file_of_an_assembler_in_a_text_of_two_pieces() {
    must_not_be_kept("__asm__(\".inc\" \"bin \\\"t.bin\\\"\");");
}

/// Found by reading: what a driver refuses once, for reasons of its own, all get who wait for the program. One of them
/// should try again, as after a panic.
#[test]
#[should_panic(expected = "9 of 9 have failed, after 1 build")]
fn one_spurious_error_is_not_everybodys() {
    const WAITING: usize = 8;
    const DEVICE_NOT_AVAILABLE: i32 = -2;
    let driver = Simulated::new();
    let (context, faults) = faulty(&driver);
    let program = copy(&context);
    let waiting = Arc::new(AtomicUsize::new(0));
    let observer = {
        let waiting = Arc::clone(&waiting);
        move |event: &sde::Event| {
            if matches!(event, sde::Event::Waiting { .. }) {
                waiting.fetch_add(1, Ordering::SeqCst);
            }
        }
    };
    let sde = Sde::builder().observer(observer).build().unwrap();
    // The call after the build.
    faults.fail(&[Call::KernelNames], 1, DEVICE_NOT_AVAILABLE);
    driver.in_build(move |_| {
        while waiting.load(Ordering::SeqCst) < WAITING {
            thread::yield_now();
        }
    });
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

/// Found by reading: the options for every build are for those of parts only, though some are a linker's too.
#[test]
#[should_panic(expected = "the linker is given ``")]
fn the_options_for_every_build_are_for_links_too() {
    let option = "-cl-fast-relaxed-math";
    let variables = move || vec![("SDE_OPENCL_BUILD_OPTIONS".to_owned(), option.to_owned())];
    let context = quiet(&Simulated::new()).environment(Environment::reading(variables));
    let parts = [ProgramSpec::source("kernel void k() {}")];
    let linked = context
        .build()
        .unwrap()
        .describe(0, &ProgramSpec::linked(parts))
        .unwrap();
    let given = linked.options();
    assert!(given.contains(option), "the linker is given `{given}`");
}
