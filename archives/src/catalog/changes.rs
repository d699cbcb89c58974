//! Frames and segments that a look found new.

use std::collections::HashSet;
use std::sync::Arc;

use sde::Mark;

use crate::format::id::UniqueId;
use crate::format::index_block::{IndexBlock, Row};
use crate::format::segment::Segment;

/// Frames and segments that are new, and segments that are gone.
#[derive(Default)]
pub(crate) struct CatalogChanges {
    pub(crate) sealed: Vec<(Arc<Segment>, IndexBlock)>,
    pub(crate) frames: Vec<(Arc<Segment>, Vec<Row>)>,
    pub(crate) marks: Vec<Mark>,
    /// Segments whose files are gone, or replaced; what is still new of them is among the rest.
    pub(crate) gone: HashSet<UniqueId>,
}

impl CatalogChanges {
    /// Leaves out what was read of a segment.
    pub(super) fn leave_out(&mut self, id: &UniqueId) {
        self.sealed.retain(|(segment, _)| segment.id != *id);
        self.frames.retain(|(segment, _)| segment.id != *id);
    }
}
