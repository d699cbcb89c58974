//! Many drivers finish code at the first launch, so the binary is captured again after it.

use std::path::Path;

use sde::Sde;
use sde_opencl::driver::simulated::Simulated;
use sde_opencl::{Context, Stats};

use crate::fixture::{copy, folder, keeping};

/// Launches these kernels and gives what came of it.
fn launch(kept: &Path, names: &[&str]) -> Stats {
    let context = keeping(&Simulated::new(), kept);
    launch_in(&context, names);
    context.stats()
}

fn launch_in(context: &Context, names: &[&str]) {
    let sde = Sde::new();
    for name in names {
        let kernel = context.kernel(&sde, 0, &copy(context), name).unwrap();
        let launch = kernel.launch().unwrap();
        launch.enqueued();
    }
}

#[test]
fn the_binary_is_replaced_after_the_launch_of_a_kernel_that_it_has_no_code_for() {
    let kept = folder();
    let first = launch(kept.path(), &["copy"]);
    assert_eq!((first.builds, first.kept, first.replaced), (1, 2, 1));
    // Nothing new is in it.
    assert_eq!(launch(kept.path(), &["copy", "copy"]).kept, 0);
    let more = launch(kept.path(), &["copy", "move"]);
    assert_eq!((more.builds, more.replaced), (0, 1));
    for names in [&["copy"][..], &["move"], &["copy", "move"]] {
        assert_eq!(launch(kept.path(), names).kept, 0, "{names:?}");
    }
}

/// PoCL gives what it gave first.
#[test]
fn a_driver_that_freezes_binaries_is_asked_for_that_of_a_new_program() {
    let kept = folder();
    let driver = Simulated::new();
    driver.freeze_binaries();
    let context = keeping(&driver, kept.path());
    launch_in(&context, &["copy"]);
    assert_eq!((driver.counts().builds, context.stats().builds), (2, 1));
    assert_eq!((context.stats().replaced, driver.counts().programs), (1, 0));
}

#[test]
fn a_kernel_that_was_not_launched_is_no_reason() {
    let kept = folder();
    let context = keeping(&Simulated::new(), kept.path());
    let kernel = context
        .kernel(&Sde::new(), 0, &copy(&context), "copy")
        .unwrap();
    drop(kernel.launch().unwrap());
    drop(kernel);
    assert_eq!(context.stats().kept, 1);
}

#[test]
fn it_can_be_asked_for_while_the_program_lives() {
    let kept = folder();
    let context = keeping(&Simulated::new(), kept.path());
    let sde = Sde::new();
    let kernel = context.kernel(&sde, 0, &copy(&context), "copy").unwrap();
    assert_eq!(context.keep_launched(), 0);
    kernel.launch().unwrap().enqueued();
    assert_eq!(context.keep_launched(), 1);
    assert_eq!(context.keep_launched(), 0);
}

/// The one that has launched less does not take the place of the one that has launched more.
#[test]
fn a_better_one_of_another_process_stays() {
    let kept = folder();
    let slow = keeping(&Simulated::new(), kept.path());
    let sde = Sde::new();
    let kernel = slow.kernel(&sde, 0, &copy(&slow), "copy").unwrap();
    assert_eq!(launch(kept.path(), &["copy", "move"]).replaced, 1);
    kernel.launch().unwrap().enqueued();
    assert_eq!(slow.keep_launched(), 0);
    assert_eq!(launch(kept.path(), &["move"]).kept, 0);
}
