//! Whether a compiler reads what the key was made from.
//!
//! A program is described once and compiled later, perhaps hours later, when it was let go meanwhile. The
//! compiler reads the included files itself, and the driver its switches. If they are others by then,
//! the code is not that of the key, and may not be kept or remembered under it. So they are looked at before
//! each compilation and after it; a file that was changed and put back in between is told by its time. A directory or a link
//! that is another for as long as the compiler runs, and the same again then, is not told.

use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use super::full_key::{FullKey, Included, Material};
use super::options::Options;
use super::scan::Source;
use super::{Descriptor, Environment};

/// When each included file was written last, where the system says so.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stamps(Vec<Option<SystemTime>>);

impl Descriptor {
    /// Nothing, if a file that is included or a switch of the driver is another than when this was
    /// described. The parts of a linked program are described, and asked, by themselves.
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
        // The times first: a file that is written between the two is another one then.
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
