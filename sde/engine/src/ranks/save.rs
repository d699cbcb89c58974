//! Saving and loading results that ranks made together.

use std::sync::Arc;

use super::distributed::Placement;
use super::parts::{Descriptors, OwnDescriptors, StoredParts, head_of, joined, origin_of, part_of};
use crate::app::{AppInfo, Handle, ResolvedApp};
use crate::checkpoint::{Archiver, StoredEntry};
use crate::engine::{Engine, ToSave};
use crate::entry::{Entry, RecordHead};
use crate::error::{Error, ErrorKind};
use crate::ranks::collective::{Body, CollectiveOp, Header, Ranks, ShortDigest, short};
use crate::result_map::{Content, Named, Tag, WireBuffer};

impl Engine {
    /// Gathers the descriptors of the distributed results that all ranks made together. The outcome is equal on all
    /// ranks, also an error.
    pub(crate) fn all_descriptors(
        &self,
        ranks: &Ranks,
        resolved: &ResolvedApp,
        entry: &Entry,
    ) -> Result<Descriptors, Error> {
        let mut specs = resolved.info.results.iter();
        if specs.all(|spec| spec.parts.is_none()) {
            return Ok(Descriptors::new());
        }
        let own = own_descriptors(&resolved.info, entry);
        let header = Header::keyless(CollectiveOp::Agree, &resolved.name);
        let all = ranks.gather_all(header, Ok(own))?;
        let descriptors = joined(&all.iter().collect::<Vec<_>>());
        for (name, parts) in &descriptors {
            // All ranks have all descriptors, so all find the same.
            if let Some(ops) = resolved.result(name).and_then(|spec| spec.parts) {
                (ops.check)(parts).map_err(|cause| ErrorKind::App {
                    app: Arc::clone(&resolved.name),
                    key: entry.record.key,
                    cause,
                })?;
            }
        }
        Ok(descriptors)
    }

    /// A digest of the results that are not distributed, for [`check_replicas`]. Results of a run that is not
    /// deterministic may differ, so they are left out.
    pub(crate) fn replica_digest(&self, ranks: &Ranks, entry: &Entry) -> ShortDigest {
        let mut digests = blake3::Hasher::new();
        let compared = ranks.size() > 1 && !entry.record.nondeterministic;
        let Some(wire) = self.wire().ok().filter(|_| compared) else {
            return ShortDigest::default();
        };
        let of_all = |named: &&Named| !named.tags.contains(Tag::Distributed);
        for named in entry.results.iter().filter(of_all) {
            let value = entry.results.get_erased(&named.name);
            let (Ok(value), Some(codec)) = (value, named.codec) else {
                continue;
            };
            let mut to = WireBuffer::default();
            // A value that can't be encoded is neither sent nor saved.
            if wire.encode(&value, &codec, &mut to).is_ok() {
                let mut digest = blake3::Hasher::new();
                for piece in to.take_pieces(0) {
                    digest.update(&piece);
                }
                digests.update(digest.finalize().as_bytes());
            }
        }
        short(&digests.finalize())
    }
}

/// This rank's share of an entry that all of these ranks have: the lowest saves the results that are the same on all,
/// each rank its part. A rank that saved states of the run always saves a part, which ends the states. The part is
/// saved first, so that no list is in the store without its parts.
pub(crate) fn to_save(
    ranks: &Ranks,
    entry: &Arc<Entry>,
    descriptors: &Descriptors,
    had_states: bool,
) -> ToSave {
    let has_part = !descriptors.is_empty() || had_states && ranks.rank() > 0;
    let part = has_part.then(|| Arc::new(part_of(entry, descriptors, ranks.rank())));
    let head = (ranks.rank() == 0).then(|| {
        if descriptors.is_empty() {
            Arc::clone(entry)
        } else {
            Arc::new(head_of(entry, descriptors))
        }
    });
    part.into_iter().chain(head).collect()
}

/// Checks that results which are not distributed are equal on all ranks: one rank saves them for all, and any may give
/// them to others.
pub(crate) fn check_replicas(
    ranks: &Ranks,
    record: &RecordHead,
    met: &[Header],
) -> Result<(), Error> {
    let replicas = |header: &Header| match header.body {
        Body::Made { replicas, .. } => Some(replicas),
        _ => None,
    };
    let first = replicas(&met[0]);
    match met.iter().position(|other| replicas(other) != first) {
        Some(rank) if !record.nondeterministic => Err(ErrorKind::Replicas {
            app: Arc::clone(&record.app),
            key: record.key,
            rank: ranks.in_program(rank),
        }
        .into()),
        _ => Ok(()),
    }
}

/// Binds the distributed results of a run to their process set and identity.
pub(crate) fn bind(from: &Handle, resolved: &ResolvedApp, entry: &Entry) {
    let set = from.shared_ranks().map_or(0, |ranks| ranks.id());
    for spec in &resolved.info.results {
        if let (Some(ops), Ok(value)) = (spec.parts, entry.results.get_erased(&spec.name)) {
            let origin = origin_of(&entry.record, &spec.name);
            (ops.bind)(&value, &Placement::new(set, origin));
        }
    }
}

/// The descriptors of this rank's parts.
pub(crate) fn own_descriptors(info: &AppInfo, entry: &Entry) -> OwnDescriptors {
    let specs = info.results.iter();
    let part_descriptor = |spec: &Arc<crate::result_map::ResultSpec>| {
        let ops = spec.parts?;
        let value = entry.results.get_erased(&spec.name).ok()?;
        Some((spec.name.to_string(), (ops.part_descriptor)(&value)?))
    };
    specs.filter_map(part_descriptor).collect()
}

/// The stored entry, with distributed results that are assembled for this rank on demand.
pub(crate) fn with_parts(
    from: &Handle,
    resolved: &ResolvedApp,
    archiver: &Arc<dyn Archiver>,
    mut stored: StoredEntry,
) -> StoredEntry {
    let ranks = from.shared_ranks();
    let (key, run) = (stored.record.key, stored.record.run);
    for result in &mut stored.results {
        let Some(spec) = resolved.result(&result.name) else {
            continue;
        };
        let (Some(head), Some(ops)) = (result.payload.clone(), spec.parts) else {
            continue;
        };
        if StoredParts::is_of(spec, &*head) {
            result.payload = Some(Arc::new(StoredParts {
                archiver: Arc::clone(archiver),
                head,
                key,
                run,
                name: result.name.clone(),
                ops,
                rank: ranks.map_or(0, |ranks| ranks.rank()),
                ranks: ranks.map_or(1, |ranks| ranks.size()),
                set: ranks.map_or(0, |ranks| ranks.id()),
                origin: origin_of(&stored.record, &result.name),
            }));
        }
    }
    stored
}

/// Whether every distributed result of an entry can be had. Reads those that are in a store.
pub(crate) fn has_parts(entry: &Entry) -> bool {
    let parts = entry.results.iter().filter(|named| named.parts.is_some());
    let needed = parts.filter(|named| named.tags.is_needed());
    needed.map(|named| &named.content).all(Content::can_give)
}
