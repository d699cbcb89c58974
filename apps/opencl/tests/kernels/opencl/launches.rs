//! What is in a binary after launches.

use std::path::Path;
use std::ptr;

use opencl3::command_queue::CommandQueue;
use opencl3::kernel::ExecuteKernel;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use opencl3::types::cl_float;
use sde::Sde;
use sde_opencl::{Context, Launch};

use super::{NO_DEVICE, axpy, context, expected, run, skip, start};
use crate::child::tell;
use crate::fixture::folder;

/// The job of the test below: launches these kernels, and tells how many files of code PoCL made for that.
pub fn launch_some(dir: &Path) {
    let Some(context) = context(dir) else {
        tell("no device");
        return;
    };
    let made = std::env::var("POCL_CACHE_DIR").unwrap();
    let code = || files(Path::new(&made), "so");
    let sde = Sde::new();
    let program = context.describe(0, &axpy()).unwrap();
    context.program(&sde, 0, &program).unwrap();
    let before = code();
    for name in std::env::var("kernels").unwrap().split(' ') {
        let kernel = context.kernel(&sde, 0, &program, name).unwrap();
        let launch = kernel.launch().unwrap();
        match name {
            "axpy" => assert_eq!(run(&context, 0, &launch), expected()),
            _ => halve(&context, &launch),
        }
    }
    tell(code() - before);
    drop(sde);
    tell(format!("{:?}", context.stats()));
}

/// Runs `half_of`, and waits for it.
fn halve(context: &Context, launch: &Launch) {
    let opencl = context.opencl().unwrap();
    // SAFETY: the device is one of the context; the kernel takes a buffer of floats, of which
    // each of its items touches one element.
    unsafe {
        let id = opencl.devices()[0];
        let queue = CommandQueue::create_with_properties(opencl, id, 0, 0).unwrap();
        let y = Buffer::<cl_float>::create(opencl, CL_MEM_READ_WRITE, 64, ptr::null_mut()).unwrap();
        ExecuteKernel::new(launch.opencl().unwrap())
            .set_arg(&y)
            .set_global_work_size(64)
            .enqueue_nd_range(&queue)
            .unwrap();
        queue.finish().unwrap();
    }
    launch.enqueued();
}

/// How many files beneath a directory have this at the end of their names.
fn files(dir: &Path, end: &str) -> usize {
    let entries = std::fs::read_dir(dir).unwrap().map(Result::unwrap);
    let counts = entries.map(|entry| match entry.file_type().unwrap().is_dir() {
        true => files(&entry.path(), end),
        false => usize::from(entry.path().extension().is_some_and(|there| there == end)),
    });
    counts.sum()
}

/// A binary that is captured again has what was launched, and what the one had that was loaded, also where
/// the cache of the driver was empty: nobody compiles it again, as the entry says.
#[test]
fn a_binary_has_the_code_that_it_is_said_to_have() {
    let test = "a_binary_has_the_code_that_it_is_said_to_have";
    let kept = folder();
    let launch = |kernels: &str, cache: &str| {
        let settings = [
            ("POCL_DEVICES", "pthread"),
            ("kernels", kernels),
            ("POCL_KERNEL_CACHE", cache),
        ];
        let (mut worker, _drivers) = start("some", &kept, &settings);
        let first = worker.next().unwrap();
        Some((first.parse::<usize>().ok()?, worker.next().unwrap()))
    };
    let Some((made, stats)) = launch("axpy", "1") else {
        skip(test, NO_DEVICE);
        return;
    };
    if made == 0 {
        skip(test, "this driver finishes no code at launches");
        return;
    }
    assert!(stats.contains("recompiled: 1"), "{stats}");
    let (made, stats) = launch("half_of", "1").unwrap();
    assert!(made > 0 && stats.contains("recompiled: 1"), "{stats}");
    let (made, stats) = launch("axpy half_of", "1").unwrap();
    assert!(
        made == 0 && stats.contains("recompiled: 0"),
        "{made}; {stats}"
    );
    assert!(stats.contains("kept: 0"), "{stats}");
    // Without a cache of the driver's there is nothing to capture, and no build for it.
    let (_, stats) = launch("axpy", "0").unwrap();
    assert!(stats.contains("recompiled: 0"), "{stats}");
    let (_, stats) = launch("axpy half_of", "0").unwrap();
    assert!(stats.contains("recompiled: 0"), "{stats}");
    assert!(stats.contains("kept: 0"), "{stats}");
}
