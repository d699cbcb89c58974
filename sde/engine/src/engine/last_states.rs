//! The last states of runs that ranks make together, before the process ends.
//!
//! A checkpoint can't save them: the ranks must save one common state, at a place that all reach. So a process that was
//! told to end asks the other ranks to save the next state ([`Ranks::note_end`](crate::ranks::Ranks::note_end)), and ends
//! when all have, since its end ends theirs.

use std::time::{Duration, Instant};

use super::Engine;

/// How long an ending process waits for other ranks at most. Slurm kills 30 s after it has asked a process to end.
const LONGEST: Duration = Duration::from_secs(20);

/// How long it waits if less time of the job is left: batch systems leave some more after the end.
const SHORTEST: Duration = Duration::from_secs(8);

/// How often it looks whether they have saved.
const LOOK: Duration = Duration::from_millis(5);

/// How long a process that ends waits for the last states, if so much time of its job is left.
fn patience(left: Option<Duration>) -> Duration {
    match left.filter(|left| !left.is_zero()) {
        Some(left) => left.clamp(SHORTEST, LONGEST),
        // It is the end of the job itself that ends the process, or the end is not known.
        None => LONGEST,
    }
}

impl Engine {
    /// Has the runs that ranks make together save a state as soon as all ranks can, since this process is about to end.
    pub(super) fn owe_last_states(&self) {
        if self.archiver().is_none_or(|store| store.is_read_only()) {
            return;
        }
        self.caches.all().for_each(|cache| cache.scratches.owe());
        let sets = self.sets.all().into_iter();
        let shared = sets.filter(|set| set.size() > 1);
        shared.for_each(|set| set.note_end());
    }

    /// Waits a while for the states that are owed, and warns of those that could not be saved.
    pub(super) fn await_last_states(&self, since: Instant) {
        let is_in_parts = self.is_in_parts();
        let waits = || is_in_parts || self.owes_states();
        if !waits() {
            return;
        }
        let patience = patience(self.job.time_left());
        while waits() && since.elapsed() < patience {
            std::thread::sleep(LOOK);
        }
        // A run may have ended meanwhile: with its results, or with a state that is its own to save.
        self.checkpoint_or_warn("before the end");
        let runs: Vec<_> = self.owed_states().collect();
        if !runs.is_empty() {
            let (runs, seconds) = (runs.join(", "), patience.as_secs());
            self.warn(|| {
                format!(
                    "the last state of {runs} is not saved: not all ranks made another in {seconds} s; the next program \
                     goes on from an earlier one"
                )
            });
        }
    }

    /// Whether parts of the ranks make runs with states. The end of this process ends those of other parts too, which have
    /// no way to say that they have saved: they are given all the time there is.
    fn is_in_parts(&self) -> bool {
        let mut sets = self.sets.all().into_iter();
        let mut caches = self.caches.all();
        sets.any(|set| !set.is_world()) && caches.any(|cache| cache.scratches.are_used())
    }

    /// Whether this rank or others of its sets have a state to save.
    fn owes_states(&self) -> bool {
        let mut sets = self.sets.all().into_iter();
        self.owed_states().next().is_some() || sets.any(|set| set.waits_for_last_states())
    }

    /// The runs that owe a state.
    fn owed_states(&self) -> impl Iterator<Item = String> {
        self.caches.all().flat_map(|cache| {
            let owed = cache.scratches.owed().into_iter();
            owed.map(|key| format!("{} [{}]", cache.name, key.short()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_waits_while_its_job_has_time() {
        let of = |seconds| patience(Some(Duration::from_secs(seconds)));
        assert_eq!(patience(None), LONGEST);
        assert_eq!(
            of(0),
            LONGEST,
            "the batch system ends the job, and kills it later"
        );
        assert_eq!(of(1), SHORTEST);
        assert_eq!(of(12), Duration::from_secs(12));
        assert_eq!(of(3600), LONGEST);
    }
}
