//! Looking into a store without an engine: what counts, what is damaged, what has changed meanwhile.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sde::archiver::{ArchiveError, Archiver, Batch, Codec, MemoryArchiver, SavedEntry, Selection};
use sde::record::RunId;
use sde::{
    App, AppError, AppInfo, ErasedValue, Fingerprint, Handle, Inputs, Key, Policy, ResultMap,
    ResultSpec, SavePolicy, Sde, Tag, Tags, Value, inputs,
};
use sde_archives::DirStore;
use sde_archives::inspect::{
    Computations, Damage, Entry, Inspection, Item, Resolved, SegmentFile, Standing,
};
use tempfile::tempdir;

use super::apps::{Echo, Table, engine, fresh, orbit, page, state};
use super::says::says;

/// An app with a value of so many kilobytes: of more than 64, they are not in the frame of the entry.
fn long(kilobytes: usize) -> Echo<String> {
    Echo {
        app: "long",
        value: Some(Value::new("x".repeat(kilobytes << 10))),
    }
}

/// Computes it, whatever there is; gives which computation that is.
fn refresh(sde: &Sde, kilobytes: usize) -> RunId {
    let inputs = inputs! {};
    let app = long(kilobytes);
    let request = sde.request(&app, &inputs).policy(Policy::Refresh);
    request.run().unwrap().made_by
}

fn segments(dir: &Path) -> Vec<SegmentFile> {
    Inspection::open(dir).unwrap().segments().unwrap()
}

pub fn items(dir: &Path) -> Vec<Item> {
    let mut items = Vec::new();
    for segment in segments(dir) {
        segment.walk(|item| items.push(item)).unwrap();
    }
    items
}

pub fn entries(dir: &Path) -> Vec<Entry> {
    let entries = items(dir).into_iter().filter_map(|item| match item {
        Item::Entry(entry) => Some(*entry),
        _ => None,
    });
    entries.collect()
}

fn resolved(items: Vec<Item>) -> Resolved<()> {
    let mut found = Computations::default();
    items
        .into_iter()
        .for_each(|item| found.add(item, |_| Some(())));
    found.resolve(|(), ()| ())
}

/// The only segment of results.
pub fn file(dir: &Path) -> PathBuf {
    let mut files = dir.join("entries").read_dir().unwrap();
    files.next().unwrap().unwrap().path()
}

/// Changes a byte in the middle of the value of an entry.
fn damage(dir: &Path, entry: &Entry) {
    let payload = entry.results[0].payload.as_ref().unwrap();
    let file = OpenOptions::new()
        .write(true)
        .open(dir.join(payload.path()));
    let place = payload.place();
    let middle = (place.start + place.end) / 2;
    file.unwrap().write_all_at(b"?", middle).unwrap();
}

/// What is saved of a run that has not ended.
fn save_state(store: &DirStore, number: u64) {
    let state = state(Key::from_bytes([7; 32]), number);
    store.save(&state).unwrap();
}

#[test]
fn the_latest_counts_in_whatever_order_it_is_found() {
    let dir = tempdir().unwrap();
    let one = inputs! { number: 1_u64 };
    let mut key = None;
    for _ in 0..3 {
        let store = DirStore::open(dir.path()).unwrap();
        save_state(&store, 1);
        let builder = Sde::builder().store(store).save(SavePolicy::OnRequest);
        let sde = builder.save(SavePolicy::EveryResult).build().unwrap();
        key = Some(sde.request(&page, &one).run().unwrap().key);
        sde.finish().unwrap();
        // It goes on, and says so in place of what it said.
        orbit.call(&sde, 0.3, 4).unwrap();
        sde.finish().unwrap();
    }
    let key = key.unwrap();
    let (sde, _) = engine(dir.path(), SavePolicy::OnRequest);
    sde.invalidate(&key, "bad memory").unwrap();
    sde.checkpoint().unwrap();
    sde.undo_invalidate(&key).unwrap();
    sde.checkpoint().unwrap();
    drop(sde);

    let items = items(dir.path());
    let states = items.iter().filter_map(|item| match item {
        Item::Scratch(state) if state.app == "unfinished" => Some(state.saved_at),
        _ => None,
    });
    let latest = states.max().unwrap();
    let backwards = items.iter().rev().cloned().collect();
    let told = [items, backwards].map(|items| {
        let found = resolved(items);
        let unfinished = found.unfinished.iter().map(|state| state.saved_at);
        // The run of the other app has ended.
        assert_eq!(unfinished.collect::<Vec<_>>(), [latest]);
        assert_eq!(found.marks(), 0);
        let of_page = found.uses(&key).unwrap();
        assert_eq!(of_page.count, 2);
        let journals = found
            .journals
            .iter()
            .map(|one| (one.journal.process, one.saved_at));
        (of_page.last, journals.collect::<Vec<_>>())
    });
    assert_eq!(told[0], told[1]);
}

