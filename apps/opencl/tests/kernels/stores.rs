//! Binaries that outlive the process: ours, and a user's own.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use sde::Sde;
use sde_opencl::driver::simulated::{Simulated, device};
use sde_opencl::{DeviceType, KernelDir, Mode, ProgramSpec, Settings};

use crate::fixture::{
    COPY, anew, copied, copy, described, entries, folder, keeping, process, quiet,
};
use crate::own_store::Own;

#[test]
fn what_one_process_built_the_next_one_loads() {
    let kept = folder();
    let (driver, context) = anew(kept.path());
    assert_eq!((driver.counts().builds, context.stats().kept), (1, 1));
    for _ in 0..3 {
        let (driver, context) = anew(kept.path());
        assert_eq!((driver.counts().builds, context.stats().loads), (0, 1));
    }
}

/// A folder of binaries as a release wrote it is committed. For a new format version only it is written anew.
#[test]
fn what_the_first_release_of_this_format_kept_is_loaded() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/format-5");
    if !fixture.exists() {
        anew(&fixture);
        unreachable!("the fixture was not there; it is now: look at it and commit it");
    }
    let kept = folder();
    copy_private(&fixture, &kept.path().join("kept"));
    let (driver, context) = anew(&kept.path().join("kept"));
    assert_eq!((driver.counts().builds, context.stats().loads), (0, 1));
}

fn copy_private(from: &Path, to: &Path) {
    let mode = Permissions::from_mode;
    if from.is_file() {
        fs::copy(from, to).unwrap();
        return fs::set_permissions(to, mode(0o600)).unwrap();
    }
    fs::create_dir(to).unwrap();
    fs::set_permissions(to, mode(0o700)).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let name = entry.unwrap().file_name();
        copy_private(&from.join(&name), &to.join(&name));
    }
}

#[test]
fn the_log_the_time_and_the_kernels_come_back_with_the_binary() {
    let kept = folder();
    let (_, context) = anew(kept.path());
    let built = context.program(&Sde::new(), 0, &copy(&context)).unwrap();
    let again = keeping(&Simulated::new(), kept.path());
    let loaded = again.program(&Sde::new(), 0, &copy(&again)).unwrap();
    assert_eq!(loaded.log(), format!("{} bytes compiled", COPY.len()));
    assert_eq!(loaded.kernel_names(), ["copy", "move"]);
    assert!(loaded.build_time() > std::time::Duration::ZERO);
    assert_eq!(built.log(), loaded.log());
}

#[test]
fn linked_programs_are_kept_with_nothing_compiled_the_next_time() {
    let kept = folder();
    let mut work = Vec::new();
    for _ in 0..2 {
        let (driver, context) = process(kept.path());
        let parts = [ProgramSpec::source(COPY), ProgramSpec::source("int f() {}")];
        let program = context.describe(0, &ProgramSpec::linked(parts)).unwrap();
        context.kernel(&Sde::new(), 0, &program, "copy").unwrap();
        work.push((driver.counts().compiles, driver.counts().links));
    }
    assert_eq!(work, [(2, 1), (0, 0)]);
}

#[test]
fn devices_of_equal_identity_share_it_in_other_processes_too() {
    let kept = folder();
    anew(kept.path());
    let driver = Simulated::with(vec![device("other", "1"), device("simulated", "1.0")]);
    let context = keeping(&driver, kept.path());
    let program = context.describe(1, &ProgramSpec::source(COPY)).unwrap();
    context.program(&Sde::new(), 1, &program).unwrap();
    assert_eq!(driver.counts().builds, 0);
}

#[test]
fn modes_are_for_each_kind_of_device() {
    let kept = folder();
    let run = |cpu: Mode| {
        let driver = Simulated::new();
        let settings = Settings::new().dir(kept.path()).mode(DeviceType::Cpu, cpu);
        let context = quiet(&driver).keep_in_dir(&KernelDir::open(settings).unwrap());
        let context = context.build().unwrap();
        context.program(&Sde::new(), 0, &copy(&context)).unwrap();
        (driver.counts().builds, context.stats().kept)
    };
    assert_eq!(run(Mode::Off), (1, 0));
    assert_eq!(run(Mode::Read), (1, 0));
    assert_eq!(run(Mode::ReadWrite), (1, 1));
    assert_eq!(run(Mode::Off), (1, 0));
    assert_eq!(run(Mode::Read), (0, 0));
}

