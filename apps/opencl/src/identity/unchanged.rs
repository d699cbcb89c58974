//! Whether a compiler reads the same files and switches that the key was made from.
//!
//! A program is described once and compiled later, perhaps hours later, after an eviction. The
//! compiler then reads the included files itself, and the driver its switches. If any has changed, the code is not that
//! of the key, and may not be kept or remembered under it. So they are checked before and after each
//! compilation; modification times reveal a file that was changed and put back in between. A directory or a link
//! that changes only while the compiler runs is not noticed.

use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use super::full_key::{FullKey, Included, Material};
use super::options::Options;
use super::scan::Source;
use super::{Descriptor, Environment};

/// The modification time of each included file, where the system gives one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stamps(Vec<Option<SystemTime>>);

impl Descriptor {
    /// `None` if an included file or a switch of the driver has changed since this was
    /// described. The parts of a linked program have descriptors of their own, and are checked by themselves.
    pub(crate) fn unchanged(&self, environment: &Environment) -> Option<Stamps> {
        let full = self.full_key();
        let is_same = environment.switches() == full.switches;
        is_same
            .then(|| full.stamps(&environment.looked_in_before()))
            .flatten()
    }
}

impl FullKey {
    fn stamps(&self, before: &[PathBuf]) -> Option<Stamps> {
        let Material::Source {
            text,
            included,
            reads,
        } = &self.material
        else {
            return Some(Stamps(Vec::new()));
        };
        let mut options = Options::default();
        options.add(&self.options).ok()?;
        // The times are read before the contents, so that a write between the two reads is noticed.
        let written = |one: &Included| fs::metadata(&one.path)?.modified();
        let stamps = Stamps(included.iter().map(|one| written(one).ok()).collect());
        let now = Source {
            text,
            name: "",
            options: &self.options,
            dirs: &options.include_dirs(),
            before,
            reads: reads.as_deref(),
        };
        (now.scan().included == *included).then_some(stamps)
    }
}
