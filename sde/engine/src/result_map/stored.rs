//! Values that are still in the store and are read when asked for.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use super::codec::Codec;
use super::value::ErasedValue;
use crate::error::ArchiveError;
use crate::sync::lock;

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

    /// Whether there are [output files](crate::OutputFile) in the value. Then it is read when its entry is found, and they
    /// are looked at.
    fn has_files(&self) -> bool {
        false
    }
}

/// One stored value: read at the first demand, once.
#[derive(Clone)]
pub struct Stored(Arc<Inner>);

struct Inner {
    /// Until the value is read: the bytes may lie in memory too.
    payload: Mutex<Option<Arc<dyn Payload>>>,
    codec: Codec,
    has_files: bool,
    value: OnceLock<Result<ErasedValue, ArchiveError>>,
    bytes: OnceLock<u64>,
    /// What reading it took.
    took: OnceLock<Duration>,
}

impl Stored {
    /// A value to be read by this codec.
    #[must_use]
    pub fn new(payload: Arc<dyn Payload>, codec: Codec) -> Self {
        Self(Arc::new(Inner {
            has_files: payload.has_files(),
            payload: Mutex::new(Some(payload)),
            codec,
            value: OnceLock::new(),
            bytes: OnceLock::new(),
            took: OnceLock::new(),
        }))
    }

    /// The value; the first caller reads it, others wait for that.
    pub(crate) fn get(&self) -> Result<&ErasedValue, &ArchiveError> {
        self.0.value.get_or_init(|| self.0.read()).as_ref()
    }

    /// The value, if it was read.
    pub(crate) fn if_read(&self) -> Option<ErasedValue> {
        self.0.value.get()?.as_ref().ok().cloned()
    }

    /// Whether another has this value, or the way to it.
    pub(crate) fn is_in_use(&self) -> bool {
        let read = self.0.value.get().and_then(|value| value.as_ref().ok());
        Arc::strong_count(&self.0) > 1 || read.is_some_and(|value| value.holders() > 1)
    }

    /// How many bytes it takes in the store, which is about what it takes here once it is read.
    pub(crate) fn bytes(&self) -> usize {
        let bytes = self.0.bytes.get_or_init(|| {
            let payload = self.0.payload();
            payload.as_ref().map_or(0, |payload| payload.stored_bytes())
        });
        usize::try_from(*bytes).unwrap_or(usize::MAX)
    }

    /// What reading it took, if it was read.
    pub(crate) fn took(&self) -> Option<Duration> {
        self.0.took.get().copied()
    }

    pub(crate) fn has_files(&self) -> bool {
        self.0.has_files
    }

    /// Whether reading it was tried and failed.
    pub(crate) fn is_damaged(&self) -> bool {
        matches!(self.0.value.get(), Some(Err(_)))
    }
}

impl Inner {
    fn payload(&self) -> MutexGuard<'_, Option<Arc<dyn Payload>>> {
        lock(&self.payload)
    }

    /// Reads the value, and lets go of what it was read from. Called once.
    fn read(&self) -> Result<ErasedValue, ArchiveError> {
        let gone = || ArchiveError::Other("an earlier attempt to read it panicked".to_owned());
        let payload = self.payload().take().ok_or_else(gone)?;
        // For what is asked for later.
        self.bytes.get_or_init(|| payload.stored_bytes());
        let start = Instant::now();
        let value = payload.decode(&self.codec);
        self.took.get_or_init(|| start.elapsed());
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Number(u64);

    impl Payload for Number {
        fn decode(&self, _: &Codec) -> Result<ErasedValue, ArchiveError> {
            Ok(ErasedValue::new(self.0))
        }

        fn may_be(&self, _: &Codec) -> bool {
            true
        }

        fn stored_bytes(&self) -> u64 {
            1000
        }
    }

    /// Else what another rank has sent would lie in memory twice.
    #[test]
    fn what_a_value_was_read_from_is_let_go() {
        let payload = Arc::new(Number(7));
        let stored = Stored::new(Arc::clone(&payload) as _, Codec::of::<u64>());
        assert_eq!(Arc::strong_count(&payload), 2);
        let value = stored.get().ok().and_then(ErasedValue::downcast::<u64>);
        assert_eq!(value.as_deref(), Some(&7));
        assert_eq!(Arc::strong_count(&payload), 1);
        assert_eq!(stored.bytes(), 1000);
        assert!(stored.get().is_ok());
    }
}
