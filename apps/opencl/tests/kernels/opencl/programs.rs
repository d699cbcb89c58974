//! Each way to have a program, on a device.

use std::sync::Arc;

use opencl3::program::Program as ClProgram;
use sde::Sde;
use sde_opencl::{Context, Environment, Program, ProgramSpec};

use super::{SOURCE, axpy, expected, in_a_process, run};
use crate::fixture::folder;

#[test]
fn linked_programs_with_headers_run() {
    in_a_process("linked_programs_with_headers_run", "linked");
}

#[test]
fn a_macro_with_blanks_reaches_the_compiler_whole() {
    in_a_process("a_macro_with_blanks_reaches_the_compiler_whole", "spaced");
}

#[test]
fn a_blob_takes_the_place_of_a_build() {
    in_a_process("a_blob_takes_the_place_of_a_build", "blob");
}

#[test]
fn a_source_that_does_not_compile_says_what_the_compiler_said() {
    let test = "a_source_that_does_not_compile_says_what_the_compiler_said";
    in_a_process(test, "wrong");
}

#[test]
fn a_program_made_by_opencl_is_kept_for_all() {
    in_a_process("a_program_made_by_opencl_is_kept_for_all", "foreign");
}

#[test]
fn options_reach_the_compiler_as_they_are_written() {
    in_a_process("options_reach_the_compiler_as_they_are_written", "options");
}

#[test]
fn programs_without_kernels_are_kept_as_others() {
    in_a_process("programs_without_kernels_are_kept_as_others", "bare");
}

/// The options of this crate and those of OpenCL's own call make the same code, also where there are quotes and
/// backslashes: taken away by us, a `'\\n'` computed with the letter n.
pub fn options(context: &Context) {
    let sde = Sde::new();
    let source = SOURCE.replace("OFFSET", "(X)");
    let values = [
        (r"'\n'", 10.0),
        (r"'\0'", 0.0),
        ("'n'", 110.0),
        ("sizeof (\"a b\" \"c\")", 5.0),
    ];
    for (value, offset) in values {
        let expected: Vec<_> = expected().iter().map(|y| y - 1.0 + offset).collect();
        let compute = |program: &Program| {
            let kernel = program.kernel("axpy").unwrap();
            run(context, 0, &kernel.launch().unwrap())
        };
        let spec = ProgramSpec::source(&*source);
        let described = context
            .describe(0, &spec.clone().define("X", value))
            .unwrap();
        described.is_cacheable().unwrap();
        let program = context.program(&sde, 0, &described).unwrap();
        assert_eq!(compute(&program), expected, "{value}");
        if value.contains(' ') {
            continue;
        }
        let option = format!("-DX={value}");
        let described = context.describe(0, &spec.option(&*option)).unwrap();
        described.is_cacheable().unwrap_err();
        let opencl = context.opencl().unwrap();
        let own = ClProgram::create_and_build_from_source(opencl, &source, &option);
        let built = context.program(&sde, 0, &described);
        // NVIDIA's driver takes the quotes away, and these values are no code without them.
        let (Ok(program), Ok(own)) = (&built, &own) else {
            assert!(built.is_err() && own.is_err(), "{option}: {built:?}");
            continue;
        };
        assert_eq!(compute(program), expected, "{option}");
        // SAFETY: it is alive.
        let foreign = unsafe { context.foreign(0, own.get()) }.unwrap();
        foreign.program().unwrap_err();
    }
}

/// PoCL gives a name that nobody wrote to a program without kernels, and an empty source ended the process.
pub fn bare(context: &Context) {
    for source in ["int f(int x) { return x; }", " ", ""] {
        let program = context.describe(0, &ProgramSpec::source(source)).unwrap();
        for _ in 0..3 {
            let made = context.program(&Sde::new(), 0, &program).unwrap();
            assert!(made.kernel_names().is_empty());
        }
    }
    let stats = context.stats();
    assert_eq!((stats.builds, stats.loads, stats.refused), (3, 6, 0));
}

/// A source with a header, linked with another source.
pub fn linked(context: &Context) {
    let sde = Sde::new();
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
    assert_eq!(run(context, 0, &kernel.launch().unwrap()), expected());
}

pub fn spaced(context: &Context) {
    let sde = Sde::new();
    let spaced = ProgramSpec::source(SOURCE).define("OFFSET", "(0.5f + 0.5f)");
    let program = context.describe(0, &spaced).unwrap();
    program.is_cacheable().unwrap();
    let kernel = context.kernel(&sde, 0, &program, "axpy").unwrap();
    assert_eq!(run(context, 0, &kernel.launch().unwrap()), expected());
}

pub fn blob(context: &Context) {
    let sde = Sde::new();
    let plain = context.describe(0, &axpy()).unwrap();
    let kernel = context.kernel(&sde, 0, &plain, "axpy").unwrap();
    assert_eq!(run(context, 0, &kernel.launch().unwrap()), expected());
    let blob = kernel.program().blob().unwrap();
    let from_blob = context.from_blob(0, &plain, &blob).unwrap();
    assert_eq!(
        run(
            context,
            0,
            &from_blob.kernel("axpy").unwrap().launch().unwrap()
        ),
        expected()
    );
}

pub fn wrong(context: &Context) {
    let sde = Sde::new();
    let wrong = context
        .describe(0, &ProgramSpec::source("kernel void k() { int x = ; }"))
        .unwrap();
    let error = context.program(&sde, 0, &wrong).unwrap_err();
    assert!(
        error.is_permanent() && error.to_string().contains("expected expression"),
        "{error}"
    );
}

/// A program that OpenCL's own calls made.
pub fn foreign(context: &Context) {
    let sde = Sde::new();
    let opencl = context.opencl().unwrap();
    let source = SOURCE.replace("OFFSET", "OFFSET + 0.0f");
    let source =
        format!("#ifdef X\n#define OFFSET 2.0f\n#else\n#define OFFSET 1.0f\n#endif\n{source}");
    let program = ClProgram::create_and_build_from_source(opencl, &source, "-cl-mad-enable");
    let mut program = program.unwrap();
    // SAFETY: it is alive.
    let foreign = unsafe { context.foreign(0, program.get()) }.unwrap();
    foreign.is_cacheable().unwrap();
    let own = foreign.program().unwrap();
    assert_eq!(
        run(context, 0, &own.kernel("axpy").unwrap().launch().unwrap()),
        expected()
    );
    // Its owner builds it again.
    program.build(opencl.devices(), "-DX=2").unwrap();
    assert_eq!(own.descriptor().options(), "-cl-mad-enable");
    assert!(foreign.keep().unwrap());
    program.build(opencl.devices(), "-cl-mad-enable").unwrap();
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
    assert_eq!(options, "-cl-mad-enable");
    let unbuilt = ClProgram::create_from_source(opencl, "kernel void k() {}").unwrap();
    // SAFETY: it is alive.
    let foreign = unsafe { context.foreign(0, unbuilt.get()) }.unwrap();
    assert!(foreign.is_cacheable().is_err());
}
