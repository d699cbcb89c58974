//! One entry of a distributed app on its way from one process set to others.
//!
//! All ranks concerned do this together. Distributed results move as their types say, or all results as the app says.
//! Ranks that lack a result which is not distributed have its bytes already.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::collective::Ranks;
use super::distributed::{DistOps, Placement, Redistribution};
use super::parts::{Descriptors, origin_of};
use super::sets::ProcessSet;
use crate::app::{AppInfo, Synchronize};
use crate::checkpoint::{StoredEntry, StoredResult};
use crate::engine::Transfer;
use crate::entry::{Entry, Record};
use crate::error::{AppError, Error, ErrorKind, panic_message};
use crate::result_map::{Content, Named, ResultMap, ResultSpec, Stored, Tags, Wire};

/// The ranks that had results, and those that are to have them, all numbered as in the larger set.
pub(super) struct SetChange<'a> {
    pub(super) ranks: &'a Ranks,
    /// The old process sets, each with its ranks in their order.
    pub(super) from: Vec<Vec<usize>>,
    pub(super) to: Vec<Vec<usize>>,
    /// The set that this rank goes on with.
    pub(super) target: &'a ProcessSet,
    pub(super) transfer: &'a Transfer,
}

/// An entry that moves.
pub(super) struct Moving {
    /// The ranks that had the entry.
    pub(super) from: Vec<usize>,
    /// The descriptors of each distributed result's parts, in the order of `from`.
    pub(super) descriptors: Descriptors,
    /// The length of all parts in bytes.
    pub(super) bytes: u64,
}

/// An entry that moves, as seen by one rank.
pub(super) struct EntryMove<'a> {
    pub(super) change: &'a SetChange<'a>,
    pub(super) moving: &'a Moving,
    /// The entry as this rank had it.
    pub(super) own: Option<&'a Arc<Entry>>,
    /// The record, and the results that are the same on all ranks that had the entry.
    pub(super) received: &'a StoredEntry,
    pub(super) info: &'a AppInfo,
    pub(super) wire: &'a dyn Wire,
}

/// The reason given for a value that did not move.
const STAYED: &str = "it was left behind when the process set changed";

