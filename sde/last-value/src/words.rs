//! The cell for small plain data: atomic words under a version.
//!
//! The version is odd while a writer is at work and grows by two with each record. A reader notes it, copies the words,
//! and keeps the copy only if the version has not changed. The words are atomics, so a torn copy is merely wrong, not
//! undefined, and is dropped before anybody uses it.
//!
//! Five orderings carry the proof (the models in `tests/model.rs` fail with any of them weakened):
//!
//! - the reader loads the version with Acquire: it sees the words that this version published;
//! - its Acquire fence before the second load: if any word came from a later writer, the second
//!   load sees at least that writer's odd version;
//! - the writer's Release fence after it made the version odd: the other half of the same pair;
//! - the writer's last store is Release: the words are there before the even version is;
//! - its compare-and-swap is Acquire: its words come after those of the writer before it.

use super::{Epoch, FIRST_EPOCH, Plain};
use crate::sync::atomic::{AtomicU64, Ordering, fence};
use std::marker::PhantomData;

/// Words for key and value. With the three of the header they fill two cache lines.
const WORDS: usize = 13;

/// The last key and value, both small and [`Plain`]; readers write nothing and wait for nobody.
///
/// Key and value, each rounded up to whole words of 8 bytes, take at most 104 bytes together; more
/// does not compile. The cell is 128 bytes, aligned so that it shares no cache line with its
/// neighbours. It can be a `static`.
///
/// # Cost
///
/// `get` is a few loads; it writes nothing, so any number of threads read at full speed. `set` is a
/// compare-and-swap and a few stores. Neither loops, allocates or blocks, and no code of the
/// caller's runs while a writer has the cell.
///
/// If a writer is stopped between its first and its last store, the cell is useless until the writer goes on: `get`
/// finds nothing, `set` stores nothing, and everybody computes.
///
/// # Examples
///
/// ```
/// use sde::last_value::LastValueWords;
///
/// static LAST: LastValueWords<u64, bool> = LastValueWords::new();
///
/// fn is_prime(n: u64) -> bool {
///     LAST.get_or_compute(&n, || n > 1 && (2..).take_while(|d| d * d <= n).all(|d| n % d != 0))
/// }
///
/// assert!(is_prime(13));
/// assert_eq!(LAST.get(&13), Some(true));
/// assert_eq!(LAST.get(&14), None);
/// ```
#[repr(align(128))]
pub struct LastValueWords<K, V> {
    /// Even: a whole record. Odd: a writer is at work.
    version: AtomicU64,
    epoch: AtomicU64,
    /// The epoch the record belongs to; zero in a new cell.
    stamp: AtomicU64,
    words: [AtomicU64; WORDS],
    // The cell holds bytes, not a `K` or a `V`: it is `Sync` whatever they are.
    types: PhantomData<fn() -> (K, V)>,
}

impl<K: Plain, V: Plain> LastValueWords<K, V> {
    const KEY: usize = K::BYTES.div_ceil(8);
    const VALUE: usize = V::BYTES.div_ceil(8);
    const FITS: () = assert!(
        Self::KEY + Self::VALUE <= WORDS,
        "key and value take more than 13 words of 8 bytes: use LastValue"
    );

    /// An empty cell.
    #[cfg(not(sde_model))]
    pub const fn new() -> Self {
        const { Self::FITS };
        Self {
            version: AtomicU64::new(0),
            epoch: AtomicU64::new(FIRST_EPOCH),
            stamp: AtomicU64::new(0),
            words: [const { AtomicU64::new(0) }; WORDS],
            types: PhantomData,
        }
    }

    /// An empty cell (loom's atomics cannot be made at compile time).
    #[cfg(sde_model)]
    pub fn new() -> Self {
        const { Self::FITS };
        Self {
            version: AtomicU64::new(0),
            epoch: AtomicU64::new(FIRST_EPOCH),
            stamp: AtomicU64::new(0),
            words: std::array::from_fn(|_| AtomicU64::new(0)),
            types: PhantomData,
        }
    }

