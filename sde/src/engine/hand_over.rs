//! Results of distributed apps, when process sets change.
//!
//! What ranks made together goes on together: on a split each subset gets the whole of it, on a
//! release all ranks get what one subset had. Each rank tells what it has. An entry moves if all ranks
//! of an old set have it, of one computation; its parts are moved by their type, or as its app says.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Engine;
use super::parts::own_outlines;
use crate::app::{AppInfo, Transfer};
use crate::cache::{Entry, Record};
use crate::distributed::HandOver;
use crate::error::{AppError, Error, ErrorKind};
use crate::event::RunId;
use crate::key::Key;
use crate::process_group::{Act, Notice, Ranks};
use crate::process_set::{ProcessSet, ReceivedEntry, Together, origin_of, pack, unpack};
use crate::result_map::{Codec, Content, ErasedValue, Named, Origin, ResultMap, Stored, Tag};

/// Which ranks had results, and which are to have them, all numbered as in the larger set.
pub(super) struct Change<'a> {
    pub(super) ranks: &'a Ranks,
    /// The old process sets, each with its ranks in their order.
    pub(super) from: Vec<Vec<usize>>,
    pub(super) to: Vec<Vec<usize>>,
    pub(super) transfer: &'a Transfer,
    /// Whether the results go to the larger set.
    pub(super) is_release: bool,
}

/// What a rank tells of an entry that it has.
#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Told {
    key: Key,
    run: RunId,
    outlines: Vec<(String, Vec<u64>)>,
}

/// An entry that moves.
struct Moving {
    key: Key,
    from: Vec<usize>,
    /// For each result the outlines of the parts, in the order of `from`.
    outlines: BTreeMap<String, Vec<Vec<u64>>>,
}

impl Engine {
    /// Hands over the entries of `held` to the process set that this rank goes on with.
    pub(super) fn hand_over(
        &self,
        change: &Change<'_>,
        held: &[Together],
        target: &ProcessSet,
    ) -> Result<(), Error> {
        let told = self.tell_held(change.ranks, held)?;
        let moving = moving(change, &told);
        if moving.is_empty() {
            return Ok(());
        }
        let replicated = self.replicated(change, &moving, held)?;
        for moving in &moving {
            let own = held.iter().find(|made| made.entry.record.key == moving.key);
            let own = own.map(|made| &*made.entry);
            let Some(received) = replicated.get(&moving.key) else {
                continue;
            };
            let record = &received.record;
            let info = self.known.info_of(&record.app, &record.code);
            if !self.all_know(change.ranks, record, info.is_some())? {
                continue;
            }
            if let Some(info) = info
                && let Some(entry) =
                    self.hand_over_one(change, moving, own, received, &info, target)?
            {
                target.put(Together {
                    entry: Arc::new(entry),
                    is_own: change.is_release,
                });
            }
        }
        Ok(())
    }

    /// What all ranks have.
    fn tell_held(&self, ranks: &Ranks, held: &[Together]) -> Result<Vec<Vec<Told>>, Error> {
        let wire = self.wire()?;
        let told: Vec<_> = held
            .iter()
            .map(|made| Told {
                key: made.entry.record.key,
                run: made.entry.record.run,
                outlines: self.outlines_of(&made.entry),
            })
            .collect();
        let codec = Codec::of::<Vec<Told>>();
        let mut bytes = Vec::new();
        let encoded = wire.encode(&ErasedValue::new(told), &codec, &mut bytes);
        encoded.map_err(super::sets::garbled)?;
        gathered(ranks, "distributed results", &bytes)?
            .iter()
            .map(|bytes| {
                let told = wire.decode(bytes, &codec).map_err(super::sets::garbled)?;
                told.downcast_ref::<Vec<Told>>()
                    .cloned()
                    .ok_or_else(another_type)
            })
            .collect()
    }

    fn outlines_of(&self, entry: &Entry) -> Vec<(String, Vec<u64>)> {
        let info = self.known.info_of(&entry.record.app, &entry.record.code);
        info.map_or_else(Vec::new, |info| own_outlines(&info, entry))
    }

