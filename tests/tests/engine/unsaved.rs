//! What a store is given: what it lacks, in the order in which it was made, and the records of the cache themselves.

use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use sde::archiver::{ArchiveError, Archiver, Batch, Mark, Payload, Saved, Selection, StoredEntry};
use sde::record::Record;
use sde::{Key, Policy, Sde, inputs};

#[sde::app]
fn cube(x: u64) -> u64 {
    x * x * x
}

type Records = Vec<Record>;
type Meanwhile = Box<dyn FnOnce() + Send>;

/// A store that notes the records that it is given.
#[derive(Clone, Default)]
struct Noting {
    batches: Arc<Mutex<Vec<(Selection, Records)>>>,
    is_one_store: bool,
    /// What is done in a save, which fails then.
    failing: Arc<Mutex<Option<Meanwhile>>>,
}

impl Archiver for Noting {
    fn save(&self, batch: &Batch) -> Result<Saved, ArchiveError> {
        let failing = self.failing.lock().unwrap().take();
        if let Some(meanwhile) = failing {
            meanwhile();
            return Err(ArchiveError::Other("told to fail".to_owned()));
        }
        let records = batch.entries.iter().map(|entry| entry.record().clone());
        let saved = (batch.selection, records.collect());
        self.batches.lock().unwrap().push(saved);
        Ok(Saved::default())
    }
    fn is_one_store(&self) -> bool {
        self.is_one_store
    }
    fn find(&self, _: &Key) -> Result<Option<StoredEntry>, ArchiveError> {
        Ok(None)
    }
    fn find_scratch(&self, _: &Key) -> Result<Option<Arc<dyn Payload>>, ArchiveError> {
        Ok(None)
    }
    fn marks(&self) -> Result<Vec<Mark>, ArchiveError> {
        Ok(Vec::new())
    }
    fn describe(&self) -> String {
        "a store that takes notes".to_owned()
    }
}

impl Noting {
    fn sde(&self) -> Sde {
        Sde::builder()
            .store(self.clone())
            .save(sde::SavePolicy::OnRequest)
            .build()
            .unwrap()
    }

    /// What was saved since this was asked for last.
    fn taken(&self, selection: Selection) -> Records {
        let batches = std::mem::take(&mut *self.batches.lock().unwrap());
        assert!(batches.iter().all(|(of, _)| *of == selection));
        batches.into_iter().flat_map(|(_, of)| of).collect()
    }

    fn checkpointed(&self, sde: &Sde) -> Records {
        sde.checkpoint().unwrap();
        self.taken(Selection::Checkpoint)
    }

    fn archived(&self, sde: &Sde) -> Records {
        sde.archive().unwrap();
        self.taken(Selection::Archive)
    }
}

fn compute(sde: &Sde, numbers: impl IntoIterator<Item = u64>) {
    for x in numbers {
        cube.call(sde, x).unwrap();
    }
}

/// The inputs of runs, as texts.
fn of(records: &Records) -> Vec<&str> {
    records.iter().map(|one| &*one.inputs[0].short).collect()
}

#[test]
fn records_are_shared_with_the_store() {
    let store = Noting::default();
    let sde = store.sde();
    compute(&sde, 0..3);
    let (first, second) = (store.checkpointed(&sde), store.archived(&sde));
    assert_eq!(of(&first), ["0", "1", "2"]);
    assert!(
        first
            .iter()
            .zip(&second)
            .all(|(a, b)| Arc::ptr_eq(&a.provenance, &b.provenance))
    );
    assert_eq!(first.len(), second.len());
}

#[test]
fn each_selection_gets_once_what_it_lacks() {
    for is_one_store in [false, true] {
        let store = Noting {
            is_one_store,
            ..Noting::default()
        };
        let sde = store.sde();
        compute(&sde, 0..2);
        assert_eq!(of(&store.archived(&sde)), ["0", "1"]);
        compute(&sde, 2..4);
        let lacked: &[_] = match is_one_store {
            false => &["0", "1", "2", "3"],
            true => &["2", "3"],
        };
        assert_eq!(of(&store.checkpointed(&sde)), lacked);
        compute(&sde, [4]);
        let rest: &[_] = match is_one_store {
            false => &["2", "3", "4"],
            true => &["4"],
        };
        assert_eq!(of(&store.archived(&sde)), rest);
        let last: &[_] = if is_one_store { &[] } else { &["4"] };
        assert_eq!(of(&store.checkpointed(&sde)), last);
        assert_eq!(store.checkpointed(&sde).len(), 0);
        assert_eq!(store.archived(&sde).len(), 0);
    }
}

/// What is computed again while a save fails is newer than what could not be saved.
#[test]
fn what_could_not_be_saved_comes_again_in_its_order_but_for_what_is_newer() {
    let store = Noting::default();
    let sde = store.sde();
    compute(&sde, 0..5);
    let again = sde.clone();
    let refresh = move || {
        let inputs = inputs! { x: 2_u64 };
        let request = again.request(&cube, &inputs).policy(Policy::Refresh);
        request.run().unwrap();
    };
    *store.failing.lock().unwrap() = Some(Box::new(refresh));
    sde.checkpoint().unwrap_err();
    let records = store.checkpointed(&sde);
    // In the place that its key has in the other list.
    assert_eq!(of(&records), ["0", "1", "2", "3", "4"]);
    assert!(records[2].anew);
    let archived = store.archived(&sde);
    assert_eq!(archived.len(), 5);
    assert!(archived.iter().any(|one| one.run == records[2].run));
}

/// Found on a full disk: a checkpoint said that all was saved, when the save of another thread had just failed. What there was to
/// save had been counted while that save had it in hand.
#[test]
fn who_waits_for_a_save_that_fails_saves_what_that_could_not() {
    for _ in 0..10 {
        let store = Noting::default();
        let sde = store.sde();
        compute(&sde, 0..3);
        let (other, (gives, given)) = (sde.clone(), mpsc::channel());
        let wait = move || {
            let (begins, begun) = mpsc::channel();
            let waiting = thread::spawn(move || {
                begins.send(()).unwrap();
                other.checkpoint()
            });
            begun.recv().unwrap();
            // Nothing tells that it waits for its turn.
            (0..100).for_each(|_| thread::yield_now());
            gives.send(waiting).unwrap();
        };
        *store.failing.lock().unwrap() = Some(Box::new(wait));
        sde.checkpoint().unwrap_err();
        given.recv().unwrap().join().unwrap().unwrap();
        assert_eq!(of(&store.taken(Selection::Checkpoint)), ["0", "1", "2"]);
    }
}
