//! Announcements on systems other than Linux: none are made.

use std::path::Path;
use std::sync::Arc;

use sde::Key;
use sde::archiver::{Announced, Holder};

/// The announcements of a store, always empty.
pub(crate) struct Work;

impl Work {
    pub(crate) fn new(_: &Path) -> Self {
        Self
    }

    pub(crate) fn announce(&self, _: &Key) -> Announced {
        Announced::Unsupported
    }

    pub(crate) fn announced_by(&self, _: &Key) -> Option<Holder> {
        None
    }

    pub(crate) fn watch(
        &self,
        _: &Key,
        _: Arc<dyn Fn() + Send + Sync>,
    ) -> Option<Box<dyn Send + Sync>> {
        None
    }

    pub(crate) fn clean(&self) {}
}
