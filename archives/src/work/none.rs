//! Announcements on systems other than Linux: none are made.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use sde::Key;
use sde::archiver::{Announced, Holder, StopListener};

use super::process::Process;

/// The announcements of a store, always empty.
pub(crate) struct Work;

impl Work {
    pub(crate) fn new(_: &Path) -> Self {
        Self
    }

    pub(crate) fn announce(&self, _: &str, _: &Key) -> Announced {
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

    pub(crate) fn attend(&self) -> Option<Box<dyn Send + Sync>> {
        None
    }

    pub(crate) fn heed(&self, _: StopListener) {}
}

pub(crate) fn processes(_: &Path) -> io::Result<Vec<Process>> {
    Ok(Vec::new())
}

pub(crate) fn tell_to_stop(_: &Path, _: Option<SystemTime>) -> io::Result<Vec<Process>> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn cancel_stop(_: &Path) -> io::Result<bool> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn remove_if_over(_: &Path) {}
