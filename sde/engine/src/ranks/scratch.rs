//! The states of a run that ranks make together.
//!
//! Each rank keeps states of its own, and saves them alone. What it goes on from must be one state of all: else one
//! rank would be a step ahead, or go on from what another job left. So a state says which run made it and after how
//! many meetings, which ranks that make the same calls find alike without a word. All tell what they have when
//! they load, and take the newest of which the parts of all ranks that made it are there, and fit together: each its own, of
//! states that are the same that of the lowest rank, and those that are parts of one value are put together again by any
//! number of ranks, as what is saved of such a value.
//!
//! That there is one in common whenever ranks are killed, takes two rules. In memory each rank keeps the last two,
//! and only the first after a meeting: no rank is further ahead than one of these. And a state is saved when all have
//! met that had saved the one before ([`Ranks::want_state`]), so that the last two in the store share one too.

use std::collections::BTreeMap;

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

/// What a rank has of a state of all.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
struct Part<T: Storable> {
    moment: Moment,
    rank: usize,
    rests_on: DependencySnapshot,
    /// `None` where the lowest rank has saved the same.
    state: Option<Value<T>>,
    /// Of such a state.
    digest: Option<ShortDigest>,
    /// Of one that is a part: which.
    #[serde(default)]
    descriptor: Option<Vec<u64>>,
}

/// What the states of several ranks are to one another.
pub(crate) enum StateKind<T> {
    Own,
    Replicated,
    /// Parts of one value, with what makes a copy of one.
    Parts(DistOps, fn(&T) -> T),
}

impl<T: Storable> StateKind<T> {
    /// What tells whether a part fits others; `None` if it fits none.
    fn descriptor(&self, part: &Part<T>) -> Option<Vec<u64>> {
        match self {
            Self::Own => Some(Vec::new()),
            Self::Replicated => part.digest().map(|of| bytemuck::pod_collect_to_vec(&of)),
            Self::Parts(..) => part.descriptor.clone(),
        }
    }

    /// Whether so many ranks may go on from a state of which the parts of all ranks that made it have these descriptors.
    fn fit(&self, descriptors: &[Vec<u64>], ranks: usize) -> bool {
        match self {
            Self::Own => descriptors.len() == ranks,
            Self::Replicated => descriptors.iter().all(|of| *of == descriptors[0]),
            Self::Parts(ops, _) => (ops.check)(descriptors).is_ok(),
        }
    }
}

/// When a state was made: one moment for all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Moment {
    run: RunId,
    number: u64,
    ranks: usize,
}

/// Where the states of a rank are kept: those of the lowest with the run itself, so that they are gone with its result,
/// which it saves. States of others are of no use without.
pub(crate) fn state_key(key: &Key, rank: usize) -> Key {
    match rank {
        0 => *key,
        rank => part_key(key, rank),
    }
}

impl Moment {
    /// What a state of it is known by as an input of other runs.
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

    /// The same, where the lowest rank has saved the state.
    fn without_state(&self) -> Self {
        Self {
            rests_on: self.rests_on.clone(),
            state: None,
            digest: self.digest(),
            descriptor: None,
            ..*self
        }
    }
}

fn scratch_of<T: Storable>(part: Part<T>) -> ScratchState {
    ScratchState {
        value: ErasedValue::new(part),
        codec: Codec::of::<Part<T>>(),
    }
}

impl Handle {
    /// The state to go on from. Collective.
    pub(crate) fn load_state<T: Storable>(
        &self,
        frame: &Frame,
        kind: &StateKind<T>,
    ) -> Result<Option<Value<T>>, Error> {
        let Some(states) = States::of(self, frame, "loads")? else {
            return Ok(None);
        };
        if let (Some(ranks), SavePolicy::EveryResult) = (states.ranks, states.engine.policy) {
            ranks.want_state();
        }
        let is_elsewhere = states.rank > 0 && matches!(kind, StateKind::Replicated);
        let mut parts = states.found::<T>(states.rank);
        parts.retain(|part| part.state.is_some() || is_elsewhere);
        let told = states.tell(&parts.iter().map(|part| part.moment).collect::<Vec<_>>())?;
        states.find_others(&mut parts, &told);
        let state = states.newest(kind, &parts, &told)?;
        if let Some((moment, _)) = &state {
            for part in parts.iter().filter(|part| part.moment == *moment) {
                frame.dependencies.inherit(&part.rests_on);
            }
            states.engine.tell_resumed(frame);
        } else if states.rank == 0 && told.iter().any(|of_rank| !of_rank.is_empty()) {
            states.warn(&told, kind);
        }
        Ok(state.map(|(_, state)| state))
    }

