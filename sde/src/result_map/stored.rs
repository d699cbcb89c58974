//! Values that are still in the store and are read when asked for.

use std::sync::{Arc, OnceLock};

use super::codec::Codec;
use super::value::ErasedValue;
use crate::error::ArchiveError;

/// The saved bytes of one value, wherever a store has them.
///
/// What [`decode`](Payload::decode) reads is hostile until checked: an
/// implementation verifies its checksum first, and gives an error, never a wrong
/// value.
pub trait Payload: Send + Sync {
    /// Reads the value.
    ///
    /// # Errors
    /// If the bytes can't be read, are damaged, or are not a value of the codec's
    /// type.
    fn decode(&self, codec: &Codec) -> Result<ErasedValue, ArchiveError>;

    /// Whether the value may be of the codec's type, as far as can be told without
    /// reading it: a store that notes the type of what it saves says no to others,
    /// and the run is a miss.
    fn may_be(&self, codec: &Codec) -> bool;

    /// How many bytes it has in the store.
    fn stored_bytes(&self) -> u64;
}

/// One stored value: read at the first demand, once.
#[derive(Clone)]
pub struct Stored(Arc<Inner>);

struct Inner {
    payload: Arc<dyn Payload>,
    codec: Codec,
    value: OnceLock<Result<ErasedValue, ArchiveError>>,
}

impl Stored {
    /// A value to be read by this codec.
    #[must_use]
    pub fn new(payload: Arc<dyn Payload>, codec: Codec) -> Self {
        Self(Arc::new(Inner {
            payload,
            codec,
            value: OnceLock::new(),
        }))
    }

    /// The value; the first caller reads it, others wait for that.
    pub(crate) fn get(&self) -> Result<&ErasedValue, &ArchiveError> {
        self.0
            .value
            .get_or_init(|| self.0.payload.decode(&self.0.codec))
            .as_ref()
    }

    /// The value, if somebody has read it.
    pub(crate) fn if_read(&self) -> Option<ErasedValue> {
        self.0.value.get()?.as_ref().ok().cloned()
    }

    /// Whether somebody else has this value, or the way to it.
    pub(crate) fn is_in_use(&self) -> bool {
        let read = self.0.value.get().and_then(|value| value.as_ref().ok());
        Arc::strong_count(&self.0) > 1 || read.is_some_and(|value| value.holders() > 1)
    }

    /// How many bytes it takes in the store, which is about what it takes here once it is read.
    pub(crate) fn bytes(&self) -> usize {
        usize::try_from(self.0.payload.stored_bytes()).unwrap_or(usize::MAX)
    }

    /// Whether reading it was tried and failed.
    pub(crate) fn is_damaged(&self) -> bool {
        matches!(self.0.value.get(), Some(Err(_)))
    }
}
