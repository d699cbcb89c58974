//! The store's index in memory: where each frame is.
//!
//! Large sealed segments bring a [`Table`], with one [`Filter`] over all of them; frames of other segments are kept
//! in a map. Both go by the beginning of a key only. Frames must be read to tell whose they are, and which of
//! several counts.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use foldhash::fast::RandomState;
use sde::Key;
use sde::archiver::Mark;
use sde::record::RunId;

use super::filter::Filter;
use crate::format::frame::FrameKind;
use crate::format::id::UniqueId;
use crate::format::index_block::{IndexBlock, Row, Rows, prefix};
use crate::format::segment::Segment;

/// Where a frame is.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) segment: Arc<Segment>,
    pub(crate) at: u64,
}

/// A frame whose key has the prefix that was looked for.
#[derive(Clone, Debug)]
pub(crate) struct KnownFrame {
    pub(crate) place: Place,
    pub(crate) kind: FrameKind,
    pub(crate) saved_at: u64,
}

impl KnownFrame {
    /// `None` for kinds that only later releases know.
    fn new(segment: &Arc<Segment>, row: &Row) -> Option<Self> {
        Some(Self {
            place: Place {
                segment: Arc::clone(segment),
                at: row.at(),
            },
            kind: row.kind()?,
            saved_at: row.saved_at,
        })
    }
}

/// The number of states kept of one run: if the latest is damaged, an earlier one leads to the same bits.
pub(crate) const STATES: usize = 3;

/// The number of states that a run in progress needs.
const STATES_OF_USE: usize = 2;

/// Sealed segments with fewer frames get no table, since a look-up searches every table.
pub(crate) const LARGE: usize = 4096;

#[derive(Default)]
pub(crate) struct Index {
    tables: Vec<Table>,
    filter: Filter,
    /// The segments of the frames that are in no table.
    segments: Vec<Arc<Segment>>,
    /// The segments' numbers, by address: copies of a file have one id.
    numbers: HashMap<usize, u32>,
    /// The frames that are in no table; frames of one prefix are linked.
    loose: Vec<Loose>,
    first: HashMap<u64, u32, RandomState>,
    /// The latest mark of each computation.
    marks: HashMap<(Key, RunId), Mark>,
}

/// The rows of one large segment.
struct Table {
    segment: Arc<Segment>,
    rows: Rows,
}

/// A frame, and the next one of its prefix.
#[derive(Clone, Copy)]
struct Loose {
    place: u64,
    saved_at: u64,
    segment: u32,
    next: u32,
}

const NONE: u32 = u32::MAX;

impl Index {
    /// Adds frames of a segment.
    pub(crate) fn add(&mut self, segment: &Arc<Segment>, rows: impl IntoIterator<Item = Row>) {
        let next = u32::try_from(self.segments.len()).unwrap_or(NONE);
        let number = *self
            .numbers
            .entry(Arc::as_ptr(segment).addr())
            .or_insert(next);
        if number == next {
            self.segments.push(Arc::clone(segment));
        }
        for row in rows {
            let at = u32::try_from(self.loose.len()).unwrap_or(NONE);
            if at == NONE {
                // The index is full. Frames that it lacks are computed again.
                return;
            }
            let next = self.first.insert(row.prefix, at).unwrap_or(NONE);
            self.loose.push(Loose {
                place: row.place,
                saved_at: row.saved_at,
                segment: number,
                next,
            });
        }
    }

    /// Adds a sealed segment, none of whose frames are known.
    pub(crate) fn add_sealed(&mut self, segment: &Arc<Segment>, block: IndexBlock) {
        if block.rows.len() < LARGE {
            return self.add(segment, block.rows.iter());
        }
        let prefixes = block.rows.iter().map(|row| row.prefix);
        let added = self.filter.add(block.rows.len(), prefixes);
        self.tables.push(Table {
            segment: Arc::clone(segment),
            rows: block.rows,
        });
        if !added {
            let count = self.tables.iter().map(|table| table.rows.len()).sum();
            let rows = self.tables.iter().flat_map(|table| table.rows.iter());
            self.filter = Filter::of(count, rows.map(|row| row.prefix));
        }
    }

    pub(crate) fn add_mark(&mut self, mark: Mark) {
        let known = self.marks.entry((mark.key, mark.run));
        let known = known.or_insert_with(|| mark.clone());
        if known.rank() < mark.rank() {
            *known = mark;
        }
    }

