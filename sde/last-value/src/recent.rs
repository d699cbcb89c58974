//! The engine's first level: each thread's recent hits, found without a digest.

use std::cell::LazyCell;
use std::hash::BuildHasher;

use crossbeam_utils::CachePadded;
use foldhash::fast::FixedState;

use super::per_thread::slots_by_default;
use super::try_cell::TryCell;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::thread_number;

/// Inputs with a longer encoding are not kept: comparing them costs more than it saves.
pub const MAX_ENCODED: usize = 1024;

/// The number of sets in a thread's table. A record may lie only in the set of its hash.
const SETS: usize = if cfg!(sde_model) { 1 } else { 1024 };
/// How many records a set has room for.
const WAYS: usize = 4;
/// How many refused records a set remembers; as many as let it take one cache line.
const CANDIDATES: usize = 3;

/// Each thread's recent runs, by the app's identity and its encoded inputs.
///
/// A bounded table for each thread, over all apps: 4096 records in sets of four. A thread that ends leaves its table to
/// the next that gets its number; with more threads than twice the cores some share one. The whole encoding is
/// compared, which is stricter than a digest, so a quick hash is enough to find the set. The caller gives the epoch,
/// and raises it whenever results may have become invalid; a record is found only in the epoch in which it was put in.
///
/// Made to stand before a larger cache. Once a set is full, a record enters when it is [offered](Self::offer) for the
/// second time, so that many different runs do not push out repeated ones. Values are best weak references, so that
/// nothing stays alive that the larger cache gave up.
///
/// # Cost
///
/// [`look`](Self::look) allocates nothing, waits for nobody and shares no memory between threads but what its closure
/// reads. A thread's table takes 64 KiB from its first offer on, and each record its encoding, its value and 56 bytes.
/// The owner drops the target of a weak reference. The memory of the target's own fields is freed only when another
/// record takes the place, or the whole table goes.
///
/// # Examples
///
/// ```
/// use sde::last_value::Recent;
///
/// let recent = Recent::<f64>::new();
/// let identity = [7; 32];
/// let epoch = 1;
/// let look = |inputs, epoch| recent.look(&identity, inputs, epoch, |energy| Some(*energy));
/// let place = look(b"r=0.96", epoch).unwrap_err();
/// recent.offer(place, &identity, b"r=0.96", epoch, || (-74.963, 0));
/// assert_eq!(look(b"r=0.96", epoch).ok(), Some(-74.963));
/// assert!(look(b"r=0.97", epoch).is_err());
/// assert!(look(b"r=0.96", epoch + 1).is_err());
/// ```
#[derive(Debug)]
pub struct Recent<V> {
    // A power of two of them.
    slots: Box<[CachePadded<Slot<V>>]>,
    bytes: AtomicUsize,
}

/// The table of the threads of one number: of one thread, as a rule.
type Slot<V> = TryCell<Option<Table<V>>>;

/// The place where the record of a run would lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    set: usize,
    tag: u32,
}

#[derive(Debug)]
struct Table<V> {
    sets: Box<[Set<V>]>,
    /// The place of the latest record found: asked for again, it is found without a hash.
    last: (usize, usize),
}

#[derive(Debug)]
#[repr(align(64))]
struct Set<V> {
    records: [Option<Box<Record<V>>>; WAYS],
    tags: [u32; WAYS],
    /// The tags of the records last refused for want of room.
    candidates: [u32; CANDIDATES],
    next_candidate: u8,
    /// The record that made way last.
    next: u8,
}

#[derive(Debug)]
struct Record<V> {
    epoch: u64,
    identity: [u8; 32],
    encoded: Box<[u8]>,
    value: V,
    elsewhere: usize,
}

impl<V> Recent<V> {
    /// Empty tables.
    #[must_use]
    pub fn new() -> Self {
        let slots = 0..slots_by_default();
        Self {
            slots: slots
                .map(|_| CachePadded::new(TryCell::new(None)))
                .collect(),
            bytes: AtomicUsize::new(0),
        }
    }

    /// Calls `look` with the value that was offered for these arguments to this thread's table, in this epoch.
    /// Meanwhile the thread's table is taken: a nested look-up finds nothing.
    ///
    /// # Errors
    /// The place of such a record, if there is none or `look` gives nothing.
    #[inline]
    pub fn look<R>(
        &self,
        identity: &[u8; 32],
        encoded: &[u8],
        epoch: u64,
        look: impl FnOnce(&V) -> Option<R>,
    ) -> Result<R, Place> {
        let place = LazyCell::new(|| Place::of(identity, encoded));
        let found = self.slot().enter(|table| {
            let record = table.as_mut()?.find(identity, encoded, || *place)?;
            if record.epoch == epoch {
                look(&record.value)
            } else {
                None
            }
        });
        found.flatten().ok_or_else(|| *place)
    }

