//! Drivers that refuse what they made, or give nothing.

use std::sync::{Arc, Mutex};

use sde::Sde;
use sde_opencl::driver::faults::{Call, Faults};
use sde_opencl::driver::simulated::Simulated;
use sde_opencl::{Event, KernelDir, Settings};

use crate::fixture::{
    INVALID_BINARY, OUT_OF_RESOURCES, anew, context, copy, folder, keep, keeping, quiet,
};

#[test]
fn a_refused_binary_is_built_replaced_and_counted() {
    let kept = folder();
    anew(kept.path());
    let (driver, faults) = (Simulated::new(), Faults::new());
    faults.fail(&[Call::CreateWithBinary], 1, INVALID_BINARY);
    let told = Arc::new(Mutex::new(Vec::new()));
    let observer = Arc::clone(&told);
    let dir = KernelDir::open(Settings::new().dir(kept.path())).unwrap();
    let context = quiet(&driver)
        .keep_in_dir(&dir)
        .faults(&faults)
        .observer(move |event: &Event| observer.lock().unwrap().push(event.clone()))
        .build()
        .unwrap();
    let program = context.program(&Sde::new(), 0, &copy(&context)).unwrap();
    assert_eq!(program.kernel_names(), ["copy", "move"]);
    let stats = context.stats();
    assert_eq!((stats.refused, stats.builds, stats.kept), (1, 1, 1));
    // It was not tried a second time.
    let tries = faults.made();
    let tries = tries.iter().filter(|call| **call == Call::CreateWithBinary);
    assert_eq!(tries.count(), 1);
    let told = told.lock().unwrap();
    let refused = told
        .iter()
        .any(|event| matches!(event, Event::Refused { .. }));
    assert!(refused, "{told:?}");
    drop((program, context));
    let (driver, _) = anew(kept.path());
    assert_eq!((driver.counts().builds, driver.counts().damaged), (0, 0));
}

#[test]
fn no_resources_for_a_kept_binary_are_no_reason_to_build() {
    let kept = folder();
    anew(kept.path());
    let (driver, faults) = (Simulated::new(), Faults::new());
    faults.fail(&[Call::CreateWithBinary], 1, OUT_OF_RESOURCES);
    let context = keep(quiet(&driver).faults(&faults), kept.path());
    context.program(&Sde::new(), 0, &copy(&context)).unwrap();
    let counts = (driver.counts().builds, context.stats().out_of_resources);
    assert_eq!(counts, (0, 1));
}

#[test]
fn a_driver_that_gives_no_binaries_builds_each_time_and_keeps_nothing() {
    let kept = folder();
    for _ in 0..2 {
        let driver = Simulated::new();
        driver.give_no_binaries();
        let context = keeping(&driver, kept.path());
        context.program(&Sde::new(), 0, &copy(&context)).unwrap();
        let stats = context.stats();
        assert_eq!((stats.builds, stats.kept, stats.not_kept), (1, 0, 1));
        let why = stats.why_not_kept.unwrap();
        assert!(why.contains("gives no binary"), "{why}");
    }
    let twins = sde_opencl::driver::simulated::device("twin", "1");
    let driver = Simulated::with(vec![twins.clone(), twins]);
    driver.give_no_binaries();
    let context = context(&driver);
    let program = copy(&context);
    context.program(&Sde::new(), 1, &program).unwrap();
    assert_eq!(driver.counts().builds, 2);
}
