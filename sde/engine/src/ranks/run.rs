//! Runs that all ranks of a process set make together.
//!
//! It is a run as any other (`engine/run.rs`) with two meetings, before the body and after it. Before, they check that
//! it is one run, and decide: it is a hit only if all hold the same computation, or all remember its failure. A rank
//! that holds the results while another does not still takes part in the body, because the other would wait for it
//! there. After, they find out whether the body succeeded on all ranks. In between, none waits for a rank that does not
//! come (see [`Ranks`]).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::parts::replicas_of;
use super::save::{bind, check_replicas, has_parts, to_save};
use super::sets::ProcessSet;
use crate::app::{Callee, Handle};
use crate::cache::AppCache;
use crate::engine::{CalledApp, Engine, Keyed, Options, Outcome, Policy, Run, ToSave, Unpublished};
use crate::entry::{Entry, RecordHead, Served};
use crate::error::{Error, ErrorKind, Failure};
use crate::event::{RunId, Source};
use crate::inputs::Call;
use crate::key::{EncodedCursor, Key};
use crate::ranks::collective::{Body, CollectiveOp, Has, Header, Ranks, RunInputs, digest_of};

impl Engine {
    /// `run` of a distributed app on several ranks, or on a part of them.
    pub(crate) fn run_collective(
        &self,
        from: &Handle,
        set: &ProcessSet,
        app: &CalledApp<'_>,
        call: &mut dyn Call,
        options: &Options<'_>,
    ) -> Result<Outcome, Error> {
        let resolved = &*app.resolved;
        let (keyed, unfit) = match Keyed::of(resolved, call) {
            Ok(keyed) => (keyed, None),
            Err(error) => (Keyed::none(), Some(error)),
        };
        let cache = set.cache(self.cache_of(resolved));
        let run = Run::new(from, from.caller(), app, &cache, options, keyed);
        let unfit = unfit.or_else(|| self.admit(&run).err());
        let stretch = crate::stretch!("run", app = &*resolved.name, key = %run.key.short(), ranks = set.size());
        match self.miss_together(&run, set, call, unfit) {
            Ok((served, source)) => {
                stretch.end(source.name());
                Ok(self.conclude(&run, served, source))
            }
            Err(error) if options.gate.is_some() && error.is_not_started() => Err(error),
            Err(error) => Err(self.failed(&run, error)),
        }
    }

    /// Looks, meets the other ranks, claims and executes, meets them again, publishes.
    fn miss_together(
        &self,
        run: &Run<'_>,
        ranks: &ProcessSet,
        call: &mut dyn Call,
        unfit: Option<Error>,
    ) -> Result<(Served, Source), Error> {
        let generation = run.cache.generation();
        let may_fail = run.options.policy == Policy::Use;
        let failure = || may_fail.then(|| run.cache.failure(&run.key, self.epoch()))?;
        let look = || self.held(run).map(Ok).or_else(|| failure().map(Err));
        let held = if unfit.is_none() { look() } else { None };
        let (number, all_have) = self.meet_to_begin(run, ranks, call, unfit.as_ref(), &held)?;
        if let Some(held) = held.filter(|_| all_have) {
            let (served, source) = held?;
            ranks.used(run.cache, run.key);
            if source == Source::Loaded {
                run.cache.record(&served.entry, generation);
            }
            return Ok((served, source));
        }
        if run.options.policy == Policy::OnlyIfRemembered {
            let app = Arc::clone(&run.app.resolved.name);
            let (key, why) = (run.key, "not every rank has it".to_owned());
            return Err(ErrorKind::NotRemembered { app, key, why }.into());
        }
        // Only where there is one rank: several agree on what they begin.
        if let Some(gate) = run.options.gate {
            gate.pass()?;
        }
        let (role, begun) = self.claim_together(run);
        let level = ranks.level();
        let ran = self.execute(run, call, &begun, number);
        if let Some(gate) = run.options.gate {
            gate.note(&ran.record);
        }
        let computation = ran.computation();
        let made = self.publishable(run, ran, None);
        let met = self.meet_to_end(run, ranks, made);
        drop(level);
        let made = met.and_then(|(made, met)| self.agree_on(run, ranks, made, &met));
        // This run makes no more states: a checkpoint may save those of a run that failed.
        run.cache.scratches.stop(&run.scratch_key());
        self.publish_made(run, (made, computation), begun, role)
    }