    /// Gives all ranks what is the same on all that have an entry: its record, and its results
    /// that are not distributed. The lowest rank that has it sends it, if any rank lacks it.
    fn replicated(
        &self,
        change: &Change<'_>,
        moving: &[Moving],
        held: &[Together],
    ) -> Result<BTreeMap<Key, ReceivedEntry>, Error> {
        let wire = self.wire()?;
        let mut bytes = Vec::new();
        for moving in moving {
            if moving.from.first() != Some(&change.ranks.rank()) {
                continue;
            }
            let entry = held.iter().find(|made| made.entry.record.key == moving.key);
            let Some(entry) = entry else { continue };
            let app = &entry.entry.record.app;
            let leaves = |name: &str, tags: crate::result_map::Tags| {
                tags.contains(Tag::Distributed) || change.transfer.leaves(app, name, tags)
            };
            pack(&entry.entry, &*wire, leaves, &mut bytes).map_err(super::sets::garbled)?;
        }
        let mut received = BTreeMap::new();
        for bytes in gathered(change.ranks, "distributed results", &bytes)? {
            let bytes = Arc::new(bytes);
            let mut at = 0;
            while at < bytes.len() {
                let (entry, next) = unpack(&bytes, at, &wire).map_err(super::sets::garbled)?;
                received.insert(entry.record.key, entry);
                at = next;
            }
        }
        Ok(received)
    }

    /// Whether all ranks know what an app declares. Those that do not can't take part.
    fn all_know(&self, ranks: &Ranks, record: &Record, known: bool) -> Result<bool, Error> {
        let mut notice = Notice::new(Act::Move, record.key, &*record.app);
        notice.word = u8::from(known);
        let met = ranks.meet(&notice)?;
        let all = met.iter().all(|notice| notice.word == 1);
        if !all {
            self.warn(|| {
                format!(
                    "{} [{}] stays on the ranks that made it, since others have not met the app; name it in `link_app!`",
                    record.app,
                    record.key.short()
                )
            });
        }
        Ok(all)
    }

    /// Moves one entry; gives what this rank has of it afterwards.
    fn hand_over_one(
        &self,
        change: &Change<'_>,
        moving: &Moving,
        own: Option<&Entry>,
        received: &ReceivedEntry,
        info: &AppInfo,
        target: &ProcessSet,
    ) -> Result<Option<Entry>, Error> {
        let ranks = change.ranks;
        let over = |outlines: Vec<Vec<u64>>| HandOver {
            ranks,
            from: moving.from.clone(),
            to: change.to.clone(),
            outlines,
        };
        let record = &received.record;
        let failed = |cause: AppError| {
            Error::from(ErrorKind::App {
                app: Arc::clone(&record.app),
                key: record.key,
                cause,
            })
        };
        let what = format!("the hand-over of {}", record.app);
        if let Some(synchronize) = info.synchronize {
            let _level = ranks.level();
            let made = synchronize(own.map(|entry| &entry.results), &over(Vec::new()));
            let made = ranks.end(&what, record.key, made.map_err(failed))?;
            return Ok(made.map(|map| entry_of_map(info, record, &map)));
        }
        let mut results = Vec::new();
        for spec in &info.results {
            let name = &*spec.name;
            let held =
                own.and_then(|entry| entry.results.results().iter().find(|n| n.name == name));
            let arrived = received.results.iter().find(|result| result.name == name);
            let tags = arrived.map_or(spec.tags, |result| result.tags);
            let outlines = moving.outlines.get(name).filter(|parts| {
                parts.len() == moving.from.len() && !change.transfer.leaves(&record.app, name, tags)
            });
            let content = match (spec.parts, outlines) {
                (Some(ops), Some(outlines)) => {
                    let part = own.and_then(|entry| entry.results.get_erased(name).ok());
                    let _level = ranks.level();
                    let moved = (ops.hand_over)(part.as_ref(), &over(outlines.clone()));
                    let moved = ranks.end(&what, record.key, moved.map_err(failed))?;
                    match moved {
                        Some(value) => {
                            let origin = origin_of(&record.key, name);
                            (ops.settle)(&value, target.ranks.id(), origin);
                            Content::Held(value)
                        }
                        None => Content::Gone("no part of it is on this rank"),
                    }
                }
                (Some(_), None) | (None, Some(_)) => Content::Gone("it was not handed over"),
                (None, None) => match (held, arrived.and_then(|a| a.value.clone()), spec.codec) {
                    (Some(held), ..) if held.content.is_there() => held.content.clone(),
                    (_, Some(value), Some(codec)) => Content::Stored(Stored::new(value, codec)),
                    _ => Content::Gone("it was not handed over"),
                },
            };
            results.push(Named {
                name: spec.name.clone(),
                tags: Some(tags),
                codec: spec.codec,
                size: Some(spec.size),
                content,
            });
        }
        Ok(Some(entry_of(record, results)))
    }
}

