//! Whose a directory of binaries has to be, since they are code; and what a context says if it keeps none.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::sync::{Arc, Mutex};

use sde::Sde;
use sde_opencl::driver::simulated::Simulated;
use sde_opencl::{DeviceType, Event, KernelDir, Mode, ProgramSpec, Settings};

use crate::fixture::{COPY, anew, copy, folder, quiet};

/// The directory above as well as the store: who can write to it can put another store there.
#[test]
fn a_directory_that_others_can_write_to_is_refused() {
    let above = folder();
    let kept = above.path().join("kept");
    anew(&kept);
    let open = |read: bool| {
        let kinds = DeviceType::ALL.into_iter().filter(|_| read);
        let settings = kinds.fold(Settings::new(), |settings, kind| {
            settings.mode(kind, Mode::Read)
        });
        KernelDir::open(settings.dir(&kept))
    };
    for place in [above.path(), &kept, &kept.join("entries")] {
        let mode = |bits| std::fs::set_permissions(place, PermissionsExt::from_mode(bits)).unwrap();
        for bits in [0o777, 0o1777, 0o720] {
            mode(bits);
            // Nobody can rename what is another's in a directory that is sticky, as `/tmp` is.
            let is_good = place == above.path() && bits == 0o1777;
            for read in [false, true] {
                match open(read) {
                    Ok(_) => assert!(is_good, "{} {bits:o}", place.display()),
                    Err(error) => {
                        assert!(error.to_string().contains("others can write"), "{error}")
                    }
                }
            }
        }
        mode(0o700);
        assert!(open(false).is_ok(), "{}", place.display());
    }
}

/// Only the path as it was written was looked at: a cache behind a link was accepted whose real path leads through a directory that all
/// can write to.
#[test]
fn a_link_hides_no_directory_that_others_can_write_to() {
    let [home, between, real] = [(); 3].map(|()| folder());
    let kept = home.path().join("cache/kept");
    fs::create_dir(real.path().join("cache")).unwrap();
    symlink(real.path().join("cache"), between.path().join("link")).unwrap();
    symlink(between.path().join("link"), home.path().join("cache")).unwrap();
    anew(&kept);
    for place in [real.path(), between.path(), home.path()] {
        set_mode(place, 0o777);
        let error = KernelDir::open(Settings::new().dir(&kept)).err().unwrap();
        assert!(error.to_string().contains("others can write"), "{error}");
        set_mode(place, 0o700);
        assert!(KernelDir::open(Settings::new().dir(&kept)).is_ok());
    }
}

/// With umask 002 a user's directories are of mode 775, and the group may be his alone, or a project's. Nothing was kept there, and
/// nothing was said of it but by `tracing`; so too at each later start once a bit of `FORMAT` was another.
#[test]
fn a_context_says_what_it_does_not_keep_and_why() {
    let above = folder();
    let dir = above.path().join("kept");
    anew(&dir);
    let told = Arc::new(Mutex::new(Vec::new()));
    let run = |settings: Settings| {
        let told = Arc::clone(&told);
        let context = quiet(&Simulated::new()).keep(settings.dir(&dir));
        let context = context.observer(move |event: &Event| {
            if let Event::NotKept { key, why, .. } = event {
                told.lock().unwrap().push((*key, why.clone()));
            }
        });
        let context = context.build().unwrap();
        let before = context.stats();
        let program = copy(&context);
        context.program(&Sde::new(), 0, &program).unwrap();
        let why = context.store_error().map(ToString::to_string);
        assert_eq!(before.why_not_kept, why);
        (why, context.stats(), program.key())
    };
    let refused = |why_is: &str| {
        let (why, stats, key) = run(Settings::new());
        let why = why.unwrap();
        assert!(why.contains(why_is), "{why}");
        assert_eq!((stats.builds, stats.not_kept), (1, 1));
        assert_eq!(stats.why_not_kept.as_ref(), Some(&why));
        assert_eq!(std::mem::take(&mut *told.lock().unwrap()), [(key, why)]);
    };
    let accepted = |settings: Settings| {
        let (why, stats, _) = run(settings);
        assert_eq!((why, stats.loads, stats.not_kept), (None, 1, 0));
        assert_eq!(stats.why_not_kept, None);
    };
    set_mode(above.path(), 0o775);
    refused("others can write");
    accepted(Settings::new().trust_group());
    set_mode(above.path(), 0o777);
    assert!(KernelDir::open(Settings::new().dir(&dir).trust_group()).is_err());
    set_mode(above.path(), 0o700);
    accepted(Settings::new());
    let format = dir.join("FORMAT");
    let mut bytes = fs::read(&format).unwrap();
    bytes[0] ^= 1;
    fs::write(&format, bytes).unwrap();
    refused("FORMAT");
}

