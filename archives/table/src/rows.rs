//! The runs of a table. There may be millions, so of most little is kept.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use sde::Key;
use sde_archives::inspect::{Entry, Snapshot, Standing};

use crate::codes::{Codes, Counts};
use crate::columns::{Cell, Columns};
use crate::error::Error;
use crate::listing::{self, Choice, Keep, Line, Reading, given, prefix};
use crate::packed::{Packed, PackedRow};
use crate::runs::{Run, RunResults};
use crate::singles::{EntryRole, Singles};
use crate::time;

/// A run that counts, or a failure that stands.
#[derive(Debug)]
pub struct Row {
    /// Of a failure the key of its run.
    pub key: Key,
    /// In nanoseconds since 1970.
    made_at: i64,
    /// A hash of what it was given: runs of other code that were given the same have the same.
    pub given: u64,
    /// Where its cells are.
    pub cells: PackedRow,
}

/// What many rows have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kind {
    /// The number of the code.
    pub code: u32,
    /// Whether the run failed.
    pub has_failed: bool,
}

impl Row {
    /// Keys differ, so that the order is always the same.
    const fn order(&self) -> (i64, Reverse<Key>) {
        (self.made_at, Reverse(self.key))
    }

    fn of_line(line: &Line, code: u32, cells: &mut Packed<Kind>) -> Self {
        Self {
            key: line.key,
            made_at: nanos(line.made_at),
            given: line.given,
            cells: cells.keep(
                Kind {
                    code,
                    has_failed: line.failed.is_some(),
                },
                &line.cells,
            ),
        }
    }
}

/// A time out of range is the first or the last: it is out of a damaged file.
fn nanos(at: Timestamp) -> i64 {
    let nanos = at.as_nanosecond();
    i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
}

/// The runs, the first made first.
#[derive(Debug)]
pub struct Rows {
    /// The rows.
    pub all: Vec<Row>,
    /// Their columns.
    pub columns: Columns,
    /// Their cells.
    pub cells: Packed<Kind>,
    /// Their codes.
    pub codes: Codes,
    /// What runs of commands wrote.
    pub runs: HashMap<Key, RunResults>,
    /// Whether some are of commands.
    pub has_commands: bool,
    /// How many were left out, as others that are listed called them.
    pub called: usize,
}

impl Rows {
    /// The chosen runs that count, without those that others called unless they are wanted too. An app that is asked
    /// for must exist, unless the store has none.
    ///
    /// Memory is some 100 bytes for each that is alone under its key and no command's, and 500 for others.
    pub fn of(
        store: &mut Snapshot,
        choice: &Choice,
        with_called: bool,
        keep: Keep<'_>,
    ) -> Result<Self, Error> {
        let mut reading = Reading::default();
        let mut cells = Packed::default();
        let read = |entry: &Entry| {
            if !reading.sees(entry, choice) {
                return EntryRole::Ignored;
            }
            let run = Run::of(entry);
            let of_entry = keep(entry, run.as_ref(), &mut reading.columns);
            let code = reading.codes.of(&entry.record, run.is_some());
            if run.is_some() || entry.record.failure.is_some() {
                return EntryRole::Other;
            }
            EntryRole::Single(Row {
                key: entry.record.key,
                made_at: nanos(time::of(entry.record.made_at)),
                given: given(&entry.record, false),
                cells: cells.keep(
                    Kind {
                        code,
                        has_failed: false,
                    },
                    &of_entry,
                ),
            })
        };
        let singles = Singles::of(store, None, |row: &Row| row.key, read);
        for row in &singles.all {
            let used = singles.found.uses(&row.key);
            let used = used.map(|uses| time::of_nanos(uses.last));
            let made = Timestamp::from_nanosecond(row.made_at.into());
            let made = made.unwrap_or(Timestamp::MAX);
            reading
                .codes
                .note(cells.kind(row.cells).code, made, used, Counts::Result);
        }
        let Singles {
            mut all,
            others,
            of_states,
            ..
        } = singles;
        let mut lines = Vec::new();
        if !others.is_empty() {
            let (read, found) = reading.lines(store, Some(&others), choice, keep);
            lines = read;
            listing::note_codes(&lines, &found, &mut reading.codes);
        }
        reading
            .apps
            .extend(of_states.iter().map(|app| app.as_str().into()));
        let (mut runs, mut has_commands) = (HashMap::new(), false);
        for mut line in lines {
            let Some(code) = line.code else { continue };
            if line.standing == Some(Standing::Current) {
                all.push(Row::of_line(&line, code, &mut cells));
                has_commands |= line.run.is_some();
                if let Some(Run::Whole(run)) = line.run.take().map(|run| *run) {
                    runs.insert(line.key, run);
                }
            }
        }
        let (since, until) = (choice.since.map(nanos), choice.until.map(nanos));
        all.retain(|row| {
            since.is_none_or(|since| row.made_at >= since)
                && until.is_none_or(|until| row.made_at <= until)
        });
        let count = all.len();
        all.retain(|row| with_called || !reading.called.contains(&prefix(&row.key)));
        if let Some(app) = &choice.app {
            app.known(&reading.apps)?;
        }
        all.sort_unstable_by_key(Row::order);
        Ok(Self {
            called: count - all.len(),
            all,
            columns: reading.columns,
            cells,
            codes: reading.codes,
            runs,
            has_commands,
        })
    }

    /// Leaves failures out of which the run has a result here: a program that asks for it is given that, whenever it
    /// failed.
    pub fn drop_failures_with_results(&mut self) {
        let has_failed = |row: &Row| self.cells.kind(row.cells).has_failed;
        let failed = self.all.iter().filter(|row| has_failed(row));
        let failed: HashSet<Key> = failed.map(|row| row.key).collect();
        let have = self.all.iter().filter(|row| !has_failed(row));
        let have = have.map(|row| row.key).filter(|key| failed.contains(key));
        let have: HashSet<Key> = have.collect();
        self.all
            .retain(|row| !has_failed(row) || !have.contains(&row.key));
    }

    /// The code of a row, and whether it failed.
    pub fn kind(&self, row: &Row) -> Kind {
        self.cells.kind(row.cells)
    }

    /// The app of a row.
    pub fn app(&self, row: &Row) -> &Arc<str> {
        &self.codes.get(self.kind(row).code).app
    }

    /// The apps of all rows.
    pub fn apps(&self) -> BTreeSet<&str> {
        let kinds = self.cells.kinds(self.all.iter().map(|row| row.cells));
        kinds.map(|kind| &*self.codes.get(kind.code).app).collect()
    }

    /// Sorts the rows; those that are equal stay as they are, the first made first.
    pub fn sort(&mut self, by: impl Fn(&Self, &Row, &Row) -> Ordering) {
        let mut all = std::mem::take(&mut self.all);
        // A stable sort would take half as much memory again.
        all.sort_unstable_by(|a, b| by(self, a, b).then_with(|| a.order().cmp(&b.order())));
        self.all = all;
    }

    /// The cell of a row in a column.
    pub fn cell(&self, row: &Row, column: u32) -> Option<Cell> {
        self.cells.cell(row.cells, column)
    }
}
