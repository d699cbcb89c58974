//! The chance that an entry is asked for, learned from earlier requests.
//!
//! Entries are divided into kinds by the time between their uses, in octaves; entries used once are a kind of their
//! own. Their age is the time since the last use. For each kind and age two counts are kept: the entries that were
//! asked for at that age, and those that passed it. The hazard of an age is the share of the first among the entries
//! that reached it.
//! The worth of keeping an entry follows from the hazards. For a time to give the entry up, take the chance that it is
//! asked for before, divided by the mean time that it takes room until then; the worth is the maximum over all such
//! times. That is the index of Gittins (1979), the best rule for one place and many candidates. LHD (Beckmann, Chen and
//! Cidon, 2018) takes the whole time to the end instead. An entry soon due in a loop is worth much, and little once its
//! time is over.
//! Entries that have left are counted too: else an entry that leaves early would never be seen to be asked for late.
//! They are counted together: each kind and age has one count, which moves to the next age when its mean does.

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
    /// Entries that left, by their present age: how many, and the mean tick of their last use.
    waiting: [(f64, f64); AGES],
    worth: [f64; AGES],
}

/// Octaves of the time between uses.
const OCTAVES: usize = 43;

/// Counts halve after this many ticks for each entry, as if there were at least `FEW` entries.
const FADES_IN: f64 = 8.0;
const FEW: f64 = 512.0;

/// The weight of the supposed hazard, in observations.
const PRIOR: f64 = 4.0;

/// The worth is computed again once a `PART`th of the number of entries has come, and at least `LEAST` values.
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

    /// The worth of keeping an entry for a tick, as a part of the cost of getting it back.
    pub(super) fn worth(&self, uses: Uses, tick: u64) -> f64 {
        self.kinds[kind(uses)].worth[age(uses, tick)]
    }

    /// Counts entries asked for at an age, which had been counted as passing the steps of age before `from`.
    pub(super) fn asked(&mut self, uses: Uses, from: u8, age: u64, times: f64) {
        let at = step(age);
        self.passed(uses, from, at as u8, times);
        self.kinds[kind(uses)].asked[at] += times;
    }

    /// Counts entries not asked for between two steps of age; takes such counts back if `to` is the earlier step.
    pub(super) fn passed(&mut self, uses: Uses, from: u8, to: u8, times: f64) {
        let passed = &mut self.kinds[kind(uses)].passed;
        let [one, other] = [from, to].map(usize::from);
        let times = if one < other { times } else { -times };
        passed[one.min(other)..one.max(other)]
            .iter_mut()
            .for_each(|passed| *passed += times);
    }

    /// Counts an entry that left.
    pub(super) fn left(&mut self, uses: Uses, tick: u64) {
        let waiting = &mut self.kinds[kind(uses)].waiting[age(uses, tick)];
        add(waiting, (1.0, uses.last() as f64));
    }

    /// Counts an entry that had left and came back. It is taken off the count of waiting entries whose age is nearest.
    pub(super) fn came_back(&mut self, uses: Uses, tick: u64) {
        let (kind, age) = (&mut self.kinds[kind(uses)], age(uses, tick));
        kind.asked[age] += 1.0;
        let there = (0..AGES).filter(|at| kind.waiting[*at].0 >= 1.0);
        if let Some(nearest) = there.min_by_key(|at| at.abs_diff(age)) {
            kind.waiting[nearest].0 -= 1.0;
        }
    }

    /// Computes the worth of all kinds and ages again, if it is time.
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
        // The supposed hazard of the other kinds: they are alike but for their scale, so it is their common hazard by
        // the age in times between uses.
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

/// The supposed chance in a step of age, for ages without observations: half are asked for by the age `half`, two
/// thirds by twice that.
fn chance(half: f64, step: usize) -> f64 {
    let [from, to] = [start(step), start(step + 1)];
    (to - from) / (half + to)
}

fn hazard(asked: f64, passed: f64, prior: f64) -> f64 {
    let (asked, passed) = (asked.max(0.0), passed.max(0.0));
    (asked + PRIOR * prior) / (asked + passed + PRIOR)
}

/// Adds a count with its mean.
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
    /// Lets time pass: counts fade, and entries that left grow older.
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

    /// Goes from the last age back. Each time to give up is a point (time that the entry takes room, chance that it was
    /// asked for); only points of the convex hull as seen from the present age count.
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
