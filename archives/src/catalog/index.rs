//! Where everything is: the store's index, in memory.
//!
//! Sealed segments bring a [`Table`]; the frames of others are kept in a map. Either
//! says no more than where the frames of a key are: which is the best of several is
//! found out by reading them, which is rarely needed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use sde::key::BuildKeyHasher;
use sde::{Key, Mark};

use crate::catalog::table::{Row, Table};
use crate::format::id::UniqueId;
use crate::format::segment::{FrameKind, Segment};

/// Where a frame is.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) segment: Arc<Segment>,
    pub(crate) at: u64,
}

/// One frame of a key.
#[derive(Clone, Debug)]
pub(crate) struct KnownFrame {
    pub(crate) place: Place,
    pub(crate) kind: FrameKind,
    pub(crate) saved_at: u64,
}

impl KnownFrame {
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
    frames: HashMap<Key, Vec<KnownFrame>, BuildKeyHasher>,
    marks: Vec<Mark>,
}

impl Index {
    /// Adds frames of a segment that is not sealed.
    pub(crate) fn add(&mut self, segment: &Arc<Segment>, rows: &[Row]) {
        self.frames.reserve(rows.len());
        for row in rows {
            let known = self.frames.entry(row.key).or_default();
            known.push(KnownFrame::new(segment, row));
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

    /// The sealed segments.
    pub(crate) fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// The frames of all other segments.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&Segment, Row)> {
        let of_keys = self.frames.iter();
        of_keys.flat_map(|(key, known)| {
            known.iter().map(|at| {
                let row = Row {
                    key: *key,
                    at: at.place.at,
                    kind: at.kind,
                    saved_at: at.saved_at,
                };
                (&*at.place.segment, row)
            })
        })
    }

    /// Forgets what was in a segment; its marks stay.
    pub(crate) fn remove(&mut self, segment: &UniqueId) {
        self.remove_all(|id| id == segment);
    }

    /// The same of several.
    pub(crate) fn remove_all(&mut self, goes: impl Fn(&UniqueId) -> bool) {
        self.tables.retain(|table| !goes(&table.segment.id));
        self.frames.retain(|_, known| {
            known.retain(|at| !goes(&at.place.segment.id));
            !known.is_empty()
        });
    }

    /// All frames of a key, the latest saved first.
    fn frames(&self, key: &Key) -> Vec<KnownFrame> {
        let mut all = self.frames.get(key).cloned().unwrap_or_default();
        for table in &self.tables {
            all.extend(
                table
                    .find(key)
                    .map(|row| KnownFrame::new(&table.segment, &row)),
            );
        }
        all.sort_by_key(|at| std::cmp::Reverse(at.saved_at));
        all
    }

    /// Where the entries are that were saved last, so many at most, the latest first; of each key
    /// the latest.
    pub(crate) fn latest(&self, most: usize) -> Vec<(Key, Place)> {
        let scanned = self.frames.iter().flat_map(|(key, known)| {
            let entries = known.iter().filter(|at| at.kind == FrameKind::Entry);
            entries.map(|at| (at.saved_at, *key, at.place.at, &at.place.segment))
        });
        let sealed = self.tables.iter().flat_map(|table| {
            let entries = table.rows().filter(|row| row.kind == FrameKind::Entry);
            entries.map(|row| (row.saved_at, row.key, row.at, &table.segment))
        });
        let mut latest = Vec::new();
        for one in scanned.chain(sealed) {
            latest.push(one);
            // So that a store of any size takes no more memory than this.
            if latest.len() >= most.saturating_mul(2).max(1) {
                keep_latest(&mut latest, most, |(saved_at, ..)| *saved_at);
            }
        }
        keep_latest(&mut latest, most, |(saved_at, ..)| *saved_at);
        latest.sort_by_key(|(saved_at, ..)| std::cmp::Reverse(*saved_at));
        let mut keys = HashSet::new();
        latest.retain(|(_, key, ..)| keys.insert(*key));
        let place = |(_, key, at, segment): (u64, Key, u64, &Arc<Segment>)| {
            let segment = Arc::clone(segment);
            (key, Place { segment, at })
        };
        latest.into_iter().map(place).collect()
    }

    /// The saved entries of a key, the latest saved first.
    pub(crate) fn entries(&self, key: &Key) -> Vec<KnownFrame> {
        let mut all = self.frames(key);
        all.retain(|at| at.kind == FrameKind::Entry);
        all
    }

    /// The scratch states of a key that were saved after its last entry, the
    /// latest first: those saved before belong to a run that has finished.
    pub(crate) fn scratch(&self, key: &Key) -> Vec<KnownFrame> {
        let all = self.frames(key).into_iter();
        all.take_while(|at| at.kind != FrameKind::Entry)
            .filter(|at| at.kind == FrameKind::Scratch)
            .take(STATES)
            .collect()
    }

    /// Since when the states of a run are of use, by the frames that `counts` is true of: the last of them,
    /// and those that were saved after an entry.
    pub(crate) fn of_use(&self, key: &Key, states: usize, counts: impl Fn(&Place) -> bool) -> u64 {
        let mut all = self.frames(key);
        all.retain(|at| counts(&at.place));
        let ended = all.iter().find(|at| at.kind == FrameKind::Entry);
        let ended = ended.map_or(0, |entry| entry.saved_at.saturating_add(1));
        let saved = all.iter().filter(|at| at.kind == FrameKind::Scratch);
        let mut saved: Vec<u64> = saved.map(|at| at.saved_at).collect();
        // One that was written twice is one.
        saved.dedup();
        let since = saved.get(states.saturating_sub(1)).copied();
        since.unwrap_or(0).max(ended)
    }

    /// All marks, the oldest first.
    pub(crate) fn marks(&self) -> &[Mark] {
        &self.marks
    }
}

/// Leaves those of the latest times, so many at most, in any order.
fn keep_latest<T>(all: &mut Vec<T>, most: usize, time: impl Fn(&T) -> u64) {
    if all.len() > most {
        all.select_nth_unstable_by_key(most, |one| std::cmp::Reverse(time(one)));
        all.truncate(most);
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::format::class::Class;

    fn segment(id: u8) -> Arc<Segment> {
        let (id, writer) = (UniqueId([id; 16]), UniqueId([9; 16]));
        Arc::new(Segment::new(PathBuf::new(), id, Class::Result, writer))
    }

    fn row(key: u8, saved_at: u64) -> Row {
        Row {
            key: Key::from_bytes([key; 32]),
            at: 64 + 8 * saved_at,
            kind: FrameKind::Entry,
            saved_at,
        }
    }

    /// In sealed segments and others, in any order, a key twice.
    #[test]
    fn the_latest_entries_are_found_wherever_they_are() {
        let mut index = Index::default();
        let sealed = [row(1, 10), row(2, 70), row(3, 30)];
        let (table, _) = Table::seal(&segment(1), sealed.to_vec(), Vec::new(), 4096).unwrap();
        index.add_table(table);
        let state = Row {
            kind: FrameKind::Scratch,
            ..row(8, 90)
        };
        index.add(&segment(2), &[row(4, 60), state, row(5, 20), row(2, 50)]);
        let latest = |most| {
            let found = index.latest(most).into_iter();
            let times = found.map(|(key, place)| (key.as_bytes()[0], (place.at - 64) / 8));
            times.collect::<Vec<_>>()
        };
        assert_eq!(latest(0), []);
        assert_eq!(latest(1), [(2, 70)]);
        assert_eq!(latest(2), [(2, 70), (4, 60)]);
        assert_eq!(latest(4), [(2, 70), (4, 60), (3, 30)]);
        let all = [(2, 70), (4, 60), (3, 30), (5, 20), (1, 10)];
        assert_eq!(latest(100), all);
    }
}
