//! One entry of a distributed app on its way from one process set to others.
//!
//! All ranks concerned do this together. Distributed results move as their types say, or all results as the app says.
//! Ranks that lack a result which is not distributed have its bytes already.

use std::sync::Arc;

use super::distributed::{DistOps, Placement, Redistribution};
use super::parts::origin_of;
use crate::app::{AppInfo, Synchronize};
use crate::cache::{Entry, Record};
use crate::checkpoint::{StoredEntry, StoredResult};
use crate::engine::Transfer;
use crate::error::{AppError, Error, ErrorKind};
use crate::result_map::{Content, Named, ResultMap, ResultSpec, Stored, Tags};

/// An entry that moves, as seen by one rank.
pub(super) struct EntryMove<'a> {
    /// The ranks that had the entry, the ranks that are to have it, and the descriptors of its parts.
    pub(super) over: Redistribution<'a>,
    pub(super) transfer: &'a Transfer,
    /// The entry as this rank had it.
    pub(super) own: Option<&'a Arc<Entry>>,
    /// The record, and the results that are the same on all ranks that had the entry.
    pub(super) received: &'a StoredEntry,
    pub(super) info: &'a AppInfo,
    /// The process set that this rank goes on with.
    pub(super) target: u64,
}

/// The reason given for a value that did not move.
const STAYED: &str = "it was left behind when the process set changed";

impl EntryMove<'_> {
    /// Moves the entry; gives the entry that this rank has afterwards.
    pub(super) fn run(&self) -> Result<Option<Entry>, Error> {
        let moved = match self.info.synchronize {
            Some(synchronize) => self.by_app(synchronize),
            None => self.by_types().map(Some),
        };
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
        Placement::new(self.target, origin_of(self.record(), name))
    }

    /// Moves the results by the app's own function.
    fn by_app(&self, synchronize: Synchronize) -> Result<Option<Entry>, AppError> {
        let stays = |spec: &Arc<ResultSpec>| self.stays(&spec.name, spec.tags);
        if self.info.results.iter().all(stays) {
            return Ok(None);
        }
        let own = self.own.map(|entry| ResultMap::of(Arc::clone(entry)));
        let made = synchronize(own.as_ref(), &self.over)?;
        made.map(|map| self.of_app(&map)).transpose()
    }

    /// Makes an entry from the map that the app's own function made.
    fn of_app(&self, map: &ResultMap) -> Result<Entry, AppError> {
        let mut results = Vec::new();
        for spec in &self.info.results {
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
            results.push(named(spec, tags, content));
        }
        Ok(self.entry(results))
    }

    /// Moves each result by its type.
    fn by_types(&self) -> Result<Entry, AppError> {
        let mut results = Vec::new();
        for spec in &self.info.results {
            let arrived = self.arrived(&spec.name);
            let tags = arrived.map_or(spec.tags, |result| result.tags);
            let content = match spec.parts {
                Some(ops) => self.parts(spec, ops, tags)?,
                None => self.replica(spec, arrived),
            };
            results.push(named(spec, tags, content));
        }
        Ok(self.entry(results))
    }

    /// This rank's new part of a distributed result.
    fn parts(&self, spec: &ResultSpec, ops: DistOps, tags: Tags) -> Result<Content, AppError> {
        let name = &*spec.name;
        if !self.over.results.contains_key(name) || self.stays(name, tags) {
            return Ok(Content::Gone(STAYED));
        }
        let part = self
            .own
            .and_then(|entry| entry.results.get_erased(name).ok());
        let moved = (ops.redistribute_parts)(part.as_ref(), &self.over.of_result(name));
        let Some(value) = moved? else {
            return Ok(Content::Gone("no part of it is on this rank"));
        };
        (ops.bind)(&value, &self.placement(name));
        Ok(Content::Held(value))
    }

    /// The content of a result that is the same on all ranks.
    fn replica(&self, spec: &ResultSpec, arrived: Option<&StoredResult>) -> Content {
        let own = self.own.iter().flat_map(|entry| entry.results.results());
        let mut own = own.filter(|named| named.name == spec.name);
        let held = own.next().filter(|named| named.content.is_there());
        if let Some(held) = held {
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
        self.transfer.stays(self.record(), name, tags)
    }

    fn entry(&self, results: Vec<Named>) -> Entry {
        // The dependencies of nested runs are checked before the entry is used.
        Entry::new(self.record().clone(), results, u64::MAX)
    }
}

fn named(spec: &Arc<ResultSpec>, tags: Tags, content: Content) -> Named {
    Named {
        content,
        spec: Arc::clone(spec),
        tags,
    }
}
