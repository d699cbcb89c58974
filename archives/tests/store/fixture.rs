//! A store of each format version is committed: what one release wrote, later ones read.

use std::path::{Path, PathBuf};

use sde::archiver::{Archiver, Selection};
use sde::ranks::ThreadGroup;
use sde::{
    App, AppError, AppInfo, Fingerprint, Handle, Inputs, OutputFile, Policy, ResultMap, ResultSpec,
    SavePolicy, Sde, Source, Tag, inputs,
};
use sde_archives::inspect::{Inspection, Item};
use sde_archives::{Cbor, Class, DirStore, Removal, Retention, StoreOptions};
use sde_arrays::DistArray;

use super::apps::records;
use super::says::says;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/format-2")
}

/// Has values of many types.
#[derive(Fingerprint)]
struct All {
    order: u32,
}

impl App for All {
    fn info(&self) -> AppInfo {
        AppInfo::new("fixture.All", "1")
            .result(ResultSpec::new::<(u8, i64, String, Option<bool>)>("small"))
            .result(ResultSpec::new::<Vec<[f64; 2]>>("matrix"))
            .result(ResultSpec::new::<Vec<f32>>("guess").tagged(Tag::Intermediate))
            .result(ResultSpec::new::<u8>("trace").tagged(Tag::Expendable))
    }
    fn run(&self, _: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        Ok(ResultMap::new()
            .with("small", small())
            .with("matrix", matrix())
            .with("guess", vec![0.5_f32, f32::MIN_POSITIVE])
            .with("trace", 1_u8))
    }
}

fn small() -> (u8, i64, String, Option<bool>) {
    (255, i64::MIN, "Grüße".to_owned(), None)
}

fn matrix() -> Vec<[f64; 2]> {
    let nan = f64::from_bits(0x7ff4_0000_0000_0001);
    vec![[1.0, -0.0], [nan, f64::INFINITY]]
}

#[sde::app(name = "fixture.marked", version = "1")]
fn marked(x: f64) -> f64 {
    x + 1.0
}

#[sde::app(name = "fixture.unfinished", version = "1")]
fn unfinished(sde: &Handle) -> Result<u32, AppError> {
    let scratch = sde.scratch::<(u32, f64)>();
    match scratch.load()? {
        Some(state) => Ok(state.0),
        None => {
            scratch.save((3, 0.25))?;
            Err(AppError::message("interrupted"))
        }
    }
}

/// Where its file is written, and put back.
const FILE: &str = "/tmp/sde-format-2.txt";

#[sde::app(name = "fixture.written", version = "1")]
fn written(text: &str) -> std::io::Result<OutputFile> {
    std::fs::write(FILE, text)?;
    OutputFile::new(FILE)
}

/// Writes the fixture anew, where there is none: for a new format version only.
#[test]
fn the_fixture_is_there() {
    let path = fixture();
    if path.join("FORMAT").exists() {
        return;
    }
    let open = || {
        let store = StoreOptions::new().open(&path).unwrap();
        let builder = Sde::builder().store(store).save(SavePolicy::OnRequest);
        builder.save(SavePolicy::EveryResult).build().unwrap()
    };
    let sde = open();
    let one = inputs! { x: 1.0_f64 };
    sde.run(&All { order: 2 }, &inputs! { basis: "STO-3G".to_owned() })
        .unwrap();
    let key = sde.request(&marked, &one).run().unwrap().key;
    sde.request(&marked, &one)
        .policy(Policy::Refresh)
        .run()
        .unwrap();
    sde.invalidate(&key, "a test").unwrap();
    unfinished.call(&sde).unwrap_err();
    written.call(&sde, "what it holds").unwrap();
    sde.checkpoint().unwrap();
    (2..4).for_each(|x| drop(marked.call(&sde, f64::from(x)).unwrap()));
    sde.finish().unwrap();
    drop(sde);
    let sde = open();
    marked.call(&sde, 2.0).unwrap();
    sde.finish().unwrap();
    by_ranks(3, &path.with_file_name("format-2-ranks"));
    unreachable!("the fixture was not there; it is now: look at it and commit it");
}

#[test]
fn what_the_first_release_of_this_format_wrote_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    copy(&fixture(), &path);
    let store = StoreOptions::new()
        .trust_others()
        .read_only()
        .open(&path)
        .unwrap();
    let sde = Sde::builder()
        .store(store)
        .save(SavePolicy::OnRequest)
        .build()
        .unwrap();
    let given = inputs! { basis: "STO-3G".to_owned() };
    let outcome = sde.request(&All { order: 2 }, &given).run().unwrap();
    assert_eq!(outcome.source, Source::Loaded);
    let results = outcome.results;
    assert_eq!(
        *results
            .get::<(u8, i64, String, Option<bool>)>("small")
            .unwrap(),
        small()
    );
    let bits = |rows: &[[f64; 2]]| {
        rows.concat()
            .iter()
            .map(|x| x.to_bits())
            .collect::<Vec<_>>()
    };
    let got = bits(&results.get::<Vec<[f64; 2]>>("matrix").unwrap());
    assert_eq!(got, bits(&matrix()));
    assert_eq!(
        *results.get::<Vec<f32>>("guess").unwrap(),
        [0.5, f32::MIN_POSITIVE]
    );
    let again = sde.request(&marked, &inputs! { x: 1.0_f64 }).run().unwrap();
    assert_eq!(
        again.source,
        Source::Computed,
        "it is marked as not to be used"
    );
    assert_eq!(*unfinished.call(&sde).unwrap(), 3, "it goes on");
    let _ = std::fs::remove_file(FILE);
    written.call(&sde, "what it holds").unwrap();
    assert_eq!(std::fs::read_to_string(FILE).unwrap(), "what it holds");
    assert_eq!(sde.stats().apps["fixture.written"].computed, 0);
}

