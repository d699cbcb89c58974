//! The entry of one key: the record of its run and the results.

mod failure;
mod record;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::inputs::{BLOCK, ValueSummary};
use crate::result_map::{Content, EntryResults, ErasedValue, Failed, Named, ResultMap, why_let_go};
use crate::sync::lock;
pub use failure::{FailureRecord, failure_key};
pub use record::{Provenance, Record, RecordHead};

/// The [account](Entry::account) of an entry that is in no list.
pub(crate) const NO_ACCOUNT: u32 = u32::MAX;

/// The bytes of an entry whose values were not asked for their size.
const NOT_MEASURED: usize = usize::MAX;

/// An epoch is a multiple of this. The bits below number the periods of the epoch.
pub(crate) const PERIODS: u64 = 1 << 24;

/// The epoch of a moment.
pub(crate) const fn epoch_of(moment: u64) -> u64 {
    moment & !(PERIODS - 1)
}

/// A record and the results.
///
/// The fields that a hit reads come first, beside the reference count.
#[repr(C)]
pub(crate) struct Entry {
    /// The epoch in which its dependencies were last found current, and the period of its last use in that epoch.
    checked: AtomicU64,
    /// Whether a hit needs no further look: each result is held here, or gone and not needed, and none has output
    /// files.
    pub(crate) whole: bool,
    /// Whether a result has output files, which are looked at on each hit.
    pub(crate) has_files: bool,
    /// Whether `result` is the only result, and held.
    has_only: bool,
    deterministic: bool,
    /// About how many bytes its record and its places in tables take.
    record_bytes: AtomicU32,
    /// When and how often it was used, if the budget needs that; see `Uses`.
    pub(crate) uses: AtomicU64,
    pub(crate) results: EntryResults,
    pub(crate) record: RecordHead,
    /// Empty once a store has them.
    inputs: Mutex<Arc<[ValueSummary]>>,
    /// Nanoseconds to compute it, without nested runs.
    pub(crate) own_nanos: u64,
    /// Nanoseconds to compute again the evicted entries that it depends on, as far as they were looked for.
    dependencies_nanos: AtomicU64,
    /// Bytes of its values, or [`NOT_MEASURED`].
    bytes: AtomicUsize,
    /// Its account with the budget that counts it; written with the budget's list locked.
    pub(crate) account: AtomicU32,
    /// Whether a store has it, as far as is known.
    is_saved: AtomicBool,
    /// Whether another user saved it: then its output files are not put back.
    pub(crate) is_of_others: bool,
}

/// Bytes of an entry besides its values and the lists of its record: its allocations, its place in the map, which may
/// be half empty, and its place in the list of the budget.
const ENTRY: usize = size_of::<Entry>() + 2 * (size_of::<[usize; 2]>() + 1) + 64 + 8 * BLOCK;

/// No epoch: the dependencies of an entry's nested runs are checked before it is used.
pub(crate) const UNCHECKED: u64 = u64::MAX;

impl Entry {
    /// `checked` is the epoch in which the entry is known to be current.
    pub(crate) fn new(
        record: Record,
        results: impl IntoIterator<Item = Named>,
        checked: u64,
    ) -> Self {
        Self::of(record, results.into_iter().collect(), checked)
    }

    fn of(record: Record, results: EntryResults, checked: u64) -> Self {
        let has_files = results.iter().any(Named::has_files);
        Self::build(record, results, has_files, checked)
    }

    /// `has_files` says whether a result has output files: looking encodes the values.
    fn build(mut record: Record, results: EntryResults, has_files: bool, checked: u64) -> Self {
        let held = |named: &Named| matches!(named.content, Content::Held(_));
        let is_needed = |named: &Named| named.tags.is_needed();
        let settled = |named: &Named| match named.content {
            Content::Held(_) => true,
            Content::Gone(_) => !is_needed(named),
            Content::Weak(_) | Content::Stored(_) => false,
        };
        let results = match record.failure.take() {
            Some(failure) => EntryResults::Failure(failure),
            None => results,
        };
        let has_only =
            matches!(&results, EntryResults::One(one) if one.name == "result" && held(one));
        let is_whole = results.iter().all(settled) && results.iter().any(held);
        let record_bytes =
            results.owned() + size_of_summaries(&record.inputs) + record.owned() + ENTRY;
        Self {
            checked: AtomicU64::new(checked),
            whole: is_whole && !has_files,
            has_files,
            deterministic: !record.nondeterministic,
            uses: AtomicU64::new(0),
            has_only,
            results,
            own_nanos: nanos(record.took),
            record: record.head,
            inputs: Mutex::new(record.inputs),
            dependencies_nanos: AtomicU64::new(0),
            bytes: AtomicUsize::new(NOT_MEASURED),
            record_bytes: AtomicU32::new(u32::try_from(record_bytes).unwrap_or(u32::MAX)),
            account: AtomicU32::new(NO_ACCOUNT),
            is_saved: AtomicBool::new(false),
            is_of_others: false,
        }
    }

