//! Which frames of some segments are still of use.
//!
//! Only frames of the segments that are to be replaced are looked at: what is in others does
//! not make anything superfluous. So it does no harm if two processes compact at once, or if
//! the last bytes of another segment are not on the medium yet. There are two exceptions. Scratch is of no
//! use once its run has ended, wherever the entry is: to lose both would cost time, and no result. And a
//! computation with its results in a sealed segment takes the place of earlier ones.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::SystemTime;

use sde::key::BuildKeyHasher;
use sde::{Key, RunId};

use super::survey::{Candidate, EntryFacts, FrameContent, FrameInfo};
use crate::catalog::index::STATES;
use crate::format::class::Class;
use crate::format::precedence::Precedence;

/// The journals of so many processes are kept.
const JOURNALS: usize = 10_000;

/// A frame: the number of its segment, and its own in that.
pub(crate) type FrameNumber = (usize, usize);

/// What is kept of one key.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) frames: Vec<FrameNumber>,
    /// The time of the latest save.
    pub(crate) saved_at: u64,
}

/// Everything that is kept, by key, and the latest mark of each computation.
#[derive(Debug, Default)]
pub(crate) struct Live {
    pub(crate) keys: HashMap<Key, Kept, BuildKeyHasher>,
    pub(crate) marks: Vec<FrameNumber>,
    /// What output files hold.
    pub(crate) contents: Vec<FrameNumber>,
    /// What processes did, and frames of kinds that this release does not know.
    pub(crate) others: Vec<FrameNumber>,
}

/// What is known of all segments that nobody writes to, those too that are not replaced.
#[derive(Debug, Default)]
pub(crate) struct Around {
    /// When the last entry of each key was saved: its run has ended.
    ended: HashMap<Key, u64, BuildKeyHasher>,
    /// The computations whose results are in a sealed segment, so on the medium.
    with_results: HashSet<(Key, RunId)>,
}

impl Around {
    /// What these segments tell.
    pub(crate) fn of(candidates: &[Candidate]) -> Self {
        let mut around = Self::default();
        for (at, held) in all(candidates) {
            let FrameContent::Entry(facts) = &held.content else {
                continue;
            };
            let ended = around.ended.entry(held.key()).or_default();
            *ended = held.header.saved_at.max(*ended);
            if facts.precedence.has_results && candidates[at.0].sealed {
                around
                    .with_results
                    .insert((held.key(), facts.precedence.run));
            }
        }
        around
    }

    /// A rank that knows whether the results are elsewhere.
    fn precedence(&self, key: &Key, rank: Precedence) -> Precedence {
        Precedence {
            has_results: rank.has_results || self.with_results.contains(&(*key, rank.run)),
            ..rank
        }
    }
}

/// What is of use in these segments.
pub(crate) fn live(candidates: &[Candidate], around: &Around) -> Live {
    let mut by_key: HashMap<Key, Vec<FrameNumber>, BuildKeyHasher> = HashMap::default();
    let mut marks: HashMap<(Key, RunId), (SystemTime, FrameNumber)> = HashMap::new();
    let mut live = Live::default();
    let mut journals = Vec::new();
    for (at, held) in all(candidates) {
        match &held.content {
            FrameContent::Entry(_) | FrameContent::Scratch(_) => {
                by_key.entry(held.key()).or_default().push(at)
            }
            FrameContent::Mark(mark) => {
                let latest = marks.entry((mark.key, mark.run)).or_insert((mark.at, at));
                if latest.0 <= mark.at {
                    *latest = (mark.at, at);
                }
            }
            FrameContent::Content => live.contents.push(at),
            FrameContent::Unknown(_) => live.others.push(at),
            FrameContent::Journal => journals.push((held.header.saved_at, held.key(), at)),
            FrameContent::Uses(_) | FrameContent::OfSegment | FrameContent::Damaged => {}
        }
    }
    live.others.extend(latest_journals(journals));
    live.marks = marks.into_values().map(|(_, at)| at).collect();
    live.marks.sort_unstable();
    let kept = by_key
        .into_iter()
        .map(|(key, frames)| (key, of_key(candidates, key, frames, around)));
    live.keys = kept.filter(|(_, kept)| !kept.frames.is_empty()).collect();
    live
}

