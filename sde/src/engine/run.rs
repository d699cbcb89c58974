//! Looking up: the part of `run` that a hit takes.

use std::sync::Arc;

use super::Engine;
use super::fly::lasting;
use crate::app::{Callee, Facts, Frame, Given, Handle, Options, Outcome, Place, Policy, Subject};
use crate::cache::{AppCache, Count, Entry};
use crate::error::{Error, ErrorKind, Failure};
use crate::event::{Event, RunId, Source};
use crate::inputs::Call;
use crate::key::{FingerprintError, Key, keyed, with_encoder};
use crate::result_map::ResultMap;

/// One call, on its way through the engine.
pub(super) struct Run<'a> {
    pub(super) from: &'a Handle,
    /// The run that this one is called by.
    pub(super) parent: Option<Arc<Frame>>,
    pub(super) subject: &'a Subject<'a>,
    pub(super) cache: &'a Arc<AppCache>,
    pub(super) options: &'a Options<'a>,
    pub(super) key: Key,
    /// What was hashed; the arguments themselves are gone once the body has run.
    pub(super) encoded: Box<[u8]>,
}

/// What looking at the encoded inputs gave.
enum Looked {
    Hit(Hit),
    /// An entry that needs a closer look than the map's guard allows, and serves.
    Ready(Arc<Entry>),
    Absent(Key, Box<[u8]>),
}

/// What was taken from an entry that serves as it is.
struct Hit {
    /// `None` if the call took what it wanted.
    results: Option<ResultMap>,
    key: Key,
    source: Source,
    made_by: RunId,
    nanos: u64,
    /// The entry, if it is needed after.
    entry: Option<Arc<Entry>>,
}

impl Engine {
    /// `run`, whoever calls it.
    pub(super) fn enter(
        &self,
        from: &Handle,
        subject: &Subject<'_>,
        call: &mut dyn Call,
        options: &Options<'_>,
    ) -> Result<Given, Error> {
        from.check_active()?;
        let facts = subject.facts;
        if facts.missing.is_empty() {
            self.freeze(subject);
        }
        let cache = self.cache_of(facts);
        let parent = parent_of(from);
        let look = Look {
            facts,
            cache,
            options,
            nested: parent.is_some(),
        };
        let looked = encoded(call, |bytes| self.look(&look, call, bytes)).map_err(|source| {
            ErrorKind::Fingerprint {
                app: Arc::clone(&facts.name),
                source,
            }
        })?;
        match looked {
            Looked::Hit(hit) => {
                if let (Some(parent), Some(entry)) = (&parent, &hit.entry) {
                    self.tell_parent(parent, subject, entry);
                }
                Ok(self.given(&look, hit))
            }
            Looked::Ready(entry) => {
                if let Some(parent) = &parent {
                    self.tell_parent(parent, subject, &entry);
                }
                Ok(self.hit(cache, &entry, Source::Map).into())
            }
            Looked::Absent(key, encoded) => {
                let run = Run {
                    from,
                    parent,
                    subject,
                    cache,
                    options,
                    key,
                    encoded,
                };
                self.miss(&run, call).map(Given::from)
            }
        }
    }

    /// The two levels of the cache.
    fn look(&self, look: &Look<'_>, call: &dyn Call, encoded: &[u8]) -> Looked {
        let (id, recent) = (&look.facts.id, &look.cache.recent);
        if !look.may_hit() {
            return Looked::Absent(keyed(&id.0, encoded), encoded.into());
        }
        let epoch = self.epoch();
        let last = recent.look(id.as_bytes(), encoded, epoch, |entry| {
            look.take(call, entry, entry.record.key, Source::LastValue, false)
        });
        if let Some(Some(hit)) = last {
            return Looked::Hit(hit);
        }
        let key = keyed(&id.0, encoded);
        let again = recent.seen_again(tag(&key));
        let unmarked = !self.marks.any();
        let ready = look.cache.look_ready(&key, |entry| {
            let current = unmarked && entry.is_whole_and_checked(epoch);
            let hit = current.then(|| look.take(call, entry, key, Source::Map, again));
            hit.flatten().ok_or_else(|| Arc::clone(entry))
        });
        match ready {
            Some(Ok(hit)) => {
                if let (true, Some(entry)) = (again, &hit.entry) {
                    recent.put(id.as_bytes(), encoded, epoch, Arc::clone(entry));
                }
                Looked::Hit(hit)
            }
            Some(Err(entry)) if self.serves(&entry, look.options.names) => {
                if entry.whole && again {
                    recent.put(id.as_bytes(), encoded, epoch, Arc::clone(&entry));
                }
                Looked::Ready(entry)
            }
            _ => Looked::Absent(key, encoded.into()),
        }
    }

    /// Counts and tells a hit that was taken already.
    fn given(&self, look: &Look<'_>, hit: Hit) -> Given {
        look.cache.counters.hit(hit.source, hit.nanos);
        self.tell(|| Event::Finished {
            app: Arc::clone(&look.facts.name),
            key: hit.key,
            source: hit.source,
            made_by: hit.made_by,
        });
        Given {
            results: hit.results,
            key: hit.key,
            source: hit.source,
            made_by: hit.made_by,
        }
    }

