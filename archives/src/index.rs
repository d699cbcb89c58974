//! Where everything is: the store's index, in memory.
//!
//! Sealed segments bring a [`Table`]; the frames of others are kept in a map. Either
//! says no more than where the frames of a key are: which is the best of several is
//! found out by reading them, which is rarely needed.

use std::collections::HashMap;
use std::sync::Arc;

use sde::key::BuildKeyHasher;
use sde::{Key, Mark};

use crate::id::FileId;
use crate::segment::{Kind, Segment};
use crate::table::{Row, Table};

/// Where a frame is.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) segment: Arc<Segment>,
    pub(crate) at: u64,
}

/// One frame of a key.
#[derive(Clone, Debug)]
pub(crate) struct At {
    pub(crate) place: Place,
    pub(crate) kind: Kind,
    pub(crate) saved_at: u64,
}

impl At {
    pub(crate) fn new(segment: &Arc<Segment>, row: &Row) -> Self {
        Self {
            place: Place {
                segment: Arc::clone(segment),
                at: row.at,
            },
            kind: row.kind,
            saved_at: row.saved_at,
        }
    }
}

/// How many states of one run are kept: if the latest is damaged, an earlier one
/// leads to the same bits.
pub(crate) const STATES: usize = 3;

#[derive(Default)]
pub(crate) struct Index {
    tables: Vec<Table>,
    frames: HashMap<Key, Vec<At>, BuildKeyHasher>,
    marks: Vec<Mark>,
}

impl Index {
    /// Adds frames of a segment that is not sealed.
    pub(crate) fn add(&mut self, segment: &Arc<Segment>, rows: &[Row]) {
        self.frames.reserve(rows.len());
        for row in rows {
            let known = self.frames.entry(row.key).or_default();
            known.push(At::new(segment, row));
        }
    }

    /// Adds a sealed segment, whose frames may have been added before.
    pub(crate) fn add_table(&mut self, table: Table) {
        self.remove(&table.segment.id);
        for mark in &table.marks {
            self.add_mark(mark.clone());
        }
        self.tables.push(table);
    }

    pub(crate) fn add_mark(&mut self, mark: Mark) {
        if !self.marks.contains(&mark) {
            let at = self.marks.partition_point(|other| other.at <= mark.at);
            self.marks.insert(at, mark);
        }
    }

    /// Forgets what was in a segment; its marks stay.
    pub(crate) fn remove(&mut self, segment: &FileId) {
        self.tables.retain(|table| table.segment.id != *segment);
        self.frames.retain(|_, known| {
            known.retain(|at| at.place.segment.id != *segment);
            !known.is_empty()
        });
    }

    /// All frames of a key, the latest saved first.
    fn frames(&self, key: &Key) -> Vec<At> {
        let mut all = self.frames.get(key).cloned().unwrap_or_default();
        for table in &self.tables {
            all.extend(table.find(key).map(|row| At::new(&table.segment, &row)));
        }
        all.sort_by_key(|at| std::cmp::Reverse(at.saved_at));
        all
    }

    /// The saved entries of a key, the latest saved first.
    pub(crate) fn entries(&self, key: &Key) -> Vec<At> {
        let mut all = self.frames(key);
        all.retain(|at| at.kind == Kind::Entry);
        all
    }

    /// The scratch states of a key that were saved after its last entry, the
    /// latest first: those saved before belong to a run that has finished.
    pub(crate) fn scratch(&self, key: &Key) -> Vec<At> {
        let all = self.frames(key).into_iter();
        all.take_while(|at| at.kind != Kind::Entry)
            .filter(|at| at.kind == Kind::Scratch)
            .take(STATES)
            .collect()
    }

    /// All marks, the oldest first.
    pub(crate) fn marks(&self) -> &[Mark] {
        &self.marks
    }
}
