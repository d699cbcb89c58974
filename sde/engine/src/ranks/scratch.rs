//! Saved states of a run that ranks make together.
//!
//! Each rank keeps its own states, and saves them alone. All ranks must resume from one common state: else one rank
//! would be a step ahead, or resume from another job's state. So a state records which run made it and after how many
//! meetings, which are equal on ranks that make the same calls. On loading, all ranks tell which states they have, and
//! take the newest of which all ranks' parts are there and fit together. Each rank resumes from its own part, or from
//! the lowest rank's copy if the states are equal, or from a part assembled for any number of ranks.
//!
//! Two rules ensure that a common state is saved whenever ranks are killed. Of the states after one meeting only the
//! first counts. A state is saved only if all ranks said at the meeting before that they have saved the last one that
//! was, or could not (`collective/state_turn.rs`). So of the last two that each rank has saved, one is
//! common to all. Memory keeps the last state alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::collective::{CollectiveOp, Header, Ranks, ShortDigest, not_here, short};
use super::distributed::{DistOps, Placement};
use super::parts::part_key;
use super::values::gather_values;
use crate::app::{DependencySnapshot, Frame, Handle};
use crate::cache::ScratchState;
use crate::checkpoint::SavePolicy;
use crate::engine::Engine;
use crate::error::{ArchiveError, Error};
use crate::event::RunId;
use crate::key::{Digest, Key};
use crate::result_map::{Codec, ErasedValue, Storable, Value};

/// One rank's part of a state.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
struct Part<T: Storable> {
    moment: Moment,
    rank: usize,
    rests_on: DependencySnapshot,
    /// `None` where the lowest rank has saved an equal state.
    state: Option<Value<T>>,
    /// The digest of a state that is equal on all ranks.
    digest: Option<ShortDigest>,
    /// The descriptor of a state that is a part of one value.
    #[serde(default)]
    descriptor: Option<Vec<u64>>,
}

/// How the states of several ranks relate.
pub(crate) enum StateKind<T> {
    Own,
    Replicated,
    /// Parts of one value, with the function that copies a part.
    Parts(DistOps, fn(&T) -> T),
}

impl<T: Storable> StateKind<T> {
    /// The descriptor that shows whether a part fits others; `None` if it fits none.
    fn descriptor(&self, part: &Part<T>) -> Option<Vec<u64>> {
        match self {
            Self::Own => Some(Vec::new()),
            Self::Replicated => part.digest().map(|of| bytemuck::pod_collect_to_vec(&of)),
            Self::Parts(..) => part.descriptor.clone(),
        }
    }

    /// Whether the lowest rank saves an equal state for this one.
    fn is_elsewhere(&self, rank: usize) -> bool {
        rank > 0 && matches!(self, Self::Replicated)
    }

    /// Whether `ranks` ranks may resume from a state whose parts have these descriptors.
    fn fit(&self, descriptors: &[Vec<u64>], ranks: usize) -> bool {
        match self {
            Self::Own => descriptors.len() == ranks,
            Self::Replicated => descriptors.iter().all(|of| *of == descriptors[0]),
            Self::Parts(ops, _) => (ops.check)(descriptors).is_ok(),
        }
    }
}

/// A part that a rank has found, and the time that its run had taken on the rank that kept it.
struct FoundPart<T: Storable> {
    part: Value<Part<T>>,
    took: Duration,
}

/// What a rank tells the others of a part that it has found.
#[derive(Clone, Serialize, Deserialize)]
struct ToldPart {
    moment: Moment,
    rank: usize,
    took: Duration,
    /// See [`StateKind::descriptor`].
    descriptor: Option<Vec<u64>>,
}

/// A state from which all ranks go on, as one of them has it.
struct Newest<T> {
    moment: Moment,
    /// The longest time that the run had taken on any rank: all count the same.
    took: Duration,
    state: Value<T>,
}

/// The moment at which all ranks made a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Moment {
    run: RunId,
    number: u64,
    ranks: usize,
}