    /// The value last set for `key`; `None` if the last key was another, if nothing was set since
    /// the last [`clear`](Self::clear), or if a writer is at work.
    #[inline]
    pub fn get(&self, key: &K) -> Option<V> {
        let wanted = to_words(key);
        let epoch = self.epoch.load(Ordering::Acquire);
        let version = self.version.load(Ordering::Acquire);
        let stamp = self.stamp.load(Ordering::Relaxed);
        if version & 1 == 1 || stamp != epoch {
            return None;
        }
        for (word, wanted) in self.words[..Self::KEY].iter().zip(&wanted) {
            // A torn key may differ where the whole one would not; nothing found is always right.
            if word.load(Ordering::Relaxed) != *wanted {
                return None;
            }
        }
        let mut value = [0; WORDS];
        for (word, copy) in self.words[Self::KEY..][..Self::VALUE]
            .iter()
            .zip(&mut value)
        {
            *copy = word.load(Ordering::Relaxed);
        }
        fence(Ordering::Acquire);
        if self.version.load(Ordering::Relaxed) != version {
            return None;
        }
        Some(from_words(&value))
    }

    /// Makes this the last key and value. `false` if another writer was at work and nothing was
    /// stored.
    ///
    /// For a value that was computed after the last [`clear`](Self::clear); see
    /// [`set_at`](Self::set_at) for one that may not have been.
    #[inline]
    pub fn set(&self, key: &K, value: &V) -> bool {
        self.set_at(self.epoch(), key, value)
    }

    /// The current epoch, to be taken before a computation.
    #[inline]
    pub fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(Ordering::Acquire))
    }

    /// Sets a value whose computation began at `epoch`. `false` also if the cell was cleared since.
    #[inline]
    pub fn set_at(&self, epoch: Epoch, key: &K, value: &V) -> bool {
        self.set_stopping(epoch, key, value, || ())
    }

    /// The value for `key`: the remembered one or else what `compute` returns, which is then
    /// remembered unless another writer is at work or the cell was cleared meanwhile.
    ///
    /// Several threads that ask for the same key at the same time may each compute it.
    #[inline]
    pub fn get_or_compute(&self, key: &K, compute: impl FnOnce() -> V) -> V {
        let epoch = self.epoch();
        self.get(key).unwrap_or_else(|| {
            let value = compute();
            self.set_at(epoch, key, &value);
            value
        })
    }

    /// Empties the cell. Once this has returned, no value computed before is found, not even one
    /// that a writer is storing at this moment. Does not wait for that writer.
    #[inline]
    pub fn clear(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }

    /// `set_at` with a stop between the first and the last store, for tests and benchmarks of a stopped writer. If
    /// `stop` panics, the cell stays useless.
    #[doc(hidden)]
    #[inline]
    pub fn set_stopping(&self, epoch: Epoch, key: &K, value: &V, stop: impl FnOnce()) -> bool {
        // The caller's conversions run here, before the window.
        let (key, value) = (to_words(key), to_words(value));
        if self.epoch() != epoch {
            return false;
        }
        let version = self.version.load(Ordering::Relaxed);
        let locked = version & 1 == 0
            && self
                .version
                .compare_exchange(version, version + 1, Ordering::Acquire, Ordering::Relaxed)
                .is_ok();
        if !locked {
            return false;
        }
        fence(Ordering::Release);
        self.stamp.store(epoch.0, Ordering::Relaxed);
        store(&self.words[..Self::KEY], &key);
        stop();
        store(&self.words[Self::KEY..][..Self::VALUE], &value);
        self.version
            .store(version.wrapping_add(2), Ordering::Release);
        true
    }
}

impl<K: Plain, V: Plain> Default for LastValueWords<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> std::fmt::Debug for LastValueWords<K, V> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let version = self.version.load(Ordering::Relaxed);
        out.debug_struct("LastValueWords")
            .field("version", &version)
            .finish_non_exhaustive()
    }
}

/// The value's bytes as words, zeros behind them.
#[inline(always)]
fn to_words<T: Plain>(value: &T) -> [u64; WORDS] {
    let mut bytes = [[0; 8]; WORDS];
    value.write(&mut bytes.as_flattened_mut()[..T::BYTES]);
    bytes.map(u64::from_ne_bytes)
}

/// The value from which [`to_words`] made these words.
#[inline(always)]
fn from_words<T: Plain>(words: &[u64; WORDS]) -> T {
    let bytes = words.map(u64::to_ne_bytes);
    T::read(&bytes.as_flattened()[..T::BYTES])
}

#[inline(always)]
fn store(to: &[AtomicU64], from: &[u64]) {
    for (word, value) in to.iter().zip(from) {
        word.store(*value, Ordering::Relaxed);
    }
}
