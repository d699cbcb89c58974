//! Binaries that outlive the process: ours, and a user's own.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use sde::Sde;
use sde_opencl::driver::simulated::{Simulated, device};
use sde_opencl::{
    DeviceType, KernelDir, KernelStore, Mode, ProgramSpec, Settings, StoredProgram, Wanted,
};

use crate::fixture::{COPY, anew, copy, folder, keeping, quiet};
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
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/format-2");
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
        let driver = Simulated::new();
        let context = keeping(&driver, kept.path());
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
        let context = quiet(&driver).keep_in(KernelDir::open(settings).unwrap());
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
        .keep_in(read_only(kept.path()).unwrap())
        .build()
        .unwrap();
    context.program(&Sde::new(), 0, &copy(&context)).unwrap();
    let other = context
        .describe(0, &ProgramSpec::source("kernel void k() {}"))
        .unwrap();
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
        let context = context.keep_in(KernelDir::open(settings.dir(kept.path())).unwrap());
        let context = context.build().unwrap();
        context.program(&Sde::new(), 0, &copy(&context)).unwrap();
        (context.stats().loads, context.stats().kept)
    };
    for _ in 0..2 {
        assert_eq!(run(Settings::new().min_binary(10_000)), (0, 0));
        assert_eq!(run(Settings::new().max_binary(50)), (0, 0));
    }
    assert_eq!(
        run(Settings::new().min_binary(50).max_binary(10_000)),
        (0, 1)
    );
    assert_eq!(run(Settings::new()), (1, 0));
}

/// The directory as well as what is in it: who can write to it can put another store there.
#[test]
fn a_directory_that_others_can_write_to_is_refused() {
    let kept = folder();
    anew(kept.path());
    let open = |read: bool| {
        let kinds = DeviceType::ALL.into_iter().filter(|_| read);
        let settings = kinds.fold(Settings::new(), |settings, kind| {
            settings.mode(kind, Mode::Read)
        });
        KernelDir::open(settings.dir(kept.path()))
    };
    let places = [
        kept.path(),
        &kept.path().join("store"),
        &kept.path().join("locks"),
    ];
    for place in places {
        let mode = |bits| std::fs::set_permissions(place, PermissionsExt::from_mode(bits)).unwrap();
        assert!(open(false).is_ok(), "{}", place.display());
        for bits in [0o777, 0o1777, 0o720] {
            mode(bits);
            let error = open(false).err().unwrap().to_string();
            assert!(error.contains("others can write"), "{error}");
            // Who only reads takes no lock.
            assert_eq!(open(true).is_ok(), place.ends_with("locks"));
        }
        mode(0o700);
    }
    assert!(open(false).is_ok());
}

#[test]
fn what_is_made_is_the_users_alone() {
    let above = folder();
    let dir = above.path().join("cache").join("sde").join("kernels");
    KernelDir::open(Settings::new().dir(&dir)).unwrap();
    anew(&dir);
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    for made in [
        &dir,
        dir.parent().unwrap(),
        &dir.join("locks"),
        &dir.join("store"),
    ] {
        assert_eq!(mode(made), 0o700, "{}", made.display());
    }
    for lock in std::fs::read_dir(dir.join("locks")).unwrap() {
        assert_eq!(mode(&lock.unwrap().path()), 0o600);
    }
}

/// The directory may be a link of the user's, but what is in it is ours.
#[test]
fn links_in_the_directory_lead_nowhere() {
    let (kept, elsewhere) = (folder(), folder());
    let link = elsewhere.path().join("link");
    std::os::unix::fs::symlink(kept.path(), &link).unwrap();
    anew(&link);
    assert_eq!(anew(&link).0.counts().builds, 0);

    let locks = kept.path().join("locks");
    let program = copy(&quiet(&Simulated::new()).build().unwrap());
    let [first, second, ..] = *program.key().as_bytes();
    let lock = locks.join(format!("{first:02x}{second:02x}"));
    std::fs::remove_file(&lock).unwrap();
    std::fs::remove_dir_all(kept.path().join("store")).unwrap();
    let target = elsewhere.path().join("target");
    std::os::unix::fs::symlink(&target, &lock).unwrap();
    assert_eq!(anew(kept.path()).1.stats().kept, 1);
    assert!(!target.exists());

    std::fs::remove_dir_all(&locks).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), &locks).unwrap();
    let error = KernelDir::open(Settings::new().dir(kept.path()));
    let error = error.err().unwrap().to_string();
    assert!(error.contains("it is a link"), "{error}");
}

#[test]
fn a_store_of_ones_own_takes_the_place_of_ours() {
    let own = Own::default();
    let run = || {
        let driver = Simulated::new();
        let context = quiet(&driver).keep_in(own.clone()).build().unwrap();
        context
            .kernel(&Sde::new(), 0, &copy(&context), "copy")
            .unwrap();
        (driver.counts(), context.stats())
    };
    assert_eq!(run().0.builds, 1);
    assert_eq!(run().1.loads, 1);
    *own.fails.lock().unwrap() = true;
    let (counts, stats) = run();
    // Two looks and a put, and one more look when the program goes.
    assert_eq!((counts.builds, stats.store_failures), (1, 4));
    *own.fails.lock().unwrap() = false;

    // What it gives is compared and summed before a driver sees it.
    let spoil = |change: fn(&mut StoredProgram)| {
        own.kept.lock().unwrap().values_mut().for_each(change);
        let (counts, stats) = run();
        assert_eq!((counts.damaged, counts.from_binary), (0, 0));
        assert_eq!(
            (counts.builds, stats.unfit > 0, stats.replaced),
            (1, true, stats.kept)
        );
        assert_eq!(run().1.loads, 1);
    };
    spoil(|program| program.binary[0] ^= 1);
    spoil(|program| program.launched.push("copy".to_owned()));
    spoil(|program| {
        program.full.options.push("-g".to_owned());
        *program = program.clone().seal();
    });
    spoil(|program| {
        program.binary.clear();
        *program = program.clone().seal();
    });
}

