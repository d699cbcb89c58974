//! The places of a cache's map.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::run_flight::RunFlight;
use crate::entry::Entry;
use crate::key::Key;

/// The state of one key. The map has only this pointer for each key, since it is half empty when it has just grown. So the
/// key lies in the entry or the flight.
#[derive(Clone)]
pub(crate) enum KeyState {
    /// An entry; some of its values may be gone.
    Ready(Arc<Entry>),
    Flying(Box<Flying>),
    /// The entry of a run that failed, and is not to be made again; it holds for the epoch in which it was checked.
    Failed(Arc<Entry>),
}

/// A computation, and the entry that the key had before it.
#[derive(Clone)]
pub(crate) struct Flying {
    pub(super) flight: Arc<RunFlight>,
    pub(super) previous: Option<Arc<Entry>>,
}

impl KeyState {
    pub(super) fn flying(flight: &Arc<RunFlight>, previous: Option<Arc<Entry>>) -> Self {
        let flight = Arc::clone(flight);
        Self::Flying(Box::new(Flying { flight, previous }))
    }

    pub(super) fn key(&self) -> &Key {
        match self {
            Self::Ready(entry) | Self::Failed(entry) => &entry.record.key,
            Self::Flying(flying) => &flying.flight.key,
        }
    }

    /// The entry, even if its values are gone or it is being computed again.
    pub(super) fn entry(&self) -> Option<&Arc<Entry>> {
        let is_failed = matches!(self, Self::Failed(_));
        self.entry_or_failure().filter(|_| !is_failed)
    }

    /// The entry, or that of a run that failed.
    pub(super) fn entry_or_failure(&self) -> Option<&Arc<Entry>> {
        match self {
            Self::Ready(entry) | Self::Failed(entry) => Some(entry),
            Self::Flying(flying) => flying.previous.as_ref(),
        }
    }

    /// The flight that is not complete yet.
    pub(super) fn under_way(&self) -> Option<&Arc<RunFlight>> {
        match self {
            Self::Flying(flying) => Some(&flying.flight).filter(|flight| !flight.is_complete()),
            Self::Ready(_) | Self::Failed(_) => None,
        }
    }
}

impl Borrow<Key> for KeyState {
    fn borrow(&self) -> &Key {
        self.key()
    }
}

impl Hash for KeyState {
    fn hash<H: Hasher>(&self, to: &mut H) {
        self.key().hash(to);
    }
}

impl PartialEq for KeyState {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for KeyState {}

/// A change to the slot of a key.
pub(super) enum Change {
    Keep,
    Put(KeyState),
    Remove,
}

impl Change {
    /// Another entry or none; a flight goes on.
    pub(super) fn to(slot: Option<&KeyState>, after: Option<Arc<Entry>>) -> Self {
        match (slot, after) {
            (Some(KeyState::Flying(flying)), after) => {
                Self::Put(KeyState::flying(&flying.flight, after))
            }
            (_, Some(after)) => Self::Put(KeyState::Ready(after)),
            (_, None) => Self::Remove,
        }
    }
}
