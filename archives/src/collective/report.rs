//! What a writer tells all ranks of what it has written.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::drain::Drained;
use super::listing::Listing;
use crate::cbor::metadata::{bytes, from_bytes, to_bytes};
use crate::format::id::UniqueId;

/// What was written, and what went wrong.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) error: Option<String>,
    /// The ids of the journals whose place these segments take, one after the other.
    #[serde(with = "bytes")]
    taken: Vec<u8>,
    pub(super) listing: Listing,
}

impl Report {
    pub(super) fn of(drained: Drained) -> Self {
        Self {
            error: drained.error.map(|error| error.to_string()),
            taken: drained.taken.iter().flat_map(|id| id.0).collect(),
            listing: drained.listing,
        }
    }

    /// Nothing, of a rank that is no writer and has nothing to say.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let is_empty = self.error.is_none() && self.taken.is_empty();
        match to_bytes(self) {
            Ok(_) if is_empty => Vec::new(),
            Ok(bytes) => bytes,
            // Of no use to anybody: it is read as one that says so.
            Err(_) => vec![0],
        }
    }

    pub(super) fn read(bytes: &[u8]) -> Self {
        match bytes.is_empty() {
            true => Self::default(),
            false => from_bytes(bytes)
                .map(|(report, _)| report)
                .unwrap_or_else(|why| Self {
                    error: Some(format!(
                        "a rank's report of what it wrote can't be read: {why}"
                    )),
                    ..Self::default()
                }),
        }
    }
}

/// All journals that were taken.
pub(super) fn taken(reports: &[Report]) -> HashSet<UniqueId> {
    let ids = reports
        .iter()
        .flat_map(|report| report.taken.as_chunks::<16>().0);
    ids.map(|id| UniqueId(*id)).collect()
}
