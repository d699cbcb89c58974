//! The part of a context that lives with its driver, without keeping either alive.

use std::sync::{Arc, Mutex, Weak};

use crate::live::{Idle, Live};
use crate::lock::lock;

/// The programs of a context, and the kernels that wait for their next launch.
#[derive(Default)]
pub(crate) struct Living {
    programs: Mutex<Noted<Live>>,
    idle: Mutex<Noted<Idle>>,
}

impl Living {
    pub(crate) fn note_program(&self, program: &Arc<Live>) {
        lock(&self.programs).note(program);
    }

    pub(crate) fn note_idle(&self, kernels: &Arc<Idle>) {
        lock(&self.idle).note(kernels);
    }

    pub(super) fn programs(&self) -> Vec<Arc<Live>> {
        lock(&self.programs).there()
    }

    pub(super) fn idle(&self) -> Vec<Arc<Idle>> {
        lock(&self.idle).there()
    }
}

/// Weak references. Dead ones are removed when there are twice as many entries as after the last removal, so that
/// noting one costs the same however many there are.
struct Noted<T> {
    all: Vec<Weak<T>>,
    look_at: usize,
}

const FIRST_LOOK_AT: usize = 64;

impl<T> Default for Noted<T> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            look_at: FIRST_LOOK_AT,
        }
    }
}

impl<T> Noted<T> {
    fn note(&mut self, one: &Arc<T>) {
        if self.all.len() >= self.look_at {
            self.all.retain(|one| one.strong_count() > 0);
            self.look_at = (2 * self.all.len()).max(FIRST_LOOK_AT);
        }
        self.all.push(Arc::downgrade(one));
    }

    fn there(&self) -> Vec<Arc<T>> {
        self.all.iter().filter_map(Weak::upgrade).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_takes_no_room() {
        let mut noted = Noted::default();
        let held: Vec<_> = (0..100).map(Arc::new).collect();
        held.iter().for_each(|one| noted.note(one));
        for n in 0..10_000 {
            noted.note(&Arc::new(n));
            assert!(noted.all.len() <= 200);
        }
        assert_eq!(noted.there(), held);
    }
}
