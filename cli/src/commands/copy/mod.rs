//! `sde copy`: entries of one store, into another, here or on another machine.

mod choice;
mod end;
mod ends;
mod place;
mod remote;
mod told;
mod wire;

use std::path::{Path, PathBuf};

use clap::Args;

use crate::failure::Failure;
use crate::output::Output;
use choice::Choice;
pub use end::CopyEnd;
use place::Place;
use told::Told;

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
        let told = match (Place::of(&self.from)?, Place::of(&self.to)?) {
            (Place::Here(from), Place::Here(to)) => {
                let (from, wanted) = self.choice.source(&from)?;
                // Opening it would make it.
                from.check_copy_to(&to)?;
                let to = self.choice.target(&to)?;
                let mut told = Told::default();
                told.add(to.copy_from(&from, wanted)?);
                told
            }
            (Place::There(from), Place::Here(to)) => {
                let words = self.choice.words("send", &from.dir);
                let open = |to: &Path| self.choice.target(to);
                from.talk(&self.remote_sde, &words, |pipes| {
                    ends::receive(&to, open, pipes, &from.host)
                })?
            }
            (Place::Here(from), Place::There(to)) => {
                let (from, wanted) = self.choice.source(&from)?;
                let words = self.choice.words("receive", &to.dir);
                let portion = self.choice.portion;
                to.talk(&self.remote_sde, &words, |pipes| {
                    ends::send(&from, wanted, portion, pipes, &to.host)
                })?
            }
            (Place::There(_), Place::There(_)) => {
                return Err(Failure::told(
                    "one of the two stores must be on this machine; run the command on the machine of the other",
                ));
            }
        };
        told.print(&self.from, out)
    }
}
