//! A workflow with many generated kernels: what each start costs.
//!
//! The energy of a molecule is computed with repulsion integrals that a device of OpenCL makes, and
//! matrices are multiplied on it, in single and double precision. For each angular momentum, tile size
//! and element type there is a kernel of its own, as in the libraries that do this for a living: 78
//! for water in 6-31G*. They are had from `sde-opencl`, by a process that has never seen them, by the same
//! process at the next geometry, and by a new process. The numbers are compared with those of `sde-apps`.

mod device;
mod failure;
mod meter;
mod options;
mod product;
mod report;
mod repulsion;
mod source;
mod start;
mod workflow;

use std::process::ExitCode;

use failure::Failure;
use options::Asked;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.message.is_empty() {
                eprintln!("error: {}", failure.message);
            }
            ExitCode::from(failure.status)
        }
    }
}

fn run() -> Result<(), Failure> {
    match options::parse(lexopt::Parser::from_env())? {
        Asked::Help => report::print(options::HELP),
        Asked::Devices => report::devices(),
        Asked::Start(name, options) => start::be(&name, &options),
        Asked::Run(options) => report::show(&options, &start::all(&options)?),
    }
}