    /// An entry that this process computed, in `own` time without nested runs.
    pub(crate) fn computed(
        record: Record,
        results: EntryResults,
        checked: u64,
        own: Duration,
    ) -> Self {
        Self {
            own_nanos: nanos(own),
            ..Self::of(record, results, checked)
        }
    }

    /// The entry by which memory knows that a run failed, valid for this epoch.
    pub(crate) fn failed(record: Record, failed: Failed, epoch: u64, own: Duration) -> Self {
        Self::computed(record, EntryResults::Failed(failed), epoch, own)
    }

    /// The entry of a record with these results. Its dependencies are checked before it is used.
    pub(crate) fn unchecked(record: Record, results: impl IntoIterator<Item = Named>) -> Self {
        Self::new(record, results, UNCHECKED)
    }

    /// This entry with another record and other results. Own time, uses, epoch and saved state stay.
    fn with(&self, record: Record, results: EntryResults) -> Self {
        // No file comes by a change, and looking for one encodes a value.
        let has_files = self.has_files && results.iter().any(Named::has_files);
        let checked = self.checked.load(Ordering::Acquire);
        Self {
            own_nanos: self.own_nanos,
            uses: AtomicU64::new(self.uses.load(Ordering::Relaxed)),
            is_saved: AtomicBool::new(self.is_saved()),
            is_of_others: self.is_of_others,
            ..Self::build(record, results, has_files, checked)
        }
    }

    /// The value of `result`, if that is the only result and is held.
    #[inline]
    pub(crate) fn only(&self) -> Option<&ErasedValue> {
        match &self.results {
            EntryResults::One(Named {
                content: Content::Held(value),
                ..
            }) if self.has_only => Some(value),
            _ => None,
        }
    }

    /// This entry with another record. That one's dependencies must have been current whenever this entry's were.
    pub(crate) fn with_record(&self, record: Record) -> Self {
        self.with(record, self.results.replacing(|_| None))
    }

    /// The whole record; without inputs once a store has them.
    pub(crate) fn full_record(&self) -> Record {
        Record {
            head: self.record.clone(),
            inputs: Arc::clone(&lock(&self.inputs)),
            failure: self.kept_failure().cloned(),
        }
    }