/// The key of a rank's states. The lowest rank's states are under the run's own key, so that they are gone when that
/// rank saves the result; the states of the other ranks are useless without them.
pub(crate) fn state_key(key: &Key, rank: usize) -> Key {
    match rank {
        0 => *key,
        rank => part_key(key, rank),
    }
}

impl Moment {
    /// The digest that identifies a state made at this moment as an input of other runs.
    fn origin(&self, key: &Key) -> Digest {
        let mut hasher = blake3::Hasher::new_derive_key("SDE 1, origin of a state of an iteration");
        hasher.update(key.as_bytes());
        for number in [self.run.process, self.run.number, self.number] {
            hasher.update(&number.to_le_bytes());
        }
        Digest::from_bytes(*hasher.finalize().as_bytes())
    }
}

impl<T: Storable> Part<T> {
    /// The digest of the state, if it can be encoded.
    fn digest(&self) -> Option<ShortDigest> {
        self.digest.or_else(|| {
            let bytes = postcard::to_allocvec(&**self.state.as_ref()?).ok()?;
            Some(short(&blake3::hash(&bytes)))
        })
    }
}

impl Handle {
    /// Loads the state to resume from. Collective.
    pub(crate) fn load_state<T: Storable>(
        &self,
        frame: &Frame,
        kind: &StateKind<T>,
    ) -> Result<Option<Value<T>>, Error> {
        let Some(states) = States::of(self, frame, "loads")? else {
            return Ok(None);
        };
        if let (Some(ranks), SavePolicy::EveryResult) = (states.ranks, states.engine.policy) {
            ranks.note_state_due();
        }
        let parts = states.found_here(kind);
        let tell = |FoundPart { part, took }: &FoundPart<T>| ToldPart {
            moment: part.moment,
            rank: part.rank,
            took: *took,
            descriptor: kind.descriptor(part),
        };
        let told: Vec<Vec<_>> = states.tell(parts.iter().map(tell).collect())?;
        let newest = states.newest(kind, &parts, &told)?;
        if let Some(Newest { moment, took, .. }) = &newest {
            for found in parts.iter().filter(|found| found.part.moment == *moment) {
                frame.dependencies.inherit(&found.part.rests_on);
            }
            states.engine.resumed(frame, *took);
        } else if states.rank == 0 && told.iter().any(|of_rank| !of_rank.is_empty()) {
            states.warn(&told, kind);
        }
        Ok(newest.map(|newest| newest.state))
    }

    /// Keeps a state, and saves it if all ranks do so.
    pub(crate) fn save_state<T: Storable>(
        &self,
        frame: &Frame,
        state: Value<T>,
        kind: &StateKind<T>,
    ) -> Result<(), Error> {
        let Some(states) = States::of(self, frame, "saves")? else {
            return Ok(());
        };
        let others = states.ranks.filter(|_| states.size > 1);
        let Some(number) = frame.states.next(others.map(Ranks::meetings)) else {
            return Ok(());
        };
        let mut part = Part {
            moment: Moment {
                run: states.run,
                number,
                ranks: states.size,
            },
            rank: states.rank,
            rests_on: frame.dependencies.snapshot(),
            descriptor: match kind {
                StateKind::Parts(ops, _) => (ops.part_descriptor)(&state.clone().into()),
                StateKind::Own | StateKind::Replicated => None,
            },
            state: Some(state),
            digest: None,
        };
        let is_every = states.engine.policy == SavePolicy::EveryResult;
        let is_saved = others.map_or(is_every, Ranks::take_state_turn);
        if is_saved && kind.is_elsewhere(states.rank) {
            part.digest = part.digest();
            part.state = None;
        }
        let key = state_key(&frame.key, states.rank);
        let kept = ScratchState {
            value: ErasedValue::new(part),
            codec: Codec::of::<Part<T>>(),
            took: frame.clock.at_state(),
        };
        let scratches = &states.engine.cache_of(&frame.resolved).scratches;
        scratches.set(key, kept.clone(), others.map(|_| frame.key));
        if is_saved {
            let is_written = states.engine.write_state(frame, key, &kept);
            if let Some(ranks) = others {
                states.write_callers(ranks);
                if is_written {
                    ranks.note_state_saved();
                }
                if is_every {
                    ranks.note_state_due();
                }
            }
        }
        Ok(())
    }
}

