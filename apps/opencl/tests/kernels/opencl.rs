//! A real driver. Each test does its work in a process of its own, with a cache of the driver's own
//! that is empty: otherwise that one would answer. Without a device they say so and pass.

#![allow(unsafe_code, reason = "kernels are launched by OpenCL's calls")]

use std::collections::BTreeSet;
use std::path::Path;
use std::ptr;
use std::sync::{Arc, Barrier};
use std::time::Instant;

use opencl3::command_queue::CommandQueue;
use opencl3::context::Context as ClContext;
use opencl3::kernel::ExecuteKernel;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use opencl3::program::Program as ClProgram;
use opencl3::types::{CL_TRUE, cl_float};
use sde::Sde;
use sde_opencl::{
    Context, DRIVER_CACHES, Environment, Error, KernelDir, Launch, ProgramSpec, Settings, devices,
};
use tempfile::TempDir;

use crate::child::{Worker, listen, tell};
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
fn context(dir: Option<&Path>) -> Option<Context> {
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
    let ids: Vec<_> = same.map(|one| one.device.id()).collect();
    let opencl = ClContext::from_devices(&ids, &[], None, ptr::null_mut()).unwrap();
    let builder = Context::on(Arc::new(opencl));
    let builder = match dir {
        Some(dir) => builder.keep_in(KernelDir::open(Settings::new().dir(dir)).unwrap()),
        None => builder,
    };
    Some(builder.build().unwrap())
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

/// The job of most tests: has the kernel on each device, launches it, tells how it was had.
pub fn launch_and_tell(dir: &Path) {
    let Some(context) = context(Some(dir)) else {
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
    assert_eq!(
        (stats.refused, stats.unfit, stats.store_failures),
        (0, 0, 0)
    );
}

/// The job of the tests with many processes: so many programs, when it is told to.
pub fn build_many(dir: &Path) {
    let Some(context) = context(Some(dir)) else {
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

/// A job in a process whose driver has an empty cache of its own.
fn start(job: &str, kept: &TempDir, more: &[(&str, &str)]) -> (Worker, TempDir) {
    let drivers = folder();
    let path = drivers.path().to_str().unwrap().to_owned();
    let own = DRIVER_CACHES.iter().map(|name| (*name, &*path));
    let settings: Vec<_> = own.chain(more.iter().copied()).collect();
    (Worker::start(job, kept.path(), &settings), drivers)
}

/// What it told: nothing if there is no device.
fn told(worker: &mut Worker, test: &str) -> Option<Vec<String>> {
    let told: Vec<_> = std::iter::from_fn(|| worker.next()).collect();
    if told == ["no device"] {
        println!("skipped opencl::{test}: there is no OpenCL device here");
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

/// The job of the test below: launches these kernels, and tells how many files of code PoCL made for that.
pub fn launch_some(dir: &Path) {
    let Some(context) = context(Some(dir)) else {
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
        println!("skipped opencl::{test}: there is no OpenCL device here");
        return;
    };
    if made == 0 {
        println!("skipped opencl::{test}: this driver finishes no code at launches");
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

/// The job of the test below: the first look for devices, from many threads.
pub fn look_with_many_threads() {
    let together = Barrier::new(16);
    let found = std::thread::scope(|scope| {
        let look = || {
            together.wait();
            devices().map_or(0, |found| found.len())
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
            println!("skipped opencl::{test}: there is no OpenCL device here");
            return;
        }
        let one_count = told.as_deref().is_some_and(|told| !told.contains(','));
        assert!(one_count, "{told:?}");
    }
}

#[test]
fn two_devices_of_equal_identity_share_one_build() {
    let test = "two_devices_of_equal_identity_share_one_build";
    let kept = folder();
    let two = [("POCL_DEVICES", "pthread pthread")];
    let (mut worker, _drivers) = start("launch", &kept, &two);
    let Some(first) = told(&mut worker, test) else {
        return;
    };
    if first[0] != "devices 2" {
        println!(
            "skipped opencl::{test}: this driver shows {} only",
            first[0]
        );
        return;
    }
    assert_eq!(first[1..4], ["builds 1", "loads 0", "shared 1"]);
    let (mut worker, _drivers) = start("launch", &kept, &two);
    let second = told(&mut worker, test).unwrap();
    assert_eq!(second[1..4], ["builds 0", "loads 1", "shared 1"]);
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
            println!("skipped opencl::{test}: there is no OpenCL device here");
            return;
        }
    }
    workers.iter_mut().for_each(|(worker, _)| worker.say());
    let builds = workers.iter_mut().map(|(worker, _)| worker.next().unwrap());
    let builds: usize = builds.map(|builds| builds.parse::<usize>().unwrap()).sum();
    assert_eq!(builds, programs);
}

#[test]
fn linked_programs_headers_blobs_and_foreign_programs_work_on_a_device() {
    let test = "linked_programs_headers_blobs_and_foreign_programs_work_on_a_device";
    let kept = folder();
    let (mut worker, _drivers) = start("several", &kept, &[]);
    match worker.next().as_deref() {
        Some("no device") => println!("skipped opencl::{test}: there is no OpenCL device here"),
        told => assert_eq!(told, Some("all is well")),
    }
}

/// The job of the last test.
pub fn several(dir: &Path) {
    let Some(context) = context(Some(dir)) else {
        tell("no device");
        return;
    };
    let sde = Sde::new();

    // A source with a header, linked with another source.
    let headers = folder();
    std::fs::write(
        headers.path().join("offset.h"),
        "#define OFFSET shift()\nfloat shift(void);\n",
    )
    .unwrap();
    let parts = [
        ProgramSpec::source(format!("#include \"offset.h\"\n{SOURCE}")).include_dir(headers.path()),
        ProgramSpec::source("float shift(void) { return 1.0f; }"),
    ];
    let linked = context.describe(0, &ProgramSpec::linked(parts)).unwrap();
    let kernel = context.kernel(&sde, 0, &linked, "axpy").unwrap();
    assert_eq!(run(&context, 0, &kernel.launch().unwrap()), expected());

    // A macro with blanks reaches the compiler whole.
    let spaced = ProgramSpec::source(SOURCE).define("OFFSET", "(0.5f + 0.5f)");
    let program = context.describe(0, &spaced).unwrap();
    program.is_cacheable().unwrap();
    let kernel = context.kernel(&sde, 0, &program, "axpy").unwrap();
    assert_eq!(run(&context, 0, &kernel.launch().unwrap()), expected());

    // A blob, in the place of a build.
    let plain = context.describe(0, &axpy()).unwrap();
    let kernel = context.kernel(&sde, 0, &plain, "axpy").unwrap();
    assert_eq!(run(&context, 0, &kernel.launch().unwrap()), expected());
    let blob = kernel.program().blob().unwrap();
    let from_blob = context.from_blob(0, &plain, &blob).unwrap();
    assert_eq!(
        run(
            &context,
            0,
            &from_blob.kernel("axpy").unwrap().launch().unwrap()
        ),
        expected()
    );

    // A source that does not compile.
    let wrong = context
        .describe(0, &ProgramSpec::source("kernel void k() { int x = ; }"))
        .unwrap();
    let error = context.program(&sde, 0, &wrong).unwrap_err();
    assert!(
        error.is_permanent() && error.to_string().contains("expected expression"),
        "{error}"
    );

    // A program that OpenCL's own calls made.
    let opencl = context.opencl().unwrap();
    let source = SOURCE.replace("OFFSET", "1.0f");
    let program = ClProgram::create_and_build_from_source(opencl, &source, "-cl-mad-enable");
    let program = program.unwrap();
    // SAFETY: it is alive.
    let foreign = unsafe { context.foreign(0, program.get()) }.unwrap();
    foreign.is_cacheable().unwrap();
    let own = foreign.program().unwrap();
    assert_eq!(
        run(&context, 0, &own.kernel("axpy").unwrap().launch().unwrap()),
        expected()
    );
    assert!(foreign.keep().unwrap());
    let before = context.stats().builds;
    let same = ProgramSpec::source(source).option("-cl-mad-enable");
    let same = context.describe(0, &same).unwrap();
    assert_eq!(same.key(), own.descriptor().key());
    context.program(&sde, 0, &same).unwrap();
    assert_eq!(context.stats().builds, before);
    // What the environment adds to builds, it did not add to this one.
    let variables = || vec![("SDE_OPENCL_BUILD_OPTIONS".to_owned(), "-DX".to_owned())];
    let builder = Context::on(Arc::clone(opencl)).environment(Environment::reading(variables));
    let other = builder.build().unwrap();
    // SAFETY: it is alive.
    let again = unsafe { other.foreign(0, program.get()) }.unwrap();
    let options = &again.program().unwrap().descriptor().full_key().options;
    assert_eq!(options, &["-cl-mad-enable"]);
    let unbuilt = ClProgram::create_from_source(opencl, "kernel void k() {}").unwrap();
    // SAFETY: it is alive.
    let foreign = unsafe { context.foreign(0, unbuilt.get()) }.unwrap();
    assert!(foreign.is_cacheable().is_err());
    tell("all is well");
}