/// With all kinds read-only nothing is made, not even the directory.
#[test]
fn a_store_that_is_only_read_is_not_changed() {
    let kept = folder();
    let read_only = |dir: &std::path::Path| {
        let all = DeviceType::ALL.into_iter();
        let settings = all.fold(Settings::new(), |settings, kind| {
            settings.mode(kind, Mode::Read)
        });
        KernelDir::open(settings.dir(dir))
    };
    let nowhere = kept.path().join("nothing");
    assert!(read_only(&nowhere).is_err() && !nowhere.exists());
    anew(kept.path());
    let before = files(kept.path());
    let driver = Simulated::new();
    let context = quiet(&driver)
        .keep_in_dir(&read_only(kept.path()).unwrap())
        .build()
        .unwrap();
    context.program(&Sde::new(), 0, &copy(&context)).unwrap();
    let other = described(&context, "kernel void k() {}");
    context.program(&Sde::new(), 0, &other).unwrap();
    drop(context);
    assert_eq!(driver.counts().builds, 1);
    assert_eq!(files(kept.path()), before);
}

fn files(dir: &std::path::Path) -> Vec<(std::path::PathBuf, u64)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push((path.clone(), path.metadata().unwrap().len())),
        }
    }
    found.sort();
    found
}

#[test]
fn what_is_off_or_can_not_be_opened_is_no_reason_not_to_build() {
    let kept = folder();
    let file = kept.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let all = DeviceType::ALL.into_iter();
    let off = all.fold(Settings::new(), |settings, kind| {
        settings.mode(kind, Mode::Off)
    });
    let nowhere = kept.path().join("nowhere");
    for settings in [off.dir(&nowhere), Settings::new().dir(file.join("cache"))] {
        let context = quiet(&Simulated::new()).keep(settings).build().unwrap();
        context.program(&Sde::new(), 0, &copy(&context)).unwrap();
        assert_eq!((context.stats().builds, context.stats().kept), (1, 0));
    }
    assert!(!nowhere.exists());
}

#[test]
fn binaries_that_are_too_small_or_too_large_are_not_kept() {
    let kept = folder();
    let run = |settings: Settings| {
        let context = quiet(&Simulated::new());
        let context = context.keep_in_dir(&KernelDir::open(settings.dir(kept.path())).unwrap());
        let context = context.build().unwrap();
        context.program(&Sde::new(), 0, &copy(&context)).unwrap();
        (context.stats().loads, context.stats().kept)
    };
    for _ in 0..2 {
        assert_eq!(run(Settings::new().min_binary(10_000)), (0, 0));
        assert_eq!(run(Settings::new().max_binary(50)), (0, 0));
    }
    let got = run(Settings::new().min_binary(50).max_binary(10_000));
    assert_eq!(got, (0, 1));
    assert_eq!(run(Settings::new()), (1, 0));
}

/// What oneDNN's proposal has getters for, and the rest.
#[test]
fn the_settings_can_be_asked_for() {
    let kept = folder();
    let settings = Settings::new()
        .dir(kept.path())
        .mode(DeviceType::Gpu, Mode::Off);
    let dir = KernelDir::open(settings.capacity(1 << 20)).unwrap();
    let said = dir.settings();
    assert_eq!(said.dir.as_deref(), Some(kept.path()));
    assert_eq!((said.capacity, said.max_age), (Some(1 << 20), None));
    let modes = DeviceType::ALL.map(|kind| said.mode_of(kind));
    assert_eq!(modes, [Mode::ReadWrite, Mode::Off, Mode::ReadWrite]);
}

#[test]
fn a_store_of_ones_own_takes_the_place_of_ours() {
    let own = Own::default();
    let run = || {
        let driver = Simulated::new();
        let context = quiet(&driver).keep_in(own.clone()).build().unwrap();
        copied(&context);
        (driver.counts(), context.stats())
    };
    assert_eq!(run().0.builds, 1);
    assert_eq!(run().1.loads, 1);
    *own.fails.lock().unwrap() = true;
    let (counts, stats) = run();
    assert_eq!((counts.builds, stats.store_failures), (1, 2));
    *own.fails.lock().unwrap() = false;

    // What it gives is compared and summed before a driver sees it: each bit of it, and all that is cut off or comes behind.
    let whole = own.kept.lock().unwrap().values().next().unwrap().clone();
    let spoilt = |change: &dyn Fn(&mut Vec<u8>)| {
        own.kept.lock().unwrap().values_mut().for_each(change);
        let (counts, stats) = run();
        assert_eq!((counts.damaged, counts.from_binary), (0, 0));
        assert_eq!((counts.builds, stats.unfit, stats.kept), (1, 1, 1));
        assert_eq!(run().1.loads, 1);
    };
    for at in (0..whole.len()).step_by(7) {
        spoilt(&|blob| blob[at] ^= 1 << (at % 8));
    }
    spoilt(&|blob| blob.truncate(blob.len() - 1));
    spoilt(&|blob| blob.push(0));
    spoilt(&Vec::clear);
}

