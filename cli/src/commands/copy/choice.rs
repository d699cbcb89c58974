//! Which entries are copied, here and as options of the `sde` on another machine.

use std::path::Path;

use clap::Args;
use jiff::Timestamp;
use sde_archives::inspect::Inspection;
use sde_archives::{Copyable, DirStore, StoreOptions};

use crate::args::{self, App};
use crate::failure::Failure;
use crate::{store, time};

#[derive(Args)]
pub struct Choice {
    /// Only entries of this app; a * at the end stands for any ending. May be given several times
    #[arg(long)]
    app: Vec<App>,
    /// Only entries whose keys begin so. May be given several times
    #[arg(long, value_parser = args::key_beginning)]
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
    /// About how many bytes are sent before the other side saves them
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 30, hide = true)]
    pub portion: u64,
}

impl Choice {
    /// The store to copy from, and the filter of its entries.
    pub fn source(
        &self,
        path: &Path,
    ) -> Result<(DirStore, impl Fn(&Copyable<'_>) -> bool), Failure> {
        Inspection::open(path).map_err(|error| store::not_opened(path, error))?;
        let from = self.open(path, StoreOptions::new().read_only())?;
        Ok((from, move |one: &Copyable<'_>| self.takes(one)))
    }

    /// The store to copy to.
    pub fn target(&self, path: &Path) -> Result<DirStore, Failure> {
        self.open(path, StoreOptions::new().without_environment())
    }

    /// The arguments of the `sde` on the other side.
    pub fn words(&self, side: &str, dir: &str) -> Vec<String> {
        let apps = self.app.iter().map(|app| ("--app", app.to_string()));
        let keys = self.key.iter().map(|key| ("--key", key.clone()));
        let times = [("--since", self.since), ("--until", self.until)];
        let times = times.into_iter();
        let times = times.filter_map(|(name, time)| Some((name, time?.to_string())));
        let portion = [("--portion", self.portion.to_string())];
        let options = apps.chain(keys).chain(times).chain(portion);
        // With `=` no value is taken for an option.
        let options = options.map(|(name, value)| format!("{name}={value}"));
        let trust = self.trust_others.then(|| "--trust-others".to_owned());
        let first = ["copy-end", side].map(str::to_owned).into_iter();
        let last = ["--", dir].map(str::to_owned);
        first.chain(options).chain(trust).chain(last).collect()
    }

    fn takes(&self, one: &Copyable<'_>) -> bool {
        let key = || one.key.to_string();
        let made_at = time::of(one.made_at);
        (self.app.is_empty() || self.app.iter().any(|app| app.is(one.app)))
            && (self.key.is_empty() || self.key.iter().any(|begins| key().starts_with(begins)))
            && self.since.is_none_or(|since| made_at >= since)
            && self.until.is_none_or(|until| made_at <= until)
    }

    fn open(&self, path: &Path, options: StoreOptions) -> Result<DirStore, Failure> {
        let options = match self.trust_others {
            true => options.trust_others(),
            false => options,
        };
        let opened = options.open(path);
        opened.map_err(|error| store::not_opened(path, error))
    }
}
