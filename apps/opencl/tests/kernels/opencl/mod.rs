//! A real driver. Each test does its work in a process of its own, with a cache of the driver's own
//! that is empty: otherwise that one would answer. Without a device they say so and pass.

#![allow(unsafe_code, reason = "kernels are launched by OpenCL's calls")]

pub mod devices;
pub mod faults;
pub mod launches;
pub mod programs;
pub mod shared;

use std::path::Path;
use std::ptr;
use std::sync::Arc;

use opencl3::command_queue::CommandQueue;
use opencl3::context::Context as ClContext;
use opencl3::device::CL_DEVICE_PARTITION_EQUALLY;
use opencl3::kernel::ExecuteKernel;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use opencl3::types::{CL_TRUE, cl_float};
use sde_opencl::{
    Context, DRIVER_CACHES, Error, KernelDir, Launch, ProgramSpec, Settings, devices,
};
use tempfile::TempDir;

use crate::child::{Worker, tell};
use crate::fixture::folder;

const SOURCE: &str = "
    float by(float x);
    kernel void axpy(global float *y, global const float *x, float a) {
        size_t i = get_global_id(0);
        y[i] += a * x[i] + OFFSET;
    }
    kernel void half_of(global float *y) { y[get_global_id(0)] /= 2; }
";

/// All devices of the first platform in one context, or of that of the device of this number; nothing if
/// there are none.
fn on_devices() -> Option<Arc<ClContext>> {
    let found = match devices() {
        Ok(found) => found,
        Err(Error::NoOpenCl { .. }) => return None,
        Err(error) => panic!("{error}"),
    };
    let number = std::env::var("SDE_OPENCL_DEVICE").map_or(0, |number| number.parse().unwrap());
    let first = found[number].device.platform().unwrap();
    let same = found
        .iter()
        .filter(|one| one.device.platform().unwrap() == first);
    let mut ids: Vec<_> = same.map(|one| one.device.id()).collect();
    if std::env::var_os("sub_devices").is_some() {
        let one_core_each = [CL_DEVICE_PARTITION_EQUALLY, 1, 0];
        let parts = found[number].device.create_sub_devices(&one_core_each);
        // A device of one core has no parts.
        for (n, part) in parts.unwrap_or_default().into_iter().enumerate() {
            ids.truncate(n);
            ids.push(part.id());
            std::mem::forget(part);
        }
    }
    let opencl = ClContext::from_devices(&ids, &[], None, ptr::null_mut()).unwrap();
    Some(Arc::new(opencl))
}

/// A context on them that keeps binaries in a folder.
fn context(dir: &Path) -> Option<Context> {
    let dir = KernelDir::open(Settings::new().dir(dir)).unwrap();
    let context = Context::on(on_devices()?).keep_in_dir(&dir).build();
    Some(context.unwrap())
}

fn axpy() -> ProgramSpec {
    ProgramSpec::source(SOURCE)
        .named("axpy")
        .define("OFFSET", "1.0f")
}

/// Runs `axpy` on a device; gives what came of 1, 2, 3...
fn run(context: &Context, device: usize, launch: &Launch) -> Vec<cl_float> {
    const N: usize = 64;
    let opencl = context.opencl().unwrap();
    let id = opencl.devices()[device];
    // SAFETY: the device is one of the context; the buffers are as long as what is read and
    // written, which is awaited; the kernel takes two buffers of floats and a float, and each of
    // its items touches one element.
    unsafe {
        let queue = CommandQueue::create_with_properties(opencl, id, 0, 0).unwrap();
        let buffer = |from: &[cl_float]| {
            let mut buffer =
                Buffer::<cl_float>::create(opencl, CL_MEM_READ_WRITE, N, ptr::null_mut()).unwrap();
            queue
                .enqueue_write_buffer(&mut buffer, CL_TRUE, 0, from, &[])
                .unwrap();
            buffer
        };
        let x: Vec<cl_float> = (0..N).map(|n| n as cl_float).collect();
        let (x, y) = (buffer(&x), buffer(&[10.0; N]));
        ExecuteKernel::new(launch.opencl().unwrap())
            .set_arg(&y)
            .set_arg(&x)
            .set_arg(&2.0_f32)
            .set_global_work_size(N)
            .enqueue_nd_range(&queue)
            .unwrap();
        launch.enqueued();
        let mut out = vec![0.0; N];
        queue
            .enqueue_read_buffer(&y, CL_TRUE, 0, &mut out, &[])
            .unwrap();
        out
    }
}

fn expected() -> Vec<cl_float> {
    (0..64).map(|n| 10.0 + 2.0 * n as cl_float + 1.0).collect()
}

/// Says that a test does nothing here.
fn skip(test: &str, why: &str) {
    println!("skipped opencl::{test}: {why}");
}

const NO_DEVICE: &str = "there is no OpenCL device here";

/// A job in a process whose driver has an empty cache of its own.
fn start(job: &str, kept: &TempDir, more: &[(&str, &str)]) -> (Worker, TempDir) {
    let drivers = folder();
    let path = drivers.path().to_str().unwrap().to_owned();
    let own = DRIVER_CACHES.iter().map(|name| (*name, &*path));
    let settings: Vec<_> = own.chain(more.iter().copied()).collect();
    (Worker::start(job, kept.path(), &settings), drivers)
}

/// A test whose whole work is a job that says in the end that all is well.
fn in_a_process(test: &str, job: &str) {
    let kept = folder();
    let (mut worker, _drivers) = start(job, &kept, &[]);
    match worker.next().as_deref() {
        Some("no device") => skip(test, NO_DEVICE),
        told => assert_eq!(told, Some("all is well")),
    }
}

/// The other side of that.
pub fn job(dir: &Path, work: impl FnOnce(&Context)) {
    match context(dir) {
        None => tell("no device"),
        Some(context) => {
            work(&context);
            tell("all is well");
        }
    }
}