/// As an engine looks a key up.
#[test]
fn a_damaged_computation_gives_way_and_an_invalid_one_does_not() {
    let (dir, sde) = fresh(SavePolicy::EveryResult);
    let [first, second, third] = [(); 3].map(|()| refresh(&sde, 80));
    let standing = || {
        let found = resolved(items(dir.path()));
        assert!(!found.gone);
        let all = found
            .all
            .iter()
            .map(|one| (one.precedence.run, one.standing));
        all.collect::<Vec<_>>()
    };
    let [current, replaced] = [Standing::Current, Standing::Replaced];
    assert_eq!(
        standing(),
        [(third, current), (second, replaced), (first, replaced)]
    );
    let all = entries(dir.path());
    damage(
        dir.path(),
        all.iter().find(|one| one.record.run == third).unwrap(),
    );
    assert_eq!(
        standing(),
        [(second, current), (first, replaced), (third, replaced)]
    );

    let key = all[0].record.key;
    let (other, _) = engine(dir.path(), SavePolicy::EveryResult);
    assert_eq!(other.invalidate(&key, "bad memory").unwrap().run, second);
    other.checkpoint().unwrap();
    assert_eq!(
        standing(),
        [
            (second, Standing::Invalid),
            (first, replaced),
            (third, replaced)
        ]
    );
    drop(sde);
}

/// An app without a result that is archived.
#[derive(Fingerprint)]
struct Guess;

impl App for Guess {
    fn info(&self) -> AppInfo {
        AppInfo::new("Guess", "1")
            .result(ResultSpec::new::<String>("guess").tagged(Tag::Intermediate))
    }
    fn run(&self, _: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        Ok(ResultMap::new().with("guess", "x".repeat(80 << 10)))
    }
}

/// A computation may lie in several frames; an intermediate takes no part in it.
#[test]
fn the_highest_frame_says_what_counts_and_no_damaged_intermediate() {
    let (dir, sde) = fresh(SavePolicy::OnRequest);
    let inputs = inputs! { n: 9_u64 };
    for _ in 0..2 {
        let again = sde.request(&Table, &inputs).policy(Policy::Refresh);
        again.run().unwrap();
        sde.archive().unwrap();
        sde.checkpoint().unwrap();
    }
    let all = entries(dir.path());
    assert!(all.len() > 2);
    for one in resolved(items(dir.path())).all {
        let frames = all
            .iter()
            .filter(|frame| frame.record.run == one.precedence.run);
        assert_eq!(Some(one.precedence), frames.map(Entry::precedence).max());
    }

    let none = inputs! {};
    let runs = [(); 2].map(|()| {
        let again = sde.request(&Guess, &none).policy(Policy::Refresh).run();
        let run = again.unwrap().made_by;
        sde.checkpoint().unwrap();
        run
    });
    let all = entries(dir.path());
    let last = all.iter().find(|one| one.record.run == runs[1]).unwrap();
    damage(dir.path(), last);
    let found = resolved(items(dir.path()));
    let last = found.all.iter().find(|one| one.precedence.run == runs[1]);
    assert_eq!(last.unwrap().standing, Standing::Current);
}

/// Longer ones than that are taken for whole until they are asked for, by an engine too.
#[test]
fn no_value_of_more_than_16_mib_is_read_to_know_what_counts() {
    let (dir, sde) = fresh(SavePolicy::EveryResult);
    let runs = [(); 2].map(|()| refresh(&sde, 17 << 10));
    let mut all = entries(dir.path());
    let last = all
        .iter_mut()
        .find(|one| one.record.run == runs[1])
        .unwrap();
    damage(dir.path(), last);
    let found = resolved(items(dir.path()));
    let got = (found.all[0].precedence.run, found.all[0].standing);
    assert_eq!(got, (runs[1], Standing::Current));
    assert!(!last.check(16 << 20) && last.results[0].damage.is_none());
    assert!(!last.check(17 << 21) && last.results[0].damage.is_some());
    let payload = last.results[0].payload.as_ref().unwrap();
    assert!(payload.reader().is_err());
    drop(sde);
}

