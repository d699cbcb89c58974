//! Saving the parts of a distributed value, and loading them on any number of ranks.
//!
//! Each rank saves its own part, under a key made from the run's key and the rank. The lowest rank saves, under the
//! run's own key, the results that are the same on all ranks, and for each distributed value the list of its parts. A
//! list counts only if parts of the same computation are there and together are whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::distributed::{DistOps, Placement};
use crate::checkpoint::Archiver;
use crate::entry::{Entry, RecordHead};
use crate::error::ArchiveError;
use crate::event::RunId;
use crate::key::{Digest, Key};
use crate::result_map::{Codec, Content, ErasedValue, Named, Payload, ResultSpec, Tag};

/// The descriptors of all parts of each distributed result, by its name.
pub(crate) type Descriptors = BTreeMap<String, Vec<Vec<u64>>>;

/// The descriptor of one rank's part of each distributed result.
pub(crate) type OwnDescriptors = BTreeMap<String, Vec<u64>>;

/// Joins the descriptors of all ranks, in their order. Leaves out a result of which a rank has no part, since it can't
/// be assembled again.
pub(crate) fn joined(of_ranks: &[&OwnDescriptors]) -> Descriptors {
    let of_all = |name: &String| {
        let of_rank = |own: &&OwnDescriptors| own.get(name).cloned();
        let parts = of_ranks.iter().map(of_rank).collect::<Option<_>>()?;
        Some((name.clone(), parts))
    };
    let first = of_ranks.iter().take(1);
    let names = first.flat_map(|own| own.keys());
    names.filter_map(of_all).collect()
}

/// The list that is saved in place of a distributed value.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct PartsList {
    run: RunId,
    /// The name in the stored format.
    #[serde(rename = "outlines")]
    descriptors: Vec<Vec<u64>>,
}

/// The key that a rank's parts are saved under.
pub(crate) fn part_key(key: &Key, rank: usize) -> Key {
    let mut hasher = blake3::Hasher::new_derive_key("SDE 1, parts of a distributed result");
    hasher.update(key.as_bytes());
    hasher.update(&(rank as u64).to_le_bytes());
    Key::from_bytes(*hasher.finalize().as_bytes())
}

/// The digest that identifies a distributed result as an input of other runs.
///
/// Two computations of one key may have made different values if the code of nested runs differed, which the record
/// shows, or if the record itself says so. In the latter case the digest has the computation's id, which is new each
/// time. If it always had, all results made from a value would be lost with the value.
pub(crate) fn origin_of(record: &RecordHead, result: &str) -> Digest {
    let mut hasher = blake3::Hasher::new_derive_key("SDE 2, origin of a distributed result");
    hasher.update(record.key.as_bytes());
    hasher.update(&(result.len() as u64).to_le_bytes());
    hasher.update(result.as_bytes());
    let counts = record.nondeterministic || record.anew;
    hasher.update(&[u8::from(counts)]);
    if counts {
        hasher.update(&record.run.process.to_le_bytes());
        hasher.update(&record.run.number.to_le_bytes());
    }
    for callee in &record.dependencies {
        callee.enter(&mut hasher);
    }
    Digest::from_bytes(*hasher.finalize().as_bytes())
}

/// The entry that the lowest rank saves.
pub(crate) fn head_of(entry: &Entry, descriptors: &Descriptors) -> Entry {
    let list_of = |named: &Named| {
        let descriptors = descriptors.get(&*named.name)?;
        Some(ErasedValue::new(PartsList {
            run: entry.record.run,
            descriptors: descriptors.clone(),
        }))
    };
    let results = entry.results.iter();
    let results = results.map(|named| match list_of(named) {
        Some(list) if named.content.is_there() => Named {
            content: Content::Held(list),
            spec: Arc::new(ResultSpec {
                codec: Some(Codec::of::<PartsList>()),
                ..ResultSpec::clone(named)
            }),
            tags: named.tags,
        },
        _ => named.clone(),
    });
    Entry::unchecked(entry.full_record(), results)
}

