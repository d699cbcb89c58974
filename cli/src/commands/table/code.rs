//! Which code a table is of.

use std::collections::HashSet;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use crate::codes::Codes;
use crate::columns::{Cell, Kind};
use crate::failure::Failure;
use crate::rows::{Row, Rows};
use crate::{text, time};

#[derive(Args)]
pub struct CodeChoice {
    /// Runs of all code, with a column that tells which; without it only those of the code that was used last
    #[arg(long)]
    all_code: bool,
    /// Runs of this code, by its version or the beginning of its digest, as the column `code` of --all-code shows it
    #[arg(
        long,
        value_name = "DIGEST",
        conflicts_with = "all_code",
        value_parser = NonEmptyStringValueParser::new()
    )]
    code: Option<String>,
}

/// The most other codes that are named.
const NAMED: usize = 5;

impl CodeChoice {
    /// Leaves the rows of the code that is asked for. Gives what is to be told of other code.
    pub fn choose(&self, rows: &mut Rows) -> Result<Vec<String>, Failure> {
        let shown = match &self.code {
            Some(wanted) => labelled(&rows.codes, wanted)?,
            None => rows.codes.current(),
        };
        let cells = &rows.cells;
        let is_shown = |row: &Row| shown.contains(&cells.kind(row.cells).code);
        let mut told = Vec::new();
        if !self.all_code {
            let others = rows.all.iter().filter(|row| !is_shown(row));
            let mut only: HashSet<u64> = others.map(|row| row.given).collect();
            rows.all.retain(is_shown);
            rows.all.iter().for_each(|row| {
                only.remove(&row.given);
            });
            if !only.is_empty() {
                let count = text::count(only.len(), "combination", "combinations");
                told.push(format!("{count} only under other code: --all-code"));
            }
            told.extend(since(&rows.codes, &shown));
        }
        if self.all_code || self.code.is_some() {
            let column = rows.columns.column(Kind::Code, "code");
            for row in &mut rows.all {
                let code = rows.cells.kind(row.cells).code;
                let label = &*rows.codes.get(code).label;
                let mut cells = rows.cells.cells(row.cells);
                cells.push((column, Cell::Text(label.into())));
                row.cells = rows.cells.replace(row.cells, &cells);
            }
        }
        Ok(told)
    }
}

fn labelled(codes: &Codes, wanted: &str) -> Result<HashSet<u32>, Failure> {
    codes.labelled(wanted).map_err(|found| {
        let found: Vec<&str> = found.iter().map(|label| &**label).collect();
        Failure::told(match found.is_empty() {
            true => format!(
                "no code here is {wanted:?}; the column `code` of --all-code shows those there are"
            ),
            false => format!(
                "{wanted:?} is several codes: {}; give more of one",
                found.join(", ")
            ),
        })
    })
}

/// Tells of other code that was used after the shown one had begun.
fn since(codes: &Codes, shown: &HashSet<u32>) -> Option<String> {
    let since = codes.active_since(shown);
    let named = since.iter().take(NAMED).map(|(code, last)| {
        let makers = code
            .makers
            .iter()
            .map(|(user, host)| match (&**user, &**host) {
                ("", "") => String::new(),
                ("", host) => format!(" on {host}"),
                (user, "") => format!(" by {user}"),
                (user, host) => format!(" by {user} on {host}"),
            });
        let makers: Vec<String> = makers.filter(|maker| !maker.is_empty()).collect();
        let (at, makers) = (time::minute(*last), makers.join(","));
        format!("{} (at {at} UTC{makers})", code.label)
    });
    let mut named: Vec<String> = named.collect();
    if since.len() > NAMED {
        named.push("…".to_owned());
    }
    let named = (!named.is_empty()).then(|| named.join("; "));
    named.map(|named| format!("other code was used since this one began: {named}: --code"))
}
