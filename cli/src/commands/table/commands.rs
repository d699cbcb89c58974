//! Rows of commands: runs that pass have one, with the values that rules take, and those that did not end by themselves.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use sde::Data;
use sde_archives::inspect::Snapshot;
use sde_command::{Judgement, Rules};

use crate::args;
use crate::columns::{Cell, Columns, Kind};
use crate::failure::Failure;
use crate::listing::{Line, Listing};
use crate::runs::{self, Contents, Run, RunResults};
use crate::text;

/// Leaves out the runs of commands that fail, and gives the others their values. Gives texts that tell what was left out.
pub fn judge(
    store: &mut Snapshot,
    rows: &mut Listing,
    gets: &[String],
) -> Result<Vec<String>, Failure> {
    if rows.lines.iter().all(|line| line.run.is_none()) {
        return Ok(Vec::new());
    }
    let apps = rows.lines.iter().filter(|line| line.run.is_some());
    let kept = runs::kept_rules(store, apps.map(|line| &*line.app))?;
    let mut by_app: HashMap<Arc<str>, Rules> = HashMap::new();
    let whole = rows
        .lines
        .iter()
        .filter_map(|line| line.run.as_ref()?.whole());
    let contents = Contents::of(store, whole.flat_map(RunResults::digests));
    let mut failures: BTreeMap<String, usize> = BTreeMap::new();
    let mut lines = Vec::new();
    for mut line in std::mem::take(&mut rows.lines) {
        if !by_app.contains_key(&line.app) {
            let rules = with_gets(kept.get(&*line.app), gets)?;
            by_app.insert(Arc::clone(&line.app), rules);
        }
        let rules = &by_app[&line.app];
        match line.run.take().map(|run| *run) {
            None | Some(Run::Ended(..)) => lines.push(line),
            Some(Run::Whole(run)) => {
                let judged = runs::judge(&run, rules, &contents)?;
                match judged.failures.first() {
                    Some(first) => *failures.entry(first.rule.clone()).or_default() += 1,
                    None => {
                        add(&run, judged, &mut rows.columns, &mut line);
                        lines.push(line);
                    }
                }
            }
        }
    }
    rows.lines = lines;
    let told = failures.into_iter().map(|(rule, count)| {
        let runs = text::count(count, "run", "runs");
        format!("left out, as failed: {runs} ({rule})")
    });
    Ok(told.collect())
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

fn add(run: &RunResults, judged: Judgement, columns: &mut Columns, line: &mut Line) {
    let mut add = |name: &str, cell: Cell| {
        line.cells.push((columns.column(Kind::Result, name), cell));
    };
    add("status", Cell::I64(run.status.into()));
    for (name, value) in judged.values {
        match value {
            Data::Int(number) => add(&name, Cell::I64(number)),
            Data::Float(number) => add(&name, Cell::F64(number)),
            Data::Text(text) => add(&name, Cell::Text(text.into())),
            _ => {}
        }
    }
}
