//! Which options are told apart, and which may have a compiler read or write a file.

use sde_opencl::driver::simulated::Simulated;
use sde_opencl::{NotCacheable, ProgramSpec};

use crate::fixture::context;
use crate::reads::{Scan, scan_spec};

fn options(texts: &[&str]) -> Scan {
    let spec = ProgramSpec::source("kernel void k() {}");
    let spec = texts.iter().fold(spec, |spec, text| spec.option(*text));
    scan_spec(&spec)
}

#[test]
fn blanks_between_options_do_not_count_and_order_does() {
    let text = "-DA=1 -cl-mad-enable -Ix -cl-nv-arch sm_50";
    let parts = [
        "-D  A=1 \t -cl-mad-enable",
        " -I x",
        "",
        "-cl-nv-arch\nsm_50",
    ];
    assert_eq!(options(&parts).options, text);
    assert_ne!(
        options(&["-DA=1 -DA=2"]).options,
        options(&["-DA=2 -DA=1"]).options
    );
    let spec = ProgramSpec::source("").include_dir("y z");
    let dir = scan_spec(&spec);
    assert_eq!(dir.options, "-I\"y z\"");
    assert!(dir.cacheable.is_err());
    for wrong in ["-D", "nu\0ll", "-DA=1 -U", "-cl-nv-arch"] {
        let spec = ProgramSpec::source("").option(wrong);
        let context = context(&Simulated::new());
        assert!(context.describe(0, &spec).is_err(), "{wrong:?}");
    }
}

/// Those that are known, and no others.
#[test]
fn an_option_that_may_read_a_file_is_not_cacheable() {
    let plain = "-DA=1 -D B=f(x) -UA -Iinclude -I /usr/include -cl-std=CL3.0 -cl-mad-enable -w -Werror \
                 -Wno-error=x -g -O0 -std=CL2.0 -create-library -cl-ext=-all,+cl_khr_fp64 -cl-nv-arch sm_50";
    assert_eq!(options(&[plain]).cacheable, Ok(()));
    for wrong in [
        "-include a.h",
        "-includea.h",
        "--include=a.h",
        "--include a.h",
        "--include-directory=a",
        "-imacros a.h",
        "-isystem a",
        "-iquote a",
        "-idirafter a",
        "-iprefix a",
        "-iwithprefix a",
        "--sysroot=a",
        "-isysroot a",
        "-save-temps",
        "-save-temps=cwd",
        "-x cl",
        "-Wp,-include,a.h",
        "-I-",
        "-I=a",
        "-I\"a b\"",
        "@file",
        "file.cl",
        "-fmodule-file=a",
        "-Xclang -include",
        "-cl-a=/b",
        "-cl-nv-arch -include",
        "-D\"A=1 -I/elsewhere\"",
        "-DT=unsigned int",
        r"-DX='\n'",
        "-DX='a'",
        r"-DP=C:\",
        "\"open",
    ] {
        let why = options(&["-w", wrong]).cacheable;
        assert!(matches!(why, Err(NotCacheable::Option { .. })), "{wrong}");
    }
}
