//! What can't be read is computed again.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use sde::archiver::{Archiver, Codec};
use sde::{ErrorKind, Policy, SavePolicy, Source, Value, inputs};
use sde_archives::{DirStore, Retention};
use tempfile::tempdir;

use super::apps::{Echo, engine, expected_page, fresh, page};
use super::log::warnings;
use super::says::one_says;

/// The one file of a class.
fn segment(dir: &Path, class: &str) -> PathBuf {
    let mut files = std::fs::read_dir(dir.join(class)).unwrap();
    let file = files.next().unwrap().unwrap().path();
    assert!(files.next().is_none());
    file
}

fn flip(file: &Path, at: u64) {
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(file)
        .unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 0x10], at).unwrap();
}

fn last_byte_but(file: &Path, back: u64) -> u64 {
    std::fs::metadata(file).unwrap().len() - back
}

#[test]
fn a_damaged_value_is_computed_again_with_a_warning() {
    let (dir, sde) = fresh(SavePolicy::EveryResult);
    page.call(&sde, 1).unwrap();
    std::mem::forget(sde);
    let file = segment(dir.path(), "entries");
    flip(&file, last_byte_but(&file, 100));

    let (found, warned) = warnings(|| {
        let (sde, log) = engine(dir.path(), SavePolicy::EveryResult);
        let found = page.call(&sde, 1).unwrap();
        assert_eq!(log.sources("page"), [Source::Computed]);
        found
    });
    assert_eq!(*found, expected_page(1));
    one_says(&warned, "are damaged");
    // The one that took its place is found from now on.
    let (sde, log) = engine(dir.path(), SavePolicy::EveryResult);
    assert_eq!(*page.call(&sde, 1).unwrap(), expected_page(1));
    assert_eq!(log.sources("page"), [Source::Loaded]);
}

/// What was saved last was cut short, and left its record whole and its value not: that before it counts.
/// A compaction must not drop it either.
#[test]
fn a_damaged_value_does_not_hide_the_sound_one_before_it() {
    let (dir, sde) = fresh(SavePolicy::EveryResult);
    page.call(&sde, 1).unwrap();
    let fresh = inputs! { number: 1_u64 };
    let fresh = sde.request(&page, &fresh).policy(Policy::Refresh).run();
    assert_eq!(fresh.unwrap().source, Source::Computed);
    std::mem::forget(sde);
    let file = segment(dir.path(), "entries");
    flip(&file, last_byte_but(&file, 100));
    for compacts in [false, true, false] {
        if compacts {
            let store = DirStore::open(dir.path()).unwrap();
            store.compact(&Retention::new()).unwrap();
        }
        let (sde, log) = engine(dir.path(), SavePolicy::OnRequest);
        assert_eq!(*page.call(&sde, 1).unwrap(), expected_page(1));
        assert_eq!(log.sources("page"), [Source::Loaded]);
    }
}

/// A segment is its bytes, whatever its name: a copy serves as well.
#[test]
fn a_whole_copy_serves_if_the_other_is_damaged() {
    for damaged in [false, true] {
        let (dir, sde) = fresh(SavePolicy::EveryResult);
        page.call(&sde, 1).unwrap();
        std::mem::forget(sde);
        let file = segment(dir.path(), "entries");
        let copy = file.with_file_name("copy.sde");
        std::fs::copy(&file, &copy).unwrap();
        let hit = if damaged { &copy } else { &file };
        flip(hit, last_byte_but(hit, 100));
        let (sde, log) = engine(dir.path(), SavePolicy::EveryResult);
        assert_eq!(*page.call(&sde, 1).unwrap(), expected_page(1));
        assert_eq!(log.sources("page"), [Source::Loaded], "{damaged}");
        std::mem::forget(sde);
    }
}

/// Values too large to be checked when they are found.
#[test]
fn a_damaged_large_value_is_an_error_and_then_computed_again() {
    let dir = tempdir().unwrap();
    let large = || Echo {
        app: "large",
        value: Some(Value::new("x".repeat(17 << 20))),
    };
    let (sde, _) = engine(dir.path(), SavePolicy::EveryResult);
    sde.run(&large(), &inputs! {}).unwrap();
    std::mem::forget(sde);
    let file = segment(dir.path(), "entries");
    flip(&file, last_byte_but(&file, 1 << 20));

    let (sde, _) = engine(dir.path(), SavePolicy::OnRequest);
    let inputs = inputs! {};
    let loaded = sde.request(&large(), &inputs).run().unwrap();
    assert_eq!(loaded.source, Source::Loaded);
    let gone = loaded.results.get::<String>("value").unwrap_err();
    assert!(matches!(gone.kind(), ErrorKind::Gone { .. }), "{gone}");
    let again = sde.request(&large(), &inputs).run().unwrap();
    assert_eq!(again.source, Source::Computed);
    std::mem::forget(sde);

    // Once it was found to be damaged it is not offered again.
    let store = DirStore::open_read_only(dir.path()).unwrap();
    let offered = || {
        let found = store.find(&again.key).unwrap();
        found.and_then(|mut entry| entry.results.remove(0).payload)
    };
    let payload = offered().unwrap();
    assert!(payload.decode(&Codec::of::<String>()).is_err());
    assert!(offered().is_none());

    // Asked for by name it is read before it is given.
    let (sde, _) = engine(dir.path(), SavePolicy::OnRequest);
    let named = sde
        .request(&large(), &inputs)
        .names(&["value"])
        .run()
        .unwrap();
    assert_eq!(named.source, Source::Computed);
    let got = named.results.get::<String>("value").unwrap().len();
    assert_eq!(got, 17 << 20);
    std::mem::forget(sde);
}

/// An author who changes the type of a result and forgets to raise the version.
#[test]
fn a_value_of_another_type_is_computed_again() {
    let (dir, sde) = fresh(SavePolicy::EveryResult);
    let wide = Echo {
        app: "number",
        value: Some(Value::new(0.1_f64)),
    };
    sde.run(&wide, &inputs! {}).unwrap();
    let (sde, _) = engine(dir.path(), SavePolicy::EveryResult);
    let narrow = Echo {
        app: "number",
        value: Some(Value::new(0.1_f32)),
    };
    let inputs = inputs! {};
    let outcome = sde.request(&narrow, &inputs).run().unwrap();
    assert_eq!(outcome.source, Source::Computed);
    assert_eq!(*outcome.results.get::<f32>("value").unwrap(), 0.1_f32);
}

#[test]
fn files_that_are_gone_are_a_miss() {
    let (dir, sde) = fresh(SavePolicy::EveryResult);
    page.call(&sde, 1).unwrap();
    std::mem::forget(sde);
    let (sde, log) = engine(dir.path(), SavePolicy::OnRequest);
    std::fs::remove_file(segment(dir.path(), "entries")).unwrap();
    assert_eq!(*page.call(&sde, 1).unwrap(), expected_page(1));
    assert_eq!(log.sources("page"), [Source::Computed]);
}
