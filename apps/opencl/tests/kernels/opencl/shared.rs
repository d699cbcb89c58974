//! Many processes at once.

use std::path::Path;

use sde::Sde;
use sde_opencl::ProgramSpec;

use super::{NO_DEVICE, SOURCE, context, skip, start};
use crate::child::{listen, tell};
use crate::fixture::folder;

/// The job of the tests with many processes: so many programs, when it is told to.
pub fn build_many(dir: &Path) {
    let Some(context) = context(dir) else {
        tell("no device");
        return;
    };
    tell("ready");
    listen();
    let sde = Sde::new();
    let programs: usize = std::env::var("programs").unwrap().parse().unwrap();
    for n in 0..programs {
        let spec = ProgramSpec::source(SOURCE).define("OFFSET", n);
        let program = context.describe(0, &spec).unwrap();
        context.kernel(&sde, 0, &program, "axpy").unwrap();
    }
    tell(context.stats().builds);
}

#[test]
fn eight_processes_at_once_build_each_program_once() {
    eight_at_once("eight_processes_at_once_build_each_program_once", 8);
}

#[test]
#[ignore = "long: 64 builds"]
fn eight_processes_at_once_build_64_programs_64_times() {
    eight_at_once("eight_processes_at_once_build_64_programs_64_times", 64);
}

fn eight_at_once(test: &str, programs: usize) {
    let kept = folder();
    let count = programs.to_string();
    let settings = [("programs", &*count)];
    let mut workers: Vec<_> = (0..8).map(|_| start("many", &kept, &settings)).collect();
    for (worker, _) in &mut workers {
        if worker.next().as_deref() != Some("ready") {
            skip(test, NO_DEVICE);
            return;
        }
    }
    workers.iter_mut().for_each(|(worker, _)| worker.say());
    let builds = workers.iter_mut().map(|(worker, _)| worker.next().unwrap());
    let builds: usize = builds.map(|builds| builds.parse::<usize>().unwrap()).sum();
    assert_eq!(builds, programs);
}