/// The states of one run, as one rank sees them.
struct States<'a> {
    engine: &'a Engine,
    frame: &'a Frame,
    ranks: Option<&'a Ranks>,
    rank: usize,
    size: usize,
    run: RunId,
    /// A name for messages.
    what: String,
}

impl<'a> States<'a> {
    /// `None` for a run that serves its caller alone, which has no states.
    fn of(handle: &'a Handle, frame: &'a Frame, does: &str) -> Result<Option<Self>, Error> {
        let what = format!("the scratch of {}", frame.resolved.name);
        let doing = || format!("{does} {what}");
        let ranks = handle.collective_ranks(doing)?.map(|set| &***set);
        // No subset of the ranks that make the run may use its states.
        let run = frame.states.run(ranks.map(Ranks::id));
        let run = run.ok_or_else(|| not_here(doing()))?;
        Ok(frame.is_claimed().then(|| Self {
            engine: handle.engine(),
            frame,
            ranks,
            rank: ranks.map_or(0, Ranks::rank),
            size: ranks.map_or(1, Ranks::size),
            run,
            what,
        }))
    }

    /// Saves the states of the runs of these ranks that this one is nested in, which do not come by meanwhile. All ranks
    /// have the same ones in memory, since they began this run together.
    fn write_callers(&self, ranks: &Ranks) {
        let callers = std::iter::successors(self.frame.parent.as_ref(), |run| run.parent.as_ref());
        let is_theirs = |run: &&Arc<Frame>| run.states.run(Some(ranks.id())).is_some();
        for caller in callers.filter(is_theirs) {
            let key = state_key(&caller.key, self.rank);
            let scratches = &self.engine.cache_of(&caller.resolved).scratches;
            if let Some(state) = scratches.unsaved_in_step(&key) {
                self.engine.write_state(caller, key, &state);
            }
        }
    }

    /// Gathers the messages of all ranks.
    fn tell<M: Serialize + DeserializeOwned>(&self, mine: M) -> Result<Vec<M>, Error> {
        let header = Header::new(CollectiveOp::Gather, self.frame.key, &*self.what);
        match self.ranks {
            Some(ranks) => ranks.gather_all(header, Ok(mine)),
            None => Ok(vec![mine]),
        }
    }

    /// The parts that a rank has kept, the latest first, as long as the apps called for them are unchanged.
    fn found<T: Storable>(&self, rank: usize) -> Vec<FoundPart<T>> {
        let (key, codec) = (state_key(&self.frame.key, rank), Codec::of::<Part<T>>());
        let all = self.engine.states_under(self.frame, key, &codec);
        let all = all.filter_map(|(value, took)| {
            let part = value.downcast::<Part<T>>()?;
            Some(FoundPart { part, took })
        });
        let is_of_rank = |part: &Part<T>| part.rank == rank && rank < part.moment.ranks;
        let may_go_on = |part: &Part<T>| self.engine.may_go_on(self.frame, &part.rests_on);
        all.filter(|found| is_of_rank(&found.part) && may_go_on(&found.part))
            .collect()
    }

    /// The parts that this rank looks for: its own, and, where more ranks made the state than there are now, those of
    /// others in turn.
    fn found_here<T: Storable>(&self, kind: &StateKind<T>) -> Vec<FoundPart<T>> {
        // The stored number of ranks is not trusted.
        let ranks = (self.rank..)
            .step_by(self.size)
            .map(|rank| self.found::<T>(rank));
        let found = ranks.take_while(|parts| !parts.is_empty()).flatten();
        found
            .filter(|found| found.part.state.is_some() || kind.is_elsewhere(found.part.rank))
            .collect()
    }

