//! How likely an entry is asked for, learned from what was asked for before.
//!
//! Entries are told apart by how long it was from one of their uses to the next (by octaves; what was used once is a kind of
//! its own) and by the time since the last use, their age. For each kind and age it is counted how many were asked for at that
//! age, and how many passed it. The part of those that reached an age that was asked for in it is the hazard of that age.
//!
//! From the hazards follows what keeping an entry is worth: the most, over all times at which one may give it up, of the chance
//! that it is asked for before, divided by the time that it takes room until then. That is the index of Gittins (1979), which is
//! the best rule for one place and many candidates; LHD (Beckmann, Chen and Cidon, 2018) takes the whole time to the end
//! instead. What is soon due in a loop is worth much, and little once its time is over.
//!
//! What has left is counted too, else what leaves early would never be seen to be asked for late. None of it is looked at: for
//! each kind and age there is a count, which moves to the next age when its mean does.

use super::ages::{AGES, start, step};
use super::uses::Uses;

pub(super) struct Chances {
    kinds: Vec<Kind>,
    /// When the worth was computed last.
    at: u64,
    next: u64,
}

#[derive(Clone)]
struct Kind {
    asked: [f64; AGES],
    passed: [f64; AGES],
    /// What left, by the age that it has now: how many, and when they were used last in the mean.
    waiting: [(f64, f64); AGES],
    worth: [f64; AGES],
}

/// Octaves of the time between uses.
const OCTAVES: usize = 43;

/// So many times as many ticks as there are entries make what was counted half as much, as if there were at least so many.
const FADES_IN: f64 = 8.0;
const FEW: f64 = 512.0;

/// What is supposed counts like so many that were seen.
const PRIOR: f64 = 4.0;

/// The worth is computed anew when as many have come as this part of all entries, and at least so many.
const PART: f64 = 8.0;
const LEAST: f64 = 16.0;

impl Chances {
    pub(super) fn new() -> Self {
        let kind = Kind {
            asked: [0.0; AGES],
            passed: [0.0; AGES],
            waiting: [(0.0, 0.0); AGES],
            worth: [0.0; AGES],
        };
        Self {
            kinds: vec![kind; 1 + OCTAVES],
            at: 0,
            next: 0,
        }
    }

    /// What keeping an entry for a tick is worth, of what having it again costs.
    pub(super) fn worth(&self, uses: Uses, tick: u64) -> f64 {
        self.kinds[kind(uses)].worth[age(uses, tick)]
    }

    /// It was asked for so many times at an age, and not from one that it was counted for until that.
    pub(super) fn asked(&mut self, uses: Uses, from: u8, age: u64, times: f64) {
        let at = step(age);
        self.passed(uses, from, at as u8, times);
        self.kinds[kind(uses)].asked[at] += times;
    }

    /// So many times it was not asked for from one step of age to another; in vain, if that one is earlier.
    pub(super) fn passed(&mut self, uses: Uses, from: u8, to: u8, times: f64) {
        let passed = &mut self.kinds[kind(uses)].passed;
        let [one, other] = [from, to].map(usize::from);
        let times = if one < other { times } else { -times };
        passed[one.min(other)..one.max(other)]
            .iter_mut()
            .for_each(|passed| *passed += times);
    }

    /// It left.
    pub(super) fn left(&mut self, uses: Uses, tick: u64) {
        let waiting = &mut self.kinds[kind(uses)].waiting[age(uses, tick)];
        add(waiting, (1.0, uses.last() as f64));
    }

    /// What had left came back. It is one of those that are thought to be of about its age.
    pub(super) fn came_back(&mut self, uses: Uses, tick: u64) {
        let (kind, age) = (&mut self.kinds[kind(uses)], age(uses, tick));
        kind.asked[age] += 1.0;
        let there = (0..AGES).filter(|at| kind.waiting[*at].0 >= 1.0);
        if let Some(nearest) = there.min_by_key(|at| at.abs_diff(age)) {
            kind.waiting[nearest].0 -= 1.0;
        }
    }

