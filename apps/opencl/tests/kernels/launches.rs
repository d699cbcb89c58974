//! Many drivers finish code at the first launch, so the binary is captured again after it.

use std::path::Path;

use sde::Sde;
use sde::archiver::{Announced, Archiver};
use sde_archives::DirStore;
use sde_opencl::driver::simulated::{Simulated, device};
use sde_opencl::{Context, ProgramSpec, Stats};

use crate::child::{Worker, listen, tell};
use crate::fixture::{COPY, copied, copy, entries, folder, keeping, quiet};
use crate::own_store::Own;

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

/// The job: announces all that is kept, for ever.
pub fn announce(dir: &Path) {
    let store = DirStore::open(dir).unwrap();
    let announced = entries(dir)
        .into_iter()
        .map(|entry| store.announce(&entry.record.app, &entry.record.key));
    let announced: Vec<_> = announced.collect();
    let mut each = announced.iter();
    assert!(each.all(|one| matches!(one, Announced::Mine(_))));
    tell("announced");
    listen();
}

#[test]
fn the_binary_is_replaced_after_the_launch_of_a_kernel_that_it_has_no_code_for() {
    let kept = folder();
    let first = launch(kept.path(), &["copy"]);
    assert_eq!((first.builds, first.kept), (1, 2));
    // Nothing new is in it.
    assert_eq!(launch(kept.path(), &["copy", "copy"]).kept, 0);
    let more = launch(kept.path(), &["copy", "move"]);
    assert_eq!((more.builds, more.kept), (0, 1));
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
    let stats = context.stats();
    assert_eq!(driver.counts().builds, 2);
    assert_eq!((stats.builds, stats.recompiled), (1, 1));
    assert_eq!((stats.kept, driver.counts().programs), (2, 0));
}

/// It costs a build to find out what others have kept already.
#[test]
fn what_is_there_is_looked_at_before_anything_is_made() {
    let kept = folder();
    let contexts: Vec<_> = (0..8)
        .map(|_| {
            let driver = Simulated::new();
            driver.freeze_binaries();
            (keeping(&driver, kept.path()), driver, Sde::new())
        })
        .collect();
    for (context, _, sde) in &contexts {
        let kernel = context.kernel(sde, 0, &copy(context), "copy").unwrap();
        kernel.launch().unwrap().enqueued();
    }
    let stats = contexts.iter().map(|(context, driver, sde)| {
        let before = context.stats();
        sde.evict("sde_opencl.Kernel", 0);
        sde.evict("sde_opencl.ProgramBuild", 0);
        assert_eq!(driver.counts().programs, 0);
        (before.builds, context.stats())
    });
    let stats: Vec<_> = stats.collect();
    let sum = |of: fn(&Stats) -> u64| stats.iter().map(|(_, stats)| of(stats)).sum::<u64>();
    assert_eq!((sum(|s| s.builds), sum(|s| s.recompiled)), (1, 1));
    let counted: usize = contexts
        .iter()
        .map(|(_, driver, _)| driver.counts().builds)
        .sum();
    assert_eq!((counted, sum(|s| s.kept)), (2, 2));
}

/// Who has announced the program is at it; this one neither waits nor does the same.
#[test]
fn what_somebody_else_captures_is_left_to_him() {
    let kept = folder();
    let driver = Simulated::new();
    driver.freeze_binaries();
    let context = keeping(&driver, kept.path());
    let (sde, program) = (Sde::new(), copy(&context));
    let kernel = context.kernel(&sde, 0, &program, "copy").unwrap();
    kernel.launch().unwrap().enqueued();
    let mut holder = Worker::start("announce", kept.path(), &[]);
    assert_eq!(holder.next().as_deref(), Some("announced"));
    let counts = (context.keep_launched(), context.stats().recompiled);
    assert_eq!(counts, (0, 0));
    holder.kill();
    let counts = (context.keep_launched(), context.stats().recompiled);
    assert_eq!(counts, (1, 1));
}