/// It is a blob as a user has it of the program, too.
#[test]
fn what_a_store_of_ones_own_has_is_a_blob() {
    let own = Own::default();
    let driver = Simulated::new();
    let context = quiet(&driver).keep_in(own.clone()).build().unwrap();
    let program = copy(&context);
    context.program(&Sde::new(), 0, &program).unwrap();
    let blob = own.kept.lock().unwrap()[&program.blob_id()].clone();
    let made = context.from_blob(0, &program, &blob).unwrap();
    assert_eq!(made.kernel_names(), ["copy", "move"]);
    assert_eq!(driver.counts().builds, 1);
}

/// One that is larger than the room is no reason to leave out others.
#[test]
fn what_is_larger_than_the_room_is_not_kept() {
    let kept = folder();
    let settings = Settings::new().dir(kept.path()).capacity(60_000);
    let dir = KernelDir::open(settings).unwrap();
    let driver = Simulated::new();
    let context = quiet(&driver).keep_in_dir(&dir).build().unwrap();
    for (n, size) in [1000, 200_000, 1000].into_iter().enumerate() {
        let filling = " ".repeat(size);
        let spec = ProgramSpec::source(format!("kernel void k{n}() {{}}{filling}"));
        let program = context.describe(0, &spec).unwrap();
        context.program(&Sde::new(), 0, &program).unwrap();
    }
    drop((context, dir));
    assert_eq!((driver.counts().builds, entries(kept.path()).len()), (3, 2));
}

/// A context in a `static` is never dropped.
#[test]
fn uses_are_noted_in_a_process_that_never_lets_go() {
    let kept = folder();
    anew(kept.path());
    assert_eq!(uses(kept.path()), [] as [u64; 0]);
    let context = keeping(&Simulated::new(), kept.path());
    let sde = Sde::new();
    context.program(&sde, 0, &copy(&context)).unwrap();
    context.keep_launched();
    assert_eq!(uses(kept.path()), [1]);
    std::mem::forget((context, sde));
}

/// How often each entry was used, one number for each time that it was noted.
fn uses(kept: &std::path::Path) -> Vec<u64> {
    use sde_archives::inspect::{Inspection, Item};

    let mut uses = Vec::new();
    let store = Inspection::open(kept).unwrap();
    for segment in store.segments().unwrap() {
        let walked = segment.walk(|item| {
            if let Item::Uses { uses: more, .. } = item {
                uses.extend(more.iter().map(|one| one.count));
            }
        });
        walked.unwrap();
    }
    uses
}

/// The program `sde` reads these without our types: an entry of an app as any other, with what people look for.
#[test]
fn what_people_look_for_is_there() {
    use sde_archives::inspect::Decoded;

    let kept = folder();
    anew(kept.path());
    // Another process loads it.
    anew(kept.path());
    assert_eq!(uses(kept.path()), [1]);
    let entries = entries(kept.path());
    let [entry] = &entries[..] else {
        panic!("one program, one entry: {entries:?}");
    };
    assert_eq!(&*entry.record.app, "sde_opencl.Build");
    let inputs = entry.record.inputs.iter();
    let inputs: Vec<_> = inputs.map(|one| (&*one.name, &*one.short)).collect();
    let named = [
        ("device", "\"simulated\""),
        ("driver", "\"Simulated Platform 1.0\""),
        ("options", "\"\""),
    ];
    assert_eq!(inputs[..3], named);
    let name = &entry.record.setup.transparent[0];
    assert_eq!((&*name.name, &*name.short), ("name", "\"copy\""));
    let value = |name: &str| {
        let mut results = entry.results.iter();
        let saved = results.find(|saved| saved.name == name).unwrap();
        saved.payload.as_ref().unwrap().value(1 << 20).unwrap()
    };
    let texts = |texts: &[&str]| {
        let texts = texts.iter().map(|text| Decoded::Text((*text).to_owned()));
        Decoded::List(texts.collect())
    };
    assert_eq!(value("kernels"), texts(&["copy", "move"]));
    assert_eq!(value("launched"), texts(&[]));
    let log = format!("{} bytes compiled", COPY.len());
    assert_eq!(value("log"), Decoded::Text(log));
    let Decoded::Map(key) = value("key") else {
        panic!("the key is no map");
    };
    let has = |field: &str| {
        key.iter()
            .any(|(name, _)| *name == Decoded::Text(field.to_owned()))
    };
    let mut each = ["material", "options", "device", "switches"].into_iter();
    assert!(each.all(has));
}
