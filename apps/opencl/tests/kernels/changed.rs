//! Headers that change between the description of a program and a compiler's look at them. What is kept
//! under a key was made from what is in the key, or there is an error.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use sde::Sde;
use sde_opencl::driver::simulated::Simulated;
use sde_opencl::{Context, Descriptor, Environment, Error, ProgramSpec};
use tempfile::TempDir;

use crate::fixture::{COPY, folder, keeping};

/// A header, a program that includes it, and where it is kept.
struct Case {
    headers: TempDir,
    kept: TempDir,
    driver: Simulated,
}

impl Case {
    fn new() -> Self {
        let case = Self {
            headers: folder(),
            kept: folder(),
            driver: Simulated::new(),
        };
        case.write("1");
        case
    }

    fn header(&self) -> PathBuf {
        self.headers.path().join("size.h")
    }

    fn write(&self, size: &str) {
        write(&self.header(), size);
    }

    fn spec(&self) -> ProgramSpec {
        let source = format!("#include \"size.h\"\n{COPY}");
        ProgramSpec::source(source).include_dir(self.headers.path())
    }

    fn context(&self) -> sde_opencl::Context {
        keeping(&self.driver, self.kept.path())
    }

    fn describe(&self, context: &sde_opencl::Context) -> Descriptor {
        context.describe(0, &self.spec()).unwrap()
    }

    /// How often a new process builds the program as it is now.
    fn builds_of_another(&self) -> usize {
        let driver = Simulated::new();
        let context = keeping(&driver, self.kept.path());
        let program = self.describe(&context);
        context.program(&Sde::new(), 0, &program).unwrap();
        driver.counts().builds
    }
}

fn write(header: &Path, size: &str) {
    fs::write(header, format!("#define SIZE {size}")).unwrap();
}

fn is_changed(error: &Error) -> bool {
    matches!(error, Error::Changed { .. }) && !error.is_permanent()
}

#[test]
fn a_header_edited_before_the_build_is_an_error_and_nothing_is_kept() {
    let case = Case::new();
    let (context, sde) = (case.context(), Sde::new());
    let program = case.describe(&context);
    case.write("2");
    let error = context.program(&sde, 0, &program).unwrap_err();
    assert!(is_changed(&error), "{error}");
    let counts = (context.stats().kept, case.driver.counts().programs);
    assert_eq!(counts, (0, 0));
    // Described anew it is built; and what was described first is built once the header is back.
    let newer = case.describe(&context);
    context.program(&sde, 0, &newer).unwrap();
    case.write("1");
    context.program(&sde, 0, &program).unwrap();
    assert_eq!(case.builds_of_another(), 0);
}

#[test]
fn a_header_edited_during_the_build_is_an_error_also_if_it_is_put_back() {
    for is_put_back in [false, true] {
        let case = Case::new();
        let (context, sde) = (case.context(), Sde::new());
        let program = case.describe(&context);
        let header = case.header();
        case.driver.in_build(move |_| {
            write(&header, "2");
            if is_put_back {
                write(&header, "1");
                let later = SystemTime::now() + Duration::from_secs(5);
                let file = fs::File::options().write(true).open(&header).unwrap();
                file.set_modified(later).unwrap();
            }
        });
        let error = context.program(&sde, 0, &program).unwrap_err();
        assert!(is_changed(&error), "{error}");
        assert_eq!(context.stats().kept, 0);
        case.driver.in_build(|_| {});
        case.write("1");
        assert_eq!(case.builds_of_another(), 1);
    }
}

#[test]
fn a_header_edited_after_the_build_is_not_in_what_is_kept_after_a_launch() {
    let case = Case::new();
    case.driver.freeze_binaries();
    let (context, sde) = (case.context(), Sde::new());
    let program = case.describe(&context);
    let kernel = context.kernel(&sde, 0, &program, "copy").unwrap();
    kernel.launch().unwrap().enqueued();
    assert_eq!(context.stats().kept, 1);
    case.write("2");
    drop((kernel, sde));
    assert_eq!(context.stats().kept, 1);
    case.write("1");
    assert_eq!(case.builds_of_another(), 0);
}

/// A part of a linked program is compiled by itself, and remembered by itself.
#[test]
fn a_header_of_a_part_counts_too() {
    let case = Case::new();
    let (context, sde) = (case.context(), Sde::new());
    let part = ProgramSpec::source("kernel void other() {}");
    let linked = ProgramSpec::linked([case.spec(), part]);
    let program = context.describe(0, &linked).unwrap();
    case.write("2");
    let error = context.program(&sde, 0, &program).unwrap_err();
    assert!(is_changed(&error), "{error}");
    assert_eq!(context.stats().kept, 0);
    case.write("1");
    context.program(&sde, 0, &program).unwrap();
    assert_eq!(context.stats().kept, 1);
}

/// A file of a name that is found already, where a compiler may look first.
#[test]
fn a_header_that_appears_is_a_change() {
    let case = Case::new();
    let context = case.context();
    let other = folder();
    let program = context
        .describe(0, &case.spec().include_dir(other.path()))
        .unwrap();
    write(&other.path().join("size.h"), "1");
    let error = context.program(&Sde::new(), 0, &program).unwrap_err();
    assert!(is_changed(&error), "{error}");
}

/// A part that is live was compiled before the change, and the linker would run after it.
#[test]
fn a_switch_that_is_changed_before_the_build_is_an_error() {
    let switches = Arc::new(Mutex::new(vec![("POCL_X".to_owned(), "1".to_owned())]));
    let read = Arc::clone(&switches);
    let driver = Simulated::new();
    let context = Context::simulated(&driver)
        .environment(Environment::reading(move || read.lock().unwrap().clone()))
        .build()
        .unwrap();
    let sde = Sde::new();
    let part = ProgramSpec::source("kernel void k() {}");
    let linked = |option: &str| {
        let spec = ProgramSpec::linked([part.clone()]).option(option);
        context.describe(0, &spec).unwrap()
    };
    let (first, second) = (linked("-w"), linked("-g"));
    let source = context.describe(0, &part).unwrap();
    context.program(&sde, 0, &first).unwrap();
    switches.lock().unwrap()[0].1 = "2".to_owned();
    for program in [&second, &source] {
        let error = context.program(&sde, 0, program).unwrap_err();
        assert!(matches!(error, Error::Changed { .. }), "{error}");
    }
    // What is live is had all the same.
    context.program(&sde, 0, &first).unwrap();
    assert_eq!(driver.counts().links, 1);
}
