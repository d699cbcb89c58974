//! Telling what a run would do.

use std::sync::Arc;

use super::Engine;
use super::handle::{CalledApp, Peek};
use super::load::entry_of;
use crate::app::{Compared, Nearest, ResolvedApp, of_keys};
use crate::cache::AppCache;
use crate::checkpoint::StoredEntry;
use crate::entry::Record;
use crate::error::{Error, ErrorKind};
use crate::event::RunId;
use crate::inputs::Inputs;
use crate::key::{EncodedCursor, Key, keyed};
use crate::result_map::ResultMap;

/// Why a run of which nothing is known is computed.
pub(super) const NEW: &str = "it was not run before";

/// Replaces `nearest` by a record that is nearer to the planned run of this key.
pub(super) fn keep_nearer(
    planned: Compared<'_>,
    key: Key,
    other: &Record,
    nearest: &mut Option<Nearest>,
) {
    // Where a store has the inputs of a run, its record is compared there.
    let has_inputs = !other.inputs.is_empty() || planned.inputs.is_empty();
    if has_inputs && *other.app == *planned.app && other.key != key && other.failure.is_none() {
        let differences = of_keys(other.compared(), planned);
        other.offer(&key, differences, nearest);
    }
}

impl Engine {
    /// Tells what `run` would do, without running, claiming or reading values.
    pub(super) fn peek(&self, app: &CalledApp<'_>, inputs: &Inputs) -> Result<Peek, Error> {
        let (key, known) = self.glance(app, inputs)?;
        Ok(known.unwrap_or_else(|| Peek::Miss {
            key,
            why: NEW.to_owned(),
            nearest: self.nearest(app, key, inputs),
        }))
    }

    /// The key of a run, and what `run` would do if anything is known of it.
    pub(super) fn glance(
        &self,
        app: &CalledApp<'_>,
        inputs: &Inputs,
    ) -> Result<(Key, Option<Peek>), Error> {
        let resolved = &*app.resolved;
        let key = inputs.with_encoded(|encoded| keyed(&resolved.id.0, encoded));
        let key = key.map_err(|source| ErrorKind::Fingerprint {
            app: Arc::clone(&resolved.name),
            source,
        })?;
        Ok((key, self.known(resolved, &key, None)))
    }

    /// What a run of this key, with results of these names, would do; `None` if nothing of it is known.
    pub(super) fn known(
        &self,
        resolved: &ResolvedApp,
        key: &Key,
        names: Option<&[&str]>,
    ) -> Option<Peek> {
        let key = *key;
        let miss = |why: String| {
            Some(Peek::Miss {
                key,
                why,
                nearest: None,
            })
        };
        if !resolved.missing.is_empty() {
            return miss(format!("it is not ready: {}", resolved.missing.join("; ")));
        }
        if resolved.nondeterministic {
            return miss("it is non-deterministic, and never looked up".to_owned());
        }
        let cache = self.cache_here(resolved);
        let mut held = None;
        let known = cache.entry(&key);
        if let Some(entry) = known.or_else(|| self.of_larger_set(&key)) {
            match self.refusal(&entry, names) {
                None => {
                    let made_by = entry.record.run;
                    return Some(Peek::Hit { key, made_by });
                }
                Some(_) if self.is_left_behind(&key, None) => {
                    held = Some("it lies on the larger process set".to_owned());
                }
                Some(reason) => held = Some(reason),
            }
        } else if cache.is_flying(&key) {
            return Some(Peek::Wait { key });
        } else if let Some(error) = cache.failure(&key, self.epoch()) {
            let why = format!("{error:#}");
            return Some(Peek::Failed { key, why });
        }
        match self.stored_refusal(resolved, &key, names) {
            Some(Ok(made_by)) => Some(Peek::Load { key, made_by }),
            Some(Err(reason)) => miss(match held {
                Some(why) if why == reason => why,
                Some(why) => format!("{why}, and what is stored does not serve: {reason}"),
                None => format!("what is stored does not serve: {reason}"),
            }),
            None => match held {
                Some(why) => miss(why),
                None => self.failed_before(key),
            },
        }
    }

    /// What a call makes of an earlier failure of a run, if one is kept.
    fn failed_before(&self, key: Key) -> Option<Peek> {
        let record = self.find_failure(&key)?;
        let why = record.failure.as_ref()?.message.clone();
        Some(match self.gives(&record, false) {
            true => Peek::Failed { key, why },
            false => Peek::Miss {
                key,
                why: format!("it failed before: {why}"),
                nearest: None,
            },
        })
    }

    /// The results of a run, if they are in memory and may be used.
    pub(super) fn in_memory(&self, app: &CalledApp<'_>, inputs: &Inputs) -> Option<ResultMap> {
        let resolved = &*app.resolved;
        if resolved.nondeterministic || resolved.is_distributed() {
            return None;
        }
        let key = inputs.with_encoded(|encoded| keyed(&resolved.id.0, encoded));
        let entry = self.cache_of(resolved).entry(&key.ok()?)?;
        match self.refusal(&entry, None) {
            None => entry.serve(None).ok(),
            Some(_) => None,
        }
    }

    /// The cache in which a run of the app would be remembered.
    fn cache_here(&self, resolved: &ResolvedApp) -> Arc<AppCache> {
        let alone = self.cache_of(resolved);
        let sets = self.sets.all();
        let innermost = sets.last().filter(|_| resolved.is_distributed());
        innermost.map_or_else(|| Arc::clone(alone), |set| set.cache(alone))
    }

    /// The run of the app, in memory or in the store, that a planned one is most like.
    fn nearest(&self, app: &CalledApp<'_>, key: Key, inputs: &Inputs) -> Option<Nearest> {
        let encoded = inputs.with_encoded(<[u8]>::to_vec).ok()?;
        let resolved = &*app.resolved;
        let planned = Compared {
            app: &resolved.name,
            code: &resolved.info.code,
            id: &resolved.id,
            setup: resolved.setup(&*app.app),
            inputs: &inputs.summaries(&mut EncodedCursor::new(&encoded)),
        };
        let mut nearest = None;
        self.earlier(resolved, &mut |other| {
            keep_nearer(planned, key, other, &mut nearest)
        });
        nearest
    }

    /// Tells `each` the records of an app, in memory and in the store.
    pub(super) fn earlier(&self, resolved: &ResolvedApp, each: &mut dyn FnMut(&Record)) {
        for entry in self.cache_here(resolved).entries() {
            each(&entry.full_record());
        }
        if let Some(archiver) = self.archiver() {
            let looked = archiver.records(&resolved.name, each);
            if let Err(error) = looked {
                // For a message a run in memory may be near enough.
                let store = archiver.describe();
                self.warn(|| format!("{store} can't be asked for records: {error:#}"));
            }
        }
    }

    /// The stored computation that a run would load, or why it does not serve; `None` if nothing is stored.
    pub(crate) fn stored_refusal(
        &self,
        resolved: &ResolvedApp,
        key: &Key,
        names: Option<&[&str]>,
    ) -> Option<Result<RunId, String>> {
        let look = |stored: StoredEntry| {
            let made_by = stored.record.run;
            let entry = entry_of(&resolved.info.results, &stored, None);
            self.refusal(&entry, names).map_or(Ok(made_by), Err)
        };
        let stored = || match self.archiver()?.find(key) {
            Ok(stored) => stored.map(look),
            Err(error) => Some(Err(format!("{error:#}"))),
        };
        self.received_or(key, look, stored)
    }
}
