//! Looking up: the part of a call that a hit takes.

use std::sync::{Arc, Weak};

use super::Engine;
use super::handle::{CalledApp, Options, Policy};
use super::run_state::Keyed;
use crate::app::Frame;
use crate::cache::{AppCache, Count};
use crate::entry::{Entry, Served};
use crate::event::Source;
use crate::inputs::Call;
use crate::key::{FingerprintError, Key, keyed, with_encoder};
use crate::output_file::{Content, OutputFile};
use crate::result_map::{ErasedValue, Named, ResultMap, WeakValue};

/// The outcome of looking up the encoded inputs.
pub(super) enum Looked {
    /// The call took its results, and all that follows a hit is done.
    Taken,
    /// An entry that could not be served with the map's guard held, and its results.
    Found(Box<Served>),
    Absent(Box<Keyed>),
}

/// A look-up, and the run that asks.
pub(super) struct Look<'a> {
    pub(super) call: &'a dyn Call,
    pub(super) app: &'a CalledApp<'a>,
    pub(super) cache: &'a AppCache,
    pub(super) options: &'a Options<'a>,
    /// The run that asks, which notes what it depends on.
    pub(super) parent: Option<&'a Frame>,
}

/// The part of a hit that is done once the map's guard is free again.
struct Taken {
    /// The time it saved.
    nanos: u64,
    /// The entry, if it is needed after.
    entry: Option<Arc<Entry>>,
}

impl Engine {
    /// Encodes the inputs, into a buffer that is used again if the call has not kept them
    /// encoded, and looks for a remembered entry.
    #[inline]
    pub(super) fn look(&self, look: &Look<'_>) -> Result<Looked, FingerprintError> {
        if let Some(kept) = look.call.encoded() {
            return Ok(self.look_for(look, kept));
        }
        // The closure is moved now and then, so it captures only two words.
        with_encoder(|to| {
            look.call.encode(to)?;
            let mut looked = self.look_for(look, to.finish()?);
            if let Looked::Absent(absent) = &mut looked {
                absent.volatile = to.take_volatile();
            }
            Ok(looked)
        })
    }

    /// Looks on both levels of the cache: first at the thread's recent hits, with a quick hash and
    /// without a lock, then in the map.
    #[inline]
    fn look_for(&self, look: &Look<'_>, encoded: &[u8]) -> Looked {
        let id = &look.app.resolved.id;
        if !look.may_hit() {
            return look.absent(keyed(&id.0, encoded), encoded);
        }
        let moment = self.moment();
        let keep = look.parent.is_some() || self.hears_hits;
        let recent = |hit: &RecentHit| look.take_recent(hit, keep);
        let place = match self.recent.look(id.as_bytes(), encoded, moment, recent) {
            Ok(taken) => {
                self.taken(look, taken, Count::Recent);
                return Looked::Taken;
            }
            Err(place) => place,
        };
        let key = keyed(&id.0, encoded);
        let none_invalid = !self.invalidations.any();
        let offer = |entry: &Arc<Entry>| {
            let hit = || RecentHit::of(entry);
            self.recent
                .offer(place, id.as_bytes(), encoded, moment, hit)
        };
        let found = look.cache.look_ready(&key, |entry| {
            let current = none_invalid && entry.is_whole_and_used(moment);
            let taken = current.then(|| look.take(entry, keep)).flatten();
            taken
                .inspect(|_| _ = offer(entry))
                .ok_or_else(|| Arc::clone(entry))
        });
        match found {
            Some(Ok(taken)) => {
                self.taken(look, taken, Count::Map);
                Looked::Taken
            }
            Some(Err(entry)) => match self.serve(&entry, look.options.names) {
                Ok(map) => {
                    let entry = look.cache.update_values(entry);
                    if entry.is_whole_and_checked(moment) {
                        offer(&entry);
                    }
                    Looked::Found(Box::new(Served { entry, map }))
                }
                Err(_) => look.absent(key, encoded),
            },
            None => look.absent(key, encoded),
        }
    }

    /// Counts and tells a hit whose values the call has taken, at the level of the cache that `kind` names.
    #[inline]
    fn taken(&self, look: &Look<'_>, taken: Taken, kind: Count) {
        look.cache.counters.hit(kind, taken.nanos);
        if let Some(entry) = &taken.entry {
            if let Some(parent) = look.parent {
                self.tell_parent(parent, look.app, entry);
            }
            self.tell_finished(entry, Source::Memory);
        }
    }

    /// The values that an entry gives for these names, or why it may not be used. Output files that were deleted or
    /// changed are put back.
    pub(crate) fn serve(
        &self,
        entry: &Arc<Entry>,
        names: Option<&[&str]>,
    ) -> Result<ResultMap, String> {
        // Before values are read.
        if let Some(why) = self.outdated(entry) {
            return Err(why);
        }
        let map = entry.serve(names)?;
        let ensure = match entry.is_of_others {
            true => OutputFile::is_in_place,
            false => OutputFile::ensure,
        };
        self.with_files(entry, names, ensure)?;
        Ok(map)
    }