fn entry_of(record: &Record, results: Vec<Named>) -> Entry {
    let origin = Origin {
        app: Arc::clone(&record.app),
        key: record.key,
        run: record.run,
    };
    // What ran beneath is checked before it is used.
    Entry::new(
        record.clone(),
        ResultMap::from_parts(origin, results),
        u64::MAX,
    )
}

/// An entry of what an app's own function made.
fn entry_of_map(info: &AppInfo, record: &Record, map: &ResultMap) -> Entry {
    let results = info.results.iter().map(|spec| Named {
        name: spec.name.clone(),
        tags: Some(spec.tags),
        codec: spec.codec,
        size: Some(spec.size),
        content: match map.get_erased(&spec.name) {
            Ok(value) if value.type_name() == spec.type_name => Content::Held(value),
            _ => Content::Gone("it was not handed over"),
        },
    });
    entry_of(record, results.collect())
}

/// Which entries all ranks of an old set have. All ranks find the same, in the same order.
fn moving(change: &Change<'_>, told: &[Vec<Told>]) -> Vec<Moving> {
    let mut found: BTreeMap<Key, Moving> = BTreeMap::new();
    let mut sets: Vec<&Vec<usize>> = change.from.iter().collect();
    sets.sort_by_key(|set| set.iter().min());
    for set in sets {
        let Some(first) = set.first().and_then(|rank| told.get(*rank)) else {
            continue;
        };
        for entry in first {
            let of_rank = |rank: &usize| {
                let same = |other: &&Told| other.key == entry.key && other.run == entry.run;
                told.get(*rank)?.iter().find(same)
            };
            let parts: Option<Vec<&Told>> = set.iter().map(of_rank).collect();
            let Some(parts) = parts.filter(|_| !found.contains_key(&entry.key)) else {
                continue;
            };
            let mut outlines: BTreeMap<String, Vec<Vec<u64>>> = BTreeMap::new();
            for (name, outline) in parts.iter().flat_map(|part| &part.outlines) {
                outlines
                    .entry(name.clone())
                    .or_default()
                    .push(outline.clone());
            }
            let moving = Moving {
                key: entry.key,
                from: set.clone(),
                outlines,
            };
            found.insert(entry.key, moving);
        }
    }
    found.into_values().collect()
}

/// The bytes of all ranks, whatever their lengths.
fn gathered(ranks: &Ranks, what: &str, mine: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
    let mut notice = Notice::new(Act::Exchange, Key::from_bytes([0; 32]), what);
    notice.length = mine.len() as u64;
    let met = ranks.meet(&notice)?;
    let counts: Vec<_> = met.iter().map(|notice| notice.length as usize).collect();
    let all = ranks.gather_bytes(what, mine, &counts)?;
    let mut rest = &all[..];
    Ok(counts
        .into_iter()
        .map(|count| {
            let (of_rank, others) = rest.split_at(count);
            rest = others;
            of_rank.to_vec()
        })
        .collect())
}

fn another_type() -> Error {
    let why = "a rank sent something of another type; do all run one program?".to_owned();
    super::sets::garbled(crate::error::ArchiveError::Damaged { why })
}
