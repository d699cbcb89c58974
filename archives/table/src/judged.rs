//! Rows of commands: runs that pass have the values that rules take, others have their errors.

use std::collections::HashMap;
use std::sync::Arc;

use sde::Data;
use sde_archives::inspect::Snapshot;
use sde_command::{Judgement, Rules};

use crate::columns::{Cell, Cells, Columns, Kind};
use crate::error::Error;
use crate::rows::Rows;
use crate::runs::{self, Contents, RunResults};

/// Gives the runs of commands that pass their values, and the others their errors.
pub fn judge(
    store: &mut Snapshot,
    rows: &mut Rows,
    gets: &[(String, String)],
) -> Result<(), Error> {
    if !rows.has_commands {
        return Ok(());
    }
    let shown = rows.all.iter().filter_map(|row| rows.runs.get(&row.key));
    let contents = Contents::of(store, shown.flat_map(RunResults::digests));
    let kept = runs::kept_rules(store, rows.apps().into_iter())?;
    let mut by_app: HashMap<Arc<str>, Rules> = HashMap::new();
    for at in 0..rows.all.len() {
        let row = &rows.all[at];
        let app = Arc::clone(rows.app(row));
        if !by_app.contains_key(&app) {
            let rules = with_gets(kept.get(&*app), gets)?;
            by_app.insert(Arc::clone(&app), rules);
        }
        if rows.kind(row).has_failed {
            continue;
        }
        if let Some(run) = rows.runs.get(&row.key) {
            let status = rows.columns.column(Kind::Result, "status");
            let mut cells = rows.cells.cells(row.cells);
            cells.push((status, Cell::I64(run.status.into())));
            match runs::judge(run, &by_app[&app], &contents) {
                Ok(judged) => match runs::failed(run, &judged) {
                    Some(failed) => cells.push(rows.columns.error(failed.error)),
                    None => add(judged, &mut rows.columns, &mut cells),
                },
                Err(error) => cells.push(rows.columns.error(error.text())),
            }
            rows.all[at].cells = rows.cells.replace(rows.all[at].cells, &cells);
        }
    }
    Ok(())
}

/// These rules, but with these values, if there are any.
fn with_gets(rules: Option<&Rules>, gets: &[(String, String)]) -> Result<Rules, Error> {
    let rules = rules.cloned().unwrap_or_default();
    if gets.is_empty() {
        return Ok(rules);
    }
    let kept = rules.to_string();
    let others = kept.lines().filter(|rule| !rule.starts_with("get "));
    let others: String = others.flat_map(|rule| [rule, "\n"]).collect();
    let mut rules: Rules = others.parse().map_err(Error::told)?;
    for (name, expression) in gets {
        rules.get(name, expression).map_err(Error::told)?;
    }
    Ok(rules)
}

fn add(judged: Judgement, columns: &mut Columns, cells: &mut Cells) {
    let mut add = |name: &str, cell: Cell| {
        cells.push((columns.column(Kind::Result, name), cell));
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
