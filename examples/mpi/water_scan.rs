//! The example `water_scan` on the ranks of an MPI job:
//!
//! ```text
//! mpirun -n 4 water_scan_mpi --store DIR
//! ```
//!
//! It is the same program. Its points are dealt out to the ranks, each of which computes with its own
//! threads, and saves what it computed.

#![forbid(unsafe_code)]

#[path = "../02_water_scan/program.rs"]
mod program;

use std::process::ExitCode;

use sde_archives::Cbor;

fn main() -> ExitCode {
    let session = match sde_mpi::Session::start() {
        Ok(session) => session,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    program::main(
        |builder| builder.process_group(session.world(), Cbor),
        session.rank() == 0,
    )
}
