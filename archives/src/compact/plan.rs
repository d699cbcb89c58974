//! Which segments are replaced, and what of them is kept.

use super::evict::{Extent, GivenUp};
use super::live::{self, Around, Live};
use super::retention::Retention;
use super::survey::{Candidate, FrameContent, FrameInfo};
use crate::format::class::Part;
use crate::store::uses::{self, UsesOf};

/// A segment is worth replacing if so much of it is of no use: one part in so many.
const WORTH: u64 = 8;

/// What a plan depends on, apart from the segments.
pub(crate) struct Context<'a> {
    pub(crate) retention: &'a Retention,
    /// What is known of uses from other segments.
    pub(crate) uses: UsesOf,
    /// A segment that is much smaller may be put together with others.
    pub(crate) segment_size: u64,
    pub(crate) now: u64,
}

impl Context<'_> {
    fn given_up(&self, candidates: &[Candidate], around: &Around) -> GivenUp {
        let live = live::live(candidates, around);
        let mut uses = uses_in(candidates);
        for (key, one) in &self.uses {
            uses::add(&mut uses, *key, *one);
        }
        let retention = self.retention;
        retention.given_up(candidates, &live, &uses, self.now)
    }

    /// The segments of which nothing is kept, so that they can go without anything being written. Each is looked at
    /// alone: what others hold does not make anything superfluous.
    pub(crate) fn unused<'c>(&self, candidates: &'c [Candidate]) -> Vec<&'c Candidate> {
        let around = Around::of(candidates);
        let given_up = self.given_up(candidates, &around);
        let is_unused = |one: &&Candidate| {
            let alone = std::slice::from_ref(*one);
            let mut live = live::live(alone, &around);
            self.retention.apply(&given_up, alone, &mut live);
            kept(alone, &live).iter().all(Vec::is_empty)
        };
        candidates.iter().filter(is_unused).collect()
    }
}

/// What is to be replaced, and what of it is kept.
pub(crate) struct Plan {
    pub(crate) candidates: Vec<Candidate>,
    /// For each candidate the frames that are kept, in the order of their places.
    pub(crate) kept: Vec<Vec<usize>>,
    pub(crate) uses: UsesOf,
    pub(crate) given_up: GivenUp,
}

impl Plan {
    /// What a compaction does with these segments.
    pub(crate) fn new(candidates: Vec<Candidate>, context: &Context<'_>) -> Self {
        let retention = context.retention;
        let around = Around::of(&candidates);
        let given_up = context.given_up(&candidates, &around);
        let of_all = Self::of(candidates, &around, retention, given_up);
        let worth = of_all.worth(retention, context.segment_size);
        let candidates = of_all.candidates.into_iter().zip(worth);
        let worth = candidates.filter_map(|(one, worth)| worth.then_some(one));
        // What is kept is found out anew, from these alone: see `live`.
        Self::of(worth.collect(), &around, retention, of_all.given_up)
    }

    /// All of these, and everything that counts in them.
    pub(crate) fn everything(candidates: Vec<Candidate>) -> Self {
        let around = Around::of(&candidates);
        Self::of(candidates, &around, &Retention::new(), GivenUp::default())
    }

    fn of(
        candidates: Vec<Candidate>,
        around: &Around,
        retention: &Retention,
        given_up: GivenUp,
    ) -> Self {
        let mut live = live::live(&candidates, around);
        retention.apply(&given_up, &candidates, &mut live);
        let mut uses = uses_in(&candidates);
        uses.retain(|key, _| given_up.get(key) != Some(&Extent::All));
        Self {
            kept: kept(&candidates, &live),
            candidates,
            uses,
            given_up,
        }
    }

    /// Which segments are worth replacing.
    fn worth(&self, retention: &Retention, segment_size: u64) -> Vec<bool> {
        let is_small = |one: &Candidate| one.length < segment_size / 4;
        let several_small = Part::ALL.map(|part| {
            let small = |one: &&Candidate| one.part() == part && is_small(one);
            self.candidates.iter().filter(small).count() > 1
        });
        let worth = self.candidates.iter().zip(&self.kept).map(|(one, kept)| {
            // The last bytes of one that is not sealed may not be on the medium: the copy will.
            !one.sealed
                || dead_bytes(one, kept) > one.length / WORTH
                || (is_small(one) && several_small[one.part().number()])
                || self.has_given_up(one, retention)
        });
        worth.collect()
    }

    fn has_given_up(&self, one: &Candidate, retention: &Retention) -> bool {
        let mut frames = one.frames.iter();
        frames.any(|held| retention.gives_up(&self.given_up, held))
    }

    pub(crate) fn kept_bytes(&self) -> u64 {
        let candidates = self.candidates.iter().zip(&self.kept);
        candidates.map(|(one, kept)| bytes(one, kept)).sum()
    }
}

fn uses_in(candidates: &[Candidate]) -> UsesOf {
    let mut all = UsesOf::default();
    for (_, held) in live::all(candidates) {
        if let FrameContent::Uses(metadata) = &held.content {
            for (key, one) in &metadata.uses {
                uses::add(&mut all, *key, *one);
            }
        }
    }
    all
}

fn dead_bytes(one: &Candidate, kept: &[usize]) -> u64 {
    let counts = |held: &&FrameInfo| {
        !matches!(
            held.content,
            FrameContent::OfSegment | FrameContent::Uses(_)
        )
    };
    let all: u64 = one.frames.iter().filter(counts).map(FrameInfo::bytes).sum();
    all.saturating_sub(bytes(one, kept))
}

fn bytes(one: &Candidate, kept: &[usize]) -> u64 {
    kept.iter().map(|frame| one.frames[*frame].bytes()).sum()
}

fn kept(candidates: &[Candidate], live: &Live) -> Vec<Vec<usize>> {
    let mut kept = vec![Vec::new(); candidates.len()];
    let of_keys = live.keys.values().flat_map(|kept| &kept.frames);
    for (segment, frame) in of_keys.chain(&live.marks).chain(&live.unknown) {
        kept[*segment].push(*frame);
    }
    kept.iter_mut().for_each(|frames| frames.sort_unstable());
    kept
}
