//! Drivers that refuse what they made, or give nothing.

use std::sync::{Arc, Mutex};

use sde::Sde;
use sde_opencl::driver::faults::{Call, Faults};
use sde_opencl::driver::simulated::Simulated;
use sde_opencl::{Event, KernelDir, KernelStore, Settings, Wanted};

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
        .keep_in(dir)
        .faults(&faults)
        .observer(move |event: &Event| observer.lock().unwrap().push(event.clone()))
        .build()
        .unwrap();
    let program = context.program(&Sde::new(), 0, &copy(&context)).unwrap();
    assert_eq!(program.kernel_names(), ["copy", "move"]);
    let stats = context.stats();
    assert_eq!((stats.refused, stats.builds, stats.replaced), (1, 1, 1));
    // It was not tried a second time once the turn was had.
    let tries = faults.made();
    let tries = tries.iter().filter(|call| **call == Call::CreateWithBinary);
    assert_eq!(tries.count(), 1);
    let told = told.lock().unwrap();
    let refused = told
        .iter()
        .any(|event| matches!(event, Event::Refused { .. }));
    let replaced = told
        .iter()
        .any(|event| matches!(event, Event::Kept { replaced: true, .. }));
    assert!(refused && replaced, "{told:?}");
}

#[test]
fn no_resources_for_a_kept_binary_are_no_reason_to_build() {
    let kept = folder();
    anew(kept.path());
    let (driver, faults) = (Simulated::new(), Faults::new());
    faults.fail(&[Call::CreateWithBinary], 1, OUT_OF_RESOURCES);
    let context = keep(quiet(&driver).faults(&faults), kept.path());
    context.program(&Sde::new(), 0, &copy(&context)).unwrap();
    assert_eq!(
        (driver.counts().builds, context.stats().out_of_resources),
        (0, 1)
    );
}

#[test]
fn a_driver_that_gives_no_binaries_builds_each_time_and_keeps_nothing() {
    let kept = folder();
    for _ in 0..2 {
        let driver = Simulated::new();
        driver.give_no_binaries();
        let context = keeping(&driver, kept.path());
        context.program(&Sde::new(), 0, &copy(&context)).unwrap();
        assert_eq!((driver.counts().builds, context.stats().kept), (1, 0));
    }
    let twins = sde_opencl::driver::simulated::device("twin", "1");
    let driver = Simulated::with(vec![twins.clone(), twins]);
    driver.give_no_binaries();
    let context = context(&driver);
    let program = copy(&context);
    context.program(&Sde::new(), 1, &program).unwrap();
    assert_eq!(driver.counts().builds, 2);
}

/// A driver may take what it would not run.
#[test]
fn a_binary_without_its_kernels_is_built_anew_and_replaced() {
    let kept = folder();
    let (_, context) = anew(kept.path());
    let dir = KernelDir::open(Settings::new().dir(kept.path())).unwrap();
    let program = copy(&context);
    let wanted = Wanted {
        key: program.key(),
        full: program.full_key(),
        device_type: context.devices()[0].kind,
    };
    let mut there = dir.get(&[wanted]).unwrap().pop().flatten().unwrap();
    there.kernels.push("gone".to_owned());
    dir.put(&[there.seal()]).unwrap();
    drop(dir);
    let (driver, context) = anew(kept.path());
    let stats = context.stats();
    assert_eq!((stats.refused, driver.counts().builds), (1, 1));
    drop(context);
    assert_eq!(anew(kept.path()).0.counts().builds, 0);
}
