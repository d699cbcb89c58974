//! Entries that are alone under their keys, which little is kept of: mostly these are almost all of a store.
//!
//! Which of several computations of a key counts takes all that is known of each. So the keys with several frames, with
//! marks, or with failures are found first, and only these are read again for that.

use std::collections::HashSet;

use sde::Key;
use sde_archives::inspect::{Computations, Entry, Item, Resolved, Snapshot, Wanted};

use crate::listing::prefix;

/// The entries of a store: those alone under their keys, and the beginnings of the keys of all others.
#[derive(Debug)]
pub struct Singles<T> {
    /// In the order of their keys. Each counts.
    pub all: Vec<T>,
    /// The beginnings of the keys that are to be read again.
    pub others: HashSet<u64>,
    /// The uses of all.
    pub found: Resolved<()>,
    /// The apps of states of runs.
    pub of_states: HashSet<String>,
}

/// What a walk keeps of an entry.
#[derive(Debug)]
pub enum EntryRole<T> {
    /// Nothing of it is kept.
    Ignored,
    /// This, if nothing else has its key.
    Single(T),
    /// All that has its key is to be read again.
    Other,
}

impl<T> Singles<T> {
    /// Reads the wanted items of a store. `key` gives the key of what is kept.
    pub fn of(
        store: &mut Snapshot,
        wanted: Option<Wanted<'_>>,
        key: impl Fn(&T) -> Key,
        mut keep: impl FnMut(&Entry) -> EntryRole<T>,
    ) -> Self {
        let mut all: Vec<T> = Vec::new();
        let (mut others, mut of_states) = (HashSet::new(), HashSet::new());
        let mut uses = Computations::default();
        store.walk(wanted, |_, item| match item {
            Item::Entry(entry) => {
                let failure = entry.record.failure.as_ref();
                match keep(&entry) {
                    EntryRole::Ignored => {}
                    EntryRole::Single(one) if failure.is_none() => all.push(one),
                    EntryRole::Single(_) | EntryRole::Other => {
                        others.insert(prefix(&entry.record.key));
                        // Whether a failure stands is a question to the run's results.
                        others.extend(failure.map(|failure| prefix(&failure.of)));
                    }
                }
            }
            Item::Mark { mark, .. } => {
                others.insert(prefix(&mark.key));
            }
            Item::Scratch(state) if !of_states.contains(&state.app) => {
                of_states.insert(state.app);
            }
            item @ Item::Uses { .. } => uses.add(item, |_| None),
            _ => {}
        });
        all.sort_unstable_by_key(&key);
        let of_pair = |pair: &[T]| (prefix(&key(&pair[0])), prefix(&key(&pair[1])));
        let equal = all
            .windows(2)
            .map(of_pair)
            .filter(|(one, next)| one == next);
        others.extend(equal.map(|(one, _)| one));
        all.retain(|one| !others.contains(&prefix(&key(one))));
        Self {
            all,
            others,
            found: uses.resolve(|(), ()| {}),
            of_states,
        }
    }
}
