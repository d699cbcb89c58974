//! The entries that `sde gc` takes out.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use clap::Args;
use jiff::Timestamp;
use sde::Key;
use sde::record::RunId;
use sde_archives::inspect::Entry;
use sde_archives::{Compacted, Removable};
use sde_command::results::RULES_APP;
use serde_json::{Value as Json, json};

use super::condition::Condition;
use super::old_code::old_codes;
use crate::args::{self, App};
use crate::failure::Failure;
use crate::output::Output;
use crate::table::TextTable;
use crate::{store, text, time};
use sde_table::codes::Codes;
use sde_table::columns::{self, Cell, Cells, Columns, Kind};
use sde_table::failed::FailedLine;
use sde_table::runs::{self, Run};

/// How many entries are shown.
const SHOWN: usize = 10;

/// All that is asked for must hold.
#[derive(Args)]
#[group(conflicts_with_all = ["capacity", "min_entry", "max_entry", "max_age", "policy", "results", "results_of"])]
pub struct Chosen {
    /// Takes out the entries of this app; NAME may end in *. Several times: of any of them
    ///
    /// Results go with intermediates, unfinished runs, failures, all earlier computations, and output files that no other
    /// entry needs. Of several of these options all must hold.
    #[arg(long, value_name = "NAME")]
    app: Vec<App>,
    /// Takes out the entries whose keys begin so. Several times: with any of them
    #[arg(long, value_name = "KEY", value_parser = args::key_beginning)]
    key: Vec<String>,
    /// Takes out the entries with this in a column of `sde table`, also with !=, <, <=, > or >=. Several times: all must hold
    #[arg(long = "where", value_name = "COLUMN=VALUE")]
    conditions: Vec<Condition>,
    /// Takes out failures, and runs of commands that fail by the rules last asked for; `sde ls --failed` lists both
    #[arg(long)]
    failed: bool,
    /// Takes out what was made by other code than that which `sde table` shows
    #[arg(long)]
    old_code: bool,
}

impl Chosen {
    /// `None` if nothing is asked for.
    pub fn chooser(&self, path: &Path) -> Result<Option<Chooser<'_>>, Failure> {
        let is_asked = !self.app.is_empty()
            || !self.key.is_empty()
            || !self.conditions.is_empty()
            || self.failed
            || self.old_code;
        if !is_asked {
            return Ok(None);
        }
        let mut seen = Seen::default();
        let old = match self.old_code {
            true => old_codes(path, &mut seen.codes)?,
            false => HashSet::new(),
        };
        let failing = match self.failed {
            true => {
                store::read(path, |store| {
                    Ok(runs::failing(store, |app| self.is_of_app(app))?)
                })?
                .1
            }
            false => Vec::new(),
        };
        let failing = failing.into_iter();
        let failing = failing.map(|one| ((one.key, one.run), one.line.error));
        Ok(Some(Chooser {
            of: self,
            old,
            failing: failing.collect(),
            seen: RefCell::new(seen),
        }))
    }

    fn is_of_app(&self, app: &str) -> bool {
        match app == RULES_APP {
            // The rules that runs are judged by are not results.
            true => self.app.iter().any(|one| one.names(app)),
            false => self.app.is_empty() || self.app.iter().any(|one| one.is(app)),
        }
    }

    /// Whether an entry is to go. It decides the cheapest first.
    fn takes(&self, entry: &Entry, old: &HashSet<u32>, seen: &mut Seen) -> bool {
        if !self.old_code && self.conditions.is_empty() {
            return true;
        }
        let run = Run::of(entry);
        let is_old = |codes: &mut Codes| {
            let code = codes.of(&entry.record, run.is_some());
            old.contains(&code)
        };
        if self.old_code && !is_old(&mut seen.codes) {
            return false;
        }
        let columns = &mut seen.columns;
        let cells = cells(entry, run.as_ref(), columns);
        for (column, _) in &cells {
            let name = columns.name(*column);
            if !seen.names.contains(name) {
                seen.names.insert(name.to_owned());
            }
        }
        let mut conditions = self.conditions.iter();
        conditions.all(|one| one.holds(&cells, columns))
    }
}

/// The cells of a row of `sde table`.
fn cells(entry: &Entry, run: Option<&Run>, columns: &mut Columns) -> Cells {
    let mut cells = match run {
        Some(run) => run.given(entry, columns),
        None => columns.given(entry),
    };
    let mut add = |kind: Kind, name: &str, cell: Cell| {
        cells.push((columns.column(kind, name), cell));
    };
    match (FailedLine::of(&entry.record), run) {
        (Some(failed), _) => add(Kind::Error, "error", Cell::Text(failed.error.into())),
        (None, Some(run)) => {
            if let Some(run) = run.whole() {
                add(Kind::Result, "status", Cell::I64(run.status.into()));
            }
        }
        (None, None) => columns.results(entry, &mut cells),
    }
    cells
}

/// Chooses entries, and remembers some of them.
pub struct Chooser<'a> {
    of: &'a Chosen,
    old: HashSet<u32>,
    /// The errors of runs of commands that fail by rules.
    failing: HashMap<(Key, RunId), String>,
    seen: RefCell<Seen>,
}