    /// Whether an entry may be given out for these names.
    pub(super) fn serves(&self, entry: &Entry, names: Option<&[&str]>) -> bool {
        self.refusal(entry, names).is_none()
    }

    /// Why an entry may not be given out; `None` if it may.
    pub(super) fn refusal(&self, entry: &Entry, names: Option<&[&str]>) -> Option<String> {
        if entry.record.nondeterministic {
            return Some("it is non-deterministic".to_owned());
        }
        if let Some(reason) = self.invalid(&entry.record) {
            return Some(reason);
        }
        entry.lacks(names).or_else(|| self.stale(entry))
    }

    /// Counts and tells a hit.
    pub(super) fn hit(&self, cache: &AppCache, entry: &Entry, source: Source) -> Outcome {
        // Those who waited saved nothing that they know of.
        let saved = match source {
            Source::Waited => 0,
            _ => entry.nanos,
        };
        cache.counters.hit(source, saved);
        self.outcome(entry, source)
    }

    /// Tells that a run has its results.
    pub(super) fn outcome(&self, entry: &Entry, source: Source) -> Outcome {
        let record = &entry.record;
        self.tell(|| Event::Finished {
            app: Arc::clone(&record.app),
            key: record.key,
            source,
            made_by: record.run,
        });
        Outcome {
            results: entry.give(),
            key: record.key,
            source,
            made_by: record.run,
        }
    }

    /// Has the calling run note what it depends on from here on.
    pub(super) fn tell_parent(&self, parent: &Frame, subject: &Subject<'_>, entry: &Entry) {
        let beneath = entry.record.beneath.iter().cloned();
        parent.called(&subject.facts.name, entry.record.key);
        parent.depends(
            itself(subject).chain(beneath),
            entry.record.nondeterministic,
        );
    }

    /// Counts and tells a failure. The calling run may go on without the result,
    /// so it depends on the failure too; on one that may not come again it can't
    /// be relied on.
    pub(super) fn failed(&self, run: &Run<'_>, error: Error) -> Error {
        if let Some(parent) = &run.parent {
            let fleeting = matches!(
                error.kind(),
                ErrorKind::Panicked { .. }
                    | ErrorKind::Cancelled { .. }
                    | ErrorKind::NotRemembered { .. }
                    | ErrorKind::NotThreadSafe { .. }
                    | ErrorKind::Cycle { .. }
            ) || matches!(error.kind(), ErrorKind::App { cause, .. }
                if lasting(cause, run.subject.facts.info.failures) == Failure::Transient);
            parent.depends(itself(run.subject), fleeting);
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
    let codes = facts.codes.iter().map(|(app, code)| Callee::Code {
        app: Arc::clone(app),
        code: code.clone(),
    });
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
    facts: &'a Facts,
    cache: &'a AppCache,
    options: &'a Options<'a>,
    /// Whether the caller is a run, which notes what it depends on.
    nested: bool,
}

impl Look<'_> {
    fn may_hit(&self) -> bool {
        !self.facts.nondeterministic
            && matches!(self.options.policy, Policy::Use | Policy::OnlyIfRemembered)
    }

    /// Takes what the caller gets from a whole entry. It shares values and does nothing
    /// else, since it runs with the map's guard held.
    #[inline]
    fn take(
        &self,
        call: &dyn Call,
        entry: &Arc<Entry>,
        key: Key,
        source: Source,
        again: bool,
    ) -> Option<Hit> {
        let taken = entry.only.as_ref().is_some_and(|value| call.take(value));
        if !taken && self.options.names.is_some() && entry.lacks(self.options.names).is_some() {
            return None;
        }
        Some(Hit {
            results: (!taken).then(|| entry.results.clone()),
            key,
            source,
            made_by: entry.record.run,
            nanos: entry.nanos,
            entry: (again || self.nested).then(|| Arc::clone(entry)),
        })
    }
}

/// Gives the encoded inputs, which an [`Inputs`](crate::Inputs) keeps and others
/// write into a buffer that is used again.
fn encoded<R>(call: &dyn Call, then: impl FnOnce(&[u8]) -> R) -> Result<R, FingerprintError> {
    if let Some(kept) = call.encoded() {
        return Ok(then(kept?));
    }
    with_encoder(|to| {
        call.encode(to)?;
        Ok(then(to.finish()?))
    })
}

/// The run that makes a call: the one its handle belongs to. A call through an
/// `Sde` that a body captured belongs to what its thread is doing, except on
/// a rayon worker, which may be doing something else there.
fn parent_of(from: &Handle) -> Option<Arc<Frame>> {
    match from.frame() {
        Some(frame) => Some(Arc::clone(frame)),
        None => Place::caller().filter(|frame| frame.engine == from.engine()),
    }
}

/// Some bits of a key, which are as good as any.
fn tag(key: &Key) -> u64 {
    let mut bits = [0; 8];
    bits.copy_from_slice(&key.as_bytes()[..8]);
    u64::from_le_bytes(bits)
}