    /// The newest state whose parts are all there and fit together, as this rank resumes from it.
    fn newest<T: Storable>(
        &self,
        kind: &StateKind<T>,
        parts: &[FoundPart<T>],
        told: &[Vec<ToldPart>],
    ) -> Result<Option<Newest<T>>, Error> {
        let mut all: BTreeMap<Moment, BTreeMap<usize, ToldPart>> = BTreeMap::new();
        for part in told.concat() {
            all.entry(part.moment).or_default().insert(part.rank, part);
        }
        let of_lowest = told[0].iter().filter(|part| part.rank == 0);
        let whole = of_lowest.map(|part| part.moment).find_map(|moment| {
            let of_ranks = all.get(&moment)?;
            let descriptors = of_ranks.values().map(|part| part.descriptor.clone());
            let descriptors: Vec<_> = descriptors.collect::<Option<_>>()?;
            let is_whole = descriptors.len() == moment.ranks && kind.fit(&descriptors, self.size);
            let took = of_ranks.values().map(|part| part.took).max()?;
            is_whole.then_some((moment, took, descriptors))
        });
        let Some((moment, took, descriptors)) = whole else {
            return Ok(None);
        };
        let state = match kind {
            StateKind::Own => state_of(parts, moment, self.rank),
            StateKind::Replicated => {
                let own = state_of(parts, moment, self.rank);
                match self.ranks.filter(|_| self.size > 1) {
                    Some(ranks) => {
                        // All get the lowest rank's state.
                        let own = Value::new(own.filter(|_| self.rank == 0));
                        let all = gather_values(ranks, &*self.engine.wire()?, &self.what, own)?;
                        Option::clone(&all[0])
                    }
                    None => own,
                }
            }
            StateKind::Parts(ops, clone) => {
                let read = |rank: usize| {
                    let state = state_of(parts, moment, rank)
                        .or_else(|| state_of(&self.found(rank), moment, rank));
                    let missing = || ArchiveError::Damaged {
                        why: format!("the state of rank {rank} is missing"),
                    };
                    Ok(ErasedValue::new(clone(&*state.ok_or_else(missing)?)))
                };
                let made = (ops.assemble)(&descriptors, &read, self.rank, self.size).ok();
                // None goes on where one can't.
                let all = self.tell(made.is_some())?;
                let made = made.filter(|_| all.iter().all(|is_there| *is_there));
                let set = self.ranks.map_or(0, Ranks::id);
                let at = Placement::new(set, moment.origin(&self.frame.key));
                made.inspect(|made| (ops.bind)(made, &at))
                    .and_then(|made| made.downcast())
            }
        };
        Ok(state.map(|state| Newest {
            moment,
            took,
            state,
        }))
    }

    fn warn<T>(&self, told: &[Vec<ToldPart>], kind: &StateKind<T>) {
        let mut moments = told[0].iter().map(|part| part.moment);
        let others = moments.find(|moment| moment.ranks != self.size);
        let why = match (kind, others) {
            (StateKind::Own, Some(moment)) => format!(
                "each of {} ranks has saved its own, and here are {}; if the states are the same on all ranks, say that \
                 they are `replicated`, if they are parts of one, `distributed`",
                moment.ranks, self.size
            ),
            (StateKind::Own, None) => "no state is there of all ranks".to_owned(),
            (StateKind::Replicated, _) => {
                "no state is there of all ranks and the same on all".to_owned()
            }
            (StateKind::Parts(..), _) => "no state is there with all of its parts".to_owned(),
        };
        self.engine.warn(|| {
            let run = self.frame.label();
            format!("the scratch of {run} is not gone on from: {why}; all ranks start afresh")
        });
    }
}

fn state_of<T: Storable>(parts: &[FoundPart<T>], moment: Moment, rank: usize) -> Option<Value<T>> {
    let mut parts = parts.iter().map(|found| &found.part);
    let part = parts.find(|part| (part.moment, part.rank) == (moment, rank))?;
    part.state.clone()
}
