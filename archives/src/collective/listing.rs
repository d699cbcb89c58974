//! The frames of segments, as one rank tells them to others, so that they need not read the files.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use sde::archiver::Mark;
use serde::{Deserialize, Serialize};

use crate::catalog::Catalog;
use crate::catalog::Written;
use crate::catalog::segments::KnownSegment;
use crate::cbor::metadata::bytes;
use crate::format::class::{Part, folder};
use crate::format::id::UniqueId;
use crate::format::index_block::{IndexBlock, Row, Rows};
use crate::format::segment::{SEGMENT_HEADER, Segment};
use crate::locks::lock;

/// The frames of some segments of the store.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Listing {
    segments: Vec<SegmentRows>,
    marks: Vec<Mark>,
    /// Replaced segments that are still to be removed.
    replaced: Vec<SegmentRows>,
}

/// The frames of a segment from a place on.
#[derive(Serialize, Deserialize)]
struct SegmentRows {
    part: u8,
    id: [u8; 16],
    writer: [u8; 16],
    /// The name of its file.
    name: String,
    from: u64,
    /// The end of the frames listed.
    end: u64,
    /// The file's length if it is sealed, otherwise the end of its frames.
    length: u64,
    /// Rows, as an index has them, sorted.
    #[serde(with = "bytes")]
    rows: Vec<u8>,
}

impl SegmentRows {
    fn new(segment: &Segment, from: u64, (end, length): (u64, u64), rows: Vec<Row>) -> Self {
        let name = segment.path.file_name().unwrap_or_default();
        Self {
            part: segment.part.code(),
            id: segment.id.0,
            writer: segment.writer.0,
            name: name.to_string_lossy().into_owned(),
            from,
            end,
            length,
            rows: Rows::sorted(rows).0,
        }
    }

    fn id(&self) -> UniqueId {
        UniqueId(self.id)
    }

    fn known(&self, catalog: &Catalog) -> Option<KnownSegment> {
        let part = Part::from_code(self.part)?;
        let path = folder(&catalog.dir, part).join(&self.name);
        let (id, writer) = (UniqueId(self.id), UniqueId(self.writer));
        Some(KnownSegment {
            segment: Arc::new(Segment::new(path, id, part, writer)),
            end: self.end,
            length: self.length,
            sealed: self.length > self.end,
        })
    }
}

impl Listing {
    /// The known segments of a store.
    pub(super) fn all(catalog: &Catalog) -> Self {
        let mut all = Self::default();
        let segments = lock(&catalog.segments);
        let known: Vec<KnownSegment> = segments.known().collect();
        let replaced = segments.replaced();
        let replaced =
            replaced.map(|one| SegmentRows::new(&one.segment, 0, (one.end, one.end), Vec::new()));
        all.replaced = replaced.collect();
        all.add(catalog, &known);
        all
    }

    /// Adds segments, and all marks of the store.
    pub(super) fn add(&mut self, catalog: &Catalog, known: &[KnownSegment]) {
        if known.is_empty() {
            return;
        }
        let ids: HashSet<UniqueId> = known.iter().map(|one| one.segment.id).collect();
        let (mut rows, marks) = catalog.known(|index| (index.rows_of(&ids), index.marks()));
        let stretch = |one: &KnownSegment| {
            let rows = rows.remove(&one.segment.id).unwrap_or_default();
            let length = if one.sealed { one.length } else { one.end };
            let ends = (one.end, length);
            SegmentRows::new(&one.segment, SEGMENT_HEADER as u64, ends, rows)
        };
        self.segments.extend(known.iter().map(stretch));
        self.segments.sort_by(|a, b| a.name.cmp(&b.name));
        self.marks.extend(marks);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// The frames just written; `from` and `ends` give their beginning and end in each segment.
    pub(super) fn written(
        written: &[Written],
        from: impl Fn(&UniqueId) -> u64,
        ends: impl Fn(&UniqueId) -> Option<(u64, u64)>,
    ) -> Self {
        let mut rows: HashMap<UniqueId, (&Segment, Vec<Row>)> = HashMap::new();
        for one in written {
            let of = rows.entry(one.segment.id);
            let (_, rows) = of.or_insert_with(|| (&one.segment, Vec::new()));
            rows.extend(&one.rows);
        }
        let stretch = |(id, (segment, rows)): (UniqueId, (&Segment, Vec<Row>))| {
            Some(SegmentRows::new(segment, from(&id), ends(&id)?, rows))
        };
        Self {
            segments: rows.into_iter().filter_map(stretch).collect(),
            marks: written.iter().flat_map(|one| one.marks.clone()).collect(),
            replaced: Vec::new(),
        }
    }

    /// The end of the frames listed, for each segment.
    pub(super) fn ends(&self) -> impl Iterator<Item = (UniqueId, u64)> + '_ {
        self.segments
            .iter()
            .map(|stretch| (stretch.id(), stretch.end))
    }

    /// Records that the listed segments are durable.
    pub(super) fn note_durable(&self, catalog: &Catalog) {
        let mut segments = lock(&catalog.segments);
        let known = self.segments.iter().filter_map(|one| one.known(catalog));
        known.for_each(|one| segments.note_durable(&one));
    }

    /// Adds the listed frames to the catalog.
    pub(super) fn apply(self, catalog: &Catalog) {
        let mut segments = lock(&catalog.segments);
        let mut index = catalog.index();
        for stretch in self.segments {
            let Some(known) = stretch.known(catalog) else {
                continue;
            };
            let segment = Arc::clone(&known.segment);
            let rows = Rows(stretch.rows);
            let latest = rows.iter().map(|row| row.saved_at).max();
            latest.into_iter().for_each(|at| catalog.clock.saw(at));
            // A rank that has looked itself knows these frames.
            if !segments.apply(known, stretch.from) {
                continue;
            }
            match stretch.from == SEGMENT_HEADER as u64 {
                true => index.add_sealed(
                    &segment,
                    IndexBlock {
                        rows,
                        latest: 0,
                        end: stretch.end,
                        length: stretch.length,
                    },
                ),
                false => index.add(&segment, rows.iter()),
            }
        }
        for known in self
            .replaced
            .iter()
            .filter_map(|stretch| stretch.known(catalog))
        {
            segments.apply_replaced(known);
        }
        for mark in self.marks {
            index.add_mark(mark);
        }
    }
}
