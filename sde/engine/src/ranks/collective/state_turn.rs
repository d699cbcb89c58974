//! When ranks save the states of a run that they make together.
//!
//! If each rank saved at its own time, no saved state might be common to all. So the ranks tell one another at meetings
//! that happen anyway when a state is due: [`SharedTurn`] is what one rank knows of that.
//!
//! A process that is about to end does not wait until a state is due on all ranks: it says so, and all save the next
//! state. The meeting after that shows that all have passed the place where they save it.

use super::Ranks;
use super::header::{Header, StateDue};
use crate::sync::lock;

/// Whether the next state of an iteration is saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum StateTurn {
    #[default]
    NotDue,
    /// It is due on this rank, and passed over until it is on all.
    Due,
    /// All ranks agreed at the last meeting: all of them save the next state.
    Agreed,
}

/// When this rank saves the states that it makes with the others of its set.
#[derive(Debug, Default)]
pub(super) struct SharedTurn {
    turn: StateTurn,
    last: Last,
}

/// The last state before this rank's process ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Last {
    #[default]
    NoEnd,
    ToBeSaved,
    /// This rank has saved it, and others may not have.
    Saved,
    SavedByAll,
}

impl Ranks {
    /// Notes that a state of an iteration is due on this rank, which has saved the last one that was, or could not.
    pub(crate) fn note_state_due(&self) {
        let mut shared = lock(&self.state_turn);
        if shared.turn == StateTurn::NotDue {
            shared.turn = StateTurn::Due;
        }
    }

    /// Notes that this process is about to end: all ranks save the next state, whether one is due on them or not.
    pub(crate) fn note_end(&self) {
        let mut shared = lock(&self.state_turn);
        shared.last = Last::ToBeSaved;
    }

    /// Whether this rank has saved its last state, and others may not have.
    pub(crate) fn waits_for_last_states(&self) -> bool {
        let is_saved = lock(&self.state_turn).last == Last::Saved;
        is_saved && self.broken.get().is_none()
    }

    /// Whether to save the state being made now; all ranks decide alike.
    pub(crate) fn take_state_turn(&self) -> bool {
        let mut shared = lock(&self.state_turn);
        let is_agreed = shared.turn == StateTurn::Agreed;
        if is_agreed {
            shared.turn = StateTurn::NotDue;
        }
        is_agreed
    }

    /// Notes that the state of this turn is saved.
    pub(crate) fn note_state_saved(&self) {
        let mut shared = lock(&self.state_turn);
        if shared.last == Last::ToBeSaved {
            shared.last = Last::Saved;
        }
    }

    /// What this rank tells at a meeting.
    pub(super) fn state_due(&self) -> StateDue {
        let shared = lock(&self.state_turn);
        match (shared.last, shared.turn) {
            (Last::ToBeSaved, _) => StateDue::AtOnce,
            (_, StateTurn::NotDue) => StateDue::No,
            (_, StateTurn::Due | StateTurn::Agreed) => StateDue::Yes,
        }
    }

    /// Takes note of what all ranks have told at a meeting, at which this one told `own`.
    pub(super) fn heard_states_due(&self, own: StateDue, met: &[Header]) {
        let is_due_on_all = met.iter().all(|other| other.state_due != StateDue::No);
        let is_agreed =
            is_due_on_all || met.iter().any(|other| other.state_due == StateDue::AtOnce);
        let mut shared = lock(&self.state_turn);
        if shared.last == Last::Saved {
            // All ranks have saved at the same place, before this meeting.
            shared.last = Last::SavedByAll;
        }
        if is_agreed {
            shared.turn = StateTurn::Agreed;
        } else if own != StateDue::No {
            // Where all had agreed before, a run that failed had no state to save on this rank, and had one on others.
            shared.turn = StateTurn::Due;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::CollectiveOp;
    use super::*;

    fn meet(ranks: &Ranks) {
        ranks
            .meet(Header::keyless(CollectiveOp::Gather, "a step"))
            .unwrap();
    }

    /// A state due on some ranks is passed over, but not if a process ends.
    #[test]
    fn all_save_for_one_that_is_about_to_end() {
        let saved = Ranks::on_threads(3, |ranks| {
            if ranks.rank() == 1 {
                ranks.note_state_due();
            }
            meet(ranks);
            let for_some = ranks.take_state_turn();
            if ranks.rank() == 2 {
                ranks.note_end();
            }
            meet(ranks);
            (for_some, ranks.take_state_turn())
        });
        assert_eq!(saved, [(false, true); 3]);
    }

    #[test]
    fn who_ends_knows_at_the_next_meeting_that_all_have_saved() {
        Ranks::on_threads(2, |ranks| {
            ranks.note_end();
            // Without a state between two meetings nothing is saved.
            for _ in 0..2 {
                meet(ranks);
                assert!(!ranks.waits_for_last_states());
            }
            assert!(ranks.take_state_turn());
            ranks.note_state_saved();
            assert!(ranks.waits_for_last_states());
            meet(ranks);
            assert!(!ranks.waits_for_last_states());
            assert!(!ranks.take_state_turn(), "it ends, and owes no other");
        });
    }
}
