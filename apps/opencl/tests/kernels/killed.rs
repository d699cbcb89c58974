//! Killed in each call of a put: nothing half-written is ever seen.
//!
//! A process keeps a program, and replaces it by one that is better. It stops for ever in its n-th call
//! that changes something on the disk, or in the middle of a write, and is killed there; for each n until it
//! comes to its end.

use std::path::Path;
use std::sync::Arc;

use sde::Sde;
use sde_opencl::driver::simulated::Simulated;
use sde_opencl::{KernelDir, Settings};

use crate::child::{Worker, tell};
use crate::fixture::{copy, entries, folder, process, quiet};
use crate::stopping::Stopping;

/// The job: keeps a program, and replaces it by one whose kernel was launched.
pub fn keep_and_replace(dir: &Path) {
    let driver = Simulated::new();
    let settings = Settings::new().dir(dir).vfs(Arc::new(Stopping::default()));
    let store = KernelDir::open(settings).unwrap();
    let context = quiet(&driver).keep_in_dir(&store).build().unwrap();
    let sde = Sde::new();
    let kernel = context.kernel(&sde, 0, &copy(&context), "copy").unwrap();
    assert_eq!(context.stats().kept, 1);
    tell("kept");
    kernel.launch().unwrap().enqueued();
    assert_eq!(context.keep_launched(), 1);
    tell("replaced");
    drop((kernel, sde, context));
    tell("ended");
}

#[test]
fn killed_in_each_call_of_a_put_nothing_half_is_seen() {
    let mut calls = 0;
    for stop in 1.. {
        let kept = folder();
        let at = stop.to_string();
        let mut worker = Worker::start("keep", kept.path(), &[("stop_at_call", &at)]);
        let mut told = Vec::new();
        while let Some(line) = worker.next() {
            told.push(line);
            if ["stopped", "ended"].contains(&&**told.last().unwrap()) {
                break;
            }
        }
        let was_stopped = told.last().is_some_and(|last| last == "stopped");
        worker.kill();
        let is_told = |what: &str| told.iter().any(|line| line == what);
        let at_least = usize::from(is_told("kept")) + usize::from(is_told("replaced"));
        let there = match kept.path().join("FORMAT").exists() {
            true => entries(kept.path()).len(),
            false => 0,
        };
        assert!(
            there >= at_least && there <= 2,
            "call {stop}: {there} entries, {told:?}"
        );

        // The next process: what was acknowledged is there, and the driver sees nothing damaged.
        let (driver, context) = process(kept.path());
        let sde = Sde::new();
        context.kernel(&sde, 0, &copy(&context), "copy").unwrap();
        let (counts, stats) = (driver.counts(), context.stats());
        let bad = (counts.damaged, stats.unfit, stats.store_failures);
        assert_eq!(bad, (0, 0, 0), "call {stop}");
        assert_eq!(counts.builds, usize::from(there == 0), "call {stop}");
        if !was_stopped {
            assert_eq!(told, ["kept", "replaced", "ended"]);
            break;
        }
        calls += 1;
    }
    println!("killed in each of {calls} calls");
    assert!(calls > 10, "{calls}");
}
