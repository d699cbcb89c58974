//! Entries, scratch states and marks that follow from their numbers, so that whatever a store gives
//! back can be compared with what was saved.

use std::sync::OnceLock;
use std::time::{Duration, UNIX_EPOCH};

use sde::archiver::{
    Archiver, Batch, Codec, Mark, MemoryArchiver, SavedEntry, SavedScratch, Selection,
};
use sde::record::{Record, RunId};
use sde::{ErasedValue, Key, Sde, Storable, Tag, Tags, inputs};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::gate::Gate;
use super::random::Random;

/// The names of an entry's results.
pub const VALUE: &str = "value";
pub const AUXILIARY: &str = "auxiliary";
pub const TEXT: &str = "text";

#[sde::app]
fn made(x: f64) -> f64 {
    x
}

/// A value that waits while it is written.
pub struct Slow(pub Gate);

impl Serialize for Slow {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.pass();
        to.serialize_unit()
    }
}

impl<'de> Deserialize<'de> for Slow {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        <()>::deserialize(from).map(|()| Self(Gate::default()))
    }
}

/// A record as the engine makes it.
fn template() -> Record {
    static TEMPLATE: OnceLock<Record> = OnceLock::new();
    let make = || {
        let store = MemoryArchiver::new();
        let sde = Sde::builder()
            .store(store.clone())
            .save(sde::SavePolicy::OnRequest)
            .build()
            .unwrap();
        let key = sde.request(&made, &inputs! { x: 0.5 }).run().unwrap().key;
        sde.checkpoint().unwrap();
        Record::clone(&store.find(&key).unwrap().unwrap().record)
    };
    TEMPLATE.get_or_init(make).clone()
}

pub fn key(number: u64) -> Key {
    let mut random = Random::new(number);
    let mut bytes = [0; 32];
    for part in bytes.chunks_mut(8) {
        part.copy_from_slice(&random.number().to_le_bytes());
    }
    Key::from_bytes(bytes)
}

pub fn record(number: u64, version: u64) -> Record {
    let mut record = template();
    record.key = key(number);
    record.run = run(number, version);
    record.made_at = UNIX_EPOCH + Duration::from_secs(1_000_000 + version);
    record
}

pub fn run(number: u64, version: u64) -> RunId {
    RunId::new(number, version)
}

/// Mostly short, sometimes of several sectors, rarely so long that it is written from where it is.
pub fn numbers(number: u64, version: u64, which: u64) -> Vec<u64> {
    let mut random = Random::new(number ^ version << 20 ^ which << 40);
    let length = match random.within(0..40) {
        0 => random.within(8192..9000),
        1..8 => random.within(100..400),
        _ => random.within(0..12),
    };
    (0..length).map(|_| random.number()).collect()
}

pub fn text(number: u64, version: u64) -> String {
    format!("entry {number}, version {version}")
}

/// One entry with results of each kind.
pub fn entry(number: u64, version: u64, selection: Selection) -> SavedEntry {
    entry_of(record(number, version), number, version, selection)
}

/// The same, made as a record has it.
pub fn entry_of(record: Record, number: u64, version: u64, selection: Selection) -> SavedEntry {
    let intermediate = Tags::NONE.with(Tag::Intermediate);
    let results = [
        (VALUE, Tags::NONE, value(numbers(number, version, 0))),
        (AUXILIARY, intermediate, value(numbers(number, version, 1))),
        (TEXT, Tags::NONE, value(text(number, version))),
    ];
    SavedEntry::new(record, selection, results)
}

pub fn value<T: Storable>(value: T) -> Option<(ErasedValue, Codec)> {
    Some((ErasedValue::new(value), Codec::of::<T>()))
}

/// The state of an unfinished run after so many steps.
pub fn scratch(number: u64, step: u64) -> SavedScratch {
    let state = ErasedValue::new((step, numbers(number, step, 2)));
    let codec = Codec::of::<(u64, Vec<u64>)>();
    SavedScratch::new("unfinished", key(number), state, codec)
}

pub fn mark(number: u64) -> Mark {
    let at = UNIX_EPOCH + Duration::from_secs(number);
    Mark::new(key(number), run(number, 1), format!("mark {number}"), at)
}

/// A batch of the first versions of these entries.
pub fn entries(numbers: impl IntoIterator<Item = u64>) -> Batch {
    let mut batch = Batch::new(Selection::Checkpoint);
    let entry = |number| entry(number, 1, batch.selection);
    batch.entries = numbers.into_iter().map(entry).collect();
    batch
}

/// A batch of states.
pub fn states(states: impl IntoIterator<Item = SavedScratch>) -> Batch {
    let mut batch = Batch::new(Selection::Checkpoint);
    batch.scratch = states.into_iter().collect();
    batch
}
