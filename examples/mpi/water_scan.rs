//! The example `water_scan` on the ranks of an MPI job:
//!
//! ```text
//! mpirun -n 4 water_scan_mpi --store DIR
//! ```
//!
//! It is the same program. Its points are dealt out to the ranks, each of which computes with its own
//! threads, and saves what it computed to files of its own, until all have come to the end.

#![forbid(unsafe_code)]

#[path = "../02_water_scan/program.rs"]
mod program;

use std::path::Path;
use std::process::ExitCode;

use sde::Builder;
use sde::archiver::ArchiveError;
use sde::mpi::MpiGroup;
use sde::ranks::ProcessGroup;
use sde::store::{Cbor, DirStore, StoreOptions};

impl program::Ranks for MpiGroup {
    fn is_first(&self) -> bool {
        self.rank() == 0
    }

    fn open(&self, store: &Path) -> Result<DirStore, ArchiveError> {
        StoreOptions::new().open_together(store, self)
    }

    fn put_on(self, builder: Builder) -> Builder {
        builder.process_group(self, Cbor)
    }
}

fn main() -> ExitCode {
    match sde::mpi::Session::start() {
        Ok(session) => program::main(session.world()),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
