//! `sde copy`: entries of one store, into another, here or on another machine.

mod choice;
mod ends;
mod remote;
mod summary;
mod wire;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::failure::Failure;
use crate::output::Output;
use choice::Choice;
use remote::Location;
use summary::CopySummary;

/// Copies entries of one store to another, which is made if it does not exist
///
/// Takes the results and intermediates that count, or those that are chosen, and all invalidations. Nothing in TO is replaced:
/// of a key that both have, what was made last counts. Entries that TO already has are not copied again. Others may use both stores
/// meanwhile, which a plain copy of the files does not allow.
///
/// One of the two may be HOST:DIR, as for scp, where sde is started by ssh.
#[derive(Args)]
pub struct Copy {
    /// The store to copy from: DIR, or HOST:DIR
    from: PathBuf,
    /// The store to copy to: DIR, or HOST:DIR; a folder here with a colon in its name is ./a:b
    to: PathBuf,
    #[command(flatten)]
    choice: Choice,
    /// The sde program on HOST
    #[arg(long, value_name = "PATH", default_value = "sde")]
    remote_sde: String,
}

impl Copy {
    pub fn run(&self, out: &mut Output) -> Result<(), Failure> {
        let summary = match (Location::of(&self.from)?, Location::of(&self.to)?) {
            (Location::Local(from), Location::Local(to)) => {
                let (from, wanted) = self.choice.source(&from)?;
                // Opening it would make it.
                from.check_copy_to(&to)?;
                let to = self.choice.target(&to)?;
                let mut summary = CopySummary::default();
                summary.add(to.copy_from(&from, wanted)?);
                summary
            }
            (Location::Remote(from), Location::Local(to)) => {
                let words = self.choice.words("send", &from.dir);
                let open = |to: &Path| self.choice.target(to);
                from.talk(&self.remote_sde, &words, |pipes| {
                    ends::receive(&to, open, pipes, &from.host)
                })?
            }
            (Location::Local(from), Location::Remote(to)) => {
                let (from, wanted) = self.choice.source(&from)?;
                let words = self.choice.words("receive", &to.dir);
                let portion = self.choice.portion;
                to.talk(&self.remote_sde, &words, |pipes| {
                    ends::send(&from, wanted, portion, pipes, &to.host)
                })?
            }
            (Location::Remote(_), Location::Remote(_)) => {
                return Err(Failure::told(
                    "one of the two stores must be on this machine; run the command on the machine of the other",
                ));
            }
        };
        summary.print(&self.from, out)
    }
}

/// The end of `sde copy` on the other machine, which talks to the first by standard input and output
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