/// What can't be read since its file is gone is not taken for damaged: it has been put elsewhere.
#[test]
fn what_is_gone_is_told_from_what_is_damaged() {
    let (dir, sde) = fresh(SavePolicy::EveryResult);
    refresh(&sde, 80);
    let one = items(dir.path());
    refresh(&sde, 80);
    drop(sde);
    let (found, mut all) = (items(dir.path()), entries(dir.path()));
    let listed = segments(dir.path());
    let payload = all[1].results[0].payload.clone().unwrap();
    let too_long = payload.bytes(80 << 10).unwrap_err();
    says(&too_long.to_string(), "is not read into memory");
    let file = file(dir.path());
    let length = OpenOptions::new().write(true).open(&file).unwrap();
    length.set_len(payload.place().start + 9).unwrap();
    let why = payload.check(|_| ()).unwrap().unwrap().why;
    assert_eq!(why, "its file was cut short");
    let cut = payload.bytes(u64::MAX).unwrap_err();
    assert!(matches!(cut, ArchiveError::Damaged { .. }), "{cut}");
    assert!(!all[1].check(u64::MAX));

    std::fs::remove_file(file).unwrap();
    assert!(resolved(found).gone);
    // One alone counts, so its value is not read.
    assert!(!resolved(one).gone);
    assert!(all[1].check(u64::MAX));
    for segment in listed {
        let walked = segment.walk(|item| unreachable!("{item:?}")).unwrap();
        assert!(walked.gone);
        segment.list(|_| unreachable!("nothing is there")).unwrap();
    }
}

#[test]
fn an_entry_is_filled_with_what_is_whole_and_nothing_else() {
    let (dir, sde) = fresh(SavePolicy::EveryResult);
    sde.run(&long(80), &inputs! {}).unwrap();
    drop(sde);
    let whole = entries(dir.path()).remove(0);
    let mut damaged = whole.clone();
    damaged.results[0].damage = Some(Damage::new("entries", 0..0, "for the test"));
    let is_damaged = |own: &Entry, other: &Entry| {
        let mut own = own.clone();
        own.fill(other.clone());
        own.results[0].damage.is_some()
    };
    assert!(!is_damaged(&damaged, &whole) && !is_damaged(&whole, &damaged));
    let mut empty = whole;
    empty.results[0].payload = None;
    assert!(!is_damaged(&empty, &damaged));
}

/// Memory lets go of inputs that a store has. Two saves at once may write a frame without them, and the later frame comes first.
#[test]
fn a_frame_without_inputs_has_those_of_its_copies() {
    let dir = tempdir().unwrap();
    let store = DirStore::open(dir.path()).unwrap();
    let memory = MemoryArchiver::new();
    let sde = Sde::builder()
        .store(memory.clone())
        .save(SavePolicy::OnRequest)
        .build()
        .unwrap();
    let key = sde
        .request(&page, &inputs! { number: 1_u64 })
        .run()
        .unwrap()
        .key;
    sde.finish().unwrap();
    let whole = memory.find(&key).unwrap().unwrap().record;
    let mut bare = whole.clone();
    bare.inputs = Arc::default();
    for record in [&whole, &bare] {
        let value = Some((ErasedValue::new(1_u64), Codec::of::<u64>()));
        let results = [("result", Tags::NONE, value)];
        let mut batch = Batch::new(Selection::Checkpoint);
        batch.entries = vec![SavedEntry::new(
            record.clone(),
            Selection::Checkpoint,
            results,
        )];
        store.save(&batch).unwrap();
    }
    let found = store.find(&key).unwrap().unwrap().record;
    assert_eq!(found.inputs, whole.inputs);
    assert_eq!(entries(dir.path())[0].record.inputs, whole.inputs);
}