    /// Checks that all ranks are to make one run, and evicts the same entries on all of them. Gives the id of the run,
    /// if it begins now, and whether all ranks have the same of it.
    fn meet_to_begin(
        &self,
        run: &Run<'_>,
        ranks: &ProcessSet,
        call: &dyn Call,
        unfit: Option<&Error>,
        held: &Option<Result<(Served, Source), Error>>,
    ) -> Result<(RunId, bool), Error> {
        let is_left_behind = || {
            run.options.policy == Policy::Use && self.is_left_behind(&run.key, run.options.names)
        };
        let has = match held {
            Some(Ok((served, _))) => Has::Results(served.entry.record.run),
            Some(Err(_)) => Has::Failure,
            None if is_left_behind() => Has::LeftBehind,
            None => Has::Nothing,
        };
        let own = self.next_run();
        let body = Body::Run {
            policy: run.options.policy as u8,
            next: own,
            has,
            evict: ranks.too_many(run.cache, self.counting_with(run.cache)),
        };
        let header = Header::new(CollectiveOp::Run, run.key, asked(run)).with_body(body);
        let met = ranks.meet_for_run(header.with_failure(unfit), &|| given(run, call))?;
        let (mut first, mut most, mut all_have, mut left_behind) = (own, 0, true, false);
        for (rank, other) in met.iter().enumerate() {
            if let Body::Run {
                next,
                has: theirs,
                evict,
                ..
            } = other.body
            {
                // A run has one id on all ranks, given by the first.
                first = if rank == 0 { next } else { first };
                most = most.max(evict);
                all_have &= theirs == has;
                left_behind |= theirs == Has::LeftBehind;
            }
        }
        self.evict_collective(ranks, ranks.take_first(most, self.counting_with(run.cache)));
        if left_behind {
            let (app, key) = (Arc::clone(&run.app.resolved.name), run.key);
            return Err(ErrorKind::LeftBehind { app, key }.into());
        }
        Ok((first, all_have))
    }

    /// Whether a larger process set has these results of a run (or all), some of them distributed over its ranks.
    pub(crate) fn is_left_behind(&self, key: &Key, names: Option<&[&str]>) -> bool {
        let serves = |entry: &Entry| self.refusal(entry, names).is_none();
        let entry = self.sets.entry_of_larger(key);
        entry.is_some_and(|entry| serves(&entry) && !serves(&replicas_of(&entry)))
    }

    /// A larger process set's entry of a run, without its distributed results.
    pub(crate) fn of_larger_set(&self, key: &Key) -> Option<Arc<Entry>> {
        let entry = self.sets.entry_of_larger(key)?;
        Some(Arc::new(replicas_of(&entry)))
    }

    /// Tells which caches share the budget of a cache. Decides by the names of the apps that have budgets of their own,
    /// not by their sizes, so that all ranks find the same.
    fn counting_with(&self, of: &AppCache) -> impl Fn(&AppCache) -> bool {
        let has_own = |cache: &AppCache| self.caches.budgets.contains_key(&*cache.name);
        let of_all = !has_own(of);
        move |cache| cache.name == of.name || of_all && !has_own(cache)
    }

    /// The run's results on this rank, from memory or the store.
    fn held(&self, run: &Run<'_>) -> Option<(Served, Source)> {
        if run.options.policy == Policy::Bypass || run.app.resolved.nondeterministic {
            return None;
        }
        let own = run.cache.entry(&run.key);
        let is_own = own.is_some();
        let known = own.or_else(|| self.of_larger_set(&run.key));
        if let Some(entry) = known.clone() {
            run.note_known(entry);
        }
        if run.options.policy == Policy::Refresh {
            // Finds out only when the replaced entry was made: under `Refresh` nothing is served.
            return self.load(run, None).map(|loaded| (loaded, Source::Loaded));
        }
        if let Some(entry) = &known
            && let Ok(map) = self.serve(entry, run.options.names)
        {
            if !is_own {
                run.cache.record(entry, run.cache.generation());
            }
            let entry = Arc::clone(entry);
            return Some((Served { entry, map }, Source::Memory));
        }
        let load = || {
            let loaded = self.load(run, known.as_deref());
            loaded.filter(|loaded| has_parts(&loaded.entry))
        };
        let loaded = load().or_else(|| {
            let archiver = self.archiver()?;
            let is_left_behind = self.is_left_behind(&run.key, run.options.names);
            if archiver.commits_together() || !is_left_behind {
                return None;
            }
            // The larger set's ranks have saved their parts, which this rank's view of the store may still lack.
            archiver.catch_up(Duration::MAX);
            load()
        })?;
        Some((loaded, Source::Loaded))
    }