    /// Why an entry may not be used, whatever is left of its values.
    pub(super) fn outdated(&self, entry: &Entry) -> Option<String> {
        if entry.record.nondeterministic {
            return Some("it is non-deterministic".to_owned());
        }
        self.invalid(&entry.record).or_else(|| self.stale(entry))
    }

    /// Like [`serve`](Self::serve), with the entry.
    pub(super) fn served(
        &self,
        entry: &Arc<Entry>,
        names: Option<&[&str]>,
    ) -> Result<Served, String> {
        let map = self.serve(entry, names)?;
        let entry = Arc::clone(entry);
        Ok(Served { entry, map })
    }

    /// Why an entry may not be used; `None` if it may. Nothing is put back.
    pub(crate) fn refusal(&self, entry: &Entry, names: Option<&[&str]>) -> Option<String> {
        let refused = self.outdated(entry).or_else(|| entry.refusal(names));
        let check = match entry.is_of_others {
            true => OutputFile::is_in_place,
            false => OutputFile::check,
        };
        refused.or_else(|| self.with_files(entry, names, check).err())
    }

    /// Does something with each output file of the named results, or of all; gives the first error.
    fn with_files(
        &self,
        entry: &Entry,
        names: Option<&[&str]>,
        each: impl Fn(&OutputFile, &Content<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        if !entry.has_files {
            return Ok(());
        }
        let is_wanted = |named: &&Named| names.is_none_or(|names| names.contains(&&*named.name));
        for named in entry.results.iter().filter(is_wanted) {
            for file in named.files()? {
                each(&file, &|asked| self.stored_content(&file.digest(), asked))?;
            }
        }
        Ok(())
    }
}

impl Look<'_> {
    #[inline]
    fn may_hit(&self) -> bool {
        !self.app.resolved.nondeterministic
            && matches!(self.options.policy, Policy::Use | Policy::OnlyIfRemembered)
    }

    #[cold]
    fn absent(&self, key: Key, encoded: &[u8]) -> Looked {
        Looked::Absent(Box::new(Keyed {
            key,
            encoded: encoded.into(),
            volatile: None,
        }))
    }

    /// Has the call take its results from a whole entry. It shares values and
    /// does nothing else, since it runs with the map's guard held.
    #[inline]
    fn take(&self, entry: &Arc<Entry>, keep: bool) -> Option<Taken> {
        let one = || entry.only().cloned();
        let all = || Some(ResultMap::of(Arc::clone(entry)));
        self.cache.used(entry);
        self.take_from(one, all).then(|| Taken {
            nanos: entry.nanos(),
            entry: keep.then(|| Arc::clone(entry)),
        })
    }

    /// Like [`take`](Self::take), but values and entry may be gone since they were found before.
    #[inline]
    fn take_recent(&self, hit: &RecentHit, keep: bool) -> Option<Taken> {
        let entry = if keep || self.cache.counted.is_some() {
            Some(hit.entry.upgrade()?)
        } else {
            None
        };
        if let Some(entry) = &entry {
            self.cache.used(entry);
        }
        let one = || hit.only.as_ref().and_then(WeakValue::upgrade);
        let all = || hit.entry.upgrade().map(ResultMap::of);
        let is_taken = self.take_from(one, all);
        is_taken.then_some(Taken {
            nanos: hit.nanos,
            entry,
        })
    }

    #[inline]
    fn take_from(
        &self,
        one: impl FnOnce() -> Option<ErasedValue>,
        all: impl FnOnce() -> Option<ResultMap>,
    ) -> bool {
        let Some(names) = self.options.names else {
            return all().is_some_and(|all| self.call.take_all(all));
        };
        let has_names = |all: &ResultMap| names.iter().all(|name| all.can_give(name));
        one().is_some_and(|one| self.call.take_one(one))
            || all()
                .filter(has_names)
                .is_some_and(|all| self.call.take_all(all))
    }
}

/// Weak references to a whole entry and its values.
pub(super) struct RecentHit {
    only: Option<WeakValue>,
    entry: Weak<Entry>,
    /// The time it saves.
    nanos: u64,
}

/// A weak reference keeps a value's own block allocated, though not what its fields own. Values with larger blocks are
/// left to the map.
const MAX_BLOCK: usize = 256;

impl RecentHit {
    /// The hit, and how many bytes its weak references may keep allocated.
    fn of(entry: &Arc<Entry>) -> (Self, usize) {
        let only = entry.only().filter(|value| value.block_size() <= MAX_BLOCK);
        let blocks = size_of::<Entry>() + only.map_or(0, ErasedValue::block_size);
        let hit = Self {
            only: only.map(ErasedValue::downgrade),
            entry: Arc::downgrade(entry),
            nanos: entry.nanos(),
        };
        (hit, blocks)
    }
}