/// What is damaged may be what a new generation has replaced; what is whole need not be read again.
#[test]
fn who_cannot_read_something_looks_again_if_there_is_a_new_generation() {
    for (is_damaged, fails, commits, expected) in [
        (true, false, true, 2),
        (false, true, true, 2),
        (false, false, true, 1),
        (true, true, false, 1),
    ] {
        let (dir, sde) = fresh(SavePolicy::OnRequest);
        page.call(&sde, 1).unwrap();
        sde.checkpoint().unwrap();
        let mut looks = 0;
        let read = Inspection::open(dir.path()).unwrap().read(|snapshot| {
            looks += 1;
            if is_damaged {
                let damage = Damage::new("entries", 0..0, "for the test");
                snapshot.damages.push(damage);
            }
            if commits && looks == 1 {
                page.call(&sde, 2).unwrap();
                sde.checkpoint().unwrap();
            }
            (!fails).then_some(()).ok_or("it failed")
        });
        let (snapshot, _) = read.unwrap();
        assert_eq!((looks, snapshot.gone), (expected, false));
    }
}

#[test]
fn a_state_may_be_what_was_saved_last() {
    let (dir, sde) = fresh(SavePolicy::EveryResult);
    page.call(&sde, 1).unwrap();
    save_state(&DirStore::open(dir.path()).unwrap(), 1);
    let read = Inspection::open(dir.path()).unwrap().read(|snapshot| {
        let latest = snapshot.latest(1).unwrap();
        Ok::<_, ArchiveError>(latest.into_iter().collect::<Vec<_>>())
    });
    assert_eq!(read.unwrap().1.unwrap(), [u64::from_be_bytes([7; 8])]);
    drop(sde);
}

/// Two that were at it at one time have a generation each.
#[test]
fn what_two_generations_list_is_lost_once() {
    let (dir, sde) = fresh(SavePolicy::OnRequest);
    page.call(&sde, 1).unwrap();
    sde.checkpoint().unwrap();
    let lost = file(dir.path());
    let before = dir.path().join("manifests").read_dir().unwrap();
    let before = before.map(|one| one.unwrap().path()).next().unwrap();
    let aside = dir.path().join("aside");
    let mut all = Vec::new();
    for number in 2..4 {
        drop(std::fs::copy(&before, &aside));
        let (sde, _) = engine(dir.path(), SavePolicy::OnRequest);
        page.call(&sde, number).unwrap();
        sde.checkpoint().unwrap();
        std::mem::forget(sde);
        for one in dir.path().join("manifests").read_dir().unwrap() {
            let path = one.unwrap().path();
            if path != before {
                all.push((path.clone(), std::fs::read(&path).unwrap()));
                std::fs::remove_file(path).unwrap();
            }
        }
        std::fs::rename(&aside, &before).unwrap();
    }
    all.iter()
        .for_each(|(path, bytes)| std::fs::write(path, bytes).unwrap());
    std::fs::remove_file(lost).unwrap();
    let manifests = Inspection::open(dir.path()).unwrap().manifests().unwrap();
    assert_eq!(manifests.heads().count(), 2);
    let lost = manifests.lost(&segments(dir.path()), SegmentFile::length);
    assert_eq!(lost.len(), 1, "{lost:?}");
    let read = Inspection::open(dir.path())
        .unwrap()
        .read(|_| Ok::<_, ArchiveError>(()));
    assert!(!read.unwrap().0.is_whole());
    std::mem::forget(sde);
}

#[test]
fn a_segment_in_another_folder_is_damage() {
    let (dir, sde) = fresh(SavePolicy::EveryResult);
    page.call(&sde, 1).unwrap();
    drop(sde);
    let from = file(dir.path());
    std::fs::create_dir_all(dir.path().join("scratch")).unwrap();
    let to = dir.path().join("scratch").join(from.file_name().unwrap());
    std::fs::rename(from, to).unwrap();
    match &items(dir.path())[..] {
        [Item::Damage(damage)] => says(&damage.why, "another folder"),
        other => unreachable!("{other:?}"),
    }
    let read = Inspection::open(dir.path()).unwrap().read(|snapshot| {
        for _ in 0..2 {
            snapshot.walk(None, |_, item| unreachable!("{item:?}"));
        }
        Ok::<_, ArchiveError>(())
    });
    let damages = read.unwrap().0.damages.into_iter();
    let told = damages.filter(|damage| damage.why.contains("another folder"));
    assert_eq!(told.count(), 1);
}
