//! Threads that save beside one another, of which one seals what another has written to: a commit
//! leaves out nothing that was saved.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use sde::archiver::{Archiver, Batch, SavedEntry, Selection};
use sde::ranks::OneProcess;
use sde::{Storable, Tags};
use sde_archives::inspect::Inspection;
use sde_archives::{DirStore, StoreOptions};

use crate::engine::{self, dir};
use crate::kit::{Call, Gate, HOME, Sim, made};

/// A part of a save is as long, and a segment that is sealed.
const SIZE: u64 = 4096;

fn entry<T: Storable>(number: u64, value: T) -> SavedEntry {
    let result = (made::VALUE, Tags::NONE, made::value(value));
    SavedEntry::new(made::record(number, 1), Selection::Checkpoint, [result])
}

/// An entry that is as long as a part.
fn long(number: u64) -> SavedEntry {
    entry(number, vec![number; SIZE as usize / 8])
}

fn batch(entries: impl IntoIterator<Item = SavedEntry>) -> Batch {
    let mut batch = sde::archiver::Batch::new(Selection::Checkpoint);
    batch.entries.extend(entries);
    batch
}

fn options(sim: &Sim) -> StoreOptions {
    engine::options(sim).segment_size(SIZE)
}

/// One thread has written part of what it saves when another seals the segment that it is in.
fn sealed_by_another(store: &DirStore) {
    let gate = Gate::default();
    // What makes an entry looks for output files in its values.
    gate.open();
    let slow = entry(9, made::Slow(gate.clone()));
    gate.close();
    thread::scope(|scope| {
        let saving = scope.spawn(move || store.save(&batch([long(0), long(1), slow])));
        // The second part is taken when the first is written.
        assert!(gate.wait_for_somebody());
        store.save(&batch([long(2)])).unwrap();
        gate.open();
        saving.join().unwrap().unwrap();
    });
}

/// The segments that no manifest names.
fn unlisted(sim: &Sim) -> Vec<String> {
    let store = Inspection::open_on(Arc::new(sim.clone()), dir()).unwrap();
    let manifests = store.manifests().unwrap();
    let listed: Vec<_> = manifests
        .heads()
        .flat_map(|(_, one)| &one.segments)
        .collect();
    let segments = store.segments().unwrap();
    let mut paths: Vec<_> = segments.iter().map(|one| one.path().to_owned()).collect();
    paths.retain(|path| !listed.iter().any(|one| one.path == *path));
    paths
}

/// Found by reading: a thread's save was durable and not noted yet when another thread sealed the
/// segment. The note that came late made it one that is still written to, so that no generation ever
/// named it.
#[test]
fn a_segment_that_another_thread_seals_is_committed() {
    let sim = Sim::new();
    let store = options(&sim).open(dir()).unwrap();
    sealed_by_another(&store);
    store.commit(Selection::Checkpoint).unwrap();
    assert_eq!(unlisted(&sim), [""; 0]);
}

/// Ranks hand over what they have saved: its notes never left the disk of their node.
#[test]
fn a_segment_that_another_thread_seals_is_handed_over() {
    let sim = Sim::new();
    let disk = Path::new(HOME).join("disk");
    let store = options(&sim).local(&disk).open_together(dir(), &OneProcess);
    let store = store.unwrap();
    sealed_by_another(&store);
    store
        .commit_together(Selection::Checkpoint, &OneProcess)
        .unwrap();
    let mut left: Vec<PathBuf> = sim.files();
    left.retain(|path| path.starts_with(&disk) && path.extension().is_some_and(|e| e == "sde"));
    assert!(left.is_empty(), "{left:?}");
    let shared = options(&sim).read_only().open(dir()).unwrap();
    for number in 0..3 {
        let found = shared.find(&made::key(number)).unwrap();
        assert!(found.is_some(), "{number}");
    }
    std::mem::forget(store);
}

/// Found by reading the code about the first: between the sealing of a segment and the note of it, it
/// was neither one that is written to nor one that is known, and a commit that came then left it out.
#[test]
fn a_commit_in_the_middle_of_a_sealing_names_the_segment() {
    let sim = Sim::new();
    let store = options(&sim).open(dir()).unwrap();
    let save = || {
        store.save(&batch([long(0)])).unwrap();
        store.finish();
    };
    let commit = || store.commit(Selection::Checkpoint).unwrap();
    // The first write is that of the save.
    assert!(sim.stopped(&[Call::Write], 2, save, commit).0);
    store.commit(Selection::Checkpoint).unwrap();
    assert_eq!(unlisted(&sim), [""; 0]);
}
