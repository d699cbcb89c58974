//! The calls of a real driver fail, one at a time.

use std::path::Path;

use sde::Handle;
use sde_opencl::driver::faults::Faults;
use sde_opencl::{Context, ProgramSpec};

use super::{SOURCE, axpy, expected, in_a_process, on_devices, run};
use crate::child::tell;
use crate::faults::{CODES, Use, calls, fail_one};
use crate::fixture::keep;

#[test]
fn each_call_of_a_real_driver_fails_once_and_the_numbers_are_right() {
    let test = "each_call_of_a_real_driver_fails_once_and_the_numbers_are_right";
    in_a_process(test, "faults");
}

/// Everything once, and what a device computes with it.
fn work(sde: &Handle, context: &Context) -> Result<(), Box<dyn std::error::Error>> {
    let plain = context.describe(0, &axpy())?;
    let kernel = context.kernel(sde, 0, &plain, "axpy")?;
    assert_eq!(run(context, 0, &kernel.launch()?), expected());
    let parts = [
        ProgramSpec::source(format!("float shift(void);\n{SOURCE}")).define("OFFSET", "shift()"),
        ProgramSpec::source("float shift(void) { return 1.0f; }"),
    ];
    let linked = context.describe(0, &ProgramSpec::linked(parts))?;
    let linked = context.kernel(sde, 0, &linked, "axpy")?;
    assert_eq!(run(context, 0, &linked.launch()?), expected());
    let blob = kernel.program().blob()?;
    let from_blob = context.from_blob(0, &plain, &blob)?.kernel("axpy")?;
    assert_eq!(run(context, 0, &from_blob.launch()?), expected());
    context.keep_launched();
    Ok(())
}

/// The job of the test: from nothing kept, and from what is kept.
pub fn each_call_fails_once(dir: &Path) {
    let Some(opencl) = on_devices() else {
        tell("no device");
        return;
    };
    let fresh = |faults: &Faults| keep(Context::on(opencl.clone()).faults(faults), dir);
    let emptied = |faults: &Faults| {
        let _ = std::fs::remove_dir_all(dir);
        fresh(faults)
    };
    let contexts: [&dyn Fn(&Faults) -> Context; 2] = [&emptied, &fresh];
    for context in contexts {
        let work = Use {
            context,
            work: &work,
        };
        let count = calls(&work).len();
        for at in 0..count {
            // Each with one of the codes, or with all of them.
            let is_long = std::env::var_os("SDE_LONG_TESTS").is_some();
            let codes = CODES.iter().cycle().skip(at);
            for code in codes.take(if is_long { CODES.len() } else { 1 }) {
                fail_one(&work, at, *code);
            }
        }
    }
    tell("all is well");
}
