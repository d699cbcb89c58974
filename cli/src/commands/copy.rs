//! `sde copy`: entries of one store, into another.

use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use sde_archives::inspect::Inspection;
use sde_archives::{Copyable, DirStore, StoreOptions};
use serde_json::json;

use crate::args::App;
use crate::failure::Failure;
use crate::output::Output;
use crate::{store, text, time};

/// Copies entries of one store to another, which is made if it does not exist
///
/// Takes the results and intermediates that count, or those that are chosen, and all invalidations. Nothing in TO is replaced:
/// of a key that both have, what was made last counts. What is there already is not copied again. Others may use both stores
/// meanwhile, which a plain copy of the files does not allow.
#[derive(Args)]
pub struct Copy {
    /// The store to copy from
    from: PathBuf,
    /// The store to copy to
    to: PathBuf,
    /// Only entries of this app; a * at the end stands for any ending. May be given several times
    #[arg(long)]
    app: Vec<App>,
    /// Only entries whose keys begin so. May be given several times
    #[arg(long)]
    key: Vec<String>,
    /// Only what was made since: 90s, 15m, 2h, 3d or 1w ago, a day, or a day and a time in UTC (2026-11-21T16:00)
    #[arg(long, value_name = "TIME", value_parser = time::when)]
    since: Option<Timestamp>,
    /// Only what was made until then
    #[arg(long, value_name = "TIME", value_parser = time::when)]
    until: Option<Timestamp>,
    /// Also stores that belong to someone else, or that others can write to
    #[arg(long)]
    trust_others: bool,
}

impl Copy {
    pub fn run(&self, out: &mut Output) -> Result<(), Failure> {
        Inspection::open(&self.from).map_err(|error| store::not_opened(&self.from, error))?;
        let keys = self.keys()?;
        let from = self.open(&self.from, StoreOptions::new().read_only())?;
        let to = self.open(&self.to, StoreOptions::new().without_environment())?;
        let wanted = |one: &Copyable<'_>| {
            let key = || one.key.to_string();
            (self.app.is_empty() || self.app.iter().any(|app| app.is(one.app)))
                && (keys.is_empty() || keys.iter().any(|begins| key().starts_with(begins)))
                && self
                    .since
                    .is_none_or(|since| time::of(one.made_at) >= since)
                && self
                    .until
                    .is_none_or(|until| time::of(one.made_at) <= until)
        };
        let copied = to.copy_from(&from, wanted)?;
        out.found |= copied.damaged + copied.missing > 0;
        if out.json {
            return out.object(&json!({
                "entries": copied.entries,
                "there": copied.there,
                "damaged": copied.damaged,
                "missing": copied.missing,
            }));
        }
        let entries = |count| text::count(count, "entry", "entries");
        out.line(format!(
            "{} copied, {} there already",
            entries(copied.entries),
            copied.there
        ))?;
        if copied.damaged > 0 {
            let left_out = entries(copied.damaged);
            out.line(format!(
                "{left_out} left out: `sde verify` says what is damaged"
            ))?;
        }
        if copied.missing > 0 {
            let files = text::count(copied.missing, "output file", "output files");
            out.line(format!(
                "what {files} held is missing in {}",
                self.from.display()
            ))?;
        }
        Ok(())
    }

    fn open(&self, path: &PathBuf, options: StoreOptions) -> Result<DirStore, Failure> {
        let options = match self.trust_others {
            true => options.trust_others(),
            false => options,
        };
        options
            .open(path)
            .map_err(|error| store::not_opened(path, error))
    }

    fn keys(&self) -> Result<Vec<String>, Failure> {
        let key = |key: &String| {
            let key = key.to_ascii_lowercase();
            let is_hex = key.chars().all(|digit| digit.is_ascii_hexdigit());
            match is_hex && (1..=64).contains(&key.len()) {
                true => Ok(key),
                false => Err(Failure::told(format!(
                    "\"{key}\" is not a key, nor the beginning of one; `sde ls` shows them"
                ))),
            }
        };
        self.key.iter().map(key).collect()
    }
}