    /// Tells what this rank has made, and gives what all have told; an error if one has failed.
    fn meet_to_end(
        &self,
        run: &Run<'_>,
        ranks: &Ranks,
        made: Result<Served, Unpublished>,
    ) -> Result<(Served, Vec<Header>), Unpublished> {
        let header = Header::new(CollectiveOp::End, run.key, &*run.app.resolved.name);
        let ended = ranks.meet(match &made {
            Ok(Served { entry, .. }) => header.with_body(Body::Made {
                dependencies: digest_of(&SharedProvenance::of(&entry.record)),
                replicas: self.replica_digest(ranks, entry),
            }),
            Err(unpublished) => header.with_failure(Some(&unpublished.error)),
        });
        match (made, ended) {
            (Ok(served), Ok(met)) => Ok((served, met)),
            (Ok(_), Err(error)) => Err(Unpublished::of(error, Failure::Ordinary)),
            (Err(own), Err(error)) if ranks.size() > 1 && !own.is_panic() => {
                Err(own.told_by(error))
            }
            // A panic goes on, and a lone rank keeps its own error.
            (Err(own), _) => Err(own),
        }
    }

    /// Makes one entry of what all ranks have made, and this rank's share of it to save.
    fn agree_on(
        &self,
        run: &Run<'_>,
        ranks: &ProcessSet,
        made: Served,
        met: &[Header],
    ) -> Result<(Served, ToSave), Unpublished> {
        let resolved = &*run.app.resolved;
        let agree = || {
            let entry = self.with_dependencies_of_all(ranks, made.entry, met)?;
            bind(run.from, resolved, &entry);
            check_replicas(ranks, &entry.record, met)?;
            let descriptors = self.all_descriptors(ranks, resolved, &entry)?;
            Ok((entry, descriptors))
        };
        let (entry, descriptors) =
            agree().map_err(|error: Error| Unpublished::of(error, Failure::Ordinary))?;
        if run.options.policy != Policy::Bypass {
            ranks.used(run.cache, run.key);
        }
        let had_states = run.cache.scratches.get(&run.scratch_key()).is_some();
        let to_save = to_save(ranks, &entry, &descriptors, had_states);
        let map = made.map;
        Ok((Served { entry, map }, to_save))
    }

    /// The entry with the dependencies of all ranks: each may have called other apps for its part, and all must record
    /// the same.
    fn with_dependencies_of_all(
        &self,
        ranks: &Ranks,
        own: Arc<Entry>,
        met: &[Header],
    ) -> Result<Arc<Entry>, Error> {
        let digest = |header: &Header| match header.body {
            Body::Made { dependencies, .. } => Some(dependencies),
            _ => None,
        };
        let header = Header::keyless(CollectiveOp::Agree, "what a run rests on");
        let all =
            ranks.gather_distinct(header, met, digest, || SharedProvenance::of(&own.record))?;
        let Some(all) = all else { return Ok(own) };
        let mut record = own.full_record();
        record.nondeterministic = all.iter().any(|(_, of_rank)| of_rank.nondeterministic);
        record.anew = all.iter().any(|(_, of_rank)| of_rank.anew);
        let dependencies = all
            .into_iter()
            .flat_map(|(_, of_rank)| of_rank.dependencies);
        Arc::make_mut(&mut record.provenance).dependencies =
            dependencies.collect::<BTreeSet<_>>().into_iter().collect();
        Ok(Arc::new(own.with_record(record)))
    }
}

/// The part of a record in which ranks may differ.
#[derive(Serialize, Deserialize)]
struct SharedProvenance {
    dependencies: Vec<Callee>,
    nondeterministic: bool,
    anew: bool,
}

impl SharedProvenance {
    fn of(record: &RecordHead) -> Self {
        Self {
            dependencies: record.dependencies.clone(),
            nondeterministic: record.nondeterministic,
            anew: record.anew,
        }
    }
}

/// The app's settings and inputs in a run, for an error that shows how they differ between ranks.
fn given(run: &Run<'_>, call: &dyn Call) -> RunInputs {
    let setup = run.app.resolved.setup(&*run.app.app);
    let inputs = call.summaries(&mut EncodedCursor::new(&run.encoded));
    let values = setup.fields.iter().chain(&setup.parameters).chain(&inputs);
    let values = values.map(|value| (format!("{} = {}", value.name, value.short), value.digest));
    let slots = setup.slots.iter();
    let slots = slots.map(|slot| (format!("{} = {}", slot.slot, slot.app), slot.id.0));
    values.chain(slots).collect()
}

/// The call on which all ranks must agree, as text. The wanted results may differ: it is a hit only if each rank has
/// those that it wants.
fn asked(run: &Run<'_>) -> String {
    let name = &run.app.resolved.name;
    match run.options.policy {
        Policy::Use => name.to_string(),
        Policy::Refresh => format!("{name}, again"),
        Policy::Bypass => format!("{name}, unremembered"),
        Policy::OnlyIfRemembered => format!("{name}, only if remembered"),
    }
}
