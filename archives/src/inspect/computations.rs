//! The computations in a store, and which of each key counts.

use std::cmp::Reverse;
use std::collections::HashMap;

use sde::Key;
use sde::archiver::Mark;
use sde::record::RunId;

use super::item::{Entry, EntryUses, Item, SavedJournal, SavedState};
use crate::format::index_block::prefix;
use crate::format::precedence::Precedence;
use crate::read::payload::StoredValue;
use crate::resolve::computations;

/// Collects the items in the segments of a store, with a reader's own data for each entry.
///
/// ```
/// use sde::{Policy, Sde, inputs};
/// use sde_archives::DirStore;
/// use sde_archives::inspect::{Computations, Inspection, Standing};
///
/// #[sde::app]
/// fn cube(x: f64) -> f64 {
///     x * x * x
/// }
///
/// # fn main() -> Result<(), sde::Error> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("store");
/// let sde = Sde::builder().store(DirStore::open(&path)?).build()?;
/// let wrong = sde.request(&cube, &inputs! { x: 3.0 }).run()?;
/// sde.invalidate(&wrong.key, "bad memory")?;
/// let two = inputs! { x: 2.0 };
/// sde.request(&cube, &two).run()?;
/// let again = sde.request(&cube, &two).policy(Policy::Refresh).run()?;
/// sde.finish()?;
///
/// let mut found = Computations::default();
/// for segment in Inspection::open(&path)?.segments()? {
///     segment.walk(|item| found.add(item, |entry| Some(vec![entry])))?;
/// }
/// // Frames of one computation come together.
/// let found = found.resolve(|known, more| known.append(more));
/// let counting = found.all.iter().filter(|one| one.standing == Standing::Current);
/// assert_eq!(counting.map(|one| one.precedence.run).collect::<Vec<_>>(), [again.made_by]);
/// let invalid = found.all.iter().find(|one| one.standing == Standing::Invalid).unwrap();
/// assert_eq!(found.mark(invalid).unwrap().reason, "bad memory");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Computations<T> {
    /// Each frame with its unchecked values: those that decide which computation counts.
    frames: Vec<(Computation<T>, Vec<StoredValue>)>,
    marks: HashMap<(Key, RunId), Mark>,
    states: HashMap<Key, SavedState>,
    uses: HashMap<u64, EntryUses>,
    journals: HashMap<u64, Box<SavedJournal>>,
}

/// A computation of a key.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Computation<T> {
    /// The key.
    pub key: Key,
    /// The computation's precedence among those of its key.
    pub precedence: Precedence,
    /// Whether it counts.
    pub standing: Standing,
    /// The reader's data for it.
    pub of: T,
}

/// Whether a computation counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// The computation counts for its key.
    Current,
    /// Another computation of the key counts.
    Replaced,
    /// The computation is marked as invalid.
    Invalid,
}

impl Standing {
    /// The standing's name, as `sde ls` shows it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Replaced => "replaced",
            Self::Invalid => "invalid",
        }
    }
}

/// The computations of a store, each from all its frames.
#[derive(Debug)]
#[non_exhaustive]
pub struct Resolved<T> {
    /// All computations, those of one key together, the highest precedence first.
    pub all: Vec<Computation<T>>,
    /// The latest state of each run that has not finished since, the latest first.
    pub unfinished: Vec<SavedState>,
    /// The latest journal of each process, the process that began last first.
    pub journals: Vec<Box<SavedJournal>>,
    /// Whether the file of a value that was to be checked was gone: then its frames have been moved.
    pub gone: bool,
    marks: HashMap<(Key, RunId), Mark>,
    uses: HashMap<u64, EntryUses>,
}

impl<T> Default for Computations<T> {
    fn default() -> Self {
        Self {
            frames: Vec::new(),
            marks: HashMap::new(),
            states: HashMap::new(),
            uses: HashMap::new(),
            journals: HashMap::new(),
        }
    }
}

