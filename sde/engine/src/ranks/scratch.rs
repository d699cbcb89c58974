//! The states of a run that ranks make together.
//!
//! Each rank keeps states of its own, and saves them alone. What it goes on from must be one state of all: else one
//! rank would be a step ahead, or go on from what another job left. So a state says which run made it and after how
//! many meetings, which ranks that make the same calls find alike without a word. All tell what they have when
//! they load, and take the newest that all have.
//!
//! That there is one in common whenever ranks are killed, takes two rules. In memory each rank keeps the last two,
//! and only the first after a meeting: no rank is further ahead than one of these. And a state is saved when all have
//! met that had saved the one before ([`Ranks::want_state`]), so that the last two in the store share one too.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::collective::{CollectiveOp, Header, Ranks, ShortDigest, not_here, short};
use super::parts::part_key;
use super::values::{decode_sent, encode_to_send};
use crate::app::{DependencySnapshot, Frame, Handle};
use crate::cache::ScratchState;
use crate::checkpoint::SavePolicy;
use crate::engine::Engine;
use crate::error::Error;
use crate::event::RunId;
use crate::key::Key;
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
}

/// When a state was made: one moment for all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Moment {
    run: RunId,
    number: u64,
    ranks: usize,
}

/// What a rank tells of a part that it holds of a state that is the same on all ranks.
type Held = (Moment, usize, Option<ShortDigest>);

/// Where the states of a rank are kept: those of the lowest with the run itself, so that they are gone with its result,
/// which it saves. States of others are of no use without.
pub(crate) fn state_key(key: &Key, rank: usize) -> Key {
    match rank {
        0 => *key,
        rank => part_key(key, rank),
    }
}

impl<T: Storable> Part<T> {
    /// The digest of the state, if it can be encoded.
    fn digest(&self) -> Option<ShortDigest> {
        self.digest
            .or_else(|| self.state.as_ref().and_then(digest_of))
    }
}

fn digest_of<T: Storable>(state: &Value<T>) -> Option<ShortDigest> {
    let bytes = postcard::to_allocvec(&**state).ok()?;
    Some(short(&blake3::hash(&bytes)))
}

impl Handle {
    /// The state to go on from. Collective.
    pub(crate) fn load_state<T: Storable>(
        &self,
        frame: &Frame,
        is_replicated: bool,
    ) -> Result<Option<Value<T>>, Error> {
        let Some(states) = States::of(self, frame, "loads")? else {
            return Ok(None);
        };
        if let (Some(ranks), SavePolicy::EveryResult) = (states.ranks, states.engine.policy) {
            ranks.want_state();
        }
        let mut parts = states.found::<T>(states.rank);
        parts.retain(|part| part.state.is_some() || is_replicated && states.rank > 0);
        let told = states.tell(&parts.iter().map(|part| part.moment).collect::<Vec<_>>())?;
        let moment = match is_replicated {
            true => states.same_on_all(&mut parts, &told)?,
            false => {
                let is_of_all = |moment: &&Moment| {
                    let all_have = told.iter().all(|of_rank| of_rank.contains(moment));
                    moment.ranks == states.size && all_have
                };
                told[0].iter().find(is_of_all).copied()
            }
        };
        let Some(moment) = moment else {
            if states.rank == 0 && told.iter().any(|of_rank| !of_rank.is_empty()) {
                states.warn(&told, is_replicated);
            }
            return Ok(None);
        };
        let mut state = None;
        for part in parts.iter().filter(|part| part.moment == moment) {
            frame.dependencies.inherit(&part.rests_on);
            if part.rank == states.rank {
                state.clone_from(&part.state);
            }
        }
        if is_replicated {
            state = states.share_lowest(state)?;
        }
        states.engine.tell_resumed(frame);
        Ok(state)
    }

