//! Values that stay in the store until they are asked for.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::{Duration, Instant};

use super::codec::Codec;
use super::value::ErasedValue;
use crate::error::ArchiveError;
use crate::key::Digest;
use crate::sync::{lock, wait_timeout};

/// The saved bytes of one value, wherever a store has them.
///
/// The bytes that [`decode`](Payload::decode) reads are hostile until checked: an implementation verifies its checksum
/// first, and gives an error, never a wrong value.
pub trait Payload: Send + Sync {
    /// Reads the value.
    ///
    /// # Errors
    /// If the bytes can't be read, are damaged, or are not a value of the codec's
    /// type.
    fn decode(&self, codec: &Codec) -> Result<ErasedValue, ArchiveError>;

    /// Whether the value may be of the codec's type, without reading it. A store that notes the type of each value says
    /// no to others, and the run is a miss.
    fn may_be(&self, codec: &Codec) -> bool;

    /// The number of its bytes in the store.
    fn stored_bytes(&self) -> u64;

    /// Whether the value has [output files](crate::OutputFile) in it. Such a value is read when its entry is found, to
    /// check the files.
    fn has_files(&self) -> bool {
        false
    }

    /// A digest of its bytes, if the store keeps one. Two computations of one key are compared by it.
    fn digest(&self) -> Option<Digest> {
        None
    }

    /// The time that a run had taken when it saved this scratch state. Zero for other values, and where a store does not
    /// keep it: then a run that goes on from the state counts its own time only.
    fn took(&self) -> Duration {
        Duration::ZERO
    }

    /// The [digest](Self::digest) that this value would have here.
    fn digest_of(&self, value: &ErasedValue, codec: &Codec) -> Option<Digest> {
        let _ = (value, codec);
        None
    }
}

/// One stored value: read at the first demand, once.
#[derive(Clone)]
pub struct Stored(Arc<LazyValue>);

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_read = self.0.value.get().is_some();
        f.debug_struct("Stored")
            .field("codec", &self.0.codec)
            .field("is_read", &is_read)
            .finish_non_exhaustive()
    }
}

struct LazyValue {
    source: Mutex<ValueSource>,
    read: Condvar,
    codec: Codec,
    has_files: bool,
    value: OnceLock<Result<ErasedValue, ArchiveError>>,
    bytes: OnceLock<u64>,
    /// The time that reading took.
    took: OnceLock<Duration>,
}

/// The bytes of a value, and the state of reading them.
struct ValueSource {
    /// `None` once the value is read: the bytes may be in memory too.
    payload: Option<Arc<dyn Payload>>,
    /// Whether a thread is reading it.
    is_being_read: bool,
}

/// How long a thread waits for another one whose reading runs code of users.
const PATIENCE: Duration = Duration::from_secs(60);

impl Stored {
    /// A value that this codec reads.
    #[must_use]
    pub fn new(payload: Arc<dyn Payload>, codec: Codec) -> Self {
        Self(Arc::new(LazyValue {
            has_files: payload.has_files(),
            source: Mutex::new(ValueSource {
                payload: Some(payload),
                is_being_read: false,
            }),
            read: Condvar::new(),
            codec,
            value: OnceLock::new(),
            bytes: OnceLock::new(),
            took: OnceLock::new(),
        }))
    }

    /// The value. The first caller reads it, and others wait. If code of users reads it, that may be waiting for this
    /// thread, so the wait is bounded. A rayon worker does not wait at all: it may have stolen this call from the
    /// reader. Such callers read the value too.
    pub(crate) fn get(&self) -> Result<&ErasedValue, &ArchiveError> {
        let Some(payload) = self.0.to_be_read() else {
            return self.0.value.wait().as_ref();
        };
        let reading = Reading(&self.0);
        let start = Instant::now();
        // Needed by `bytes` after the payload is gone.
        self.0.bytes.get_or_init(|| payload.stored_bytes());
        let value = payload.decode(&self.0.codec);
        self.0.took.get_or_init(|| start.elapsed());
        // If several threads read it, the first value stands.
        let value = self.0.value.get_or_init(|| value).as_ref();
        drop(reading);
        value
    }

    /// The bytes of the value, until it was read.
    pub(super) fn payload(&self) -> Option<Arc<dyn Payload>> {
        lock(&self.0.source).payload.clone()
    }

    /// The value, if it was read.
    pub(crate) fn if_read(&self) -> Option<ErasedValue> {
        self.0.value.get()?.as_ref().ok().cloned()
    }

    /// Its bytes in the store: about its size in memory once it is read.
    pub(crate) fn bytes(&self) -> usize {
        let bytes = self
            .0
            .bytes
            .get_or_init(|| self.payload().map_or(0, |payload| payload.stored_bytes()));
        usize::try_from(*bytes).unwrap_or(usize::MAX)
    }

    /// The time that reading took, if it was read.
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

impl LazyValue {
    /// The bytes that this thread is to read the value from; `None` once it was read.
    fn to_be_read(&self) -> Option<Arc<dyn Payload>> {
        if self.value.get().is_some() {
            return None;
        }
        let is_bulk = self.codec.is_bulk();
        let mut waits = is_bulk || rayon::current_thread_index().is_none();
        let mut source = lock(&self.source);
        while source.is_being_read && waits {
            let is_too_long;
            (source, is_too_long) = wait_timeout(&self.read, source, PATIENCE);
            waits = is_bulk || !is_too_long;
        }
        source.is_being_read = source.payload.is_some();
        source.payload.clone()
    }
}

/// Ends a thread's reading of a value, by panic too.
struct Reading<'a>(&'a LazyValue);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        let mut source = lock(&self.0.source);
        source.is_being_read = false;
        let is_read = self.0.value.get().is_some();
        let _let_go = is_read.then(|| source.payload.take());
        drop(source);
        self.0.read.notify_all();
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

    /// A value that was read drops its bytes. If it kept them, a value from another rank would lie in memory twice.
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

    struct Panics;

    impl Payload for Panics {
        fn decode(&self, _: &Codec) -> Result<ErasedValue, ArchiveError> {
            std::panic::resume_unwind(Box::new("a test"))
        }

        fn may_be(&self, _: &Codec) -> bool {
            true
        }

        fn stored_bytes(&self) -> u64 {
            0
        }
    }

    /// A reader that panics ends its reading. Otherwise each thread that asks for the value would wait a while for it.
    #[test]
    fn who_panics_reads_no_more() {
        let stored = Stored::new(Arc::new(Panics), Codec::of::<u64>());
        let read = std::panic::AssertUnwindSafe(|| stored.get().is_ok());
        assert!(std::panic::catch_unwind(read).is_err());
        assert!(!lock(&stored.0.source).is_being_read);
    }
}
