//! Which code a table is of.

use std::collections::HashSet;

use crate::codes::Codes;
use crate::columns::{Cell, Kind};
use crate::error::Error;
use crate::rows::{Row, Rows};
use crate::time;

/// The code of which a table's runs are; by default the one that was used last.
#[derive(Debug, Clone, Default)]
pub struct CodeChoice {
    /// Runs of all code, with a column that tells which.
    pub all_code: bool,
    /// Runs of this code: its version, or the beginning of its digest.
    pub code: Option<String>,
}

/// What a table does not show, for its reader.
#[derive(Debug, Clone, Default)]
pub struct Unseen {
    /// How many combinations of what runs were given are only under other code.
    pub other_code: usize,
    /// Which other code was used since the shown one began.
    pub since: Option<String>,
    /// How many runs of other apps were left out, as runs that are listed called them.
    pub called: usize,
}

/// The most other codes that are named.
const NAMED: usize = 5;

impl CodeChoice {
    /// Leaves the rows of the code that is asked for. Gives what is to be told of other code.
    pub fn choose(&self, rows: &mut Rows) -> Result<Unseen, Error> {
        let shown = match &self.code {
            Some(wanted) => labelled(&rows.codes, wanted)?,
            None => rows.codes.current(),
        };
        let cells = &rows.cells;
        let is_shown = |row: &Row| shown.contains(&cells.kind(row.cells).code);
        let mut unseen = Unseen::default();
        if !self.all_code {
            let others = rows.all.iter().filter(|row| !is_shown(row));
            let mut only: HashSet<u64> = others.map(|row| row.given).collect();
            rows.all.retain(is_shown);
            rows.all.iter().for_each(|row| {
                only.remove(&row.given);
            });
            unseen.other_code = only.len();
            unseen.since = since(&rows.codes, &shown);
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
        Ok(unseen)
    }
}

fn labelled(codes: &Codes, wanted: &str) -> Result<HashSet<u32>, Error> {
    codes.labelled(wanted).map_err(|found| {
        let found: Vec<&str> = found.iter().map(|label| &**label).collect();
        Error::told(match found.is_empty() {
            true => format!(
                "no code here is {wanted:?}; the column `code` of a table of all code shows those there are"
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
    (!named.is_empty()).then(|| named.join("; "))
}
