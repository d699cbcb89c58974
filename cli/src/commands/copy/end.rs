//! `sde copy-end`: what `sde copy` starts on the other machine.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::choice::Choice;
use super::ends;
use crate::failure::Failure;

/// The end of a copy on another machine, which talks to the other by standard input and output
#[derive(Args)]
pub struct CopyEnd {
    side: Side,
    #[command(flatten)]
    choice: Choice,
    store: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum Side {
    Send,
    Receive,
}

impl CopyEnd {
    pub fn run(&self) -> Result<(), Failure> {
        const OTHER: &str = "the machine that began the copy";
        let pipes = (std::io::stdin().lock(), std::io::stdout().lock());
        match self.side {
            Side::Send => {
                let (from, wanted) = self.choice.source(&self.store)?;
                ends::send(&from, wanted, self.choice.portion, pipes, OTHER)
            }
            Side::Receive => {
                let open = |to: &Path| self.choice.target(to);
                ends::receive(&self.store, open, pipes, OTHER)
            }
        }
        .map(drop)
    }
}
