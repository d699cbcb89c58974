//! Keeping remembered entries within their budget.
//!
//! A call that remembers an entry and finds the budget exceeded makes room, with nothing locked. It takes victims off
//! the list of counted entries, has those saved that are to be, and downgrades each that may leave: references take the
//! place of its values. An entry leaves whole if nothing else holds a value of it, unless its record is to stay. The
//! other victims are listed again.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Engine;
use super::stats::bytes;
use crate::cache::eviction::Uses;
use crate::cache::{AccountState, AppCache, Listed, Memory};
use crate::checkpoint::{SavePolicy, Selection};
use crate::entry::{Entry, RecordHead};
use crate::error::printable;
use crate::event::Event;
use crate::key::Key;
use crate::ranks::ProcessSet;
use crate::result_map::{Content, EVICTED, Named};
use crate::sync::lock;

impl Engine {
    /// Warns of each budget that was set for no app that this program has shown: the name may be misspelt.
    pub(super) fn warn_of_budgets_without_effect(&self) {
        for app in self.caches.budgets.keys() {
            if let Err(error) = self.must_know(app) {
                self.warn(|| {
                    format!(
                        "the memory budget of \"{}\" had no effect: {error:#}",
                        printable(app)
                    )
                });
            }
        }
    }

    /// Makes room if the entries that count with this cache take too much.
    pub(super) fn keep_within_budget(&self, cache: &AppCache) {
        let Some((memory, _)) = &cache.counted else {
            return;
        };
        for (app, entry) in memory.watched() {
            if let Some(cache) = self.caches.at(app) {
                cache.update_values(entry);
            }
        }
        if memory.is_over() {
            self.evict_over_budget(memory);
        }
    }

    #[cold]
    fn evict_over_budget(&self, memory: &Memory) {
        let rule = Rule::of(Some(memory));
        loop {
            let victims = memory.take();
            if victims.is_empty() {
                break;
            }
            let victim = |(app, entry): Listed| Some(Victim::of(self.caches.at(app)?, entry));
            let victims: Vec<_> = victims.into_iter().filter_map(victim).collect();
            self.save_before_dropping(victims.iter().filter_map(Victim::key));
            for victim in victims {
                self.evict(victim, rule);
            }
        }
        self.warn_of_what_cant_leave(memory);
    }

    /// Drops entries that all ranks of a set drop now, also those in use here: the other ranks hold their parts no
    /// more.
    pub(crate) fn evict_collective(
        &self,
        set: &ProcessSet,
        leave: Vec<(Arc<AppCache>, Arc<Entry>)>,
    ) {
        if leave.is_empty() {
            return;
        }
        self.save_before_dropping(leave.iter().map(|(_, entry)| entry.record.key));
        for (cache, entry) in leave {
            let memory = cache.counted.as_ref().map(|(memory, _)| &**memory);
            let mut rule = Rule::of(memory);
            rule.on_all_ranks = true;
            if !self.evict(Victim::of(&cache, Arc::clone(&entry)), rule) {
                set.note_not_evicted(cache, &entry);
            }
        }
    }

    /// Evicts values of an app until the others take so many bytes; gives how many bytes were let go.
    pub(super) fn evict_down_to(&self, app: &str, keep: usize) -> usize {
        let alone = self.caches.named(app).cloned();
        let caches: Vec<_> = alone.into_iter().chain(self.sets.caches(app)).collect();
        caches
            .iter()
            .map(|cache| self.evict_from(cache, keep))
            .sum()
    }

    fn evict_from(&self, cache: &AppCache, keep: usize) -> usize {
        let mut entries = cache.entries();
        // The sort reads each use once: entries may be used meanwhile.
        entries.sort_by_cached_key(|entry| (Uses::of(&entry.uses).last(), entry.record.made_at));
        let mut left = entries
            .iter()
            .map(|entry| entry.bytes())
            .fold(0, usize::saturating_add);
        let rule = Rule::of(None);
        let mut let_go = 0_usize;
        for entry in entries {
            if left <= keep {
                break;
            }
            self.save_before_dropping([entry.record.key].into_iter());
            let (key, bytes) = (entry.record.key, entry.bytes());
            // What the program holds too is not let go yet.
            let is_held = || cache.entry(&key).is_some_and(|left| left.has_references());
            if self.evict(Victim::of(cache, entry), rule) && !is_held() {
                left = left.saturating_sub(bytes);
                let_go = let_go.saturating_add(bytes);
            }
        }
        let_go
    }

