//! The `sde` program: runs programs and remembers what they gave, looks into stores, and tells their content and damage.
//!
//! A store outlives the programs that wrote it. Its owner wants to list it, to know
//! whether it is whole, to see why a run was computed again, and to take results out of it,
//! without writing a program with the right types. All commands but `exec`, `gc`, `invalidate`, `copy`, `init`, `stop` and `trust` only read. All
//! of them work on the rest of a damaged store.
//!
//! The guide's page on it is `docs/guide/05-program.md`.

mod args;
mod commands;
mod failure;
mod file;
mod json;
mod npy;
mod output;
mod store;
mod table;
mod text;
mod time;
mod users;

use std::process::ExitCode;

use clap::Parser;

use commands::Program;
use failure::Failure;
use output::Output;

fn main() -> ExitCode {
    let program = match Program::try_parse() {
        Ok(program) => program,
        Err(error) => return refused(&error),
    };
    let mut out = Output::standard(program.json);
    let done = program.command.run(&mut out).and_then(|()| out.flush());
    let status = match done {
        // A closed pipe means that the reader has seen enough.
        Ok(()) | Err(Failure::Closed) => u8::from(out.found),
        Err(Failure::Told(message)) => {
            output::warn(message);
            2
        }
        Err(Failure::Status(status)) => status,
    };
    ExitCode::from(status)
}

/// Tells what is wrong with the command line, or what it asks to be told. Where the status is that of a program, that of
/// a wrong command line is another than usual.
fn refused(error: &clap::Error) -> ExitCode {
    let is_exec = std::env::args_os()
        .skip(1)
        .find(|word| !word.as_encoded_bytes().starts_with(b"-"))
        .is_some_and(|word| word == "exec");
    // If this fails, there is nobody left to tell.
    let _ = error.print();
    match error.exit_code() {
        0 => ExitCode::SUCCESS,
        _ if is_exec => ExitCode::from(commands::EXEC_FAILED),
        _ => ExitCode::from(2),
    }
}
