//! What the tests have in common.

use std::path::Path;

use sde::{Sde, Value};
use sde_archives::inspect::{Entry, Inspection, Item};
use sde_opencl::driver::faults::Faults;
use sde_opencl::driver::simulated::Simulated;
use sde_opencl::{
    Context, ContextBuilder, Descriptor, Environment, Error, Kernel, KernelDir, ProgramSpec,
    Settings,
};
use tempfile::TempDir;

pub const COPY: &str = "kernel void copy(global int *x) {} kernel void move(global int *x) {}";

/// A context whose environment says nothing.
pub fn quiet(driver: &Simulated) -> ContextBuilder {
    Context::simulated(driver).environment(Environment::reading(Vec::new))
}

pub fn context(driver: &Simulated) -> Context {
    quiet(driver).build().unwrap()
}

/// A driver, and a context of it.
pub fn simulated() -> (Simulated, Context) {
    let driver = Simulated::new();
    let context = context(&driver);
    (driver, context)
}

pub const OUT_OF_RESOURCES: i32 = -5;
pub const INVALID_BINARY: i32 = -42;

/// A context with calls that can be made to fail.
pub fn faulty(driver: &Simulated) -> (Context, Faults) {
    let faults = Faults::new();
    let context = quiet(driver).faults(&faults).build().unwrap();
    (context, faults)
}

/// A context that keeps binaries in a folder; a new one is what a new process has.
pub fn keeping(driver: &Simulated, folder: &Path) -> Context {
    keep(quiet(driver), folder)
}

/// What a new process has: a driver, and a context that keeps binaries in a folder.
pub fn process(folder: &Path) -> (Simulated, Context) {
    let driver = Simulated::new();
    let context = keeping(&driver, folder);
    (driver, context)
}

pub fn keep(builder: ContextBuilder, folder: &Path) -> Context {
    let dir = KernelDir::open(Settings::new().dir(folder)).unwrap();
    builder.keep_in_dir(&dir).build().unwrap()
}

/// What each whole entry of a folder is.
pub fn entries(kept: &Path) -> Vec<Entry> {
    let mut entries = Vec::new();
    for segment in Inspection::open(kept).unwrap().segments().unwrap() {
        let walked = segment.walk(|item| match item {
            Item::Entry(entry) => entries.push(*entry),
            Item::Damage(damage) => panic!("{damage:?}"),
            _ => {}
        });
        assert!(walked.unwrap().torn == 0 || !segment.is_being_written());
    }
    entries
}

pub fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

pub fn copy(context: &Context) -> Descriptor {
    context
        .describe(0, &ProgramSpec::source(COPY).named("copy"))
        .unwrap()
}

pub fn described(context: &Context, source: &str) -> Descriptor {
    context.describe(0, &ProgramSpec::source(source)).unwrap()
}

/// The kernel `copy`, made by an engine that remembers nothing.
pub fn copied(context: &Context) -> Value<Kernel> {
    let program = copy(context);
    context.kernel(&Sde::new(), 0, &program, "copy").unwrap()
}

/// One of any number of kernels, each in a program of its own.
pub fn numbered(context: &Context, sde: &Sde, n: usize) -> Result<Value<Kernel>, Error> {
    let spec = ProgramSpec::source(format!("kernel void k{n}() {{}}"));
    let program = context.describe(0, &spec).unwrap();
    context.kernel(sde, 0, &program, &format!("k{n}"))
}

/// Runs a program in an engine and a context of its own, as a new process would.
pub fn anew(folder: &Path) -> (Simulated, Context) {
    let (driver, context) = process(folder);
    let program = copy(&context);
    context.kernel(&Sde::new(), 0, &program, "copy").unwrap();
    (driver, context)
}