/// The entry without its distributed results.
pub(crate) fn replicas_of(entry: &Entry) -> Entry {
    let is_distributed = |named: &Named| named.tags.contains(Tag::Distributed);
    entry.without(is_distributed, "it lies on the larger process set")
}

/// The entry that each rank saves for its part.
pub(crate) fn part_of(entry: &Entry, descriptors: &Descriptors, rank: usize) -> Entry {
    let is_part = |named: &&Named| descriptors.contains_key(&*named.name);
    let results = entry.results.iter().filter(is_part).cloned();
    let mut record = entry.full_record();
    record.key = part_key(&entry.record.key, rank);
    Entry::unchecked(record, results)
}

/// A distributed value in a store, assembled for one rank on demand.
pub(crate) struct StoredParts {
    pub(crate) archiver: Arc<dyn Archiver>,
    /// A list of parts, or the whole value if one process saved it.
    pub(crate) head: Arc<dyn Payload>,
    pub(crate) key: Key,
    pub(crate) run: RunId,
    pub(crate) name: String,
    pub(crate) ops: DistOps,
    pub(crate) rank: usize,
    pub(crate) ranks: usize,
    /// The process set that the value is to lie on.
    pub(crate) set: u64,
    /// The digest that identifies the value as an input.
    pub(crate) origin: Digest,
}

impl StoredParts {
    /// Whether this takes the place of a result's stored payload.
    pub(crate) fn is_of(spec: &ResultSpec, payload: &dyn Payload) -> bool {
        let list = Codec::of::<PartsList>();
        let whole = spec.codec.is_some_and(|codec| payload.may_be(&codec));
        spec.parts.is_some() && (whole || payload.may_be(&list))
    }

    fn assemble(&self, codec: &Codec) -> Result<ErasedValue, ArchiveError> {
        let list = Codec::of::<PartsList>();
        let made = if self.head.may_be(&list) {
            let head = self.head.decode(&list)?;
            let parts = head.downcast_ref::<PartsList>().ok_or_else(another_list)?;
            if parts.run != self.run {
                return Err(another_list());
            }
            let read = |rank: usize| self.part(rank, codec);
            (self.ops.assemble)(&parts.descriptors, &read, self.rank, self.ranks)
        } else {
            let whole = self.head.decode(codec)?;
            let part_descriptor = (self.ops.part_descriptor)(&whole).ok_or_else(another_list)?;
            drop(whole);
            let read = |_: usize| self.head.decode(codec);
            (self.ops.assemble)(&[part_descriptor], &read, self.rank, self.ranks)
        };
        let value = made.map_err(|error| ArchiveError::Damaged {
            why: format!("the parts of \"{}\" are not whole: {error}", self.name),
        })?;
        (self.ops.bind)(&value, &Placement::new(self.set, self.origin));
        Ok(value)
    }

    /// Reads the part that a rank saved.
    fn part(&self, rank: usize, codec: &Codec) -> Result<ErasedValue, ArchiveError> {
        let missing = |why: &str| ArchiveError::Damaged {
            why: format!("the part that rank {rank} saved of \"{}\" {why}", self.name),
        };
        let key = part_key(&self.key, rank);
        let stored = self.archiver.find(&key)?;
        let stored = stored.ok_or_else(|| missing("is missing"))?;
        if stored.record.run != self.run {
            return Err(missing("is of another computation"));
        }
        let mut results = stored.results.into_iter();
        let result = results.find(|result| result.name == self.name);
        let payload = result.and_then(|result| result.payload);
        payload.ok_or_else(|| missing("is damaged"))?.decode(codec)
    }
}

fn another_list() -> ArchiveError {
    ArchiveError::Damaged {
        why: "a list of parts is of another computation".to_owned(),
    }
}

impl Payload for StoredParts {
    fn decode(&self, codec: &Codec) -> Result<ErasedValue, ArchiveError> {
        self.assemble(codec)
    }

    fn may_be(&self, codec: &Codec) -> bool {
        self.head.may_be(codec) || self.head.may_be(&Codec::of::<PartsList>())
    }

    fn stored_bytes(&self) -> u64 {
        self.head.stored_bytes()
    }
}
