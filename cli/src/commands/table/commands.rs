//! Rows of commands: runs that pass have the values that rules take, others have their errors.

use std::collections::HashMap;
use std::sync::Arc;

use sde::Data;
use sde_archives::inspect::Snapshot;
use sde_command::{Judgement, Rules};

use crate::args;
use crate::columns::{Cell, Columns, Kind};
use crate::failure::Failure;
use crate::listing::{Line, Listing};
use crate::runs::{self, Contents, Run, RunResults};

/// Gives the runs of commands that pass their values, and the others their errors.
pub fn judge(store: &mut Snapshot, rows: &mut Listing, gets: &[String]) -> Result<(), Failure> {
    if rows.lines.iter().all(|line| line.run.is_none()) {
        return Ok(());
    }
    let apps = rows.lines.iter().filter(|line| line.run.is_some());
    let kept = runs::kept_rules(store, apps.map(|line| &*line.app))?;
    let mut by_app: HashMap<Arc<str>, Rules> = HashMap::new();
    let whole = rows
        .lines
        .iter()
        .filter_map(|line| line.run.as_ref()?.whole());
    let contents = Contents::of(store, whole.flat_map(RunResults::digests));
    for line in &mut rows.lines {
        if !by_app.contains_key(&line.app) {
            let rules = with_gets(kept.get(&*line.app), gets)?;
            by_app.insert(Arc::clone(&line.app), rules);
        }
        if let Some(Run::Whole(run)) = line.run.take().map(|run| *run) {
            let judged = runs::judge(&run, &by_app[&line.app], &contents)?;
            let status = rows.columns.column(Kind::Result, "status");
            line.cells.push((status, Cell::I64(run.status.into())));
            match runs::failed(&run, &judged) {
                Some(failed) => line.cells.push(rows.columns.error(failed.error)),
                None => add(judged, &mut rows.columns, line),
            }
        }
    }
    Ok(())
}

/// These rules, but with these values, if there are any.
fn with_gets(rules: Option<&Rules>, gets: &[String]) -> Result<Rules, Failure> {
    let rules = rules.cloned().unwrap_or_default();
    if gets.is_empty() {
        return Ok(rules);
    }
    let kept = rules.to_string();
    let others = kept.lines().filter(|rule| !rule.starts_with("get "));
    let others: String = others.flat_map(|rule| [rule, "\n"]).collect();
    let mut rules: Rules = others.parse().map_err(Failure::told)?;
    for get in gets {
        let (name, expression) = args::named_value(get)?;
        rules.get(name, expression).map_err(Failure::told)?;
    }
    Ok(rules)
}

fn add(judged: Judgement, columns: &mut Columns, line: &mut Line) {
    let mut add = |name: &str, cell: Cell| {
        line.cells.push((columns.column(Kind::Result, name), cell));
    };
    for (name, value) in judged.values {
        match value {
            Data::Int(number) => add(&name, Cell::I64(number)),
            Data::Float(number) => add(&name, Cell::F64(number)),
            Data::Text(text) => add(&name, Cell::Text(text.into())),
            _ => {}
        }
    }
}
