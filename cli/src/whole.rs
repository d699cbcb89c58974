//! An entry as a person means it: one computation, from all frames that have part of it.

use std::collections::{HashMap, HashSet};

use sde::{Key, RunId};
use sde_archives::inspect::{Entry, Payload, Saved, SegmentFile};
use sde_archives::{Class, Precedence};

/// Which computation: an entry in two classes is one.
pub type Id = (Key, RunId);

/// An entry from all frames that have part of it.
pub struct Whole {
    pub entry: Entry,
    /// Whether it is the one of its key that counts.
    pub rank: Precedence,
    /// Where it lies.
    pub places: Vec<Lies>,
    /// The results whose bytes were read and are damaged.
    damaged: HashSet<String>,
}

/// A value up to this size is read to find out which computation counts, as the engine does.
const CHECKED: u64 = 16 << 20;

/// One frame of an entry.
pub struct Lies {
    pub path: String,
    pub class: Class,
    pub at: u64,
}

impl Whole {
    pub fn new(segment: &SegmentFile, entry: Entry) -> Self {
        Self {
            places: vec![Lies::of(segment, &entry)],
            rank: entry.precedence(),
            damaged: HashSet::new(),
            entry,
        }
    }

    /// The same; values are read, since one with damaged results counts after others.
    pub fn checked(segment: &SegmentFile, entry: Entry) -> Self {
        let mut whole = Self::new(segment, entry);
        for saved in &whole.entry.results {
            let short = |payload: &&Payload| payload.length() <= CHECKED;
            let payload = saved.payload.as_ref().filter(short);
            if payload.is_some_and(|payload| !matches!(payload.check(|_| ()), Ok(None))) {
                whole.damaged.insert(saved.name.clone());
                whole.rank.has_results &= !saved.tags.is_archived();
            }
        }
        whole
    }

    /// Takes from another frame what this one lacks.
    fn add(&mut self, other: Self) {
        self.places.extend(other.places);
        self.rank = self.rank.max(other.rank);
        for theirs in other.entry.results {
            let same = |own: &&mut Saved| own.name == theirs.name;
            let is_sound = theirs.payload.is_some() && !other.damaged.contains(&theirs.name);
            if let Some(own) = self.entry.results.iter_mut().find(same)
                && (own.payload.is_none() || is_sound && self.damaged.remove(&own.name))
            {
                own.payload = theirs.payload;
                own.contents = theirs.contents;
            }
        }
    }

    pub fn size(&self) -> u64 {
        let payloads = self
            .entry
            .results
            .iter()
            .filter_map(|saved| saved.payload.as_ref());
        payloads.map(|payload| payload.length()).sum()
    }
}

impl Lies {
    fn of(segment: &SegmentFile, entry: &Entry) -> Self {
        Self {
            path: segment.path().to_owned(),
            class: entry.class,
            at: entry.place.start,
        }
    }
}

/// Entries by computation.
#[derive(Default)]
pub struct Wholes(pub HashMap<Id, Whole>);

impl Wholes {
    pub fn add(&mut self, part: Whole) {
        let id = (part.entry.record.key, part.entry.record.run);
        match self.0.get_mut(&id) {
            Some(whole) => whole.add(part),
            None => {
                self.0.insert(id, part);
            }
        }
    }

    /// By rank, the highest first: of each key the one that counts.
    pub fn sorted(self) -> Vec<Whole> {
        let mut all: Vec<Whole> = self.0.into_values().collect();
        all.sort_by_key(|whole| (std::cmp::Reverse(whole.rank), whole.entry.record.key));
        all
    }
}
