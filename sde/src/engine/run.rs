//! Looking up: the part of `run` that a hit takes.

use std::cell::Cell;
use std::sync::Arc;
use std::time::SystemTime;

use super::{Engine, Node};
use crate::app::{Beneath, Callee, Frame, Handle, Options, Outcome, Place, Policy, Subject};
use crate::cache::{AppCache, Count, Entry};
use crate::error::{Error, ErrorKind};
use crate::event::{Event, Source};
use crate::inputs::Call;
use crate::key::{FingerprintError, Key, Volatile, keyed, with_encoder};
use crate::result_map::ResultMap;

/// One call, on its way through the engine.
pub(crate) struct Run<'a> {
    pub(crate) from: &'a Handle,
    /// The run that this one is called by, which notes what it depends on.
    pub(crate) parent: Option<Arc<Frame>>,
    /// The run that can't end before this one has: the parent, or one of another
    /// engine, in which a body captured this one.
    pub(crate) above: Option<Arc<Frame>>,
    pub(crate) subject: &'a Subject<'a>,
    pub(crate) cache: &'a Arc<AppCache>,
    pub(crate) options: &'a Options<'a>,
    pub(crate) key: Key,
    /// What was hashed; the arguments themselves are gone once the body has run.
    pub(crate) encoded: Box<[u8]>,
    /// The files that were hashed, which may change while the body runs.
    pub(crate) volatile: Option<Box<Volatile>>,
    /// When the computation was made that was found in the store, whether it serves or not.
    pub(crate) found: Cell<Option<SystemTime>>,
    /// Whether that had been made in place of another: what is made in its place is so too.
    pub(crate) found_anew: Cell<bool>,
}

/// An entry that may be used, and the map that it gives to one caller. The two go together
/// from the look that found everything there to the caller: what nobody else holds would
/// be gone when asked for again.
pub(crate) struct Served {
    pub(crate) entry: Arc<Entry>,
    pub(crate) map: ResultMap,
}

/// What looking at the encoded inputs gave.
enum Looked {
    /// The call took what it wanted, and all that follows a hit is done.
    Taken,
    /// An entry that needs a closer look than the map's guard allows, and what it gives.
    Serves(Box<Served>),
    Absent(Box<Absent>),
}

/// A key under which nothing is, and what was hashed for it.
struct Absent {
    key: Key,
    encoded: Box<[u8]>,
    volatile: Option<Box<Volatile>>,
}

impl Run<'_> {
    /// Whether it is this run that goes on there.
    pub(super) fn is(&self, frame: &Frame) -> bool {
        frame.key == self.key && frame.engine == self.from.engine()
    }

    /// A run of this app as the waits know it.
    pub(super) fn node(&self, key: Key) -> Node {
        Node {
            engine: self.from.engine(),
            key,
            app: Arc::clone(&self.subject.facts.name),
        }
    }
}

impl Engine {
    /// `run`, whoever calls it. `None` if the call has taken what its caller gets.
    pub(super) fn enter(
        &self,
        from: &Handle,
        subject: &Subject<'_>,
        call: &mut dyn Call,
        options: &Options<'_>,
    ) -> Result<Option<Outcome>, Error> {
        from.check_active()?;
        let facts = subject.facts;
        if facts.missing.is_empty() {
            self.freeze(subject);
        }
        if facts.info.distributed {
            let doing = || format!("runs {}", facts.name);
            if let Some(ranks) = from.collective_ranks(doing)? {
                let _beneath = Beneath::begin();
                let outcome = self.run_collective(from, ranks, subject, call, options);
                return outcome.map(Some);
            }
        }
        let cache = self.cache_of(facts);
        let parent = from.caller();
        let look = Look {
            call,
            subject,
            cache,
            options,
            parent: parent.as_deref(),
        };
        // What the closure holds is moved now and then, so it holds two words.
        match encoded(look.call, |bytes| self.look(&look, bytes)) {
            Ok(Looked::Taken) => Ok(None),
            Ok(Looked::Serves(served)) => {
                look.tell_parent(self, &served.entry);
                Ok(Some(self.hit(cache, *served, Source::Map)))
            }
            Ok(Looked::Absent(absent)) => {
                let Absent {
                    key,
                    encoded,
                    volatile,
                } = *absent;
                let run = Run {
                    from,
                    above: parent.clone().or_else(Place::caller),
                    parent,
                    subject,
                    cache,
                    options,
                    key,
                    encoded,
                    volatile,
                    found: Cell::new(None),
                    found_anew: Cell::new(false),
                };
                let _beneath = Beneath::begin();
                self.miss(&run, call).map(Some)
            }
            Err(source) => {
                // The caller may go on without; a file that is missing may be there
                // next time.
                if let Some(parent) = &parent {
                    parent.depends(itself(subject), true);
                }
                let app = Arc::clone(&facts.name);
                Err(ErrorKind::Fingerprint { app, source }.into())
            }
        }
    }

