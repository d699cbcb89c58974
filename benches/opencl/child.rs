//! A process that gets kernels, launches each of them, and prints its times since it began.

#![allow(unsafe_code, reason = "kernels are launched by OpenCL's calls")]

use std::path::Path;
use std::process::Command;
use std::ptr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use opencl3::command_queue::CommandQueue;
use opencl3::context::Context as ClContext;
use opencl3::kernel::Kernel as ClKernel;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE, ClMem};
use opencl3::program::Program as ClProgram;
use opencl3::types::{CL_TRUE, cl_float};
use sde::Sde;
use sde_opencl::{Context, DRIVER_CACHES, Environment, KernelDir, Settings, devices};

use crate::kernels::{GROUP, ITEMS, NAME, program, source};

pub const START: &str = "--start";

/// Builds from source, with only the driver's own cache.
pub const SOURCE: &str = "source";
/// Gets the kernels from the kernel cache.
pub const CACHE: &str = "cache";

/// Gets all kernels from the cache at once, before the first launch.
pub const TOGETHER: &str = "together";

/// The times that a process printed.
pub struct Told {
    /// From its beginning until the last kernel had run once.
    pub all: Duration,
    /// The first launch, from the call until it was finished.
    pub first_launch: Duration,
    /// Getting all kernels and launching them once more.
    pub again: Duration,
}

/// Starts a process; `folder` is the kernel cache, `drivers` the driver's own.
pub fn start(how: &str, count: usize, folder: &Path, drivers: &Path) -> Told {
    let program = std::env::current_exe().expect("where this program is");
    let mut command = Command::new(program);
    command.args([START, how, &count.to_string()]).arg(folder);
    command.envs(DRIVER_CACHES.iter().map(|name| (name, drivers)));
    let output = command.output().expect("the process starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{how} {count}: {why}");
    let times: Vec<u64> = said
        .split_whitespace()
        .map(|word| word.parse().expect("nanoseconds"))
        .collect();
    let [all, first_launch, again] = times[..].try_into().expect("three times");
    Told {
        all: Duration::from_nanos(all),
        first_launch: Duration::from_nanos(first_launch),
        again: Duration::from_nanos(again),
    }
}

/// The number of the measured device: the first, unless an environment variable says another.
pub fn number_of_device() -> usize {
    let number = std::env::var("SDE_OPENCL_DEVICE").ok();
    number.map_or(0, |number| number.parse().expect("the number of a device"))
}

/// The work of such a process.
pub fn be(begun: Instant, how: &str, count: usize, folder: &Path) {
    let found = devices().expect("a device");
    let device = &found[number_of_device()].device;
    let opencl = Arc::new(ClContext::from_device(device).expect("a context"));
    let place = Place::new(&opencl);
    let (mut first_launch, mut again) = (None, Duration::ZERO);
    let mut note = |took: Duration| {
        first_launch.get_or_insert(took);
    };
    let all;
    if how == SOURCE {
        for order in 0..count {
            let built = ClProgram::create_and_build_from_source(&opencl, &source(order), "");
            let kernel = ClKernel::create(&built.expect("a program"), NAME).expect("a kernel");
            note(place.launch(&kernel));
        }
        all = begun.elapsed();
    } else {
        let dir = KernelDir::open(Settings::new().dir(folder)).expect("a kernel cache");
        let context = Context::on(Arc::clone(&opencl)).keep_in_dir(&dir);
        let context = context
            .environment(Environment::default())
            .build()
            .expect("a context");
        let sde = Sde::new();
        let programs = (0..count).map(|order| context.describe(0, &program(order)));
        let programs: Vec<_> = programs.map(|one| one.expect("a description")).collect();
        // The kernels are live while these are held.
        let _live = match how == TOGETHER {
            true => context.programs(&sde, 0, &programs),
            false => Vec::new(),
        };
        for program in &programs {
            let kernel = context.kernel(&sde, 0, program, NAME).expect("a kernel");
            let launch = kernel.launch().expect("a launch");
            note(place.launch(launch.opencl().expect("a real one")));
            launch.enqueued();
        }
        all = begun.elapsed();
        let once_more = Instant::now();
        for program in &programs {
            let kernel = context.kernel(&sde, 0, program, NAME).expect("a kernel");
            let launch = kernel.launch().expect("a launch");
            place.launch(launch.opencl().expect("a real one"));
            launch.enqueued();
        }
        again = once_more.elapsed();
    }
    let times = [all, first_launch.unwrap_or_default(), again];
    println!(
        "{}",
        times.map(|time| time.as_nanos().to_string()).join(" ")
    );
}

/// The queue and buffers of the launches.
struct Place {
    queue: CommandQueue,
    input: Buffer<cl_float>,
    output: Buffer<cl_float>,
}

impl Place {
    fn new(context: &ClContext) -> Self {
        let t: Vec<cl_float> = (0..ITEMS).map(|item| item as cl_float * 0.25).collect();
        // SAFETY: the device is the context's; the buffers are as long as the written data, and the write is
        // awaited. They are also as long as the kernels need: 64 orders are the most.
        unsafe {
            let device = context.default_device();
            let queue = CommandQueue::create_with_properties(context, device, 0, 0);
            let queue = queue.expect("a queue");
            let buffer = |length| {
                Buffer::create(context, CL_MEM_READ_WRITE, length, ptr::null_mut())
                    .expect("a buffer")
            };
            let (mut input, output) = (buffer(ITEMS), buffer(ITEMS * 65));
            let written = queue.enqueue_write_buffer(&mut input, CL_TRUE, 0, &t, &[]);
            written.expect("numbers on the device");
            Self {
                queue,
                input,
                output,
            }
        }
    }

    /// Launches a kernel, and waits until it has run.
    fn launch(&self, kernel: &ClKernel) -> Duration {
        let begun = Instant::now();
        // SAFETY: the kernel takes these two buffers, which are as long as it needs.
        unsafe {
            kernel.set_arg(0, &self.input.get()).expect("an argument");
            kernel.set_arg(1, &self.output.get()).expect("an argument");
            let enqueued = self.queue.enqueue_nd_range_kernel(
                kernel.get(),
                1,
                ptr::null(),
                [ITEMS].as_ptr(),
                [GROUP].as_ptr(),
                &[],
            );
            enqueued.expect("a launch");
        }
        self.queue.finish().expect("it runs");
        begun.elapsed()
    }
}