/// Of each process the latest, of the latest processes.
fn latest_journals(mut journals: Vec<(u64, Key, FrameNumber)>) -> Vec<FrameNumber> {
    journals.sort_unstable_by_key(|(saved_at, ..)| std::cmp::Reverse(*saved_at));
    let mut processes = HashSet::new();
    journals.retain(|(_, process, _)| processes.insert(*process));
    let latest = journals.into_iter().take(JOURNALS);
    latest.map(|(.., at)| at).collect()
}

/// All frames of some segments.
pub(crate) fn all(candidates: &[Candidate]) -> impl Iterator<Item = (FrameNumber, &FrameInfo)> {
    candidates
        .iter()
        .enumerate()
        .flat_map(|(segment, candidate)| {
            let frames = candidate.frames.iter().enumerate();
            frames.map(move |(frame, held)| ((segment, frame), held))
        })
}

/// The frames of one key that are of use: of the computation that counts, by its
/// [precedence](crate::Precedence), as many as it takes to
/// have all its values in each class, and the scratch states that came after it.
fn of_key(
    candidates: &[Candidate],
    key: Key,
    mut frames: Vec<FrameNumber>,
    around: &Around,
) -> Kept {
    let held = |at: &FrameNumber| &candidates[at.0].frames[at.1];
    let saved_at = |at: &FrameNumber| held(at).header.saved_at;
    frames.sort_by_key(|at| std::cmp::Reverse(saved_at(at)));
    let entries = || {
        frames.iter().filter_map(|at| match &held(at).content {
            FrameContent::Entry(facts) => Some((at, facts)),
            _ => None,
        })
    };
    let mut kept = Vec::new();
    let ended = around.ended.get(&key).copied();
    for run in of_use(entries().map(|(_, facts)| around.precedence(&key, facts.precedence))) {
        for class in Class::ALL {
            let of_class = entries().filter(|(at, facts)| {
                held(at).header.class() == class && facts.precedence.run == run
            });
            kept.extend(covering(of_class.map(|(at, facts)| (*at, facts)).collect()));
        }
    }
    let states = frames.iter().filter(|at| {
        matches!(held(at).content, FrameContent::Scratch(_)) && Some(saved_at(at)) > ended
    });
    kept.extend(states.take(STATES));
    let latest = kept.iter().map(saved_at).max().unwrap_or(0);
    Kept {
        frames: kept,
        saved_at: latest,
    }
}

/// The computations of a key that are of use: the one that counts, and those whose results were not
/// found. They may be in a segment that is being written, and then one of these is what counts.
fn of_use(all: impl Iterator<Item = Precedence>) -> Vec<RunId> {
    let of_runs = crate::resolve::computations(all.map(|one| (one, ())));
    let highest = of_runs.first().map(|one| one.precedence);
    let is_later = |one: &Precedence| {
        let before = highest.filter(|highest| highest.has_results);
        before.is_none_or(|highest| one.made_at >= highest.made_at)
    };
    let of_use = of_runs.iter().map(|one| &one.precedence);
    let of_use = of_use.filter(|one| Some(**one) == highest || !one.has_results && is_later(one));
    of_use.map(|one| one.run).collect()
}

/// Of several frames of one computation in one class those that have all its values between
/// them. The one with most comes first; if none has any, one is kept for its record.
fn covering(mut frames: Vec<(FrameNumber, &EntryFacts)>) -> Vec<FrameNumber> {
    frames.sort_by_key(|(_, facts)| std::cmp::Reverse(facts.sound.len()));
    let mut have: HashSet<&Arc<str>> = HashSet::new();
    let mut kept = Vec::new();
    for (at, facts) in frames {
        let more = facts.sound.iter().any(|name| !have.contains(name));
        if more || kept.is_empty() {
            have.extend(&facts.sound);
            kept.push(at);
        }
    }
    kept
}
