//! What is in segments, as one rank tells it to others, so that they need not read it.

use std::collections::HashMap;
use std::sync::Arc;

use sde::Mark;
use serde::{Deserialize, Serialize};

use crate::catalog::index::Index;
use crate::catalog::segments::{Known, Seen};
use crate::catalog::table::{Row, Table};
use crate::format::class::Class;
use crate::format::id::UniqueId;
use crate::format::segment::{SEGMENT_HEADER, Segment};
use crate::store::{Inner, lock};
use crate::writer::frame::Written;

/// What is in some segments of the store.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Told {
    pub(super) segments: Vec<Part>,
    pub(super) marks: Vec<Mark>,
    /// Segments that were replaced and are to be removed some day.
    replaced: Vec<Part>,
}

/// What is in a segment from a place on.
#[derive(Serialize, Deserialize)]
pub(super) struct Part {
    class: u8,
    id: [u8; 16],
    writer: [u8; 16],
    /// The name of its file.
    name: String,
    from: u64,
    /// Up to where its frames are told of.
    end: u64,
    /// How long its file is.
    pub(super) length: u64,
    /// Whether the rows are all that it has, and sorted.
    sealed: bool,
    latest: u64,
    #[serde(with = "sde::bulk")]
    rows: Vec<u8>,
}

impl Part {
    /// Nothing of a segment yet.
    fn new(segment: &Segment, from: u64, end: u64, length: u64) -> Self {
        let name = segment.path.file_name().unwrap_or_default();
        Self {
            class: segment.class.code(),
            id: segment.id.0,
            writer: segment.writer.0,
            name: name.to_string_lossy().into_owned(),
            from,
            end,
            length,
            sealed: false,
            latest: 0,
            rows: Vec::new(),
        }
    }

    fn add(&mut self, row: &Row) {
        self.latest = self.latest.max(row.saved_at);
        self.rows.extend(row.bytes());
    }

    pub(super) fn id(&self) -> UniqueId {
        UniqueId(self.id)
    }

    fn known(&self, inner: &Inner) -> Option<Known> {
        let class = Class::from_code(self.class)?;
        let path = crate::writer::segment_writer::folder(&inner.dir, class).join(&self.name);
        let (id, writer) = (UniqueId(self.id), UniqueId(self.writer));
        Some(Known {
            segment: Arc::new(Segment::new(path.clone(), id, class, writer)),
            path,
            id,
            class,
            length: self.end,
        })
    }
}

impl Told {
    /// All that a store is known to have.
    pub(super) fn all(seen: &Seen, index: &Index) -> Self {
        let mut parts: HashMap<UniqueId, Part> = HashMap::new();
        for (known, length) in seen.with_lengths() {
            let part = Part::new(&known.segment, SEGMENT_HEADER as u64, known.length, length);
            parts.insert(known.id, part);
        }
        for table in index.tables() {
            if let Some(part) = parts.get_mut(&table.segment.id) {
                part.sealed = true;
                part.latest = table.latest;
                part.rows = table.bytes().to_vec();
            }
        }
        for (segment, row) in index.rows() {
            if let Some(part) = parts.get_mut(&segment.id) {
                part.add(&row);
            }
        }
        let mut segments: Vec<_> = parts.into_values().collect();
        segments.sort_by(|a, b| a.name.cmp(&b.name));
        Self {
            segments,
            marks: index.marks().to_vec(),
            replaced: seen
                .replaced()
                .map(|known| Part::new(&known.segment, 0, known.length, known.length))
                .collect(),
        }
    }

    /// What was just written, and where that ends in each segment; `from` says where it begins.
    pub(super) fn written(
        written: &[Written],
        from: impl Fn(&UniqueId) -> u64,
        ends: impl Fn(&UniqueId) -> Option<(u64, u64)>,
    ) -> Self {
        let mut parts: HashMap<UniqueId, Part> = HashMap::new();
        for one in written {
            let segment = &one.segment;
            let Some((end, length)) = ends(&segment.id) else {
                continue;
            };
            let part = parts
                .entry(segment.id)
                .or_insert_with(|| Part::new(segment, from(&segment.id), end, length));
            one.row.iter().for_each(|row| part.add(row));
        }
        Self {
            segments: parts.into_values().collect(),
            marks: written.iter().filter_map(|one| one.mark.clone()).collect(),
            replaced: Vec::new(),
        }
    }

    /// How far each segment is told of.
    pub(super) fn ends(&self) -> impl Iterator<Item = (UniqueId, u64)> + '_ {
        self.segments.iter().map(|part| (part.id(), part.end))
    }

    /// Takes note that all of it is durable.
    pub(super) fn is_sure(&self, inner: &Inner) {
        let mut seen = lock(&inner.seen);
        self.ends().for_each(|(id, end)| seen.set_sure(id, end));
    }

    /// Takes note of all of it.
    pub(super) fn take_in(&self, inner: &Inner) {
        let mut seen = lock(&inner.seen);
        let mut index = inner
            .index
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        for part in &self.segments {
            let Some(known) = part.known(inner) else {
                continue;
            };
            let segment = Arc::clone(&known.segment);
            inner.clock.saw(part.latest);
            // Who has looked himself has read it.
            let Some(segment) = seen.hear(known, part.from, part.length).then_some(segment) else {
                continue;
            };
            match part.sealed {
                true => index.add_table(Table::told(
                    &segment,
                    part.rows.clone(),
                    part.latest,
                    (part.end, part.length),
                )),
                false => index.add(&segment, &Row::all(&part.rows)),
            }
        }
        for known in self.replaced.iter().filter_map(|part| part.known(inner)) {
            seen.hear_of_replaced(known);
        }
        for mark in &self.marks {
            index.add_mark(mark.clone());
        }
    }
}