/// Each program that is built and not kept, and whose fault that is.
#[test]
fn a_program_that_is_not_kept_is_counted_with_the_reason() {
    let kept = folder();
    let run = |settings: Settings, source: &str| {
        let context = quiet(&Simulated::new());
        let context = context.keep(settings.dir(kept.path())).build().unwrap();
        let program = context.describe(0, &ProgramSpec::source(source)).unwrap();
        context.program(&Sde::new(), 0, &program).unwrap();
        let stats = context.stats();
        (stats.not_kept, stats.why_not_kept.unwrap_or_default())
    };
    let (count, why) = run(Settings::new(), "char t[] = __TIME__;");
    assert!(count == 1 && why.contains("__TIME__"), "{why}");
    let (count, why) = run(Settings::new().min_binary(10_000), COPY);
    assert!(count == 1 && why.contains("length"), "{why}");
    // What nobody asked for is not missed.
    let off = DeviceType::ALL.into_iter();
    let off = off.fold(Settings::new(), |all, kind| all.mode(kind, Mode::Off));
    let read = Settings::new().mode(DeviceType::Cpu, Mode::Read);
    for settings in [off, read, Settings::new()] {
        assert_eq!(run(settings, COPY), (0, String::new()));
    }
}

#[test]
fn what_is_made_is_the_users_alone() {
    let above = folder();
    let dir = above.path().join("cache").join("sde").join("kernels");
    anew(&dir);
    let mut all = vec![dir.parent().unwrap().to_owned(), dir];
    while let Some(path) = all.pop() {
        let mode = path.metadata().unwrap().permissions().mode() & 0o777;
        assert!(
            [0o700, 0o600].contains(&mode),
            "{} {mode:o}",
            path.display()
        );
        if path.is_dir() {
            all.extend(
                fs::read_dir(path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
    }
}

/// The directory may be a link of the user's, but what is in it is ours.
#[test]
fn links_in_the_directory_lead_nowhere() {
    let (kept, elsewhere) = (folder(), folder());
    let link = elsewhere.path().join("link");
    symlink(kept.path(), &link).unwrap();
    anew(&link);
    assert_eq!(anew(&link).0.counts().builds, 0);
    let entries = kept.path().join("entries");
    fs::rename(&entries, elsewhere.path().join("entries")).unwrap();
    symlink(elsewhere.path().join("entries"), &entries).unwrap();
    let error = KernelDir::open(Settings::new().dir(kept.path()))
        .err()
        .unwrap();
    assert!(error.to_string().contains("it is a link"), "{error}");
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// What is kept is code: a member of a group could have others run it.
#[test]
fn of_a_groups_cache_only_what_the_user_has_kept_is_loaded() {
    let above = folder();
    let kept = above.path().join("kept");
    anew(&kept);
    let loads = || {
        let context = quiet(&Simulated::new()).keep(Settings::new().dir(&kept));
        let context = context.build().unwrap();
        let program = copy(&context);
        context.program(&Sde::new(), 0, &program).unwrap();
        assert!(
            context.store_error().is_none(),
            "{:?}",
            context.store_error()
        );
        (context.stats().loads, context.stats().builds)
    };
    let bits = kept.metadata().unwrap();
    sde_archives::DirStore::share_with_group(&kept, bits.gid()).unwrap();
    assert_eq!(loads(), (1, 0));
    if bits.uid() != 0 {
        println!(
            "skipped the end of trust::of_a_groups_cache_only_what_the_user_has_kept_is_loaded: only the administrator can give a file to another user"
        );
        return;
    }
    for entry in kept.join("entries").read_dir().unwrap() {
        chown(entry.unwrap().path(), Some(64_001), None).unwrap();
    }
    assert_eq!(loads(), (0, 1));
    assert_eq!(loads(), (1, 0));
}