    /// Keeps the value that `value` makes for these arguments in this thread's table, if its `place` has room or it was
    /// offered there before; says whether it did. `epoch` is one in which the value is known to be good. `value` also
    /// gives the bytes that the value keeps elsewhere, which are [counted](Self::bytes).
    pub fn offer(
        &self,
        place: Place,
        identity: &[u8; 32],
        encoded: &[u8],
        epoch: u64,
        value: impl FnOnce() -> (V, usize),
    ) -> bool {
        if encoded.len() > MAX_ENCODED {
            return false;
        }
        // The replaced record is dropped when the table is free again.
        let replaced = self.slot().enter(|table| {
            let table = table.get_or_insert_with(|| {
                self.bytes
                    .fetch_add(SETS * size_of::<Set<V>>(), Ordering::Relaxed);
                Table::new()
            });
            let way = table.sets[place.set].admit(place.tag, epoch)?;
            let (value, elsewhere) = value();
            let record = Record {
                epoch,
                identity: *identity,
                encoded: encoded.into(),
                value,
                elsewhere,
            };
            self.bytes.fetch_add(record.bytes(), Ordering::Relaxed);
            let old = table.sets[place.set].records[way].replace(Box::new(record));
            self.bytes
                .fetch_sub(old.as_ref().map_or(0, |old| old.bytes()), Ordering::Relaxed);
            table.last = (place.set, way);
            Some(old)
        });
        replaced.flatten().is_some()
    }

    /// Bytes of the tables of all threads, with the bytes that their values keep elsewhere.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    #[inline]
    fn slot(&self) -> &Slot<V> {
        &self.slots[thread_number() & (self.slots.len() - 1)]
    }
}

impl<V> Default for Recent<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl Place {
    #[inline]
    fn of(identity: &[u8; 32], encoded: &[u8]) -> Self {
        let [a, b, c, d, e, f, g, h, ..] = *identity;
        let seed = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        let hash = FixedState::with_seed(seed).hash_one(encoded);
        Self {
            set: hash as usize & (SETS - 1),
            // Zero is the tag of no record.
            tag: (hash >> 32) as u32 | 1,
        }
    }
}

impl<V> Table<V> {
    fn new() -> Self {
        let set = |_| Set {
            records: [const { None }; WAYS],
            tags: [0; WAYS],
            candidates: [0; CANDIDATES],
            next_candidate: 0,
            next: 0,
        };
        Self {
            sets: (0..SETS).map(set).collect(),
            last: (0, 0),
        }
    }

    #[inline]
    fn find(
        &mut self,
        identity: &[u8; 32],
        encoded: &[u8],
        place: impl FnOnce() -> Place,
    ) -> Option<&Record<V>> {
        let is_it =
            |record: &Record<V>| *record.encoded == *encoded && record.identity == *identity;
        if !self.at(self.last).is_some_and(is_it) {
            let place = place();
            let mut tags = self.sets[place.set].tags.iter();
            let at = (place.set, tags.position(|tag| *tag == place.tag)?);
            if !self.at(at).is_some_and(is_it) {
                return None;
            }
            self.last = at;
        }
        self.at(self.last)
    }

    #[inline]
    fn at(&self, (set, way): (usize, usize)) -> Option<&Record<V>> {
        self.sets[set].records[way].as_deref()
    }
}

impl<V> Set<V> {
    /// The way for an offered record, if it is to enter: if there is room, or at the second offer.
    fn admit(&mut self, tag: u32, epoch: u64) -> Option<usize> {
        let is_over = |record: &Option<Box<Record<V>>>| {
            record.as_ref().is_none_or(|record| record.epoch != epoch)
        };
        let same = self.tags.iter().position(|other| *other == tag);
        let way = same.or_else(|| self.records.iter().position(is_over));
        let way = match way {
            Some(way) => way,
            None if self.candidates.contains(&tag) => {
                self.next = (self.next + 1) % WAYS as u8;
                usize::from(self.next)
            }
            None => {
                self.candidates[usize::from(self.next_candidate)] = tag;
                self.next_candidate = (self.next_candidate + 1) % CANDIDATES as u8;
                return None;
            }
        };
        self.tags[way] = tag;
        Some(way)
    }
}

impl<V> Record<V> {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.encoded.len() + self.elsewhere
    }
}
