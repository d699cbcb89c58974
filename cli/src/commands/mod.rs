//! The commands.

mod copy;
mod diff;
mod doctor;
mod exec;
mod explain;
mod export;
mod gc;
mod init;
mod invalidate;
mod ls;
mod show;
mod stats;
mod stop;
mod table;
mod trust;
mod verify;
mod watch;

use std::io::Write;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::failure::Failure;
use crate::output::Output;
pub use exec::FAILED as EXEC_FAILED;

const STATUS: &str = "\
STORE is a directory with a store. Where it is left out, it is the one that SDE_STORE names, or else commands.sde \
here. KEY is a key or the \
beginning of one, as `sde ls` shows it.

Exit status: 0 all is well, 1 something was found damaged or different, 2 what was asked for makes no sense or can't \
be done. `sde exec` has others: those of the program that it runs.";

/// Looks into stores of the SDE framework: checkpoints, archives, kernel caches
#[derive(Parser)]
#[command(name = "sde", version, after_help = STATUS, max_term_width = 100)]
pub struct Program {
    /// JSON in place of text
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    Init(init::Init),
    Exec(Box<exec::Exec>),
    Ls(ls::Ls),
    Table(table::Table),
    Show(show::Show),
    Explain(explain::Explain),
    Export(export::Export),
    Stats(stats::Stats),
    Verify(verify::Verify),
    Diff(diff::Diff),
    Copy(copy::Copy),
    #[command(hide = true)]
    CopyEnd(copy::CopyEnd),
    Gc(gc::Gc),
    Invalidate(invalidate::Invalidate),
    Watch(watch::Watch),
    Stop(stop::Stop),
    Trust(trust::Trust),
    Doctor(doctor::Doctor),
    /// What a shell needs to complete commands and options
    Completions {
        shell: Shell,
    },
}

impl Command {
    pub fn run(&self, out: &mut Output) -> Result<(), Failure> {
        match self {
            Self::Init(init) => init.run(out),
            Self::Exec(exec) => exec.run(out),
            Self::Ls(ls) => ls.run(out),
            Self::Table(table) => table.run(out),
            Self::Show(show) => show.run(out),
            Self::Explain(explain) => explain.run(out),
            Self::Export(export) => export.run(out),
            Self::Stats(stats) => stats.run(out),
            Self::Verify(verify) => verify.run(out),
            Self::Diff(diff) => diff.run(out),
            Self::Copy(copy) => copy.run(out),
            Self::CopyEnd(end) => end.run(),
            Self::Gc(gc) => gc.run(out),
            Self::Invalidate(invalidate) => invalidate.run(out),
            Self::Watch(watch) => watch.run(out),
            Self::Stop(stop) => stop.run(out),
            Self::Trust(trust) => trust.run(out),
            Self::Doctor(doctor) => doctor.run(out),
            Self::Completions { shell } => {
                // The generator panics if it can't write, so it writes to memory.
                let mut script = Vec::new();
                clap_complete::generate(*shell, &mut Program::command(), "sde", &mut script);
                Ok(out.raw().write_all(&script)?)
            }
        }
    }
}

/// The key, for a command that needs one.
fn needed(key: Option<String>) -> Result<String, Failure> {
    key.ok_or_else(|| Failure::told("which entry? Give its key, as `sde ls` shows it"))
}

/// A version as declared, or the first digits of a source's digest.
fn code(code: &sde::record::CodeId) -> String {
    match code {
        sde::record::CodeId::Version(version) => version.to_string(),
        sde::record::CodeId::Source(digest) => {
            format!("src {}", digest.short().get(..8).unwrap_or_default())
        }
        other => other.to_string(),
    }
}
