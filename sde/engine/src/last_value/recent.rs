//! The engine's first level: the last run of an app type, found without hashing.

use super::LastValuePerThread;

/// Inputs with a longer encoding are not kept: comparing them costs more than it saves.
pub const MAX_ENCODED: usize = 1024;

/// What makes two runs the same, before any of it is hashed.
#[derive(Debug)]
struct Key {
    epoch: u64,
    identity: [u8; 32],
    encoded: Vec<u8>,
}

/// The last run of each thread, by the app's identity and its encoded inputs.
///
/// One for each app *type*: its instances share it, so the identity (which tells one set of
/// parameters from another) is compared as well as the inputs. The epoch is the caller's, raised
/// whenever results may have become invalid; a record is found only in the epoch it was put in.
///
/// # Cost
///
/// [`get`](Self::get) allocates nothing, waits for nobody and shares no memory between threads but
/// what the clone of `V` touches. [`put`](Self::put) copies the encoding into memory it already
/// has.
///
/// # Examples
///
/// ```
/// use sde::last_value::Recent;
/// use std::sync::Arc;
///
/// let recent = Recent::<Arc<str>>::new();
/// let identity = [7; 32];
/// let epoch = 1;
/// assert!(recent.get(&identity, b"r=0.96", epoch).is_none());
/// recent.put(&identity, b"r=0.96", epoch, Arc::from("-74.963"));
/// assert_eq!(recent.get(&identity, b"r=0.96", epoch).as_deref(), Some("-74.963"));
/// assert!(recent.get(&identity, b"r=0.97", epoch).is_none());
/// assert!(recent.get(&identity, b"r=0.96", epoch + 1).is_none());
/// ```
#[derive(Debug)]
pub struct Recent<V> {
    last: LastValuePerThread<Key, V>,
}

impl<V> Recent<V> {
    /// Remembers nothing yet.
    pub fn new() -> Self {
        Self {
            last: LastValuePerThread::new(),
        }
    }

    /// What was [`put`](Self::put) last by this thread, if for these arguments, and if nothing was
    /// shown to [`seen_again`](Self::seen_again) since.
    #[inline]
    pub fn get(&self, identity: &[u8; 32], encoded: &[u8], epoch: u64) -> Option<V>
    where
        V: Clone,
    {
        self.look(identity, encoded, epoch, V::clone)
    }

    /// What `look` makes of the value that [`get`](Self::get) would give a clone of. While it runs,
    /// the record is taken: if it uses this cell, it finds nothing.
    #[inline]
    pub fn look<R>(
        &self,
        identity: &[u8; 32],
        encoded: &[u8],
        epoch: u64,
        look: impl FnOnce(&V) -> R,
    ) -> Option<R> {
        if !self.last.is_latest() {
            return None;
        }
        self.last.look_by(
            |key| key.epoch == epoch && key.encoded == encoded && key.identity == *identity,
            look,
        )
    }

    /// Makes this the thread's last run. `epoch` is that in which the run began. `false` if it was
    /// not kept: an encoding beyond [`MAX_ENCODED`], or a conflict with another thread.
    pub fn put(&self, identity: &[u8; 32], encoded: &[u8], epoch: u64, value: V) -> bool {
        if encoded.len() > MAX_ENCODED {
            return false;
        }
        let key = |old: Option<Key>| {
            let mut buffer = old.map_or_else(Vec::new, |old| old.encoded);
            buffer.clear();
            buffer.extend_from_slice(encoded);
            Key {
                epoch,
                identity: *identity,
                encoded: buffer,
            }
        };
        self.last.set_with(self.last.epoch(), key, value)
    }

    /// Whether the last call in this thread was with the same `tag`; see
    /// [`LastValuePerThread::seen_again`]. For a hit further down: put it here only if it repeats,
    /// so that threads that alternate between inputs do not copy them for nothing.
    #[inline]
    pub fn seen_again(&self, tag: u64) -> bool {
        self.last.seen_again(tag)
    }

    /// Forgets everything and drops it; see [`LastValuePerThread::clear`] for the result.
    ///
    /// Raise the epoch first: that is what keeps a run that began before from being put here after.
    pub fn clear(&self) -> bool {
        self.last.clear()
    }
}

impl<V> Default for Recent<V> {
    fn default() -> Self {
        Self::new()
    }
}