    /// Has the values of an entry leave its cache, and the entry if nothing is left of it. Says whether they left.
    fn evict(&self, mut victim: Victim<'_>, rule: Rule) -> bool {
        let cache = victim.cache;
        let Some(entry) = &victim.entry else {
            return false;
        };
        let (after, keeps_record) = match self.downgrade(cache, entry, rule) {
            Ok(downgraded) => downgraded,
            Err(stays) => {
                victim.state = stays;
                return false;
            }
        };
        // The values that nothing else holds are dropped here.
        drop(victim.entry.take());
        if !keeps_record && !after.has_references() {
            cache.replace_unless_flying(&after, None);
        } else {
            // A reference keeps the block of its value allocated.
            cache.update_values(after);
        }
        true
    }

    /// Puts references in the place of an entry's values, or gives what it is listed as if they stay. Gives the entry
    /// with the references, and whether its record is to stay in memory.
    fn downgrade(
        &self,
        cache: &AppCache,
        entry: &Arc<Entry>,
        rule: Rule,
    ) -> Result<(Arc<Entry>, bool), AccountState> {
        let fate = self.fate(entry, rule);
        let leaves = |named: &Named| !fate.keeps_values || !named.is_ever_saved();
        let mut results = entry.results.iter();
        if fate.keeps_record && !results.any(|named| named.is_held() && leaves(named)) {
            return Err(AccountState::Kept);
        }
        // It may cost more than was known.
        if !entry.is_read_back() && entry.set_dependencies_nanos(self.dependencies_nanos(entry)) {
            return Err(AccountState::MayLeave);
        }
        let cost = cache.cost(entry);
        let after = Arc::new(match rule.on_all_ranks {
            // The other ranks hold their parts no more.
            true => entry.without(leaves, EVICTED),
            false => entry.downgraded(leaves),
        });
        let bytes = entry.bytes().saturating_sub(after.bytes());
        // A failure has no values to be referred to.
        let stands = entry.failure().is_none().then(|| Arc::clone(&after));
        if !cache.replace_unless_flying(entry, stands) {
            return Err(AccountState::Kept);
        }
        if fate.is_never_saved {
            self.forget_pending(entry);
        }
        if !fate.keeps_record && entry.failure().is_none() {
            self.note_forgotten(&entry.record);
        }
        // Of values that the program held when they left it was told then.
        let has_left = |named: &Named| match named.content {
            Content::Weak(_) => named.tags.is_cached(),
            Content::Gone(why) => why == EVICTED,
            Content::Held(_) | Content::Stored(_) => false,
        };
        if entry.holds_values() || !entry.results.iter().any(has_left) {
            cache.counters.evicted(bytes, cost);
            self.tell(|| Event::Evicted {
                app: Arc::clone(&entry.record.app),
                key: entry.record.key,
                bytes,
                cost: Duration::from_nanos(cost),
            });
        }
        Ok((after, fate.keeps_record))
    }

    /// What may leave of an entry, by what is pending and what the store has.
    fn fate(&self, entry: &Entry, rule: Rule) -> Fate {
        let keys = self.saved_under([entry.record.key].into_iter());
        let is_pending = keys.iter().any(|key| self.pending.has(key));
        let is_saved_later = is_pending && self.policy != SavePolicy::Never;
        // A pending part is not looked for: the store may already have the list of parts.
        let is_ever_saved = entry.is_ever_saved();
        let is_looked_for = !is_pending && (is_ever_saved || entry.record.anew);
        let is_stored = is_looked_for && self.is_stored(entry);
        entry.set_saved(is_stored);
        let is_only_here = !is_stored && is_ever_saved;
        let keeps_values = is_only_here && (rule.only_saved || is_saved_later);
        // The store may still have the entry that a refreshed one replaced.
        let is_anew = !is_stored && entry.record.anew;
        Fate {
            keeps_values,
            keeps_record: keeps_values || is_only_here && rule.keeps_records || is_anew,
            is_never_saved: is_pending && !is_saved_later && !keeps_values,
        }
    }

    /// Takes an evicted entry that is never to be saved off the pending ones.
    fn forget_pending(&self, entry: &Entry) {
        let keys = self.saved_under([entry.record.key].into_iter());
        for selection in Selection::BOTH {
            let pending = self.pending.of(selection, &keys);
            let same = pending
                .iter()
                .filter(|one| one.record.run == entry.record.run);
            self.pending
                .forget(same.map(|one| (std::slice::from_ref(&selection), one)));
        }
    }

    /// Notes the apps of a forgotten record: their works are to be cited all the same.
    fn note_forgotten(&self, record: &RecordHead) {
        lock(&self.forgotten).extend(record.apps());
    }

