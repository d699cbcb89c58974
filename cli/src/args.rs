//! Arguments that several commands have.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use jiff::Timestamp;
pub use sde_archives::other_stores;
pub use sde_table::listing::{App, Choice};

use crate::failure::Failure;
use crate::time;

/// The store that a command is about.
///
/// It is the first argument, and may be left out where a variable names it. Then the first argument is something
/// else, and only what it is can tell: a directory is the store.
#[derive(Args)]
pub struct Place {
    /// The store, a directory; without it the one that SDE_STORE names
    #[arg(value_name = "STORE", value_hint = ValueHint::DirPath)]
    first: Option<PathBuf>,
    /// The store, whatever the arguments are
    #[arg(short, long, value_name = "STORE", value_hint = ValueHint::DirPath)]
    store: Option<PathBuf>,
}

impl Place {
    /// The store.
    pub fn only(&self) -> Result<PathBuf, Failure> {
        self.with([]).map(|(store, [])| store)
    }

    /// The store and the arguments after it. If the first argument is no store, all move up by one.
    pub fn with<const N: usize>(
        &self,
        more: [&Option<String>; N],
    ) -> Result<(PathBuf, [Option<String>; N]), Failure> {
        let named = self.named();
        let is_alone = N > 0 && more.iter().all(|one| one.is_none());
        let (store, first) = match (&self.first, &self.store) {
            (Some(first), None) if first.is_dir() || named.is_err() && !is_alone => {
                (first.clone(), None)
            }
            (Some(first), None) if named.is_err() => {
                return Err(Failure::told(format!(
                    "which store? {first:?} is no directory: name that of the store before the key, or have SDE_STORE name it"
                )));
            }
            (first, _) => (named?, first.as_deref().map(text).transpose()?),
        };
        let more = more.into_iter().flatten().cloned();
        let mut given: Vec<String> = first.into_iter().chain(more).collect();
        if given.len() > N {
            let over = &given[N];
            return Err(Failure::told(format!(
                "{over:?} is an argument too many; if it is to be the store, it is no directory"
            )));
        }
        given.reverse();
        Ok((store, std::array::from_fn(|_| given.pop())))
    }

    /// The store and any number of arguments after it.
    pub fn with_all(&self, more: &[String]) -> Result<(PathBuf, Vec<String>), Failure> {
        let named = self.named();
        match (&self.first, &self.store) {
            (Some(first), None) if first.is_dir() || named.is_err() => {
                Ok((first.clone(), more.to_vec()))
            }
            (first, _) => {
                let first = first.as_deref().map(text).transpose()?;
                let given = first.into_iter().chain(more.iter().cloned());
                Ok((named?, given.collect()))
            }
        }
    }

    /// Two stores. If one is left out, it is the first.
    pub fn pair(&self, second: Option<&PathBuf>) -> Result<[PathBuf; 2], Failure> {
        let given = [self.first.as_ref(), second].into_iter().flatten().cloned();
        let first = match second.is_some() {
            true => self.store.clone(),
            false => self.named().ok(),
        };
        let stores: Vec<PathBuf> = first.into_iter().chain(given).collect();
        <[PathBuf; 2]>::try_from(stores).map_err(|_| {
            Failure::told(
                "two stores are compared: name both, or one, and the first with --store or SDE_STORE",
            )
        })
    }

    /// The store that is named, or that of `sde exec` in the current folder.
    fn named(&self) -> Result<PathBuf, Failure> {
        let named = named_store(self.store.as_ref());
        let here = || Some(PathBuf::from(STORE)).filter(|store| store.is_dir());
        named.or_else(here).ok_or_else(|| {
            Failure::told("which store? Name its directory, or have SDE_STORE name it")
        })
    }
}

/// The store of `sde exec` where none is named, in the current folder.
pub const STORE: &str = "commands.sde";

/// The store that the option or the variable names.
pub fn named_store(option: Option<&PathBuf>) -> Option<PathBuf> {
    let variable = || std::env::var_os("SDE_STORE").filter(|name| !name.is_empty());
    option.cloned().or_else(|| variable().map(PathBuf::from))
}

fn text(path: &Path) -> Result<String, Failure> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| Failure::told(format!("{} is no text", path.display())))
}

/// The name and the expression of a `--get`.
pub fn named_value(get: &str) -> Result<(&str, &str), Failure> {
    let split = get.split_once('=');
    split.ok_or_else(|| Failure::told(format!("--get {get}: write NAME=REGEX")))
}

/// The beginning of a key, in lower case.
pub fn key_beginning(text: &str) -> Result<String, String> {
    let key = text.to_ascii_lowercase();
    let is_hex = key.chars().all(|digit| digit.is_ascii_hexdigit());
    match is_hex && (1..=64).contains(&key.len()) {
        true => Ok(key),
        false => Err("not a key, nor the beginning of one; `sde ls` shows them".to_owned()),
    }
}

/// The runs that are listed.
#[derive(Args)]
pub struct ChoiceArgs {
    /// Only of this app; NAME may end in *
    #[arg(long, value_name = "NAME")]
    pub app: Option<App>,
    /// Only what was made since: 90s, 15m, 2h, 3d or 1w ago, a day, or a day and a time in UTC (2026-11-21T16:00)
    #[arg(long, value_name = "WHEN", value_parser = time::when)]
    pub since: Option<Timestamp>,
    /// Only what was made until then
    #[arg(long, value_name = "WHEN", value_parser = time::when)]
    pub until: Option<Timestamp>,
}

impl ChoiceArgs {
    pub fn choice(&self) -> Choice {
        Choice {
            app: self.app.clone(),
            since: self.since,
            until: self.until,
        }
    }
}
