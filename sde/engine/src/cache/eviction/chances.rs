//! The chance that an entry is asked for, learned from earlier requests.
//!
//! For each age, the time since the last use, two counts are kept: the entries that were asked for at that age, and
//! those that passed it. Its hazard is the share of the first. Ages are parts of the mean time between uses; of an entry
//! that was used once, parts of the time in which as many values come as are listed.
//!
//! For a time to give an entry up, take the chance that it is asked for before, divided by the mean time that it takes
//! room until then; the worth of the entry is the maximum over all such times. That is the index of Gittins (1979), the
//! best rule for one place and many candidates. What is soon due in a loop is worth much, and little once that is over.

use super::uses::{Uses, octaves, of_octaves};

#[derive(Debug, Default)]
pub(super) struct Chances {
    /// By age, of entries that were used once, and of those that were used more often.
    kinds: [[Age; AGES]; 2],
    /// The number of entries in octaves.
    entries: u32,
    /// When the worth is to be computed again.
    next: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Age {
    asked: f64,
    passed: f64,
    worth: f64,
}

/// Steps of half an octave. What is older is taken for as old as the last.
const AGES: usize = 32;

/// The step that begins with the mean time between uses.
const MEAN: u32 = 12;

/// How much an entry that left counts as one that passes all later ages, until it comes back.
pub(super) const LEFT: f64 = 0.5;

/// What is left of the counts each time the worth is computed again.
const FADES: f64 = 63.0 / 64.0;

/// The weight of the supposed hazard, in observations.
const SUPPOSED: f64 = 4.0;

impl Chances {
    /// The worth of keeping an entry for a tick, as a part of the cost of getting it back.
    pub(super) fn worth(&self, uses: Uses, tick: u64) -> f64 {
        let (kind, at) = self.place(uses, tick.saturating_sub(uses.last()));
        let mean = of_octaves(uses.mean().unwrap_or(self.entries));
        self.kinds[kind][at.min(AGES - 1)].worth / mean
    }

    /// Counts an entry that was asked for at an age, or left, and how much it counts at later ages.
    pub(super) fn reached(&mut self, uses: Uses, age: u64, asked: f64, passes: f64) {
        let (kind, at) = self.place(uses, age);
        let (passed, later) = self.kinds[kind].split_at_mut(at);
        passed.iter_mut().for_each(|age| age.passed += 1.0);
        later.iter_mut().for_each(|age| age.passed += passes);
        later.iter_mut().take(1).for_each(|age| age.asked += asked);
    }

    /// The kind of an entry, and the step of an age.
    fn place(&self, uses: Uses, age: u64) -> (usize, usize) {
        let mean = uses.mean().unwrap_or(self.entries);
        let from = (octaves(age + 1) + 128 * MEAN).saturating_sub(mean);
        let kind = usize::from(uses.mean().is_some());
        (kind, (from as usize / 128).min(AGES))
    }

    /// Computes the worth at all ages again, if it is time: after an eighth of the entries has come.
    pub(super) fn keep_up(&mut self, tick: u64, entries: usize) {
        if tick >= self.next {
            self.next = tick + (entries as u64 / 8).max(16);
            self.entries = octaves(entries as u64);
            self.kinds.iter_mut().for_each(compute);
        }
    }
}

/// Computes the worth at all ages. Without observations, half of the entries are supposed to be asked for by the mean
/// time between uses, and two thirds by twice that.
fn compute(ages: &mut [Age; AGES]) {
    let start = |step| of_octaves(128 * step as u32) / of_octaves(128 * MEAN);
    let steps: [_; AGES] = std::array::from_fn(|at| {
        let Age { asked, passed, .. } = &mut ages[at];
        *asked *= FADES;
        *passed *= FADES;
        let ticks = start(at + 1) - start(at);
        let supposed = SUPPOSED * ticks / (1.0 + start(at + 1));
        let hazard = (*asked + supposed) / (*asked + passed.max(0.0) + SUPPOSED);
        (hazard, ticks)
    });
    for (from, age) in ages.iter_mut().enumerate() {
        let (mut there, mut asked, mut time) = (1.0, 0.0, 0.0);
        age.worth = 0.0;
        for (hazard, ticks) in &steps[from..] {
            asked += there * hazard;
            time += there * (1.0 - hazard / 2.0) * ticks;
            there *= 1.0 - hazard;
            age.worth = age.worth.max(asked / time);
        }
    }
}
