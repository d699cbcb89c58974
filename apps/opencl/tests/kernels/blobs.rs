//! Binaries as bytes that a user keeps.

use sde::Sde;
use sde_opencl::driver::faults::Call;
use sde_opencl::driver::simulated::Simulated;
use sde_opencl::{BlobError, ProgramSpec};

use crate::fixture::{
    INVALID_BINARY, context, copied, copy, described, faulty, folder, keeping, simulated,
};

fn blob() -> Vec<u8> {
    let context = context(&Simulated::new());
    let program = context.program(&Sde::new(), 0, &copy(&context)).unwrap();
    program.blob().unwrap()
}

#[test]
fn a_blob_makes_the_program_again_with_no_build() {
    let blob = blob();
    let (driver, context) = simulated();
    let descriptor = copy(&context);
    assert_eq!(descriptor.blob_id(), *descriptor.key().as_bytes());
    let program = context.from_blob(0, &descriptor, &blob).unwrap();
    assert_eq!(program.kernel_names(), ["copy", "move"]);
    program.kernel("move").unwrap().launch().unwrap();
    assert_eq!(driver.counts().builds, 0);
    assert_eq!(program.blob().unwrap(), blob);
    drop(program);
    assert_eq!(driver.counts().programs, 0);
}

/// PoCL gives what it gave first, so a new program is made.
#[test]
fn a_blob_has_what_was_finished_at_launches() {
    let kept = folder();
    for has_store in [false, true] {
        let driver = Simulated::new();
        driver.freeze_binaries();
        let context = match has_store {
            false => context(&driver),
            true => keeping(&driver, kept.path()),
        };
        let kernel = copied(&context);
        let recompiled = || {
            kernel.program().blob().unwrap();
            context.stats().recompiled
        };
        assert_eq!(recompiled(), 0);
        kernel.launch().unwrap().enqueued();
        assert_eq!(recompiled(), 1);
    }
}

#[test]
fn no_driver_sees_a_blob_that_is_not_whole() {
    let blob = blob();
    let (driver, context) = simulated();
    let descriptor = copy(&context);
    for at in 0..blob.len() {
        let mut bytes = blob.clone();
        bytes[at] ^= 0x10;
        assert!(
            context.from_blob(0, &descriptor, &bytes).is_err(),
            "byte {at}"
        );
        assert!(
            context.from_blob(0, &descriptor, &blob[..at]).is_err(),
            "{at} bytes"
        );
    }
    let longer = [&blob[..], b"x"].concat();
    assert!(context.from_blob(0, &descriptor, &longer).is_err());
    assert_eq!(driver.counts().from_binary, 0);
}

/// Contents that are none, under a checksum that is right.
#[test]
fn what_is_in_a_blob_is_not_believed() {
    let blob = blob();
    let context = context(&Simulated::new());
    let descriptor = copy(&context);
    for at in 0..200 {
        let mut content = blob[72..].to_vec();
        content.splice(at..at, [0xff; 9]);
        let sum = sde::key::commit(&content[..]).unwrap().digest();
        let bytes = [&blob[..40], sum.as_bytes(), &content].concat();
        let error = context.from_blob(0, &descriptor, &bytes).unwrap_err();
        assert!(matches!(error, BlobError::Unfit { .. }), "{at}: {error}");
    }
}

#[test]
fn each_reason_has_a_type() {
    let blob = blob();
    let driver = Simulated::new();
    let (context, faults) = faulty(&driver);
    let other = described(&context, "kernel void k() {}");
    let error = context.from_blob(0, &other, &blob).unwrap_err();
    assert!(matches!(error, BlobError::Unfit { .. }), "{error}");
    let error = context.from_blob(0, &other, b"nonsense").unwrap_err();
    assert!(matches!(error, BlobError::Unfit { .. }), "{error}");
    faults.fail(&[Call::CreateWithBinary], 1, INVALID_BINARY);
    let error = context.from_blob(0, &copy(&context), &blob).unwrap_err();
    assert!(matches!(error, BlobError::Refused { .. }), "{error}");
    let program = context.program(&Sde::new(), 0, &copy(&context)).unwrap();
    driver.give_no_binaries();
    let error = program.blob().unwrap_err();
    assert!(matches!(error, BlobError::Unsupported { .. }), "{error}");
}

/// What it includes is not in its name.
#[test]
fn a_program_that_is_not_cacheable_has_no_blob() {
    let (_, context) = simulated();
    let spec = ProgramSpec::source("kernel void k() { char *at = __TIME__; }");
    let program = context.describe(0, &spec).unwrap();
    let made = context.program(&Sde::new(), 0, &program).unwrap();
    let error = made.blob().unwrap_err();
    assert!(matches!(error, BlobError::NotCacheable { .. }), "{error}");
    let error = context.from_blob(0, &program, &blob()).unwrap_err();
    assert!(matches!(error, BlobError::NotCacheable { .. }), "{error}");
}
