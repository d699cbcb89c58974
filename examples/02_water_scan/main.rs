//! Restricted Hartree-Fock energies of a molecule along a bond length or angle.
//!
//! With `--store DIR` every point is saved as soon as it is computed: run twice, it
//! computes nothing; killed half-way, it goes on from where it was.

#[path = "program.rs"]
mod program;

use std::path::Path;
use std::process::ExitCode;

use sde::Builder;
use sde::archiver::ArchiveError;
use sde::store::DirStore;

struct OneProcess;

impl program::Ranks for OneProcess {
    fn is_first(&self) -> bool {
        true
    }

    fn open(&self, store: &Path) -> Result<DirStore, ArchiveError> {
        DirStore::open(store)
    }

    fn put_on(self, builder: Builder) -> Builder {
        builder
    }
}

fn main() -> ExitCode {
    program::main(OneProcess)
}