    /// The two levels of the cache.
    #[inline]
    fn look(&self, look: &Look<'_>, encoded: &[u8]) -> Looked {
        let (id, recent) = (&look.subject.facts.id, &look.cache.recent);
        if !look.may_hit() {
            return look.absent(keyed(&id.0, encoded), encoded);
        }
        let epoch = self.epoch();
        let keep = look.parent.is_some() || self.hears_hits;
        let last = recent.look(id.as_bytes(), encoded, epoch, |entry| {
            look.take(entry, Source::LastValue, keep)
        });
        if let Some(Some(taken)) = last {
            self.taken(look, taken, Source::LastValue);
            return Looked::Taken;
        }
        let key = keyed(&id.0, encoded);
        let again = recent.seen_again(tag(&key));
        let unmarked = !self.marks.any();
        let found = look.cache.look_ready(&key, |entry| {
            let current = unmarked && entry.is_whole_and_checked(epoch);
            let taken = current.then(|| look.take(entry, Source::Map, keep || again));
            taken.flatten().ok_or_else(|| Arc::clone(entry))
        });
        match found {
            Some(Ok(taken)) => {
                if let (true, Some(entry)) = (again, &taken.entry) {
                    recent.put(id.as_bytes(), encoded, epoch, Arc::clone(entry));
                }
                self.taken(look, taken, Source::Map);
                Looked::Taken
            }
            Some(Err(entry)) => match self.serve(&entry, look.options.names) {
                Ok(map) => {
                    if again && entry.is_whole_and_checked(epoch) {
                        recent.put(id.as_bytes(), encoded, epoch, Arc::clone(&entry));
                    }
                    Looked::Serves(Box::new(Served { entry, map }))
                }
                Err(_) => look.absent(key, encoded),
            },
            None => look.absent(key, encoded),
        }
    }

    /// Counts and tells a hit of which the call took what it wanted.
    #[inline]
    fn taken(&self, look: &Look<'_>, taken: Taken, source: Source) {
        look.cache.counters.hit(source, taken.nanos);
        if let Some(entry) = &taken.entry {
            look.tell_parent(self, entry);
            self.tell_finished(entry, source);
        }
    }

    /// What an entry gives to one who asks for these names, or why it may not be used.
    pub(crate) fn serve(&self, entry: &Entry, names: Option<&[&str]>) -> Result<ResultMap, String> {
        if entry.record.nondeterministic {
            return Err("it is non-deterministic".to_owned());
        }
        if let Some(reason) = self.invalid(&entry.record) {
            return Err(reason);
        }
        // Before its values are read.
        match self.stale(entry) {
            Some(why) => Err(why),
            None => entry.serve(names),
        }
    }

    /// Why an entry may not be used; `None` if it may.
    pub(crate) fn refusal(&self, entry: &Entry, names: Option<&[&str]>) -> Option<String> {
        self.serve(entry, names).err()
    }

    /// What is given to one whose own entry was published: that one, or the one that
    /// stands in its place if it has what he asks for.
    pub(super) fn standing(
        &self,
        own: Served,
        standing: &Arc<Entry>,
        names: Option<&[&str]>,
    ) -> Served {
        if Arc::ptr_eq(&own.entry, standing) {
            return own;
        }
        match standing.serve(names) {
            Ok(map) => Served {
                entry: Arc::clone(standing),
                map,
            },
            Err(_) => own,
        }
    }

    /// Counts and tells a hit.
    pub(super) fn hit(&self, cache: &AppCache, served: Served, source: Source) -> Outcome {
        // Those who waited saved nothing that they know of.
        let saved = match source {
            Source::Waited => 0,
            _ => served.entry.nanos,
        };
        cache.counters.hit(source, saved);
        cache.room.used(&served.entry);
        self.outcome(served, source)
    }

    /// Tells that a run has its results.
    pub(super) fn outcome(&self, served: Served, source: Source) -> Outcome {
        let entry = &served.entry;
        self.tell_finished(entry, source);
        Outcome {
            results: served.map,
            key: entry.record.key,
            source,
            made_by: entry.record.run,
        }
    }

    fn tell_finished(&self, entry: &Entry, source: Source) {
        let record = &entry.record;
        if source.is_hit() && !self.hears_hits {
            return;
        }
        self.tell(|| Event::Finished {
            app: Arc::clone(&record.app),
            key: record.key,
            source,
            made_by: record.run,
        });
    }