    /// The index rows of these segments, as an index block has them.
    pub(crate) fn rows_of(&self, of: &HashSet<UniqueId>) -> HashMap<UniqueId, Vec<Row>> {
        let mut rows: HashMap<UniqueId, Vec<Row>> = HashMap::new();
        for table in self
            .tables
            .iter()
            .filter(|table| of.contains(&table.segment.id))
        {
            rows.insert(table.segment.id, table.rows.iter().collect());
        }
        for (row, segment) in self.loose_rows().filter(|(_, one)| of.contains(&one.id)) {
            rows.entry(segment.id).or_default().push(row);
        }
        rows
    }

    /// The frames of a prefix that are in no table.
    fn chain(&self, prefix: u64) -> impl Iterator<Item = (Row, &Arc<Segment>)> {
        let get = |at: u32| self.loose.get(at as usize);
        let first = self.first.get(&prefix).and_then(|at| get(*at));
        let chain = std::iter::successors(first, move |loose| get(loose.next));
        chain.filter_map(move |loose| {
            let row = Row {
                prefix,
                place: loose.place,
                saved_at: loose.saved_at,
            };
            Some((row, self.segments.get(loose.segment as usize)?))
        })
    }

    fn loose_rows(&self) -> impl Iterator<Item = (Row, &Arc<Segment>)> {
        let prefixes = self.first.keys();
        prefixes.flat_map(|prefix| self.chain(*prefix))
    }

    /// Forgets the frames of segments; their marks stay.
    pub(crate) fn remove(&mut self, goes: impl Fn(&UniqueId) -> bool) {
        self.tables.retain(|table| !goes(&table.segment.id));
        if !self.segments.iter().any(|one| goes(&one.id)) {
            return;
        }
        let stay = self.loose_rows().filter(|(_, one)| !goes(&one.id));
        let stay: Vec<_> = stay.map(|(row, one)| (row, Arc::clone(one))).collect();
        self.segments.clear();
        self.numbers.clear();
        self.first.clear();
        self.loose.clear();
        stay.iter().for_each(|(row, one)| self.add(one, [*row]));
    }

    /// All frames with this prefix, the latest saved first.
    fn frames(&self, prefix: u64) -> Vec<KnownFrame> {
        let loose = self.chain(prefix);
        let loose = loose.filter_map(|(row, segment)| KnownFrame::new(segment, &row));
        let mut all: Vec<_> = loose.collect();
        if self.filter.may_have(prefix) {
            for table in &self.tables {
                let found = table.rows.find(prefix);
                all.extend(found.filter_map(|row| KnownFrame::new(&table.segment, &row)));
            }
        }
        all.sort_by_key(|at| std::cmp::Reverse(at.saved_at));
        all
    }

    /// The segments that have frames with this prefix.
    pub(crate) fn segments_of(&self, prefix: u64) -> Vec<UniqueId> {
        let frames = self.frames(prefix).into_iter();
        frames.map(|frame| frame.place.segment.id).collect()
    }

    /// The places of the entries saved last, at most `most`, the latest first; one for each key.
    pub(crate) fn latest(&self, most: usize) -> Vec<Place> {
        let sealed = self.tables.iter();
        let sealed = sealed.flat_map(|table| table.rows.iter().map(|row| (row, &table.segment)));
        let entries = self
            .loose_rows()
            .chain(sealed)
            .filter(|(row, _)| row.kind() == Some(FrameKind::Entry));
        let mut latest = Vec::new();
        for one in entries {
            latest.push(one);
            // Bounds the memory, whatever the size of the store.
            if latest.len() >= most.saturating_mul(2) {
                keep_latest(&mut latest, most);
            }
        }
        keep_latest(&mut latest, most);
        latest.sort_by_key(|(row, _)| std::cmp::Reverse(row.saved_at));
        let mut keys = HashSet::new();
        latest.retain(|(row, _)| keys.insert(row.prefix));
        let place = |(row, segment): (Row, &Arc<Segment>)| Place {
            segment: Arc::clone(segment),
            at: row.at(),
        };
        latest.into_iter().map(place).collect()
    }

    /// The saved entries of a key, the latest saved first.
    pub(crate) fn entries(&self, key: &Key) -> Vec<KnownFrame> {
        self.of_kind(key, FrameKind::Entry)
    }

    /// The copies of a provenance.
    pub(crate) fn provenances(&self, key: &Key) -> Vec<KnownFrame> {
        self.of_kind(key, FrameKind::Provenance)
    }