    /// Computes what things are worth now, if it is time.
    pub(super) fn keep_up(&mut self, tick: u64, entries: usize) {
        if tick < self.next {
            return;
        }
        let entries = (entries as f64).max(4.0);
        let passed = (tick - self.at) as f64;
        let fades = 0.5_f64.powf(passed / (FADES_IN * entries.max(FEW)));
        self.at = tick;
        self.next = tick + (entries / PART).max(LEAST) as u64;
        for kind in &mut self.kinds {
            kind.pass(tick, fades);
        }
        let [once, often @ ..] = &mut self.kinds[..] else {
            return;
        };
        once.compute(|age| chance(entries, age));
        // The others are alike but for their scale, as long as nothing else is known: all of them together, by the age in times
        // between uses.
        let mut all = [[0.0; 2]; AGES + 2 * OCTAVES];
        for (octave, kind) in often.iter().enumerate() {
            for age in 0..AGES {
                let sum = &mut all[age + 2 * (OCTAVES - octave)];
                *sum = [sum[0] + kind.asked[age], sum[1] + kind.passed[age]];
            }
        }
        let relative = |at: usize| {
            let [asked, passed] = all[at];
            hazard(asked, passed, chance(start(2 * OCTAVES) + 1.0, at))
        };
        let relative: Vec<_> = (0..all.len()).map(relative).collect();
        for (octave, kind) in often.iter_mut().enumerate() {
            kind.compute(|age| relative[age + 2 * (OCTAVES - octave)]);
        }
    }
}

/// The chance in a step of age, if half are asked for by the age `half`, and two thirds by twice that: what is supposed where
/// nothing was seen.
fn chance(half: f64, step: usize) -> f64 {
    let [from, to] = [start(step), start(step + 1)];
    (to - from) / (half + to)
}

fn hazard(asked: f64, passed: f64, prior: f64) -> f64 {
    let (asked, passed) = (asked.max(0.0), passed.max(0.0));
    (asked + PRIOR * prior) / (asked + passed + PRIOR)
}

/// Adds some with their mean.
fn add(to: &mut (f64, f64), (count, mean): (f64, f64)) {
    let sum = to.0 + count;
    *to = (sum, (to.0 * to.1 + count * mean) / sum);
}

/// The step that the age of an entry is in.
pub(super) fn age(uses: Uses, tick: u64) -> usize {
    step(tick.saturating_sub(uses.last()))
}

fn kind(uses: Uses) -> usize {
    let octave = |octaves: f64| (octaves as usize).min(OCTAVES - 1);
    uses.interval().map_or(0, |octaves| 1 + octave(octaves))
}

impl Kind {
    /// Time has passed: what was counted fades, and what has left is older.
    fn pass(&mut self, tick: u64, fades: f64) {
        for age in 0..AGES {
            self.asked[age] *= fades;
            self.passed[age] *= fades;
        }
        for age in 0..AGES - 1 {
            let (count, used) = self.waiting[age];
            if count > 0.0 && tick as f64 - used >= start(age + 1) {
                self.passed[age] += count;
                self.waiting[age].0 = 0.0;
                add(&mut self.waiting[age + 1], (count, used));
            }
        }
    }

    /// From the last age back: the points (time that it takes, chance that it was asked for) of all times to give it up, of
    /// which only those count that a line from here meets first.
    fn compute(&mut self, prior: impl Fn(usize) -> f64) {
        let hazards: [f64; AGES] =
            std::array::from_fn(|age| hazard(self.asked[age], self.passed[age], prior(age)));
        let mut reached = [1.0_f64; AGES + 1];
        for age in 0..AGES {
            reached[age + 1] = (reached[age] * (1.0 - hazards[age])).max(1e-30);
        }
        let (mut time, mut asked) = (0.0, 0.0);
        let mut hull = vec![(time, asked)];
        for age in (0..AGES).rev() {
            time += 0.5 * (reached[age] + reached[age + 1]) * (start(age + 1) - start(age));
            asked += reached[age] * hazards[age];
            let slope = |point: &(f64, f64)| (asked - point.1) / (time - point.0);
            while let [.., second, first] = &hull[..]
                && slope(first) <= slope(second)
            {
                hull.pop();
            }
            self.worth[age] = hull.last().map_or(0.0, slope);
            hull.push((time, asked));
        }
    }
}