    /// Keeps a state, and saves it if all ranks do.
    pub(crate) fn save_state<T: Storable>(
        &self,
        frame: &Frame,
        state: Value<T>,
        is_replicated: bool,
    ) -> Result<(), Error> {
        let Some(states) = States::of(self, frame, "saves")? else {
            return Ok(());
        };
        let others = states.ranks.filter(|_| states.size > 1);
        let Some(number) = frame.states.next(others.map(Ranks::meetings)) else {
            return Ok(());
        };
        let scratch_of = |state: Option<Value<T>>, digest| {
            let part = Part {
                moment: Moment {
                    run: states.run,
                    number,
                    ranks: states.size,
                },
                rank: states.rank,
                rests_on: frame.dependencies.snapshot(),
                state,
                digest,
            };
            ScratchState {
                value: ErasedValue::new(part),
                codec: Codec::of::<Part<T>>(),
            }
        };
        let key = state_key(&frame.key, states.rank);
        let kept = scratch_of(Some(state.clone()), None);
        let scratches = &states.engine.cache_of(&frame.resolved).scratches;
        scratches.set(key, kept.clone(), 1, others.is_some());
        let is_every = states.engine.policy == SavePolicy::EveryResult;
        if others.map_or(is_every, Ranks::takes_state) {
            let written = match is_replicated && states.rank > 0 {
                true => scratch_of(None, digest_of(&state)),
                false => kept.clone(),
            };
            states.engine.write_state(frame, key, &kept, &written);
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

    /// The newest state of which each rank that made it has kept the same. Adds the parts of those that are not here now:
    /// each rank looks for those of several, if they were more.
    fn same_on_all<T: Storable>(
        &self,
        parts: &mut Vec<Value<Part<T>>>,
        told: &[Vec<Moment>],
    ) -> Result<Option<Moment>, Error> {
        let most = told[0].iter().map(|moment| moment.ranks).max().unwrap_or(0);
        for rank in (self.rank..most).step_by(self.size).skip(1) {
            let found = self.found::<T>(rank);
            // What a store says of how many there were is not believed.
            if found.is_empty() {
                break;
            }
            parts.extend(found);
        }
        let held = parts
            .iter()
            .map(|part| (part.moment, part.rank, part.digest()));
        let all = self.tell(&held.collect::<Vec<Held>>())?;
        let all: Vec<Held> = all.into_iter().flatten().collect();
        let is_whole = |moment: &&Moment| {
            let of_moment = || all.iter().filter(|(made, ..)| made == *moment);
            let ranks: BTreeSet<_> = of_moment().map(|(_, rank, _)| rank).collect();
            let digests: BTreeSet<_> = of_moment().map(|(.., digest)| digest).collect();
            ranks.len() == moment.ranks && digests.len() == 1 && !digests.contains(&None)
        };
        Ok(told[0].iter().find(is_whole).copied())
    }

    /// Gives all ranks the state that the lowest has.
    fn share_lowest<T: Storable>(&self, own: Option<Value<T>>) -> Result<Option<Value<T>>, Error> {
        let Some(ranks) = self.ranks.filter(|_| self.size > 1) else {
            return Ok(own);
        };
        let wire = self.engine.wire()?;
        let sent = own.as_ref().filter(|_| self.rank == 0);
        let bytes = sent.map_or(Ok(Vec::new()), |own| {
            encode_to_send(&*wire, &self.what, own)
        });
        let (bytes, _) = ranks.gather(self.header(), bytes)?;
        let state = match own.filter(|_| self.rank == 0) {
            Some(own) => Ok(own),
            None => decode_sent(&*wire, &self.what, &bytes),
        };
        ranks.agree(&self.what, state).map(Some)
    }

    fn warn(&self, told: &[Vec<Moment>], is_replicated: bool) {
        let others = told[0].iter().find(|moment| moment.ranks != self.size);
        let why = match others {
            Some(moment) if !is_replicated => format!(
                "each of {} ranks has saved its own, and here are {}; if the states are the same on all ranks, say that \
                 they are `replicated`",
                moment.ranks, self.size
            ),
            _ if is_replicated => "no state is there of all ranks and the same on all".to_owned(),
            _ => "no state is there of all ranks".to_owned(),
        };
        self.engine.warn(|| {
            let run = self.frame.label();
            format!("the scratch of {run} is not gone on from: {why}; all ranks start afresh")
        });
    }
}