#[derive(Default)]
struct Seen {
    columns: Columns,
    codes: Codes,
    apps: BTreeSet<Arc<str>>,
    /// The names of columns.
    names: BTreeSet<String>,
    /// Some of the entries that go.
    first: BTreeMap<Key, Gone>,
}

/// A line of the list of what goes.
struct Gone {
    app: String,
    key: Key,
    given: String,
    made_at: Option<Timestamp>,
    error: String,
}

impl Chooser<'_> {
    /// Whether a key is to go. Of one key it says the same each time.
    pub fn wants(&self, one: &Removable<'_>) -> bool {
        let seen = &mut *self.seen.borrow_mut();
        if !seen.apps.contains(one.app) {
            seen.apps.insert(one.app.into());
        }
        let failure = one.entry.and_then(|entry| entry.record.failure.as_ref());
        let key = failure.map_or(*one.key, |failure| failure.of);
        let begins = |keys: &[String]| {
            let key = key.to_string();
            keys.iter().any(|begins| key.starts_with(begins))
        };
        let keys = &self.of.key;
        if !self.of.is_of_app(one.app) || !keys.is_empty() && !begins(keys) {
            return false;
        }
        let takes = match one.entry {
            Some(entry) if self.of.failed && self.error(entry).is_none() => false,
            Some(entry) => self.of.takes(entry, &self.old, seen),
            // Only states have no entry.
            None => !self.of.failed && !self.of.old_code && self.of.conditions.is_empty(),
        };
        if takes && !one.stays && seen.first.len() < SHOWN {
            let error = one.entry.and_then(|entry| self.error(entry));
            let gone = Gone::of(one, key, error.unwrap_or_default(), &mut seen.columns);
            seen.first.insert(*one.key, gone);
        }
        takes
    }

    /// The error of a failure, or of a run that fails by rules.
    fn error(&self, entry: &Entry) -> Option<String> {
        let record = &entry.record;
        let failed = FailedLine::of(record).map(|failed| failed.error);
        failed.or_else(|| self.failing.get(&(record.key, record.run)).cloned())
    }

    /// Refuses names that nothing has, if nothing was chosen.
    pub fn check(&self, done: &Compacted) -> Result<(), Failure> {
        let seen = self.seen.borrow();
        if done.taken_out + done.left > 0 {
            return Ok(());
        }
        self.of
            .app
            .iter()
            .try_for_each(|app| app.known(&seen.apps))?;
        let is_there = |one: &Condition| seen.names.iter().any(|name| one.may_mean(name));
        let conditions = &self.of.conditions;
        match conditions.iter().find(|one| !is_there(one)) {
            Some(one) if !seen.names.is_empty() => Err(Failure::told(format!(
                "no entry has a column {:?}; there are: {}",
                one.column,
                seen.names.iter().cloned().collect::<Vec<_>>().join(", ")
            ))),
            _ => Ok(()),
        }
    }

    pub fn json(&self) -> Json {
        let seen = self.seen.borrow();
        let gone = seen.first.values();
        gone.map(|one| json!({ "app": one.app, "key": one.key, "made_at": one.made_at }))
            .collect()
    }

    pub fn print(&self, done: &Compacted, would: &str, out: &mut Output) -> Result<(), Failure> {
        let entries = |count| text::count(count, "entry", "entries");
        let seen = self.seen.borrow();
        if done.taken_out + done.left == 0 {
            return out.line("no entry is chosen");
        }
        if done.taken_out > 0 {
            let bytes = text::size(done.dropped);
            out.line(format!(
                "{} {would}taken out, {bytes}",
                entries(done.taken_out)
            ))?;
            let rows: Vec<&Gone> = seen.first.values().collect();
            let made = |one: &&Gone| one.made_at.map(time::minute).unwrap_or_default();
            TextTable::of(&rows)
                .left("APP", 6, |one| one.app.clone())
                .least(12)
                .left("KEY", 7, |one| one.key.short())
                .left("INPUTS", 5, |one| one.given.clone())
                .least(24)
                .left("MADE (UTC)", 3, made)
                .left("ERROR", 4, |one| one.error.clone())
                .least(24)
                .write(out)?;
            if done.taken_out > rows.len() {
                out.line(format!("and {} more", done.taken_out - rows.len()))?;
            }
        }
        if done.left > 0 {
            out.wrapped(
                format!(
                    "{} of those chosen stay: a file that is being written, or that another member of the group owns, has some of \
                     it. The same command takes them out once that program has ended (one that was killed: 10 minutes later, or at \
                     once with --grace 0s if nobody uses the store); the other member has to run it too",
                    entries(done.left)
                ),
                2,
            )?;
        }
        Ok(())
    }
}

impl Gone {
    fn of(one: &Removable<'_>, key: Key, error: String, columns: &mut Columns) -> Self {
        let cells = one.entry.map(|entry| match Run::of(entry) {
            Some(run) => run.given(entry, columns),
            None => columns.given(entry),
        });
        let cells = cells.unwrap_or_default();
        let given = cells.iter().map(|(column, cell)| {
            let name = columns.name(*column);
            format!("{name}={}", columns::text(cell))
        });
        Self {
            app: one.app.to_owned(),
            key,
            given: given.collect::<Vec<_>>().join(" "),
            made_at: one.entry.map(|entry| time::of(entry.record.made_at)),
            error,
        }
    }
}
