//! `sde exec --each`: a run for each row of a file, by any number of processes at once.

mod dry;
mod fill;
mod places;
mod progress;
mod rows;

use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use sde::{ErrorKind, Event, Handle, Key, Sde, Sweep};
use sde_command::{CommandError, Ran, Stop};

use super::signals::{Phase, Signals};
use super::{Exec, options, tell};
use crate::failure::Failure;
use crate::output::{Output, warn};
use crate::text;
use progress::Progress;
use rows::{Rows, refused};

/// The most rows that are told to have failed.
const TOLD: usize = 100;

/// What the runs of rows share.
struct List<'a> {
    sde: Handle,
    sweep: Sweep<'a>,
    stop: Stop,
    /// Failures since then are not run again.
    began: SystemTime,
}

/// The status if rows are left, which tells a batch script to queue the job again.
const LEFT: u8 = 75;

/// What came of a row.
enum Row {
    Passed(Passed),
    Failed {
        key: Option<Key>,
        why: String,
        ran: bool,
    },
    Left(Why),
}

/// Why rows are left.
#[derive(Clone, Copy)]
enum Why {
    Signal,
    Stop,
    Time,
}

struct Passed {
    key: Key,
    is_remembered: bool,
    notes: Notes,
}

/// What runs did besides, told once for all.
#[derive(Default)]
struct Notes {
    undeclared: BTreeSet<String>,
    unkept: BTreeSet<String>,
    left: BTreeSet<String>,
}

impl Exec {
    /// Runs all rows, and gives the status to end with.
    pub fn execute_each(&self, file: &Path, out: &mut Output) -> Result<u8, Failure> {
        let rows = self.rows(file)?;
        let all = self.filled(&rows)?;
        let is_ours = |one: &Self| one.stdin.as_deref() == Some(Path::new("-"));
        if let Some(at) = all.iter().position(is_ours) {
            let why = "--stdin - is for one run, and rows are many; name a file";
            return Err(refused(&rows.name, rows.rows[at].line, why));
        }
        // A key takes no store, and nothing runs for it.
        let keys = Sde::new();
        let key = |at: usize| Some(all[at].command().ok()?.0.peek(&keys).ok()?.key());
        places::check(&rows, &all, &key)?;
        if self.dry_run {
            return self.tell_each(&rows, &all, out);
        }
        let signals = Signals::take()?;
        let began = SystemTime::now();
        let at_once = self.jobs.map_or(1, usize::from);
        // Waits for other processes are told by none: there would be one for each row.
        let sde = self.engine(at_once, |_: &Event| {})?;
        let progress = Progress::new(all.len(), at_once);
        signals.enter(Phase::Running);
        let handle = sde.with_cancel(&signals.cancel);
        // Of rows with several programs the first one's costs are taken for all.
        let app = all.iter().find_map(|one| one.command().ok()?.0.app().ok());
        let list = List {
            sweep: sde.sweep(&app.unwrap_or_default()),
            sde: handle,
            stop: signals.stop.clone().lasting(),
            began,
        };
        let each = |one: &Exec, waits: bool| {
            let begun = Instant::now();
            let row = match signals.stop.is_sent() {
                true => Row::Left(Why::Signal),
                false => one.run_row(&list, waits)?,
            };
            if !matches!(row, Row::Left(_)) {
                progress.done(matches!(row, Row::Failed { .. }), row.took(begun));
            }
            Some(row)
        };
        let done = sde.each_beside_others("sde exec", &all, each, |_| !signals.stop.is_sent());
        progress.end();
        signals.enter(Phase::Keeping);
        let kept = sde.finish().map_err(|error| {
            Failure::told(format!("results are not kept: {}", tell::chain(&error)))
        });
        drop(list);
        drop(sde);
        let _ = sde_command::sweep(&self.scratch_folder());
        let status = conclude(&rows, done);
        kept?;
        signals.end();
        Ok(status)
    }

    fn rows(&self, file: &Path) -> Result<Rows, Failure> {
        if self.why {
            return Err(Failure::told(
                "--why is refused with --each: --dry-run tells it of the rows",
            ));
        }
        Rows::read(file)
    }

    /// `None` if another process is at the run.
    fn run_row(&self, list: &List<'_>, waits: bool) -> Option<Row> {
        let command = match self.command() {
            Ok((command, _)) => command,
            Err(failure) => return Some(Row::refused(failure)),
        };
        let command = command.stop(&list.stop).since(list.began);
        let ran = command.run_in_sweep(&list.sde, &list.sweep, waits);
        let passed = match ran.transpose()? {
            Ok(ran) => self.put_row(&ran).map(|()| Passed::of(&ran)),
            // It did not end by itself, and runs again when it is asked for.
            Err(_) if list.stop.is_sent() => return Some(Row::Left(Why::Signal)),
            Err(CommandError::Engine(error)) if error.is_out_of_time() => {
                return Some(Row::Left(Why::of(&error)));
            }
            Err(error) => return Some(Row::failed(&error)),
        };
        Some(passed.map_or_else(Row::refused, Row::Passed))
    }