    /// Has the calling run note what it depends on from here on.
    pub(super) fn tell_parent(&self, parent: &Frame, subject: &Subject<'_>, entry: &Entry) {
        let beneath = entry.record.beneath.iter().cloned();
        parent.called(&subject.facts.name, entry.record.key);
        parent.note_anew(entry.record.anew);
        parent.depends(
            itself(subject).chain(beneath),
            entry.record.nondeterministic,
        );
    }

    /// Counts and tells a failure. The calling run may go on without the result,
    /// so it depends on the failure too; on one that may not come again it can't
    /// be relied on. Only a permanent failure is remembered; after any other the next
    /// run may have the result.
    pub(crate) fn failed(&self, run: &Run<'_>, error: Error) -> Error {
        if let Some(parent) = &run.parent {
            let remembered = run.cache.failure(&run.key, self.failure_epoch());
            let lasts = remembered.is_some();
            parent.depends(itself(run.subject), !lasts);
        }
        run.cache.counters.add(Count::Failed, 1);
        self.tell(|| Event::Failed {
            app: Arc::clone(&run.subject.facts.name),
            key: run.key,
            error: error.clone(),
        });
        error
    }
}

/// What a run depends on that calls this app: its code, that of the apps in its
/// slots, and what the names led to by which they were called.
fn itself<'a>(subject: &'a Subject<'_>) -> impl Iterator<Item = Callee> + 'a {
    let facts = subject.facts;
    let codes = facts.codes.iter().cloned();
    let name = subject.by_name.map(|name| Callee::Named {
        name: Arc::from(name),
        id: facts.id,
    });
    let in_slots = facts.registered.iter().map(|(name, id)| Callee::Named {
        name: Arc::from(name.as_str()),
        id: *id,
    });
    codes.chain(name).chain(in_slots)
}

/// What is looked for, and for whom.
struct Look<'a> {
    call: &'a dyn Call,
    subject: &'a Subject<'a>,
    cache: &'a AppCache,
    options: &'a Options<'a>,
    /// The run that asks, which notes what it depends on.
    parent: Option<&'a Frame>,
}

/// What is left to do of a hit when the map's guard is free again.
struct Taken {
    /// The time it saved.
    nanos: u64,
    /// The entry, if it is needed after.
    entry: Option<Arc<Entry>>,
}

impl Look<'_> {
    #[inline]
    fn may_hit(&self) -> bool {
        !self.subject.facts.nondeterministic
            && matches!(self.options.policy, Policy::Use | Policy::OnlyIfRemembered)
    }

    #[cold]
    fn absent(&self, key: Key, encoded: &[u8]) -> Looked {
        Looked::Absent(Box::new(Absent {
            key,
            encoded: encoded.into(),
            volatile: None,
        }))
    }

    /// Has the call take what its caller gets from a whole entry. It shares values and
    /// does nothing else, since it runs with the map's guard held.
    #[inline]
    fn take(&self, entry: &Arc<Entry>, source: Source, keep: bool) -> Option<Taken> {
        let all = || {
            self.call
                .take_all(&entry.results, &entry.record.key, source, entry.record.run)
        };
        let taken = match self.options.names {
            None => all(),
            names => {
                let one = entry.only.as_ref();
                one.is_some_and(|value| self.call.take_one(value))
                    || entry.lacks(names).is_none() && all()
            }
        };
        self.cache.room.used(entry);
        taken.then(|| Taken {
            nanos: entry.nanos,
            entry: keep.then(|| Arc::clone(entry)),
        })
    }

    fn tell_parent(&self, engine: &Engine, entry: &Entry) {
        if let Some(parent) = self.parent {
            engine.tell_parent(parent, self.subject, entry);
        }
    }
}

/// Gives the encoded inputs, which an [`Inputs`](crate::Inputs) keeps and others
/// write into a buffer that is used again.
#[inline]
fn encoded(
    call: &dyn Call,
    then: impl FnOnce(&[u8]) -> Looked,
) -> Result<Looked, FingerprintError> {
    if let Some(kept) = call.encoded() {
        return Ok(then(kept));
    }
    with_encoder(|to| {
        call.encode(to)?;
        let mut looked = then(to.finish()?);
        if let Looked::Absent(absent) = &mut looked {
            absent.volatile = to.take_volatile();
        }
        Ok(looked)
    })
}

/// Some bits of a key, which are as good as any.
fn tag(key: &Key) -> u64 {
    let mut bits = [0; 8];
    bits.copy_from_slice(&key.as_bytes()[..8]);
    u64::from_le_bytes(bits)
}
