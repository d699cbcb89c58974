//! Telling what a run would do.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::Engine;
use crate::app::{Facts, Nearest, Peek, Subject};
use crate::cache::Record;
use crate::error::{Error, ErrorKind};
use crate::event::RunId;
use crate::inputs::Inputs;
use crate::key::{Key, Listed, keyed};

impl Engine {
    /// What `run` would do, found without running, claiming or reading values.
    pub(super) fn look_only(&self, subject: &Subject<'_>, inputs: &Inputs) -> Result<Peek, Error> {
        let facts = subject.facts;
        let key = inputs.with_encoded(|encoded| keyed(&facts.id.0, encoded));
        let key = key.map_err(|source| ErrorKind::Fingerprint {
            app: Arc::clone(&facts.name),
            source,
        })?;
        let miss = |why: String| {
            Ok(Peek::Miss {
                key,
                why,
                nearest: None,
            })
        };
        if !facts.missing.is_empty() {
            return miss(format!("it is not ready: {}", facts.missing.join("; ")));
        }
        if facts.nondeterministic {
            return miss("it is non-deterministic, and never looked up".to_owned());
        }
        let cache = self.cache_of(facts);
        let mut why = "it was not run before".to_owned();
        if let Some(entry) = cache.entry(&key) {
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
            None => Ok(Peek::Miss {
                key,
                why,
                nearest: self.nearest(subject, key, inputs),
            }),
            Some(Ok(made_by)) => Ok(Peek::Load { key, made_by }),
            Some(Err(reason)) => miss(format!("{why}; of what is stored: {reason}")),
        }
    }

    /// The remembered run of the app that a planned one is most like.
    fn nearest(&self, subject: &Subject<'_>, key: Key, inputs: &Inputs) -> Option<Nearest> {
        let encoded = inputs.with_encoded(<[u8]>::to_vec).ok()?;
        let planned = planned(subject, key, inputs, &encoded);
        let entries = self.cache_of(subject.facts).entries();
        // One with this key is not another run: why it does not serve is told otherwise.
        let others = entries.iter().map(|entry| &entry.record);
        let others = others.filter(|record| record.key != planned.key);
        let compared = others.map(|other| (other, planned.key_differences(other)));
        let nearest = compared.min_by_key(|(other, found)| (found.len(), Reverse(other.made_at)));
        nearest.map(|(record, differences)| Nearest {
            key: record.key,
            made_at: record.made_at,
            differences,
        })
    }

    /// Whether the store has what a run would load, or why that does not serve;
    /// `None` if there is nothing.
    fn stored_refusal(&self, facts: &Facts, key: &Key) -> Option<Result<RunId, String>> {
        let stored = match self.sets.received.find(key) {
            Some(received) => received,
            None => match self.archiver()?.find(key) {
                Ok(stored) => stored?,
                Err(error) => return Some(Err(error.to_string())),
            },
        };
        let made_by = stored.record.run;
        let entry = self.entry_of(facts, stored, None);
        Some(self.refusal(&entry, None).map_or(Ok(made_by), Err))
    }
}

/// The record that a run would have, as far as that is known before it.
fn planned(subject: &Subject<'_>, key: Key, inputs: &Inputs, encoded: &[u8]) -> Record {
    let facts = subject.facts;
    Record {
        app: Arc::clone(&facts.name),
        code: facts.info.code.clone(),
        id: facts.id,
        key,
        run: RunId {
            process: 0,
            number: 0,
        },
        inputs: inputs.summaries(&mut Listed::new(encoded)),
        setup: Arc::clone(facts.setup(subject.app)),
        calls: Vec::new(),
        beneath: Vec::new(),
        nondeterministic: facts.nondeterministic,
        made_at: SystemTime::now(),
        took: Duration::ZERO,
        host: super::machine::host(),
        target: super::machine::target(),
    }
}