    fn put_row(&self, ran: &Ran) -> Result<(), Failure> {
        let places = self.places()?;
        let put = ran.put_each(|name| options::place(&places, name));
        put.map_err(|error| Failure::told(format!("its outputs are kept, but not put: {error}")))
    }
}

impl Why {
    fn of(error: &sde::Error) -> Self {
        match error.kind() {
            ErrorKind::NotStarted { stopped: true, .. } => Self::Stop,
            _ => Self::Time,
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Signal => "a signal came",
            Self::Stop => "somebody told this program to stop",
            Self::Time => "the job's time is up",
        }
    }
}

impl Row {
    fn failed(error: &CommandError) -> Self {
        Self::Failed {
            key: error.key(),
            why: tell::chain(error),
            ran: match error {
                CommandError::Failed(failed) => !failed.ran.is_remembered(),
                CommandError::Ended { .. } => true,
                _ => false,
            },
        }
    }

    fn refused(failure: Failure) -> Self {
        Self::Failed {
            key: None,
            why: failure.text(),
            ran: false,
        }
    }

    /// How long its program took, if one ran.
    fn took(&self, begun: Instant) -> Option<Duration> {
        let ran = match self {
            Self::Passed(passed) => !passed.is_remembered,
            Self::Failed { ran, .. } => *ran,
            Self::Left(_) => false,
        };
        ran.then(|| begun.elapsed())
    }
}

impl Passed {
    fn of(ran: &Ran) -> Self {
        let all = |names: &[String]| names.iter().cloned().collect();
        Self {
            key: ran.key(),
            is_remembered: ran.is_remembered(),
            notes: Notes {
                undeclared: all(ran.undeclared()),
                unkept: all(ran.unkept()),
                left: all(ran.left_behind()),
            },
        }
    }
}

/// Tells what came of the rows, and gives the status.
fn conclude(rows: &Rows, done: Vec<Option<Row>>) -> u8 {
    let (mut notes, mut failed) = (Notes::default(), Vec::new());
    let (mut runs, mut passed, mut left) = (HashSet::new(), 0, 0);
    let mut why = Why::Signal;
    for (at, row) in done.into_iter().enumerate() {
        match row {
            Some(Row::Passed(one)) => {
                passed += 1;
                // Rows of one run share it.
                runs.extend((!one.is_remembered).then_some(one.key));
                notes.undeclared.extend(one.notes.undeclared);
                notes.unkept.extend(one.notes.unkept);
                notes.left.extend(one.notes.left);
            }
            Some(Row::Failed { key, why, .. }) => failed.push((rows.rows[at].line, key, why)),
            // After a signal nobody looks at the rest.
            None => left += 1,
            Some(Row::Left(since)) => (left, why) = (left + 1, since),
        }
    }
    notes.tell();
    for (line, key, why) in failed.iter().take(TOLD) {
        let first = why.lines().next().unwrap_or_default();
        // Most errors name the run.
        let key = key.map(|key| key.short().to_string());
        let key = key.filter(|key| !first.contains(&**key));
        let key = key.map_or_else(String::new, |key| format!(" [{key}]"));
        warn(format!("line {line}{key}: {first}"));
    }
    if failed.len() > TOLD {
        warn(format!("{} more rows failed", failed.len() - TOLD));
    }
    if let Some((line, _, why)) = failed.iter().find(|(.., why)| why.contains('\n')) {
        warn(format!("of line {line}:"));
        why.lines().skip(1).for_each(warn);
    }
    let failures = match failed.len() {
        0 => String::new(),
        number => format!(", {number} failed"),
    };
    warn(format!(
        "{}: {passed} passed ({} run now){failures}{}",
        text::count(rows.rows.len(), "row", "rows"),
        runs.len(),
        match left {
            0 => String::new(),
            left => format!(
                ", {left} left since {}: the same line goes on with them",
                why.text()
            ),
        },
    ));
    match (failed.len(), left) {
        (0, 0) => 0,
        (_, 0) => 1,
        _ => LEFT,
    }
}

impl Notes {
    fn tell(&self) {
        let some =
            |names: &BTreeSet<String>| tell::some(&names.iter().cloned().collect::<Vec<_>>());
        if let Some(first) = self.undeclared.first() {
            warn(format!(
                "runs wrote {}, which nobody declared: -o {first} keeps it",
                some(&self.undeclared)
            ));
        }
        if !self.unkept.is_empty() {
            warn(format!("outputs are not kept: {}", some(&self.unkept)));
        }
        if !self.left.is_empty() {
            warn(format!(
                "processes were left behind, and ended: {}",
                some(&self.left)
            ));
        }
    }
}