/// A field over the ranks of a store: each has its part.
#[sde::app(name = "fixture.field", version = "1", distributed)]
fn field(sde: &Handle, length: usize) -> Result<DistArray<f64>, sde::Error> {
    DistArray::from_fn(sde, &[length], |at| at[0] as f64 + 0.5)
}

/// All of it, as these ranks have it, and how often it was computed.
fn by_ranks(ranks: usize, path: &Path) -> (Vec<f64>, u64) {
    let told = ThreadGroup::run(ranks, |group| {
        let store = StoreOptions::new().open_together(path, &group).unwrap();
        let builder = Sde::builder().store(store).save(SavePolicy::EveryResult);
        let sde = builder.process_group(group, Cbor).build().unwrap();
        let whole = field.call(&sde, 10).unwrap();
        let part = whole.local().to_vec();
        let computed = sde.stats().total.computed;
        sde.finish().unwrap();
        (part, computed)
    });
    let computed = told.iter().map(|(_, computed)| computed).sum();
    (
        told.into_iter().flat_map(|(part, _)| part).collect(),
        computed,
    )
}

/// On any number of ranks, whatever it was that wrote it.
#[test]
fn what_three_ranks_wrote_is_read_by_any_number() {
    for ranks in [3, 2, 1, 4] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        copy(&fixture().with_file_name("format-2-ranks"), &path);
        let all = (0..10).map(|at| f64::from(at) + 0.5).collect();
        assert_eq!(by_ranks(ranks, &path), (all, 0), "{ranks}");
    }
}

/// How old something is does not depend on which goes first: this was saved long ago, and is
/// used now.
#[test]
fn what_was_used_is_not_old_in_any_order() {
    for order in [Removal::LeastRecentlyUsed, Removal::FirstIn] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        copy(&fixture(), &path);
        let options = || StoreOptions::new().trust_others();
        let load = |store: DirStore| {
            let sde = Sde::builder()
                .store(store)
                .save(SavePolicy::OnRequest)
                .build()
                .unwrap();
            let given = inputs! { basis: "STO-3G".to_owned() };
            let outcome = sde.request(&All { order: 2 }, &given).run().unwrap();
            let made_at = records(&sde).last().unwrap().made_at;
            std::mem::forget(sde);
            (outcome.source, made_at.elapsed().unwrap())
        };
        let store = options().open(&path).unwrap();
        let (source, age) = load(store.clone());
        assert_eq!(source, Source::Loaded);
        store.commit(Selection::Checkpoint).unwrap();
        drop(store);
        assert!(has_uses(&path));
        let limit = Retention::new().results().max_age(age / 2).order(order);
        let done = options().open(&path).unwrap().compact(&limit).unwrap();
        // The five others, which nobody used.
        assert_eq!(done.given_up, 5, "{order:?}");
        assert_eq!(load(options().open(&path).unwrap()).0, Source::Loaded);
    }
}

fn has_uses(path: &Path) -> bool {
    let mut has = false;
    for segment in Inspection::open(path).unwrap().segments().unwrap() {
        let each = |item| has |= matches!(item, Item::Uses { .. });
        segment.walk(each).unwrap();
    }
    has
}

#[test]
fn there_is_one_of_each_kind_and_nothing_is_damaged() {
    let store = Inspection::open(fixture()).unwrap();
    assert_eq!(store.format_damage(), None);
    let mut kinds: Vec<&str> = Vec::new();
    for segment in store.segments().unwrap() {
        let walked = segment.walk(|item| {
            kinds.push(match item {
                Item::Entry(entry) => {
                    for saved in entry
                        .results
                        .iter()
                        .filter_map(|saved| saved.payload.as_ref())
                    {
                        assert_eq!(saved.check(|_| ()).unwrap(), None);
                    }
                    match entry.class {
                        Class::Intermediate => "intermediate",
                        _ => "result",
                    }
                }
                Item::Scratch(_) => "scratch",
                Item::Mark { .. } => "mark",
                Item::About(_) => "about",
                Item::Uses { .. } => "uses",
                Item::Journal { .. } => "journal",
                Item::Content(content) => {
                    assert_eq!(content.payload.check(|_| ()).unwrap(), None);
                    "content"
                }
                Item::Other { .. } => "other",
                other => unreachable!("{other:?}"),
            });
        });
        assert!(walked.unwrap().sealed);
    }
    for kind in [
        "result",
        "intermediate",
        "scratch",
        "mark",
        "about",
        "uses",
        "journal",
        "content",
        "other",
    ] {
        assert!(kinds.contains(&kind), "{kind}");
    }
    let manifests = store.manifests().unwrap();
    assert!(manifests.files.iter().all(|file| file.content.is_ok()));
    assert_eq!(manifests.heads().count(), 1);
}

#[test]
fn a_later_version_is_refused_and_said_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    copy(&fixture(), &path);
    std::fs::write(path.join("FORMAT"), "SDE store, format 3\n").unwrap();
    let said = [
        DirStore::open(&path).unwrap_err().to_string(),
        Inspection::open(&path).unwrap_err().to_string(),
    ];
    for said in said {
        says(&said, "it has format 3, this program reads format 2");
        says(&said, "use the release of SDE that wrote it");
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy(&path, &to),
            false => std::fs::write(&to, std::fs::read(&path).unwrap()).unwrap(),
        }
    }
}
