//! Nothing damaged reaches a driver: it would end the process.

use std::fs;
use std::path::{Path, PathBuf};

use sde::Sde;
use sde_opencl::driver::simulated::Simulated;
use sde_opencl::{DeviceType, KernelDir, Mode, Settings};

use crate::fixture::{anew, copy, folder, process, quiet};

/// The files that hold binaries.
fn segments(kept: &Path) -> Vec<PathBuf> {
    let folder = fs::read_dir(kept.join("entries")).unwrap();
    let mut paths: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// A new process with a damaged store: it has its kernel, and the driver saw nothing damaged. It
/// does not mend the store, so that the next one finds one fault only.
fn survives(kept: &Path, what: &str) {
    let all = DeviceType::ALL.into_iter();
    let settings = all.fold(Settings::new(), |settings, kind| {
        settings.mode(kind, Mode::Read)
    });
    let driver = Simulated::new();
    let context = quiet(&driver);
    // A damaged `FORMAT` is an error of opening, and no other file can be.
    let dir = KernelDir::open(settings.dir(kept)).unwrap_or_else(|error| panic!("{what}: {error}"));
    let context = context.keep_in_dir(&dir).build().unwrap();
    let kernel = context.kernel(&Sde::new(), 0, &copy(&context), "copy");
    kernel.unwrap_or_else(|error| panic!("{what}: {error}"));
    let counts = driver.counts();
    assert_eq!(counts.damaged, 0, "{what}");
    assert_eq!(counts.builds + counts.from_binary, 1, "{what}");
}

#[test]
fn every_byte_of_an_entry_flipped_is_a_build_or_makes_no_difference() {
    let kept = folder();
    anew(kept.path());
    let [path] = &segments(kept.path())[..] else {
        panic!("one segment was expected");
    };
    let whole = fs::read(path).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(path, &bytes).unwrap();
        survives(kept.path(), &format!("byte {at}"));
    }
    fs::write(path, &whole).unwrap();
    assert_eq!(anew(kept.path()).0.counts().builds, 0);
}

#[test]
fn a_damaged_entry_is_replaced() {
    let kept = folder();
    anew(kept.path());
    let path = &segments(kept.path())[0];
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64]
        .iter_mut()
        .for_each(|byte| *byte ^= 0x55);
    fs::write(path, bytes).unwrap();
    assert_eq!(anew(kept.path()).0.counts().builds, 1);
    assert_eq!(anew(kept.path()).0.counts().builds, 0);
}

#[test]
fn a_truncated_entry_is_a_build() {
    let kept = folder();
    anew(kept.path());
    let path = &segments(kept.path())[0];
    let whole = fs::read(path).unwrap();
    for length in (0..whole.len()).step_by(37) {
        fs::write(path, &whole[..length]).unwrap();
        survives(kept.path(), &format!("{length} bytes"));
    }
}

#[test]
fn what_can_be_counted_again_may_be_deleted() {
    let kept = folder();
    anew(kept.path());
    for gone in ["manifests", "work"] {
        fs::remove_dir_all(kept.path().join(gone)).unwrap();
        assert_eq!(anew(kept.path()).0.counts().builds, 0, "{gone}");
    }
    // All of it while it is in use: it is made again.
    let (_, context) = process(kept.path());
    fs::remove_dir_all(kept.path()).unwrap();
    context.program(&Sde::new(), 0, &copy(&context)).unwrap();
    drop(context);
    assert_eq!(anew(kept.path()).0.counts().builds, 0);
}
