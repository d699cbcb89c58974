//! Devices, new processes, and what makes two of them share.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Barrier;
use std::time::Instant;

use sde::Sde;

use super::{NO_DEVICE, axpy, context, expected, run, skip, start};
use crate::child::{Worker, tell};
use crate::fixture::folder;

/// The job of most tests: has the kernel on each device, launches it, tells how it was had.
pub fn launch_and_tell(dir: &Path) {
    let Some(context) = context(dir) else {
        tell("no device");
        return;
    };
    let sde = Sde::new();
    let mut log = String::new();
    for device in 0..context.devices().len() {
        let begun = Instant::now();
        let program = context.describe(device, &axpy()).unwrap();
        let kernel = context.kernel(&sde, device, &program, "axpy").unwrap();
        let had = begun.elapsed();
        assert_eq!(run(&context, device, &kernel.launch().unwrap()), expected());
        log = format!(
            "device {device}: had in {had:?}, launched by {:?}",
            begun.elapsed()
        );
        eprintln!("{log}");
        assert_eq!(kernel.program().kernel_names(), ["axpy", "half_of"]);
        let identity = &context.devices()[device].identity;
        assert!(identity.language.starts_with("OpenCL C "), "{identity:?}");
        assert!(identity.extensions.contains("cl_khr_"), "{identity:?}");
    }
    assert!(!log.is_empty());
    // When the program goes, its binary is captured once more.
    drop(sde);
    let stats = context.stats();
    tell(format!("devices {}", context.devices().len()));
    tell(format!("builds {}", stats.builds));
    tell(format!("loads {}", stats.loads));
    tell(format!("shared {}", stats.shared));
    tell(format!("kept {}", stats.kept));
    let counts = (stats.refused, stats.unfit, stats.store_failures);
    assert_eq!(counts, (0, 0, 0));
}

/// What it told: nothing if there is no device.
fn told(worker: &mut Worker, test: &str) -> Option<Vec<String>> {
    let told: Vec<_> = std::iter::from_fn(|| worker.next()).collect();
    if told == ["no device"] {
        skip(test, NO_DEVICE);
        return None;
    }
    assert_eq!(told.len(), 5, "it did not come to its end: {told:?}");
    Some(told)
}

#[test]
fn a_new_process_loads_what_another_built_and_launched() {
    let test = "a_new_process_loads_what_another_built_and_launched";
    let kept = folder();
    let one = [("POCL_DEVICES", "pthread")];
    let (mut worker, _drivers) = start("launch", &kept, &one);
    let Some(first) = told(&mut worker, test) else {
        return;
    };
    assert_eq!(
        first,
        ["devices 1", "builds 1", "loads 0", "shared 0", "kept 2"]
    );
    let (mut worker, _drivers) = start("launch", &kept, &one);
    let second = told(&mut worker, test).unwrap();
    assert_eq!(
        second,
        ["devices 1", "builds 0", "loads 1", "shared 0", "kept 0"]
    );
}

/// The job of the test below: the first look for devices, from many threads.
pub fn look_with_many_threads() {
    let together = Barrier::new(16);
    let found = std::thread::scope(|scope| {
        let look = || {
            together.wait();
            sde_opencl::devices().map_or(0, |found| found.len())
        };
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(look)).collect();
        let found = threads.into_iter().map(|thread| thread.join().unwrap());
        found.collect::<BTreeSet<_>>()
    });
    tell(format!("{found:?}"));
}

/// PoCL 3.1 sets up its devices without a lock: of two threads that looked for them first, one read
/// names that were not there yet, and the process ended.
#[test]
fn many_threads_may_look_for_devices_first() {
    let test = "many_threads_may_look_for_devices_first";
    let kept = folder();
    for _ in 0..8 {
        let (mut worker, _drivers) = start("threads", &kept, &[]);
        let told = worker.next();
        if told.as_deref() == Some("{0}") {
            skip(test, NO_DEVICE);
            return;
        }
        let one_count = told.as_deref().is_some_and(|told| !told.contains(','));
        assert!(one_count, "{told:?}");
    }
}

/// What two processes tell of a launch, one after the other, if the driver shows devices that are `such`.
fn launched_twice(
    test: &str,
    settings: &[(&str, &str)],
    such: impl Fn(&str) -> bool,
) -> Option<[Vec<String>; 2]> {
    let kept = folder();
    let (mut worker, _drivers) = start("launch", &kept, settings);
    let first = told(&mut worker, test)?;
    if !such(&first[0]) {
        skip(test, &format!("this driver shows {} only", first[0]));
        return None;
    }
    let (mut worker, _drivers) = start("launch", &kept, settings);
    Some([first, told(&mut worker, test).unwrap()])
}

#[test]
fn two_devices_of_equal_identity_share_one_build() {
    let test = "two_devices_of_equal_identity_share_one_build";
    let two = [("POCL_DEVICES", "pthread pthread")];
    if let Some([first, second]) = launched_twice(test, &two, |shown| shown == "devices 2") {
        assert_eq!(first[1..4], ["builds 1", "loads 0", "shared 1"]);
        assert_eq!(second[1..4], ["builds 0", "loads 1", "shared 1"]);
    }
}

/// PoCL lists the binaries of those devices only that a program was built for, but all devices. The first device got the binary of the
/// second, and what was built for the second was never kept.
#[test]
fn the_binary_of_each_device_is_kept() {
    let test = "the_binary_of_each_device_is_kept";
    let two = [("POCL_DEVICES", "basic pthread")];
    if let Some([first, second]) = launched_twice(test, &two, |shown| shown == "devices 2") {
        // Each when it was built, and again with what was finished at its launch.
        assert_eq!(first[1..], ["builds 2", "loads 0", "shared 0", "kept 4"]);
        assert_eq!(second[1..], ["builds 0", "loads 2", "shared 0", "kept 0"]);
    }
}

/// Of the parts of a device none had the binary of another: each was built for itself.
#[test]
fn parts_of_a_device_share_its_build() {
    let test = "parts_of_a_device_share_its_build";
    let parts = [("POCL_DEVICES", "pthread"), ("sub_devices", "1")];
    // One without parts is shown as it is.
    if let Some([first, second]) = launched_twice(test, &parts, |shown| shown != "devices 1") {
        assert_eq!(first[1..3], ["builds 1", "loads 0"]);
        assert_eq!(second[1..3], ["builds 0", "loads 1"]);
    }
}

#[test]
fn a_switch_of_the_driver_is_another_program() {
    let test = "a_switch_of_the_driver_is_another_program";
    let kept = folder();
    let mut builds = Vec::new();
    for method in ["loopvec", "loops", "loopvec"] {
        let switch = [
            ("POCL_WORK_GROUP_METHOD", method),
            ("POCL_DEVICES", "pthread"),
        ];
        let (mut worker, _drivers) = start("launch", &kept, &switch);
        let Some(told) = told(&mut worker, test) else {
            return;
        };
        builds.push(told[1].clone());
    }
    assert_eq!(builds, ["builds 1", "builds 1", "builds 0"]);
}
