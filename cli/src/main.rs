//! The `sde` program: looks into stores, and tells their content and damage.
//!
//! A store outlives the programs that wrote it. Its owner wants to list it, to know
//! whether it is whole, to see why a run was computed again, and to take results out of it,
//! without writing a program with the right types. All commands but `gc` and `copy` only read. All
//! of them work on the rest of a damaged store.
//!
//! The guide's page on it is `docs/guide/05-program.md`.

mod args;
mod columns;
mod commands;
mod failure;
mod file;
mod find;
mod json;
mod listing;
mod npy;
mod output;
mod store;
mod table;
mod text;
mod time;

use std::process::ExitCode;

use clap::Parser;

use commands::Program;
use failure::Failure;
use output::Output;

fn main() -> ExitCode {
    let program = Program::parse();
    let mut out = Output::standard(program.json);
    let done = program.command.run(&mut out).and_then(|()| out.flush());
    let status = match done {
        // A closed pipe means that the reader has seen enough.
        Ok(()) | Err(Failure::Closed) => u8::from(out.found),
        Err(Failure::Told(message)) => {
            output::warn(message);
            2
        }
    };
    ExitCode::from(status)
}