impl<T> Computations<T> {
    /// Adds an item of a segment. `keep` gives the data to keep of an entry, or `None`.
    pub fn add(&mut self, item: Item, keep: impl FnOnce(Entry) -> Option<T>) {
        match item {
            Item::Entry(entry) => {
                let (key, precedence, unchecked) =
                    (entry.record.key, entry.precedence(), entry.unchecked());
                let computation = keep(*entry).map(|of| Computation {
                    key,
                    precedence,
                    standing: Standing::Current,
                    of,
                });
                self.frames.extend(computation.map(|one| (one, unchecked)));
            }
            Item::Mark { mark, .. } => {
                let known = self.marks.entry((mark.key, mark.run));
                let known = known.or_insert_with(|| mark.clone());
                if known.rank() < mark.rank() {
                    *known = mark;
                }
            }
            Item::Scratch(state) => {
                let known = self.states.entry(state.key);
                let known = known.or_insert_with(|| state.clone());
                if known.saved_at <= state.saved_at {
                    *known = state;
                }
            }
            Item::Journal(saved) => {
                let known = self.journals.entry(saved.journal.process);
                let known = known.or_insert_with(|| saved.clone());
                if known.saved_at <= saved.saved_at {
                    *known = saved;
                }
            }
            // Counts in a file may have any value, so they are added without overflow.
            Item::Uses { uses, .. } => uses.into_iter().for_each(|one| {
                let known = self.uses.entry(one.prefix);
                let merge = |known: &mut EntryUses| {
                    known.count = known.count.saturating_add(one.count);
                    known.last = known.last.max(one.last);
                };
                known.and_modify(merge).or_insert(one);
            }),
            _ => {}
        }
    }

    /// Joins the frames of each computation, and decides which counts. `merge` adds a later frame's data to the
    /// first's.
    ///
    /// If a key has several computations, values of up to 16 MiB are checked, from the highest precedence on, until
    /// one is whole, as the engine does. Keys with one computation cost nothing.
    pub fn resolve(mut self, mut merge: impl FnMut(&mut T, &mut T)) -> Resolved<T> {
        for (frame, _) in &self.frames {
            let states = self.states.get(&frame.key);
            if states.is_some_and(|state| state.saved_at <= frame.precedence.saved_at) {
                self.states.remove(&frame.key);
            }
        }
        self.marks.retain(|_, mark| !mark.undone);
        let mut frames = self.frames;
        frames.sort_unstable_by_key(|(one, _)| (one.key, one.precedence.saved_at));
        let mut frames = frames.into_iter().peekable();
        let (mut all, mut gone) = (Vec::with_capacity(frames.len()), false);
        while let Some(first) = frames.next() {
            let key = first.0.key;
            let mut of_key = vec![first];
            while let Some(more) = frames.next_if(|(one, _)| one.key == key) {
                of_key.push(more);
            }
            gone |= lower_damaged(&mut of_key);
            let of_key = of_key.into_iter().map(|(one, _)| (one.precedence, one));
            for (rank, computation) in computations(of_key).into_iter().enumerate() {
                let merged = computation
                    .frames
                    .into_iter()
                    .reduce(|mut first, mut frame| {
                        merge(&mut first.of, &mut frame.of);
                        first
                    });
                let run = computation.precedence.run;
                all.extend(merged.map(|one| Computation {
                    precedence: computation.precedence,
                    standing: match self.marks.contains_key(&(key, run)) {
                        true => Standing::Invalid,
                        false if rank == 0 => Standing::Current,
                        false => Standing::Replaced,
                    },
                    ..one
                }));
            }
        }
        let mut unfinished: Vec<SavedState> = self.states.into_values().collect();
        unfinished.sort_by_key(|state| Reverse(state.saved_at));
        let mut journals: Vec<_> = self.journals.into_values().collect();
        journals.sort_by_key(|saved| Reverse((saved.journal.started, saved.journal.process)));
        Resolved {
            all,
            unfinished,
            journals,
            gone,
            marks: self.marks,
            uses: self.uses,
        }
    }
}

/// Lowers the precedence of frames with damaged values, as far as needed to decide which counts. Gives whether a
/// file was gone.
fn lower_damaged<T>(frames: &mut [(Computation<T>, Vec<StoredValue>)]) -> bool {
    let first = frames.first().map(|(one, _)| one.precedence.run);
    let has_several = frames
        .iter()
        .any(|(one, _)| Some(one.precedence.run) != first);
    let mut gone = false;
    let mut is_damaged = |payload: StoredValue| {
        payload.check(|_| ()).map_or_else(
            |error| {
                gone |= error.is_not_found();
                true
            },
            |damage| damage.is_some(),
        )
    };
    while has_several
        && let Some((one, values)) = frames.iter_mut().max_by_key(|(one, _)| one.precedence)
        && std::mem::take(values).into_iter().any(&mut is_damaged)
    {
        one.precedence.has_results = false;
    }
    gone
}

impl<T> Resolved<T> {
    /// The mark that makes a computation invalid, if there is one.
    #[must_use]
    pub fn mark(&self, of: &Computation<T>) -> Option<&Mark> {
        self.marks.get(&(of.key, of.precedence.run))
    }

    /// The number of computations that are marked invalid, including ones that are gone.
    #[must_use]
    pub fn marks(&self) -> usize {
        self.marks.len()
    }

    /// The recorded uses of a key's entry.
    #[must_use]
    pub fn uses(&self, key: &Key) -> Option<EntryUses> {
        self.uses.get(&prefix(key)).copied()
    }
}