/// One that is too large, or for which there is no room left, is no reason to leave out others.
#[test]
fn of_several_programs_those_are_kept_that_there_is_room_for() {
    let own = Own::default();
    let context = quiet(&Simulated::new())
        .keep_in(own.clone())
        .build()
        .unwrap();
    let sizes = [1000, 200_000, 20_000, 20_000, 1000];
    let programs = sizes.iter().enumerate().map(|(n, size)| {
        let filling = " ".repeat(*size);
        let spec = ProgramSpec::source(format!("kernel void k{n}() {{}}{filling}"));
        let program = context.describe(0, &spec).unwrap();
        context.program(&Sde::new(), 0, &program).unwrap();
        own.kept.lock().unwrap()[&program.key()].clone()
    });
    let programs: Vec<_> = programs.collect();
    let kept = folder();
    let settings = Settings::new().dir(kept.path()).capacity(60_000);
    let dir = KernelDir::open(settings).unwrap();
    assert_eq!(dir.put(&programs).unwrap(), 3);
    let is_there = programs.iter().map(|program| {
        let wanted = Wanted {
            key: program.key,
            full: &program.full,
            device_type: program.device_type,
        };
        dir.get(&[wanted]).unwrap()[0].is_some()
    });
    assert_eq!(
        is_there.collect::<Vec<_>>(),
        [true, false, true, false, true]
    );
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
    let other = keeping(&Simulated::new(), kept.path());
    other.program(&Sde::new(), 0, &copy(&other)).unwrap();
    let program = other
        .describe(0, &ProgramSpec::source("kernel void k() {}"))
        .unwrap();
    other.program(&Sde::new(), 0, &program).unwrap();
    assert_eq!(uses(kept.path()), [1, 1]);
    std::mem::forget((context, other, sde));
}

/// How often each entry was used, one number for each time that it was noted.
fn uses(kept: &std::path::Path) -> Vec<u64> {
    use sde_archives::inspect::{Inspection, Item};

    let mut uses = Vec::new();
    let store = Inspection::open(kept.join("store")).unwrap();
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

/// The program `sde` reads these without our types: what it looks for must be there, under these names.
#[test]
fn what_the_program_sde_reads_is_there() {
    use sde_archives::inspect::{Inspection, Item, Value};

    let kept = folder();
    anew(kept.path());
    // Another process loads it; whoever looks whether there is a better one does not use it.
    let (_, context) = anew(kept.path());
    drop(context);
    let store = Inspection::open(kept.path().join("store")).unwrap();
    let (mut entries, mut uses) = (Vec::new(), Vec::new());
    for segment in store.segments().unwrap() {
        let walked = segment.walk(|item| match item {
            Item::Entry(entry) => entries.push(entry),
            Item::Uses { uses: more, .. } => uses.extend(more),
            _ => {}
        });
        walked.unwrap();
    }
    let [entry] = &entries[..] else {
        panic!("one program, one entry: {entries:?}");
    };
    assert_eq!(&*entry.record.app, "sde_opencl.Binary");
    let inputs: Vec<&str> = entry
        .record
        .inputs
        .iter()
        .map(|input| &*input.name)
        .collect();
    assert_eq!(inputs, ["device", "driver", "options", "program"]);
    let value = |name: &str| {
        let saved = entry
            .results
            .iter()
            .find(|saved| saved.name == name)
            .unwrap();
        saved.payload.as_ref().unwrap().value(1 << 20).unwrap()
    };
    let field = |value: &Value, name: &str| match value {
        Value::Map(pairs) => {
            let found = pairs
                .iter()
                .find(|(key, _)| *key == Value::Text(name.to_owned()));
            found
                .unwrap_or_else(|| panic!("no {name} in {value:?}"))
                .1
                .clone()
        }
        other => panic!("{other:?} has no {name}"),
    };
    let text = |text: &str| Value::Text(text.to_owned());
    let (key, about) = (value("key"), value("about"));
    assert_eq!(field(&about, "name"), text("copy"));
    assert_eq!(field(&about, "device_type"), text("Cpu"));
    assert_eq!(
        field(&about, "kernels"),
        Value::List(vec![text("copy"), text("move")])
    );
    assert_eq!(field(&about, "launched"), Value::List(Vec::new()));
    assert_eq!(
        field(&about, "log"),
        text(&format!("{} bytes compiled", COPY.len()))
    );
    assert_eq!(field(&key, "options"), Value::List(Vec::new()));
    let device = field(&key, "device");
    assert_eq!(field(&device, "name"), text("simulated"));
    assert_eq!(field(&device, "platform"), text("Simulated Platform"));
    assert_eq!(field(&device, "driver"), text("1.0"));
    let used: Vec<_> = uses.iter().map(|one| (one.prefix, one.count)).collect();
    let first = entry.record.key.as_bytes().first_chunk().unwrap();
    assert_eq!(used, [(u64::from_be_bytes(*first), 1)]);
}
