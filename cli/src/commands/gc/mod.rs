//! `sde gc`: makes room, and takes out chosen entries.

mod chosen;
mod condition;
mod old_code;

use std::path::Path;
use std::time::Duration;

use clap::Args;
use sde_archives::inspect::Inspection;
use sde_archives::{Compacted, DirStore, LimitError, Retention, StoreOptions};
use serde_json::{Value as Json, json};

use crate::args::Place;
use crate::failure::Failure;
use crate::output::Output;
use crate::{store, text, time};

/// Makes room in a store, and takes out chosen entries
///
/// Copies what counts to new segments and drops what was replaced. With a limit, gives up intermediates and scratch too.
/// With --app, --key, --where, --failed or --old-code takes out what they choose, results too; -n lists it.
/// Folders that killed runs of `sde exec` left in TMPDIR go too. Others may use the store meanwhile. On a full disk what was replaced goes first, and what is of no use.
///
/// A limit may be for one app, as APP=LIMIT; several have commas between them.
#[derive(Args)]
pub struct Gc {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    chosen: chosen::Chosen,
    /// Only reads, and says what would be replaced, taken out and removed
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Gives up intermediates and scratch until they have at most SIZE, as 500M or 20G (powers of 1024)
    ///
    /// Results are not counted, nor are files that are being written or the bytes of no use that stay in files not
    /// worth replacing (an eighth).
    #[arg(long, value_name = "SIZE")]
    capacity: Vec<String>,
    /// Gives up entries whose values have fewer bytes
    #[arg(long, value_name = "SIZE")]
    min_entry: Vec<String>,
    /// Gives up entries whose values have more bytes
    #[arg(long, value_name = "SIZE")]
    max_entry: Vec<String>,
    /// Gives up what was saved, or used last, so long ago: 12h, 30d or 8w
    #[arg(long, value_name = "AGE")]
    max_age: Vec<String>,
    /// Which go first for --capacity: lru, those that were not used for the longest (the default), or fifo, those saved
    /// first
    ///
    /// What nobody used counts as used when it was saved.
    #[arg(long, value_name = "POLICY")]
    policy: Vec<String>,
    /// The limits count results, and give them up, too; without this they never go
    #[arg(long)]
    results: bool,
    /// The same for the results of one app
    #[arg(long, value_name = "APP")]
    results_of: Vec<String>,
    /// How long files that were replaced stay for those who read them: 30s, 10m, 2h; 0s if there is nobody
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = time::duration)]
    grace: Duration,
    /// Also a store that belongs to someone else, or that others can write to
    #[arg(long)]
    trust_others: bool,
}

impl Gc {
    pub fn run(&self, out: &mut Output) -> Result<(), Failure> {
        let path = self.place.only()?;
        let opened = self.open(&path)?;
        let retention = self.retention()?;
        // What killed runs of commands left is in nobody's store.
        let swept = match self.dry_run {
            true => 0,
            false => sde_command::sweep(&std::env::temp_dir()).map_or(0, |swept| swept.folders),
        };
        let chooser = self.chosen.chooser(&path)?;
        let done = match (&chooser, self.dry_run) {
            (Some(chooser), true) => opened.would_remove(|one| chooser.wants(one))?,
            (Some(chooser), false) => opened.remove(|one| chooser.wants(one))?,
            (None, true) => opened.would_compact(&retention)?,
            (None, false) => opened.compact(&retention)?,
        };
        if done.busy {
            return Err(Failure::told(
                "somebody else is making room in this store; nothing was done, try again later",
            ));
        }
        if let Some(chooser) = &chooser {
            chooser.check(&done)?;
        }
        if out.json {
            let first = chooser.as_ref().map(chosen::Chooser::json);
            return out.object(&self.object(&done, first, swept));
        }
        if swept > 0 {
            let folders = text::count(swept, "folder", "folders");
            out.wrapped(
                format!(
                    "{folders} of runs that were killed removed from {}",
                    std::env::temp_dir().display()
                ),
                2,
            )?;
        }
        if let Some(chooser) = &chooser {
            chooser.print(&done, self.would(), out)?;
        }
        self.print(&done, out)
    }

    fn open(&self, path: &Path) -> Result<DirStore, Failure> {
        let not_opened = |error| store::not_opened(path, error);
        // Opening for writing would make a store of an empty folder.
        Inspection::open(path).map_err(not_opened)?;
        let mut options = StoreOptions::new().without_environment().grace(self.grace);
        if self.trust_others {
            options = options.trust_others();
        }
        if self.dry_run {
            options = options.read_only();
        }
        options.open(path).map_err(not_opened)
    }

    fn object(&self, done: &Compacted, first: Option<Json>, swept: usize) -> Json {
        json!({
            "dry_run": self.dry_run,
            "replaced": done.replaced,
            "written": done.written,
            "bytes_before": done.bytes_before,
            "bytes_after": done.bytes_after,
            "given_up": done.given_up,
            "taken_out": done.taken_out,
            "left": done.left,
            "dropped": done.dropped,
            "first": first,
            "removed": done.removed,
            "freed": done.freed,
            "run_folders": swept,
        })
    }

    fn retention(&self) -> Result<Retention, Failure> {
        let mut retention = Retention::new();
        let limits = [
            ("capacity", "CAPACITY", &self.capacity),
            ("min-entry", "MIN_ENTRY", &self.min_entry),
            ("max-entry", "MAX_ENTRY", &self.max_entry),
            ("max-age", "MAX_AGE", &self.max_age),
            ("policy", "ORDER", &self.policy),
        ];
        for (option, limit, texts) in limits {
            for text in texts {
                let named = |mut error: LimitError| {
                    error.name = format!("--{option}");
                    error
                };
                let said = retention.limit(limit, text).map_err(named);
                retention = said.map_err(Failure::told)?;
            }
        }
        for app in &self.results_of {
            retention = retention.results_of(app);
        }
        if self.results {
            retention = retention.results();
        }
        Ok(retention)
    }

    const fn would(&self) -> &'static str {
        if self.dry_run { "would be " } else { "" }
    }

    fn print(&self, done: &Compacted, out: &mut Output) -> Result<(), Failure> {
        let would = self.would();
        if done.replaced == 0 && done.removed == 0 && done.freed == 0 {
            return match done.left {
                0 => out.line("nothing to do"),
                _ => Ok(()),
            };
        }
        if done.replaced > 0 {
            let segments = text::count(done.replaced, "segment", "segments");
            let (kept, of) = (text::size(done.bytes_after), text::size(done.bytes_before));
            out.wrapped(
                format!("{segments} {would}replaced, {kept} of {of} kept"),
                2,
            )?;
        }
        if done.given_up > 0 {
            let entries = text::count(done.given_up, "entry", "entries");
            out.line(format!("{entries} {would}given up, or part of them"))?;
        }
        let freed = text::size(done.freed);
        if done.removed > 0 {
            let files = text::count(done.removed, "replaced file", "replaced files");
            out.line(format!("{files} {would}removed, {freed} freed"))?;
        } else if done.freed > 0 {
            out.line(format!("{freed} freed"))?;
        }
        if done.replaced > 0 && !self.dry_run {
            out.wrapped(
                "the files that were replaced stay for a time of grace, for those who read them; \
                 they are removed by a later `sde gc`, or by a program that saves",
                2,
            )?;
        }
        Ok(())
    }
}