#[test]
fn nothing_is_made_where_resources_are_lacking() {
    let kept = folder();
    let driver = Simulated::new();
    driver.freeze_binaries();
    let context = keeping(&driver, kept.path());
    let sde = Sde::new();
    let kernel = context.kernel(&sde, 0, &copy(&context), "copy").unwrap();
    kernel.launch().unwrap().enqueued();
    drop(kernel);
    context.release_unused(&sde);
    let counts = (driver.counts().programs, context.stats().recompiled);
    assert_eq!(counts, (0, 0));
    // Those that leave later are captured.
    let kernel = context.kernel(&sde, 0, &copy(&context), "copy").unwrap();
    kernel.launch().unwrap().enqueued();
    drop((kernel, sde));
    assert_eq!((context.stats().recompiled, context.stats().kept), (1, 2));
}

/// Devices of equal identity have one binary, whichever is launched on.
#[test]
fn a_launch_on_a_twin_counts() {
    let kept = folder();
    let twins = || Simulated::with(vec![device("twin", "1"), device("twin", "1")]);
    let launch = |at: usize| {
        let context = keeping(&twins(), kept.path());
        let sde = Sde::new();
        for device in 0..2 {
            let program = context
                .describe(device, &ProgramSpec::source(COPY))
                .unwrap();
            let kernel = context.kernel(&sde, device, &program, "copy").unwrap();
            if device == at {
                kernel.launch().unwrap().enqueued();
            }
        }
        drop(sde);
        context.stats()
    };
    let first = launch(1);
    assert_eq!((first.builds, first.kept), (1, 2));
    assert_eq!(launch(0).kept, 0);
    assert_eq!(launch(1).kept, 0);
}

/// What could not be kept is tried again.
#[test]
fn a_put_that_failed_is_tried_again() {
    let own = Own::default();
    let context = quiet(&Simulated::new())
        .keep_in(own.clone())
        .build()
        .unwrap();
    let sde = Sde::new();
    *own.fails.lock().unwrap() = true;
    let kernel = context.kernel(&sde, 0, &copy(&context), "copy").unwrap();
    assert_eq!((context.keep_launched(), context.stats().kept), (0, 0));
    *own.fails.lock().unwrap() = false;
    kernel.launch().unwrap().enqueued();
    assert_eq!((context.keep_launched(), context.stats().kept), (1, 1));
    // It has the code that was finished, so that nothing more is captured.
    assert_eq!(context.keep_launched(), 0);
}

/// Launches that are still queued may not have finished anything.
#[test]
fn what_is_still_queued_when_a_program_goes_is_not_said_to_be_finished() {
    let kept = folder();
    let driver = Simulated::new();
    driver.is_busy(true);
    let context = keeping(&driver, kept.path());
    launch_in(&context, &["copy"]);
    assert_eq!((context.stats().kept, driver.counts().programs), (1, 0));
    // Another process captures it.
    assert_eq!(launch(kept.path(), &["copy"]).kept, 1);
}

/// A launch counts when it is enqueued, not when it is let go, and not when it is looked at.
#[test]
fn a_launch_that_is_held_counts_and_one_that_is_handed_out_does_not() {
    let kept = folder();
    let context = keeping(&Simulated::new(), kept.path());
    let sde = Sde::new();
    let kernel = context.kernel(&sde, 0, &copy(&context), "copy").unwrap();
    let held = kernel.launch().unwrap();
    let _ = held.opencl();
    assert_eq!(context.keep_launched(), 0);
    held.enqueued();
    assert_eq!(context.keep_launched(), 1);
}

/// A driver that has finished code in memory only.
#[test]
fn where_binaries_have_no_finished_code_nothing_is_captured() {
    let kept = folder();
    let driver = Simulated::new();
    driver.finish_in_memory();
    let context = keeping(&driver, kept.path());
    launch_in(&context, &["copy"]);
    assert_eq!((context.stats().kept, context.stats().recompiled), (1, 0));
}

#[test]
fn a_kernel_that_was_not_launched_is_no_reason() {
    let kept = folder();
    let context = keeping(&Simulated::new(), kept.path());
    let kernel = copied(&context);
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
    assert_eq!(launch(kept.path(), &["copy", "move"]).kept, 1);
    kernel.launch().unwrap().enqueued();
    assert_eq!(slow.keep_launched(), 0);
    assert_eq!(launch(kept.path(), &["move"]).kept, 0);
}