impl EntryMove<'_> {
    /// Moves the entry; gives the entry that this rank has afterwards.
    pub(super) fn run(&self, ranks: &Ranks) -> Result<Option<Entry>, Error> {
        let over = Redistribution {
            ranks,
            wire: self.wire,
            from: &self.moving.from,
            to: &self.change.to,
            results: &self.moving.descriptors,
            descriptors: Vec::new(),
        };
        let by_users = || match self.info.synchronize {
            Some(synchronize) => self.by_app(&over, synchronize),
            None => self.by_types(&over).map(Some),
        };
        // A function may unwrap the error that stops it until other ranks have answered ([`Ranks::in_rounds`]).
        let moved = catch_unwind(AssertUnwindSafe(by_users)).unwrap_or_else(|panic| {
            let why = format!("its results were to move: {}", panic_message(&*panic));
            Err(AppError::message(why))
        });
        moved.map_err(|cause| {
            let record = self.record();
            let (app, key) = (Arc::clone(&record.app), record.key);
            ErrorKind::App { app, key, cause }.into()
        })
    }

    fn record(&self) -> &Record {
        &self.received.record
    }

    /// The placement of a distributed result after the move.
    fn placement(&self, name: &str) -> Placement {
        Placement::new(self.change.target.id(), origin_of(self.record(), name))
    }

    /// Moves the results by the app's own function.
    fn by_app(
        &self,
        over: &Redistribution<'_>,
        synchronize: Synchronize,
    ) -> Result<Option<Entry>, AppError> {
        let stays = |spec: &Arc<ResultSpec>| self.stays(&spec.name, spec.tags);
        if self.info.results.iter().all(stays) {
            return Ok(None);
        }
        let own = self.own.map(|entry| ResultMap::of(Arc::clone(entry)));
        let Some(map) = synchronize(own.as_ref(), over)? else {
            return Ok(None);
        };
        let entry = self.entry(|spec| {
            let name = &*spec.name;
            let content = match map.get_erased(name) {
                Ok(_) if self.stays(name, spec.tags) => Content::Gone(STAYED),
                Ok(value) if value.type_name() == spec.type_name => {
                    if let Some(ops) = spec.parts {
                        let before = self.own.and_then(|own| own.results.get_erased(name).ok());
                        if before.is_some_and(|before| before.ptr_eq(&value)) {
                            let why = format!(
                                "\"{name}\" was given back as it was; make a new part for the new process set"
                            );
                            return Err(AppError::message(why));
                        }
                        (ops.bind)(&value, &self.placement(name));
                    }
                    Content::Held(value)
                }
                Ok(value) => {
                    let why = format!(
                        "\"{name}\" was redistributed as a {}, and is a {}",
                        value.type_name(),
                        spec.type_name
                    );
                    return Err(AppError::message(why));
                }
                Err(_) if spec.parts.is_none() => self.replica(spec, self.arrived(name)),
                Err(_) => Content::Gone(STAYED),
            };
            let given = map.find(name);
            let tags = given.and_then(|given| given.tags).unwrap_or(spec.tags);
            Ok((tags, content))
        });
        entry.map(Some)
    }

    /// Moves each result by its type.
    fn by_types(&self, over: &Redistribution<'_>) -> Result<Entry, AppError> {
        self.entry(|spec| {
            let arrived = self.arrived(&spec.name);
            let tags = arrived.map_or(spec.tags, |result| result.tags);
            let content = match spec.parts {
                Some(ops) => self.part(over, spec, ops, tags)?,
                None => self.replica(spec, arrived),
            };
            Ok((tags, content))
        })
    }

    /// The entry whose results have these tags and contents.
    fn entry(
        &self,
        of_result: impl Fn(&ResultSpec) -> Result<(Tags, Content), AppError>,
    ) -> Result<Entry, AppError> {
        let named = |spec: &Arc<ResultSpec>| {
            let (tags, content) = of_result(spec)?;
            Ok(Named {
                content,
                spec: Arc::clone(spec),
                tags,
            })
        };
        let results: Result<Vec<_>, AppError> = self.info.results.iter().map(named).collect();
        Ok(Entry::unchecked(self.record().clone(), results?))
    }

    /// This rank's new part of a distributed result.
    fn part(
        &self,
        over: &Redistribution<'_>,
        spec: &ResultSpec,
        ops: DistOps,
        tags: Tags,
    ) -> Result<Content, AppError> {
        let name = &*spec.name;
        if !self.moving.descriptors.contains_key(name) || self.stays(name, tags) {
            return Ok(Content::Gone(STAYED));
        }
        let part = self.own.and_then(|own| own.results.get_erased(name).ok());
        let moved = (ops.redistribute_parts)(part.as_ref(), &over.of_result(name));
        let Some(value) = moved? else {
            return Ok(Content::Gone("no part of it is on this rank"));
        };
        (ops.bind)(&value, &self.placement(name));
        Ok(Content::Held(value))
    }

    /// The content of a result that is the same on all ranks.
    fn replica(&self, spec: &ResultSpec, arrived: Option<&StoredResult>) -> Content {
        let own = self.own.and_then(|own| own.results.find(&spec.name));
        if let Some(held) = own.filter(|named| named.content.is_there()) {
            return held.content.clone();
        }
        let value = arrived.and_then(|result| result.payload.clone());
        match value.zip(spec.codec) {
            Some((value, codec)) => Content::Stored(Stored::new(value, codec)),
            None => Content::Gone(STAYED),
        }
    }

    fn arrived(&self, name: &str) -> Option<&StoredResult> {
        let mut results = self.received.results.iter();
        results.find(|result| result.name == name)
    }

    fn stays(&self, name: &str, tags: Tags) -> bool {
        self.change.transfer.stays(self.record(), name, tags)
    }
}