    /// Keeps a state, and saves it if all ranks do.
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
        let part = Part {
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
        let is_saved = others.map_or(is_every, Ranks::takes_state);
        let is_elsewhere = states.rank > 0 && matches!(kind, StateKind::Replicated);
        let without_state = (is_saved && is_elsewhere).then(|| scratch_of(part.without_state()));
        let key = state_key(&frame.key, states.rank);
        let kept = scratch_of(part);
        let scratches = &states.engine.cache_of(&frame.resolved).scratches;
        scratches.set(key, kept.clone(), 1, others.is_some());
        if is_saved {
            let written = without_state.as_ref().unwrap_or(&kept);
            states.engine.write_state(frame, key, &kept, written);
            if let (Some(ranks), true) = (others, is_every) {
                ranks.want_state();
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
    /// For messages.
    what: String,
}

impl<'a> States<'a> {
    /// `None` for a run for its caller alone, which has none.
    fn of(handle: &'a Handle, frame: &'a Frame, does: &str) -> Result<Option<Self>, Error> {
        let what = format!("the scratch of {}", frame.resolved.name);
        let doing = || format!("{does} {what}");
        let ranks = handle.collective_ranks(doing)?.map(|set| &***set);
        // Not on a part of the ranks that make it.
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

    fn header(&self) -> Header {
        Header::new(CollectiveOp::Gather, self.frame.key, &*self.what)
    }

    /// Gives all ranks what each has to say.
    fn tell<M: Serialize + DeserializeOwned + Clone>(&self, mine: &M) -> Result<Vec<M>, Error> {
        match self.ranks {
            Some(ranks) => ranks.gather_all(self.header(), mine),
            None => Ok(vec![mine.clone()]),
        }
    }

    /// The parts that a rank has kept, the latest first, as far as what was called for them is as it was.
    fn found<T: Storable>(&self, rank: usize) -> Vec<Value<Part<T>>> {
        let (key, codec) = (state_key(&self.frame.key, rank), Codec::of::<Part<T>>());
        let all = self.engine.states_under(self.frame, key, &codec);
        let all = all.filter_map(|value| value.downcast::<Part<T>>());
        let is_of_rank = |part: &Value<Part<T>>| part.rank == rank && rank < part.moment.ranks;
        let may_go_on = |part: &Value<Part<T>>| self.engine.may_go_on(self.frame, &part.rests_on);
        all.filter(is_of_rank).filter(may_go_on).collect()
    }

    /// The newest state of which all parts are there and fit together, as this rank goes on from it, and when it was made.
    fn newest<T: Storable>(
        &self,
        kind: &StateKind<T>,
        parts: &[Value<Part<T>>],
        told: &[Vec<Moment>],
    ) -> Result<Option<(Moment, Value<T>)>, Error> {
        let mut all: BTreeMap<Moment, BTreeMap<usize, Option<Vec<u64>>>> = BTreeMap::new();
        let found = parts.iter();
        let found = found.map(|part| (part.moment, part.rank, kind.descriptor(part)));
        for (moment, rank, descriptor) in self.tell(&found.collect::<Vec<_>>())?.concat() {
            all.entry(moment).or_default().insert(rank, descriptor);
        }
        let whole = told[0].iter().find_map(|moment| {
            let of_ranks = all.get(moment)?.values().cloned();
            let descriptors: Vec<_> = of_ranks.collect::<Option<_>>()?;
            let is_whole = descriptors.len() == moment.ranks && kind.fit(&descriptors, self.size);
            is_whole.then_some((*moment, descriptors))
        });
        let Some((moment, descriptors)) = whole else {
            return Ok(None);
        };
        let state = match kind {
            StateKind::Own => state_of(parts, moment, self.rank),
            StateKind::Replicated => self.share_lowest(state_of(parts, moment, self.rank))?,
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
                self.placed(ops, made, moment)?
            }
        };
        Ok(state.map(|state| (moment, state)))
    }

    /// A part that was put together, in its place; none on any rank, if that could not be done on one.
    fn placed<T: Storable>(
        &self,
        ops: &DistOps,
        made: Option<ErasedValue>,
        moment: Moment,
    ) -> Result<Option<Value<T>>, Error> {
        let all = self.tell(&made.is_some())?;
        let Some(state) = made.filter(|_| all.iter().all(|is_there| *is_there)) else {
            return Ok(None);
        };
        let set = self.ranks.map_or(0, Ranks::id);
        (ops.bind)(&state, &Placement::new(set, moment.origin(&self.frame.key)));
        Ok(state.downcast())
    }

    /// Adds the parts of ranks that are not here now: each rank looks for those of several, if they were more.
    fn find_others<T: Storable>(&self, parts: &mut Vec<Value<Part<T>>>, told: &[Vec<Moment>]) {
        let most = told[0].iter().map(|moment| moment.ranks).max().unwrap_or(0);
        for rank in (self.rank..most).step_by(self.size).skip(1) {
            let found = self.found::<T>(rank);
            // What a store says of how many there were is not believed.
            if found.is_empty() {
                break;
            }
            parts.extend(found);
        }
    }

    /// Gives all ranks the state that the lowest has.
    fn share_lowest<T: Storable>(&self, own: Option<Value<T>>) -> Result<Option<Value<T>>, Error> {
        let Some(ranks) = self.ranks.filter(|_| self.size > 1) else {
            return Ok(own);
        };
        let own = Value::new(own.filter(|_| self.rank == 0));
        let all = gather_values(ranks, &*self.engine.wire()?, &self.what, own)?;
        Ok(Option::clone(&all[0]))
    }

    fn warn<T>(&self, told: &[Vec<Moment>], kind: &StateKind<T>) {
        let others = told[0].iter().find(|moment| moment.ranks != self.size);
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

fn state_of<T: Storable>(
    parts: &[Value<Part<T>>],
    moment: Moment,
    rank: usize,
) -> Option<Value<T>> {
    let mut parts = parts.iter();
    let part = parts.find(|part| (part.moment, part.rank) == (moment, rank))?;
    part.state.clone()
}