    /// Whether the store has the record of an entry, and each held value that is ever saved.
    fn is_stored(&self, entry: &Entry) -> bool {
        let found = self
            .archiver()
            .map(|archiver| archiver.look(&entry.record.key));
        let Some(Ok(Some(stored))) = found else {
            return false;
        };
        let is_there = |named: &Named| {
            let mut results = stored.results.iter();
            results.any(|result| result.name == named.name && result.payload.is_some())
        };
        let results = entry.results.iter();
        let mut saved = results.filter(|named| named.is_held() && named.is_ever_saved());
        stored.record.gives_the_same(&entry.record) && saved.all(is_there)
    }

    /// Notes that an entry is saved: it costs less to have again.
    pub(super) fn count_as_saved(&self, record: &RecordHead) {
        if let Some(cache) = self.caches.named(&record.app)
            && cache.counted.is_some()
            && let Some(entry) = cache.entry(&record.key)
            && entry.record.run == record.run
        {
            entry.set_saved(true);
            cache.count_as_saved(&entry);
        }
    }

    /// The time, in nanoseconds, to compute again the unsaved and evicted entries that an entry was computed from.
    fn dependencies_nanos(&self, entry: &Entry) -> u64 {
        let mut sum = 0_u64;
        let mut seen = HashSet::new();
        let mut next = entry.record.calls.to_vec();
        while let Some((app, key)) = next.pop()
            && seen.len() < MOST_DEPENDENCIES
        {
            let callee = self.caches.named(&app).and_then(|cache| cache.entry(&key));
            if let Some(callee) = callee
                && seen.insert(key)
                && !callee.is_saved()
                && !callee.serves_all()
            {
                sum = sum.saturating_add(callee.own_nanos);
                next.extend(callee.record.calls.iter().cloned());
            }
        }
        sum
    }

    /// Warns, once, if entries that can't leave exceed the budget.
    fn warn_of_what_cant_leave(&self, memory: &Memory) {
        let used = memory.usage();
        // A budget of 0 wants nothing but records.
        let is_much = used.kept_bytes > used.limit && used.limit > 0;
        if !is_much || memory.has_warned.swap(true, Ordering::Relaxed) {
            return;
        }
        self.warn(|| {
            let what_to_do = match (memory.budget.only_saved, self.archiver()) {
                (false, _) => {
                    "records stay where no store has them: see `MemoryBudget::forget_records`"
                }
                (true, Some(_)) => {
                    "what is to be saved stays until the store has it, unless a `memory_budget` is given in bytes"
                }
                (true, None) => {
                    "without a store only what is `expendable` leaves; give one, or a `memory_budget` in bytes"
                }
            };
            format!(
                "of what is remembered {} can't leave memory, more than the budget of {}: {what_to_do}",
                bytes(used.kept_bytes),
                bytes(used.limit)
            )
        });
    }
}

/// An entry that is to leave its cache. It is listed again unless it is taken out: if a store, or the destructor of a
/// victim before it, panics, too.
struct Victim<'a> {
    cache: &'a AppCache,
    entry: Option<Arc<Entry>>,
    /// What it is listed as.
    state: AccountState,
}

impl<'a> Victim<'a> {
    fn of(cache: &'a AppCache, entry: Arc<Entry>) -> Self {
        Self {
            cache,
            entry: Some(entry),
            state: AccountState::MayLeave,
        }
    }

    fn key(&self) -> Option<Key> {
        Some(self.entry.as_ref()?.record.key)
    }
}

impl Drop for Victim<'_> {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take() {
            self.cache.count_again(&entry, self.state);
        }
    }
}

/// What stays of a victim.
struct Fate {
    /// The values that are to be saved.
    keeps_values: bool,
    keeps_record: bool,
    /// Whether it is taken off the pending entries.
    is_never_saved: bool,
}

/// Which entries may leave, and how.
#[derive(Clone, Copy)]
struct Rule {
    only_saved: bool,
    keeps_records: bool,
    /// All ranks drop the values now, also those in use here.
    on_all_ranks: bool,
}

impl Rule {
    /// That of a budget, or of no budget.
    fn of(memory: Option<&Memory>) -> Self {
        let budget = memory.map(|memory| &memory.budget);
        Self {
            only_saved: budget.is_some_and(|budget| budget.only_saved),
            keeps_records: budget.is_none_or(|budget| !budget.forgets_records),
            on_all_ranks: false,
        }
    }
}

/// How many callees are looked at for the cost of one entry.
const MOST_DEPENDENCIES: usize = 1000;
