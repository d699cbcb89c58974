//! Telling what a run would do.

use std::sync::Arc;

use super::Engine;
use crate::app::{Facts, Peek, Subject};
use crate::error::{Error, ErrorKind};
use crate::event::RunId;
use crate::inputs::Inputs;
use crate::key::{Key, keyed};

impl Engine {
    /// What `run` would do, found without running, claiming or reading values.
    pub(super) fn look_only(&self, subject: &Subject<'_>, inputs: &Inputs) -> Result<Peek, Error> {
        let facts = subject.facts;
        let key = inputs.with_encoded(|encoded| keyed(&facts.id.0, encoded));
        let key = key.map_err(|source| ErrorKind::Fingerprint {
            app: Arc::clone(&facts.name),
            source,
        })?;
        let miss = |why: String| Ok(Peek::Miss { key, why });
        if !facts.missing.is_empty() {
            return miss(format!("it is not ready: {}", facts.missing.join("; ")));
        }
        if facts.nondeterministic {
            return miss("it is non-deterministic, and never looked up".to_owned());
        }
        let cache = self.cache_of(facts);
        let mut why = "it was not run before".to_owned();
        if let Some(entry) = cache.ready(&key) {
            match self.refusal(&entry, None) {
                None => {
                    return Ok(Peek::Hit {
                        key,
                        made_by: entry.record.run,
                    });
                }
                Some(reason) => why = reason,
            }
        } else if cache.is_flying(&key) {
            return Ok(Peek::Wait { key });
        } else if let Some(error) = cache.failure(&key, self.epoch()) {
            return miss(format!("it failed, and would again: {error}"));
        }
        match self.stored_refusal(facts, &key) {
            None => miss(why),
            Some(Ok(made_by)) => Ok(Peek::Load { key, made_by }),
            Some(Err(reason)) => miss(format!("{why}; of what is stored: {reason}")),
        }
    }

    /// Whether the store has what a run would load, or why that does not serve;
    /// `None` if there is nothing.
    fn stored_refusal(&self, facts: &Facts, key: &Key) -> Option<Result<RunId, String>> {
        let stored = match self.archiver()?.find(key) {
            Ok(stored) => stored?,
            Err(error) => return Some(Err(error.to_string())),
        };
        let made_by = stored.record.run;
        let entry = self.entry_of(facts, stored, None);
        Some(self.refusal(&entry, None).map_or(Ok(made_by), Err))
    }
}
