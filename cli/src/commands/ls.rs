//! `sde ls`: the entries of a store.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use sde_archives::Class;
use sde_archives::inspect::Standing;
use serde_json::{Map, Value as Json, json};

use crate::args::{ChoiceArgs, Place};
use crate::failure::Failure;
use crate::output::Output;
use crate::table::TextTable;
use crate::{json, store, text, time};
use sde_table::columns::{self, Cell, Columns, Kind};
use sde_table::failed::FailedLine;
use sde_table::listing::{Line, Listing};
use sde_table::runs::Run;

/// What is in a store: a line for each entry, the latest first
#[derive(Args)]
pub struct Ls {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    choice: ChoiceArgs,
    /// Only with results of this class
    #[arg(long, value_parser = PossibleValuesParser::new(Class::ALL.map(Class::name)).map(class))]
    class: Option<Class>,
    /// The order: latest first, largest first, the one that took longest first, or by name
    #[arg(long, value_name = "BY", value_enum, default_value_t = Sort::Time)]
    sort: Sort,
    /// Only the first N lines; by time no more is read than it takes
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<usize>,
    /// Also the runs that other runs of this list called
    #[arg(long)]
    nested: bool,
    /// Also what was replaced by a later run, or marked as not to be used
    #[arg(long)]
    all: bool,
    /// The runs that failed and have had no result since, and those that fail by the rules last asked for, with their errors
    #[arg(long)]
    failed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sort {
    Time,
    Size,
    Cost,
    App,
}

fn class(name: String) -> Class {
    let is_it = |class: &Class| class.name() == name;
    Class::ALL.into_iter().find(is_it).unwrap_or(Class::Result)
}

impl Ls {
    pub fn run(&self, out: &mut Output) -> Result<(), Failure> {
        let wanted = |line: &Line| {
            let is_shown = self.all || matches!(line.standing, Some(Standing::Current) | None);
            is_shown
                && match self.failed {
                    true => line.failed.is_some(),
                    false => line.failed.is_none() || line.is_whole_run(),
                }
                && self.class.is_none_or(|class| line.has(class))
        };
        let last = self
            .limit
            .filter(|_| self.sort == Sort::Time && !self.failed);
        let choice = self.choice.choice();
        let (store, (listing, total)) = store::read(&self.place.only()?, |store| {
            let keep = &|entry: &_, run: Option<&Run>, columns: &mut Columns| match run {
                Some(run) => run.given(entry, columns),
                None => columns.given(entry),
            };
            // A program tells them apart by a member.
            let with_called = self.nested || self.failed || out.json;
            let mut listing = Listing::of(store, &choice, last, wanted, with_called, keep)?;
            let lines = &mut listing.lines;
            match self.sort {
                Sort::Time => {}
                Sort::Size => lines.sort_by_key(|line| Reverse(line.bytes())),
                Sort::Cost => lines.sort_by(|a, b| b.seconds.total_cmp(&a.seconds)),
                Sort::App => lines.sort_by(|a, b| a.app.cmp(&b.app)),
            }
            let total = lines.len();
            lines.truncate(self.limit.unwrap_or(total));
            Ok((listing, total))
        })?;
        match out.json {
            true => listing
                .lines
                .iter()
                .try_for_each(|line| out.object(&object(line, &listing)))?,
            false if self.failed => print_failed(&listing, total, out)?,
            false => {
                print(&listing, total, out)?;
                if listing.called > 0 {
                    let runs = text::count(listing.called, "run", "runs");
                    out.line(format!("{runs} that these called: --nested"))?;
                }
            }
        }
        store::conclude(&store, out)
    }
}

fn print(listing: &Listing, total: usize, out: &mut Output) -> Result<(), Failure> {
    let lines = &listing.lines;
    if total == 0 {
        out.line("no entries")?;
        return tell_failed(listing, out);
    }
    let uses = |line: &Line| listing.found.uses(&line.key);
    let version = |line: &Line| listing.code(line).map(super::code).unwrap_or_default();
    // An unfinished run has no record, so its cells stay empty.
    let of_entry = |line: &Line, text: String| match line.code {
        Some(_) => text,
        None => String::new(),
    };
    let results = |line: &Line| match line.saved() == line.results {
        true => line.results.to_string(),
        false => format!("{}/{}", line.saved(), line.results),
    };
    let varying = varying(listing);
    let given = |line: &Line| given(line, listing, &varying);
    let state = |line: &Line| match (line.state(), &line.run) {
        ("current", run) => {
            let run = run.as_ref().map(|run| run.note(line.failed.is_some()));
            // Of part of a store it is not known.
            let is_other = !line.is_of_current_code && !listing.is_part;
            let code = is_other.then(|| "other code".to_owned());
            let notes = [run.unwrap_or_default(), code.unwrap_or_default()];
            let notes = notes.into_iter().filter(|note| !note.is_empty());
            notes.collect::<Vec<_>>().join(", ")
        }
        (state, _) => state.to_owned(),
    };
    let hits = |line: &Line| uses(line).map(|uses| uses.count.to_string());
    let last = |line: &Line| uses(line).map(|uses| time::minute(time::of_nanos(uses.last)));
    TextTable::of(lines)
        .left("APP", 10, |line| line.app.to_string())
        .least(12)
        .left("VERSION", 2, version)
        .least(8)
        .left("KEY", 12, |line| line.key.short())
        .left("INPUTS", 9, given)
        .least(32)
        .left("MADE (UTC)", 6, |line| time::minute(line.made_at))
        .right("RESULTS", 3, |line| of_entry(line, results(line)))
        .right("SIZE", 7, |line| text::size(line.bytes()))
        .right("COST", 5, |line| {
            of_entry(line, text::duration(line.seconds))
        })
        .right("HITS", 4, |line| hits(line).unwrap_or_default())
        .left("LAST USE (UTC)", 1, |line| last(line).unwrap_or_default())
        .left("STATE", 11, state)
        .write(out)?;
    let size = text::size(lines.iter().map(Line::bytes).sum());
    out.line(format!(
        "{}, {size}",
        shown(listing, total, ["entry", "entries"])
    ))?;
    tell_failed(listing, out)
}

/// How many lines are shown, and of how many.
fn shown(listing: &Listing, total: usize, [one, many]: [&str; 2]) -> String {
    let lines = listing.lines.len();
    let shown = text::count(lines, one, many);
    match (listing.is_part, total == lines) {
        (true, _) => format!("{shown}, the latest"),
        (false, true) => shown,
        (false, false) => format!("{shown} of {total}"),
    }
}

/// Says how many runs `--failed` lists.
fn tell_failed(listing: &Listing, out: &mut Output) -> Result<(), Failure> {
    let runs = match (listing.failed, listing.is_part) {
        (0, _) => return Ok(()),
        (failed, false) => text::count(failed, "run", "runs"),
        (failed, true) => format!("at least {}", text::count(failed, "run", "runs")),
    };
    out.line(format!("{runs} failed: --failed"))
}

/// The inputs and settings of a line. Those that are the same in all lines come last, since they tell the least.
fn given(line: &Line, listing: &Listing, varying: &HashSet<u32>) -> String {
    let is_shown = |(column, _): &&(u32, Cell)| {
        listing.columns.kind(*column) != Kind::Digest || varying.contains(column)
    };
    let cells = line.cells.iter().filter(is_shown);
    let (first, last): (Vec<_>, Vec<_>) = cells.partition(|(column, _)| varying.contains(column));
    let given = first.into_iter().chain(last).map(|(column, cell)| {
        let name = listing.columns.name(*column);
        format!("{name}={}", columns::text(cell))
    });
    given.collect::<Vec<_>>().join(" ")
}

fn print_failed(listing: &Listing, total: usize, out: &mut Output) -> Result<(), Failure> {
    let lines = &listing.lines;
    if total == 0 {
        return out.line("no run failed");
    }
    let varying = varying(listing);
    let failed = |line: &Line, what: fn(&FailedLine) -> &str| {
        let failed = line.failed.as_ref();
        failed
            .map(|failed| what(failed).to_owned())
            .unwrap_or_default()
    };
    TextTable::of(lines)
        .left("APP", 10, |line| line.app.to_string())
        .least(12)
        .left("KEY", 12, |line| line.key.short())
        .left("INPUTS", 9, |line| given(line, listing, &varying))
        .least(24)
        .left("MADE (UTC)", 6, |line| time::minute(line.made_at))
        .right("COST", 7, |line| text::duration(line.seconds))
        .left("HOST", 3, |line| failed(line, |one| &one.host))
        .left("ERROR", 11, |line| failed(line, |one| &one.error))
        .least(24)
        .write(out)?;
    let cost = text::duration(lines.iter().map(|line| line.seconds).sum());
    let shown = shown(listing, total, ["failed run", "failed runs"]);
    out.line(format!("{shown}, {cost}"))
}

/// The columns in which the lines differ; of those of digests the ones that tell lines apart.
fn varying(listing: &Listing) -> HashSet<u32> {
    let mut first: HashMap<u32, &Cell> = HashMap::new();
    let rows = listing.lines.iter().map(|line| &line.cells);
    let telling = listing.columns.telling(rows.clone());
    let differing = rows.flatten().filter(|(column, cell)| {
        **first.entry(*column).or_insert(cell) != *cell
            && listing.columns.kind(*column) != Kind::Digest
    });
    let differing = differing.map(|(column, _)| *column);
    differing.chain(telling).collect()
}

fn object(line: &Line, listing: &Listing) -> Json {
    let columns = &listing.columns;
    let given = |kind: Kind| -> Map<String, Json> {
        let cells = line.cells.iter();
        let of_kind = cells.filter(|(column, _)| columns.kind(*column) == kind);
        let named = of_kind.map(|(column, cell)| (columns.name(*column), cell));
        named
            .map(|(name, cell)| (name.to_owned(), columns::json(cell)))
            .collect()
    };
    let classes = Class::ALL.into_iter().filter(|class| line.has(*class));
    let uses = listing.found.uses(&line.key);
    let mut object = json!({
        "app": line.app,
        "code": json::tidy(&listing.code(line)),
        "key": line.key,
        "inputs": given(Kind::Input),
        "settings": given(Kind::Setting),
        "made_at": line.made_at,
        "seconds": line.seconds,
        "results": line.results,
        "saved": line.saved(),
        "bytes": line.bytes(),
        "classes": classes.map(Class::name).collect::<Vec<_>>(),
        "hits": uses.map_or(0, |uses| uses.count),
        "last_use": uses.map(|uses| time::of_nanos(uses.last)),
        "state": line.state(),
        "nested": line.is_called,
        "note": line.run.as_ref().map(|run| run.note(line.failed.is_some())).filter(|note| !note.is_empty()),
    });
    if let Some(failed) = &line.failed {
        object["error"] = json!(failed.error);
        object["lasts"] = json!(failed.lasts);
        object["host"] = json!(failed.host);
        object["job"] = json!(failed.job);
    }
    object
}
