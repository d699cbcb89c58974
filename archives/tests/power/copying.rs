//! Entries of one store that are copied to another, where the copy is ended in each of its calls.

use std::fs;
use std::path::{Path, PathBuf};

use sde::archiver::{ArchiveError, Archiver, SavedEntry, Selection};
use sde::{SavePolicy, Tags};
use sde_archives::{Copied, Retention};

use crate::engine::{dir, engine, open, options, page};
use crate::kit::{CHANGING, Call, Error, HOME, Order, Sim, Then, made};
use crate::output_files::{text, written};

fn to() -> PathBuf {
    Path::new(HOME).join("to")
}

fn copy(sim: &Sim) -> Result<Copied, ArchiveError> {
    let to = options(sim).segment_size(1 << 12).open(to())?;
    let copied = to.copy_from(&options(sim).read_only().open(dir())?, |_| true);
    std::mem::forget(to);
    copied
}

/// Each program saves so many pages.
const PAGES: u64 = 5;

/// Two programs have saved some pages each, and a file that holds what the other's does.
fn saved(files: &Path) -> Sim {
    let sim = Sim::new();
    for number in 0..2 {
        let sde = engine(open(&sim).unwrap(), SavePolicy::OnRequest);
        written
            .call(&sde, &files.join(number.to_string()), number)
            .unwrap();
        sde.checkpoint().unwrap();
        // So that what comes from one of them is written before the rest.
        for number in PAGES * number..PAGES * (number + 1) {
            page.call(&sde, number).unwrap();
        }
        sde.finish().unwrap();
    }
    sim
}

/// How many runs the copy lacks.
fn lacks(sim: &Sim, files: &Path) -> u64 {
    let store = options(sim).read_only().open(to()).unwrap();
    let sde = engine(store, SavePolicy::OnRequest);
    for number in 0..2 * PAGES {
        page.call(&sde, number).unwrap();
    }
    for number in 0..2 {
        let path = files.join(number.to_string());
        let _ = fs::remove_file(&path);
        written.call(&sde, &path, number).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text(number));
    }
    let computed = sde.stats().total.computed;
    std::mem::forget(sde);
    computed
}

/// Found by reading: an entry that was there already was passed over with the content of its output file, and with
/// what was not on the medium yet.
#[test]
fn a_copy_that_was_ended_goes_on_when_it_is_called_again() {
    let files = tempfile::tempdir().unwrap();
    let mut ended = 0;
    for at in 1.. {
        let sim = saved(files.path());
        sim.seed(at);
        sim.order(Order::of(CHANGING, at, Then::PowerOff));
        if copy(&sim).is_ok() {
            break;
        }
        ended = at;
        for left in [sim.after_kill(), sim.power_loss(at)] {
            copy(&left).unwrap();
            for left in [left.after_kill(), left.power_loss(at)] {
                assert_eq!(lacks(&left, files.path()), 0, "ended in call {at}");
            }
        }
    }
    assert!(ended > 10, "{ended}");
}

/// Found by reading: an entry that was there was passed over, whatever had become of the content of its output file.
#[test]
fn a_content_that_is_damaged_where_it_was_copied_to_is_copied_again() {
    let files = tempfile::tempdir().unwrap();
    let sim = saved(files.path());
    copy(&sim).unwrap();
    for path in sim.files() {
        let mut bytes = sim.content(&path);
        let content = text(0).into_bytes();
        let mut there = bytes.windows(content.len());
        if let Some(at) = there.position(|bytes| bytes == content)
            && path.starts_with(to())
        {
            bytes[at + content.len() / 2] ^= 1;
            sim.put(path, bytes);
        }
    }
    assert_eq!(lacks(&sim, files.path()), 2);
    assert_eq!(copy(&sim).unwrap().entries, 0);
    assert_eq!(lacks(&sim, files.path()), 0);
}

/// Found by reading: of a computation whose results lie in two frames of one class, the one was taken for the other. They
/// are in two stores after a copy that was ended.
#[test]
fn results_of_one_computation_that_lie_in_two_stores_come_together() {
    let sim = Sim::new();
    let [from, to] = [(dir(), made::VALUE), (to(), made::TEXT)].map(|(dir, name)| {
        let mut batch = sde::archiver::Batch::new(Selection::Archive);
        let results = [made::VALUE, made::TEXT].map(|result| {
            let value = made::value(made::text(1, 1)).filter(|_| result == name);
            (result, Tags::NONE, value)
        });
        let entry = SavedEntry::new(made::record(1, 1), batch.selection, results);
        batch.entries.push(entry);
        let store = options(&sim).open(dir).unwrap();
        store.save(&batch).unwrap();
        store
    });
    assert_eq!(to.copy_from(&from, |_| true).unwrap().entries, 1);
    let found = to.find(&made::key(1)).unwrap().unwrap();
    assert!(found.results.iter().all(|one| one.payload.is_some()));
}

/// Found by an attack: what was replaced stayed, and the copy failed for want of room.
#[test]
fn a_copy_makes_room_on_a_full_disk() {
    let sim = Sim::new();
    for (dir, numbers) in [(dir(), 10..14), (to(), 0..4)] {
        for number in numbers {
            let store = options(&sim).open(&dir).unwrap();
            store.save(&made::entries([number])).unwrap();
        }
    }
    let there = options(&sim).open(to()).unwrap();
    assert_eq!(there.compact(&Retention::new()).unwrap().replaced, 4);
    drop(there);
    sim.room(Some(sim.bytes()));
    assert_eq!(copy(&sim).unwrap().entries, 8);
}

/// Found by an attack: what could not be made durable counted as there, and was gone after a power failure.
#[test]
fn what_cannot_be_made_durable_is_copied() {
    for at in 1..12 {
        for seed in 0..20 {
            let sim = Sim::new();
            let from = options(&sim).open(dir()).unwrap();
            from.save(&made::entries([1])).unwrap();
            from.commit(Selection::Archive).unwrap();
            let other = options(&sim.process()).open(to()).unwrap();
            other.write_through(&made::entries([1])).unwrap();
            std::mem::forget(other);
            let process = sim.process();
            let store = options(&process).open(to()).unwrap();
            let source = options(&process).read_only().open(dir()).unwrap();
            sim.seed(seed);
            process.order_process(Order::of(&[Call::Sync], at, Then::Fail(Error::Io)));
            let copied = store.copy_from(&source, |_| true);
            std::mem::forget(store);
            let is_there = || {
                let left = options(&sim.power_loss(seed)).read_only().open(to());
                left.unwrap().find(&made::key(1)).unwrap().is_some()
            };
            assert!(copied.is_err() || is_there(), "{at} {seed}: {copied:?}");
        }
    }
}