    /// The copies of an output file's content.
    pub(crate) fn contents(&self, key: &Key) -> Vec<KnownFrame> {
        self.of_kind(key, FrameKind::Content)
    }

    fn of_kind(&self, key: &Key, kind: FrameKind) -> Vec<KnownFrame> {
        let mut all = self.frames(prefix(key));
        all.retain(|at| at.kind == kind);
        all
    }

    /// The scratch states of a key that were saved after its last entry, the
    /// latest first: those saved before belong to a run that has finished.
    pub(crate) fn scratch(&self, key: &Key) -> Vec<KnownFrame> {
        let all = self.frames(prefix(key)).into_iter();
        all.take_while(|at| at.kind != FrameKind::Entry)
            .filter(|at| at.kind == FrameKind::Scratch)
            .take(STATES)
            .collect()
    }

    /// The time of saving from which states of a run are of use: that of the second last state, or later if an
    /// entry was saved after it. Only frames that `counts` accepts are considered.
    pub(crate) fn of_use(&self, prefix: u64, counts: impl Fn(&Place) -> bool) -> u64 {
        let mut all = self.frames(prefix);
        all.retain(|at| counts(&at.place));
        let ended = all.iter().find(|at| at.kind == FrameKind::Entry);
        let ended = ended.map_or(0, |entry| entry.saved_at.saturating_add(1));
        let saved = all.iter().filter(|at| at.kind == FrameKind::Scratch);
        let mut saved: Vec<u64> = saved.map(|at| at.saved_at).collect();
        // A state that was written twice is one.
        saved.dedup();
        let since = saved.get(STATES_OF_USE - 1).copied();
        since.unwrap_or(0).max(ended)
    }

    /// The latest mark of a computation.
    pub(crate) fn mark(&self, of: &(Key, RunId)) -> Option<&Mark> {
        self.marks.get(of)
    }

    /// The latest mark of each computation, the oldest first.
    pub(crate) fn marks(&self) -> Vec<Mark> {
        let mut marks: Vec<Mark> = self.marks.values().cloned().collect();
        marks.sort_by_key(|mark| mark.at);
        marks
    }
}

/// Keeps the `most` rows saved last, in any order.
fn keep_latest<T>(all: &mut Vec<(Row, T)>, most: usize) {
    if all.len() > most {
        all.select_nth_unstable_by_key(most, |(row, _)| std::cmp::Reverse(row.saved_at));
        all.truncate(most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::segment::tests;

    fn segment(id: u8) -> Arc<Segment> {
        Arc::new(tests::segment(id))
    }

    fn row(key: u8, saved_at: u64) -> Row {
        Row {
            prefix: u64::from_be_bytes([key; 8]),
            place: (64 + saved_at) << 8 | u64::from(FrameKind::Entry.code()),
            saved_at,
        }
    }

    fn places(found: Vec<KnownFrame>) -> Vec<u64> {
        found.iter().map(|frame| frame.saved_at).collect()
    }

    /// In sealed segments, large and small, and others; in any order; a key twice.
    #[test]
    fn the_latest_entries_are_found_wherever_they_are() {
        let mut index = Index::default();
        let mut sealed = vec![row(1, 10), row(2, 70), row(3, 30)];
        sealed.extend((0..LARGE as u64).map(|number| Row {
            prefix: number << 20,
            saved_at: 0,
            ..row(0, 0)
        }));
        let (block, _) = IndexBlock::seal(&segment(1), sealed, 4096).unwrap();
        index.add_sealed(&segment(1), block);
        let state = Row {
            place: 64 << 8 | u64::from(FrameKind::Scratch.code()),
            ..row(8, 90)
        };
        index.add(&segment(2), [row(4, 60), state, row(5, 20), row(2, 50)]);
        let latest = |most| {
            let found = index.latest(most).into_iter();
            found.map(|place| place.at - 64).collect::<Vec<_>>()
        };
        assert_eq!(latest(0), []);
        assert_eq!(latest(1), [70]);
        assert_eq!(latest(2), [70, 60]);
        assert_eq!(latest(4), [70, 60, 30]);
        assert_eq!(latest(6), [70, 60, 30, 20, 10]);
        let key = Key::from_bytes([2; 32]);
        assert_eq!(places(index.entries(&key)), [70, 50]);
        index.remove(|id| *id == UniqueId([1; 16]));
        assert_eq!(places(index.entries(&key)), [50]);
        index.remove(|id| *id == UniqueId([2; 16]));
        assert_eq!(index.entries(&key).len(), 0);
    }
}
