//! The frames selected from some sources: a bit for each.

use std::collections::HashMap;

use sde::Key;

use super::source::{Member, Source};
use crate::format::frame::FrameKind;
use crate::format::index_block::Row;
use crate::format::uses::UsesOf;

/// The frames selected from some sources.
#[derive(Clone)]
pub(crate) struct Selected {
    /// For each source a bit for each of its rows.
    kept: Vec<Vec<u64>>,
    /// The uses recorded in all sources, which are written with the frames.
    pub(crate) uses: UsesOf,
    /// The contents that are kept, with the length of their frames.
    pub(super) contents: HashMap<Key, u64>,
    /// The number of contents that kept entries name and no source has.
    pub(crate) missing: usize,
    /// Whether each source has damage that is not copied.
    pub(crate) damaged: Vec<bool>,
}

impl Selected {
    pub(super) fn new(sources: &[Source]) -> Self {
        let bits = |source: &Source| vec![0; source.rows.len().div_ceil(64)];
        Self {
            kept: sources.iter().map(bits).collect(),
            uses: UsesOf::default(),
            contents: HashMap::new(),
            missing: 0,
            damaged: sources.iter().map(|source| source.damaged).collect(),
        }
    }

    /// Selects the frames that `keeps` accepts.
    pub(crate) fn of(sources: &[Source], mut keeps: impl FnMut(&Row) -> bool) -> Self {
        let mut selected = Self::new(sources);
        for (source, of) in sources.iter().enumerate() {
            for (number, row) in of.rows.iter().enumerate().filter(|(_, row)| keeps(row)) {
                selected.keep(&Member {
                    source,
                    number,
                    row,
                });
            }
        }
        selected
    }

    pub(super) fn keep(&mut self, of: &Member) {
        self.kept[of.source][of.number / 64] |= 1 << (of.number % 64);
    }

    pub(super) fn keeps(&self, source: usize, number: usize) -> bool {
        self.kept[source][number / 64] >> (number % 64) & 1 == 1
    }

    /// Only the frames kept of one source, without uses.
    pub(crate) fn only(&self, source: usize) -> Self {
        let mut only = self.clone();
        only.uses.clear();
        let others = only.kept.iter_mut().enumerate();
        let others = others.filter(|(other, _)| *other != source);
        others.for_each(|(_, kept)| kept.fill(0));
        only
    }

    pub(crate) fn keeps_any(&self, source: usize) -> bool {
        self.kept[source].iter().any(|bits| *bits != 0)
    }

    /// Whether another selection keeps the same frames of a source.
    pub(crate) fn is_same(&self, other: &Self, source: usize) -> bool {
        self.kept[source] == other.kept[source]
    }

    /// The places of a source's kept frames, in order.
    pub(super) fn places(&self, of: &Source, source: usize) -> Vec<u64> {
        let rows = of.rows.iter().enumerate();
        let kept = rows.filter(|(number, _)| self.keeps(source, *number));
        let mut places: Vec<u64> = kept.map(|(_, row)| row.at()).collect();
        places.sort_unstable();
        places
    }

    /// The bytes of a source's kept frames, and of frames that nobody needs.
    pub(crate) fn bytes(&self, of: &Source, source: usize) -> (u64, u64) {
        let rows = of.rows.iter().enumerate();
        let mut rows: Vec<_> = rows
            .map(|(number, row)| (row.at(), row.kind(), self.keeps(source, number)))
            .collect();
        rows.sort_unstable_by_key(|(at, ..)| *at);
        let ends = rows.iter().skip(1).map(|(at, ..)| *at);
        let ends = ends.chain([of.length]);
        let (mut kept, mut dead) = (0, 0);
        for ((at, kind, is_kept), end) in rows.iter().zip(ends) {
            let bytes = end.saturating_sub(*at);
            match (is_kept, kind) {
                (true, _) => kept += bytes,
                // A copy gets its own.
                (false, Some(FrameKind::Uses | FrameKind::Provenance)) => {}
                (false, _) => dead += bytes,
            }
        }
        (kept, dead)
    }
}
