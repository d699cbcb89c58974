//! Which segments are replaced, and what of them is kept.

use std::collections::HashSet;

use sde::Key;

use super::evict::{Extent, GivenUp};
use super::live::{self, Around, Live};
use super::retention::Retention;
use super::survey::{Candidate, FrameContent, FrameInfo};
use crate::format::class::Part;
use crate::format::index_block::prefix;
use crate::store::uses::{self, UsesOf};

/// A segment is worth replacing if so much of it is of no use: one part in so many.
const WORTH: u64 = 8;

/// What a plan depends on, apart from the segments.
pub(crate) struct Context<'a> {
    pub(crate) retention: &'a Retention,
    /// What is known of uses from other segments.
    pub(crate) uses: UsesOf,
    /// The contents that entries in other segments need.
    pub(crate) contents: HashSet<Key>,
    /// A segment that is much smaller may be put together with others.
    pub(crate) segment_size: u64,
    pub(crate) now: u64,
}

impl Context<'_> {
    fn given_up(&self, candidates: &[Candidate], around: &Around) -> GivenUp {
        let live = live::live(candidates, around);
        let mut uses = uses_in(candidates);
        for (prefix, one) in &self.uses {
            uses::add(&mut uses, *prefix, *one);
        }
        let retention = self.retention;
        retention.given_up(candidates, &live, &uses, self.now)
    }

    /// The segments of which nothing is kept, or what a process did only, so that they can go without anything being written.
    /// Each is looked at alone: what others hold does not make anything superfluous.
    pub(crate) fn unused<'c>(&self, candidates: &'c [Candidate]) -> Vec<&'c Candidate> {
        let around = Around::of(candidates);
        let given_up = self.given_up(candidates, &around);
        let kept = candidates.iter().map(|one| {
            let alone = std::slice::from_ref(one);
            let mut live = live::live(alone, &around);
            self.retention.apply(&given_up, alone, &mut live);
            let frames = kept(alone, &live).into_iter().flatten();
            frames.map(|frame| &one.frames[frame]).collect::<Vec<_>>()
        });
        let kept: Vec<_> = kept.collect();
        let mut needed: HashSet<&Key> = self.contents.iter().collect();
        needed.extend(kept.iter().flatten().flat_map(|held| held.contents()));
        let is_needed = |held: &&FrameInfo| match held.content {
            FrameContent::Journal => false,
            FrameContent::Content => needed.contains(&held.header.key),
            _ => true,
        };
        let all = candidates.iter().zip(&kept);
        all.filter(|(_, kept)| !kept.iter().any(is_needed))
            .map(|(one, _)| one)
            .collect()
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
        let mut of_all = Self::of(candidates, &around, retention, given_up);
        let mut needed = of_all.needed_contents();
        needed.extend(&context.contents);
        of_all.drop_contents(|key| !needed.contains(key));
        let worth = of_all.worth(retention, context.segment_size);
        let candidates = of_all.candidates.into_iter().zip(worth);
        let (worth, others): (Vec<_>, Vec<_>) = candidates.partition(|(_, worth)| *worth);
        // What is kept is found out anew, from these alone: see `live`.
        let worth = worth.into_iter().map(|(one, _)| one).collect();
        let mut plan = Self::of(worth, &around, retention, of_all.given_up);
        let mut needed = plan.needed_contents();
        needed.extend(&context.contents);
        let others = others.iter().flat_map(|(one, _)| &one.frames);
        needed.extend(others.flat_map(FrameInfo::contents));
        plan.drop_contents(|key| !needed.contains(key));
        plan.drop_copies();
        plan
    }

    /// All of these, and everything that counts in them and is needed there.
    pub(crate) fn of_archive(candidates: Vec<Candidate>) -> Self {
        let mut plan = Self::everything(candidates);
        let needed = plan.needed_contents();
        plan.drop_contents(|key| !needed.contains(key));
        plan
    }

    /// All of these, and everything that counts in them.
    pub(crate) fn everything(candidates: Vec<Candidate>) -> Self {
        let around = Around::of(&candidates);
        let mut plan = Self::of(candidates, &around, &Retention::new(), GivenUp::default());
        plan.drop_copies();
        plan
    }

    /// The contents that the entries need that are kept.
    fn needed_contents(&self) -> HashSet<Key> {
        let all = self.candidates.iter().zip(&self.kept);
        let kept = all.flat_map(|(one, kept)| kept.iter().map(|frame| &one.frames[*frame]));
        kept.flat_map(FrameInfo::contents).copied().collect()
    }

    /// How many contents the entries need that are kept nowhere.
    pub(crate) fn missing_contents(&self) -> usize {
        let mut missing = self.needed_contents();
        let all = self.candidates.iter().zip(&self.kept);
        for held in all.flat_map(|(one, kept)| kept.iter().map(|frame| &one.frames[*frame])) {
            if held.content == FrameContent::Content {
                missing.remove(&held.header.key);
            }
        }
        missing.len()
    }

    /// Keeps one copy of each content. A copy that is elsewhere is not relied on: another compaction may drop it.
    fn drop_copies(&mut self) {
        let mut kept = HashSet::new();
        self.drop_contents(|key| !kept.insert(*key));
    }

    fn drop_contents(&mut self, mut goes: impl FnMut(&Key) -> bool) {
        for (one, kept) in self.candidates.iter().zip(&mut self.kept) {
            kept.retain(|frame| {
                let held = &one.frames[*frame];
                held.content != FrameContent::Content || !goes(&held.header.key)
            });
        }
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
        for (key, extent) in &given_up {
            if *extent == Extent::All {
                uses.remove(&prefix(key));
            }
        }
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
                // What is whole of it is copied, so that nobody goes on being told of damage that costs nothing.
                || one.damaged
                || drops_damaged(one, kept)
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
        if let FrameContent::Uses(uses) = &held.content {
            for (prefix, one) in uses {
                uses::add(&mut all, *prefix, *one);
            }
        }
    }
    all
}

/// Whether entries with damaged values go. Those that are kept are so in a copy too.
fn drops_damaged(one: &Candidate, kept: &[usize]) -> bool {
    let is_damaged =
        |held: &FrameInfo| matches!(&held.content, FrameContent::Entry(facts) if facts.damaged);
    let mut frames = one.frames.iter().enumerate();
    frames.any(|(frame, held)| is_damaged(held) && !kept.contains(&frame))
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
    for (segment, frame) in of_keys
        .chain(&live.marks)
        .chain(&live.contents)
        .chain(&live.others)
    {
        kept[*segment].push(*frame);
    }
    kept.iter_mut().for_each(|frames| frames.sort_unstable());
    kept
}