    /// Drops the inputs from memory: a store has them.
    pub(crate) fn forget_inputs(&self) {
        let inputs = std::mem::take(&mut *lock(&self.inputs));
        let bytes = size_of_summaries(&inputs) as u32;
        self.record_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Lets the owners of its files go: a store has the contents.
    pub(crate) fn release_files(&self) {
        if self.has_files {
            let files = self.results.iter().filter_map(|named| named.files().ok());
            files.flatten().for_each(|file| file.release());
        }
    }

    /// Whether it was checked in the epoch of a moment.
    pub(crate) fn is_checked(&self, moment: u64) -> bool {
        epoch_of(self.checked.load(Ordering::Acquire)) == epoch_of(moment)
    }

    pub(crate) fn is_whole_and_checked(&self, moment: u64) -> bool {
        self.deterministic && self.whole && self.is_checked(moment)
    }

    /// Whether a hit in the period of a moment needs no look-up and no note. Reads only the entry, so the caller may
    /// hold the map's guard.
    pub(crate) fn is_whole_and_used(&self, moment: u64) -> bool {
        self.deterministic && self.whole && self.checked.load(Ordering::Acquire) == moment
    }

    /// Notes a use; says whether it is the first of its period.
    pub(crate) fn first_use(&self, moment: u64) -> bool {
        let before = self.checked.load(Ordering::Acquire);
        if epoch_of(before) == epoch_of(moment) {
            self.checked.store(moment, Ordering::Release);
        }
        before != moment
    }

    pub(crate) fn set_checked(&self, epoch: u64) {
        self.checked.store(epoch, Ordering::Release);
    }

    /// Nanoseconds to compute it, with nested runs.
    #[inline]
    pub(crate) fn nanos(&self) -> u64 {
        nanos(self.record.took)
    }

    pub(crate) fn is_saved(&self) -> bool {
        self.is_saved.load(Ordering::Relaxed)
    }

    /// Nanoseconds to compute again the evicted entries that it depends on, as far as they were looked for.
    pub(crate) fn dependencies_nanos(&self) -> u64 {
        self.dependencies_nanos.load(Ordering::Relaxed)
    }

    /// Sets [`dependencies_nanos`](Self::dependencies_nanos); says whether the new value is greater.
    pub(crate) fn set_dependencies_nanos(&self, nanos: u64) -> bool {
        self.dependencies_nanos.swap(nanos, Ordering::Relaxed) < nanos
    }

    pub(crate) fn set_saved(&self, is_saved: bool) {
        self.is_saved.store(is_saved, Ordering::Relaxed);
    }

    /// Bytes of its values. A stored value that was not read counts as if it was. The first call asks the values, which
    /// runs user code: never call it with a lock held.
    pub(crate) fn bytes(&self) -> usize {
        let known = self.bytes.load(Ordering::Relaxed);
        if known != NOT_MEASURED {
            return known;
        }
        // Measuring runs user code, which may ask for this size: the size noted first stands.
        let bytes = self.results.bytes().min(NOT_MEASURED - 1);
        let relaxed = Ordering::Relaxed;
        let noted = self
            .bytes
            .compare_exchange(NOT_MEASURED, bytes, relaxed, relaxed);
        noted.err().unwrap_or(bytes)
    }

    /// Bytes of its values if [`bytes`](Self::bytes) was called before, else 0.
    pub(crate) fn known_bytes(&self) -> usize {
        match self.bytes.load(Ordering::Relaxed) {
            NOT_MEASURED => 0,
            bytes => bytes,
        }
    }

    pub(crate) fn record_memory(&self) -> u32 {
        self.record_bytes.load(Ordering::Relaxed)
    }

    /// About how many bytes the entry takes, without values that were not measured.
    pub(crate) fn known_memory(&self) -> usize {
        self.known_bytes()
            .saturating_add(self.record_memory() as usize)
    }

    /// Whether it holds values, or stored values to be read.
    pub(crate) fn holds_values(&self) -> bool {
        self.results.iter().any(Named::is_held)
    }

    /// Whether any of its results is meant for a store.
    pub(crate) fn is_ever_saved(&self) -> bool {
        self.results.iter().any(Named::is_ever_saved)
    }

    /// Whether a store can give back all values that it holds.
    pub(crate) fn is_read_back(&self) -> bool {
        let is_lost = |named: &Named| named.is_held() && !named.is_ever_saved();
        self.is_saved() && !self.results.iter().any(is_lost)
    }

    /// The map for a caller who asks for the named results, or for all that are neither `no_cache` nor `expendable`.
    /// The error names a result that is gone.
    ///
    /// Named results are read from the store: a damaged one must be a miss, not an error for its caller. An entry with
    /// results of which none is left serves nobody.
    ///
    /// The check looks at the map that is given: a value that only callers hold may go between a look and a second
    /// upgrade.
    pub(crate) fn serve(self: &Arc<Self>, names: Option<&[&str]>) -> Result<ResultMap, String> {
        let given = self.upgraded();
        if let Some(why) = self.lacking(given.as_ref().unwrap_or(&self.results), names) {
            return Err(why);
        }
        let entry = given.map_or_else(|| Arc::clone(self), |given| self.giving(given));
        Ok(ResultMap::of(entry))
    }

    /// This entry, or one in no cache that holds the values that only others held so far.
    pub(crate) fn holding(self: &Arc<Self>) -> Arc<Self> {
        let given = self.upgraded();
        given.map_or_else(|| Arc::clone(self), |given| self.giving(given))
    }

    /// An entry like this one that is in no cache, with these results.
    pub(crate) fn giving(&self, results: EntryResults) -> Arc<Self> {
        let given = Self::build(self.full_record(), results, self.has_files, UNCHECKED);
        Arc::new(Self {
            is_of_others: self.is_of_others,
            ..given
        })
    }

    /// Whether a caller without names would be served. Takes no reference to a value: it is called with the map locked.
    pub(crate) fn serves_all(&self) -> bool {
        self.refusal(None).is_none()
    }

    /// The reason that a caller would not be served.
    pub(crate) fn refusal(&self, names: Option<&[&str]>) -> Option<String> {
        self.lacking(&self.results, names)
    }

    fn lacking(&self, given: &EntryResults, names: Option<&[&str]>) -> Option<String> {
        match names {
            Some(names) => {
                let can_give = |name| {
                    given
                        .find(name)
                        .is_some_and(|named| named.content.can_give())
                };
                let lacking = names.iter().find(|name| !can_give(name))?;
                Some(format!(
                    "result \"{}\" is gone",
                    crate::error::printable(lacking)
                ))
            }
            None if self.whole => None,
            None => {
                let results = given;
                let needed = |named: &&Named| named.tags.is_needed();
                if let Some(lacking) = results
                    .iter()
                    .filter(needed)
                    .find(|named| !named.content.is_there())
                {
                    return Some(format!("result \"{}\" is gone", lacking.name));
                }
                let none_there = !results.iter().any(|named| named.content.is_there());
                none_there.then(|| "none of its results is kept".to_owned())
            }
        }
    }

    /// The results, holding the values that only callers held so far, if there are any.
    fn upgraded(&self) -> Option<EntryResults> {
        let elsewhere = |named: &Named| matches!(named.content, Content::Weak(_));
        let has_any = !self.whole && self.results.iter().any(elsewhere);
        has_any.then(|| {
            self.results.replacing(|named| match &named.content {
                Content::Weak(weak) => Some(match weak.upgrade() {
                    Some(value) => Content::Held(value),
                    None => Content::Gone(why_let_go(named.tags)),
                }),
                _ => None,
            })
        })
    }

    /// Time that reading its values took, and their bytes in the store.
    pub(crate) fn read_time(&self) -> (Duration, usize) {
        let stored = self
            .results
            .iter()
            .filter_map(|named| match &named.content {
                Content::Stored(stored) => Some((stored.took()?, stored.bytes())),
                _ => None,
            });
        stored.fold(Default::default(), |(time, bytes), (took, of)| {
            (time + took, bytes + of)
        })
    }

    /// This entry with its values as they are now, if that has changed. Values that were read are held like computed
    /// ones. References to values that are gone are dropped, since a reference keeps the value's block allocated.
    pub(crate) fn with_values_as_they_are(&self) -> Option<Self> {
        let results = &self.results;
        let now = |named: &Named| match &named.content {
            Content::Stored(stored) if !self.has_files => stored.if_read().map(Content::Held),
            _ => named
                .is_lost()
                .then(|| Content::Gone(why_let_go(named.tags))),
        };
        if self.whole || !results.iter().any(|named| now(named).is_some()) {
            return None;
        }
        Some(self.with(self.full_record(), self.results.replacing(now)))
    }

    /// Whether a value may be read from a store later, or let go by the program.
    pub(crate) fn values_may_change(&self) -> bool {
        let may_change = |named: &Named| match &named.content {
            Content::Stored(stored) => !self.has_files && !stored.is_damaged(),
            Content::Weak(_) => true,
            Content::Held(_) | Content::Gone(_) => false,
        };
        self.results.iter().any(may_change)
    }

    /// Whether it has references to values that only the program holds.
    pub(crate) fn has_references(&self) -> bool {
        let is_reference =
            |named: &Named| matches!(&named.content, Content::Weak(weak) if weak.is_there());
        self.results.iter().any(is_reference)
    }

    /// This entry with references in place of the values for which `leaves` holds.
    pub(crate) fn downgraded(&self, leaves: impl Fn(&Named) -> bool) -> Self {
        let downgraded = |named: &Named| leaves(named).then(|| named.content.downgraded());
        self.with(self.full_record(), self.results.replacing(downgraded))
    }

    /// This entry without the values for which `drop` holds.
    pub(crate) fn without(&self, drop: impl Fn(&Named) -> bool, why: &'static str) -> Self {
        let is_dropped = |named: &Named| drop(named) && named.content.is_there();
        let gone = |named: &Named| is_dropped(named).then_some(Content::Gone(why));
        self.with(self.full_record(), self.results.replacing(gone))
    }
}

/// An entry that may be used, and the map that it gives to one caller. The map travels with the entry: a value that
/// nobody else holds would be gone at a second look.
pub(crate) struct Served {
    pub(crate) entry: Arc<Entry>,
    pub(crate) map: ResultMap,
}

impl Served {
    /// An entry that gives what it has.
    pub(crate) fn whole(entry: Arc<Entry>) -> Self {
        Self {
            map: ResultMap::of(Arc::clone(&entry)),
            entry,
        }
    }

    /// The answer to a caller that published this entry: the winner in its place, if that has the results asked for,
    /// else its own.
    pub(crate) fn or_winner(self, winner: &Arc<Entry>, names: Option<&[&str]>) -> Self {
        if Arc::ptr_eq(&self.entry, winner) {
            return self;
        }
        match winner.serve(names) {
            Ok(map) => Self {
                entry: Arc::clone(winner),
                map,
            },
            Err(_) => self,
        }
    }
}

#[inline]
pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn size_of_summaries(inputs: &[ValueSummary]) -> usize {
    let owned = inputs.iter().map(ValueSummary::owned);
    size_of_val(inputs) + owned.sum::<usize>()
}
