//! The chosen computations of a store, a line each, for `ls` and `table`.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use jiff::Timestamp;
use sde::Key;
use sde::record::{AppSetup, CodeId, Record, ValueSummary};
use sde_archives::Class;
use sde_archives::inspect::{
    Computations, Entry, Listed, Resolved, SavedState, Snapshot, Standing, Wanted,
};
use sde_command::results::RULES_APP;

pub use crate::app_name::App;
use crate::codes::{self, Codes, Counts};
use crate::columns::{Cells, Columns};
use crate::error::Error;
use crate::failed::{self, FailedLine};
use crate::runs::{self, Run};
use crate::time;

/// Which runs of a store are listed.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// Only of this app.
    pub app: Option<App>,
    /// Only what was made since.
    pub since: Option<Timestamp>,
    /// Only what was made until then.
    pub until: Option<Timestamp>,
}

/// A computation. There may be millions, so only these fields are kept.
#[derive(Debug)]
pub struct Line {
    /// Its key; that of the run, where the run failed.
    pub key: Key,
    /// The name of its app.
    pub app: Arc<str>,
    /// The number of its code; `None` for an unfinished run, which has no record yet.
    pub code: Option<u32>,
    /// Whether its code is the one of its app that was active last: runs that must not be mixed with it are of other
    /// code. Only known if all of the app was read.
    pub is_of_current_code: bool,
    /// A hash of what it was given: runs of other code that were given the same have the same.
    pub given: u64,
    /// When it was made.
    pub made_at: Timestamp,
    /// How long it took.
    pub seconds: f64,
    /// The number of its results, saved or not.
    pub results: usize,
    /// The number of saved results and their bytes, in each class.
    saved: [(usize, u64); 3],
    /// `None` for an unfinished run.
    pub standing: Option<Standing>,
    /// What the reader asked to keep of it.
    pub cells: Cells,
    /// What it is, if it is a run of a command.
    pub run: Option<Box<Run>>,
    /// Whether a run of another app called it that is listed too.
    pub is_called: bool,
    /// Of a run that failed; then the key is that run's. Also of one of a command that fails by the rules last asked for.
    pub failed: Option<Box<FailedLine>>,
}

impl Line {
    fn of(entry: Entry, mut cells: Cells, run: Option<Run>, code: u32) -> Self {
        let payloads = entry.results.iter();
        let lengths = payloads.filter_map(|saved| Some(saved.payload.as_ref()?.length()));
        let mut saved = [(0, 0); 3];
        saved[entry.class as usize] = (lengths.clone().count(), lengths.sum());
        let failed = FailedLine::of(&entry.record).map(Box::new);
        // Shrinking would leave a gap behind each, which no other fits.
        let mut exact = Cells::with_capacity(cells.len());
        exact.append(&mut cells);
        let of = entry.record.failure.as_ref();
        Self {
            key: of.map_or(entry.record.key, |failure| failure.of),
            app: Arc::clone(&entry.record.app),
            code: Some(code),
            is_of_current_code: true,
            given: given(&entry.record, run.is_some()),
            made_at: time::of(entry.record.made_at),
            seconds: entry.record.took.as_secs_f64(),
            results: entry.results.len(),
            saved,
            standing: None,
            cells: exact,
            run: run.map(Box::new),
            is_called: false,
            failed,
        }
    }

    fn unfinished(state: &SavedState) -> Self {
        let mut saved = [(0, 0); 3];
        saved[Class::Scratch as usize] = (1, state.payload.length());
        Self {
            key: state.key,
            app: state.app.as_str().into(),
            code: None,
            is_of_current_code: true,
            given: 0,
            made_at: time::of_nanos(state.saved_at),
            seconds: 0.0,
            results: 1,
            saved,
            standing: None,
            cells: Cells::new(),
            run: None,
            is_called: false,
            failed: None,
        }
    }

    /// Adds another frame of this computation. Frames may overlap: results saved after a partial save repeat the first.
    fn merge(&mut self, other: &mut Self) {
        for (own, theirs) in self.saved.iter_mut().zip(other.saved) {
            *own = theirs.max(*own);
        }
        if self.run.is_none() {
            self.run = other.run.take();
        }
        for (column, cell) in other.cells.drain(..) {
            if self.cells.iter().all(|(own, _)| *own != column) {
                self.cells.push((column, cell));
            }
        }
    }

    /// The bytes of its saved results.
    pub fn bytes(&self) -> u64 {
        self.saved.iter().map(|(_, bytes)| bytes).sum()
    }

    /// The number of saved results.
    pub fn saved(&self) -> usize {
        self.saved.iter().map(|(count, _)| count).sum()
    }

    /// What is to be said of it, in a word: whether it counts, or is unfinished.
    pub const fn state(&self) -> &'static str {
        match self.standing {
            Some(standing) => standing.name(),
            None => "unfinished",
        }
    }

    /// Whether it is a run of a command that ended by itself.
    pub fn is_whole_run(&self) -> bool {
        matches!(self.run.as_deref(), Some(Run::Whole(_)))
    }

    /// Whether it has saved results of this class.
    pub fn has(&self, class: Class) -> bool {
        self.saved[class as usize].0 > 0
    }
}

/// A hash of all settings and inputs. Of a command libraries and the like are among them.
pub fn given(record: &Record, is_command: bool) -> u64 {
    // It is the same in each process.
    let mut hasher = DefaultHasher::new();
    of_setup(&record.setup, is_command, &mut hasher);
    // The script of a command is code.
    let script = codes::script(record).filter(|_| is_command);
    let script = script.map(|script| &*script.name);
    let inputs = record.inputs.iter();
    of_values(
        inputs.filter(|input| Some(&*input.name) != script),
        &mut hasher,
    );
    hasher.finish()
}

fn of_setup(setup: &AppSetup, is_command: bool, hasher: &mut DefaultHasher) {
    of_values(&setup.fields, hasher);
    of_values(&setup.parameters, hasher);
    if is_command {
        of_values(&setup.helpers, hasher);
    }
    for slot in &setup.slots {
        (&slot.slot, &slot.app).hash(hasher);
        of_setup(&slot.setup, false, hasher);
    }
}

fn of_values<'a>(values: impl IntoIterator<Item = &'a ValueSummary>, hasher: &mut DefaultHasher) {
    for value in values {
        (true, &value.name, value.digest.as_bytes()).hash(hasher);
    }
    false.hash(hasher);
}

/// The lines, latest first.
#[derive(Debug)]
pub struct Listing {
    /// The lines.
    pub lines: Vec<Line>,
    /// Whether there may be more.
    pub is_part: bool,
    /// The columns of their cells.
    pub columns: Columns,
    /// Their codes.
    pub codes: Codes,
    /// Uses and marks of the computations; these themselves are the lines.
    pub found: Resolved<Line>,
    /// How many runs failed and have had no result since, or fail by the rules last asked for.
    pub failed: usize,
    /// How many lines were left out, as they were called by others that are listed.
    pub called: usize,
}

/// Gives the cells to keep of an entry.
pub type Keep<'a> = &'a dyn Fn(&Entry, Option<&Run>, &mut Columns) -> Cells;

impl Listing {
    /// The code of a line's app; `None` for an unfinished run.
    pub fn code(&self, line: &Line) -> Option<&CodeId> {
        line.code.map(|code| &self.codes.get(code).of_app)
    }

    /// The chosen lines that `wanted` accepts, and that no other called unless these are wanted too. With `last`, at least
    /// that many of the latest ones, if there are, and no more frames are read than needed: the latest and all others of
    /// their keys, then more. An app that is asked for must exist, unless the store has none.
    pub fn of(
        store: &mut Snapshot,
        choice: &Choice,
        last: Option<usize>,
        wanted: impl Fn(&Line) -> bool,
        with_called: bool,
        keep: Keep<'_>,
    ) -> Result<Self, Error> {
        let mut frames = last.unwrap_or(0).saturating_mul(2).saturating_add(16);
        loop {
            let keys = last.and_then(|_| store.latest(frames));
            let (mut listing, apps) = Self::of_keys(store, keys.as_ref(), choice, keep)?;
            listing.lines.retain(&wanted);
            let all = listing.lines.len();
            listing.lines.retain(|line| with_called || !line.is_called);
            listing.called = all - listing.lines.len();
            if last.is_some_and(|last| listing.lines.len() >= last) {
                return Ok(listing);
            }
            if keys.is_none() {
                let wanted = choice.app.as_ref();
                return wanted
                    .map_or(Ok(()), |app| app.known(&apps))
                    .map(|()| listing);
            }
            frames = frames.saturating_mul(8);
        }
    }

    fn of_keys(
        store: &mut Snapshot,
        keys: Option<&HashSet<u64>>,
        choice: &Choice,
        keep: Keep<'_>,
    ) -> Result<(Self, BTreeSet<Arc<str>>), Error> {
        let mut reading = Reading::default();
        let (mut lines, found) = reading.lines(store, keys, choice, keep);
        let Reading {
            mut apps,
            columns,
            mut codes,
            ..
        } = reading;
        note_codes(&lines, &found, &mut codes);
        mark_current(&mut lines, &codes);
        let unfinished = found.unfinished.iter().map(Line::unfinished);
        apps.extend(unfinished.clone().map(|line| line.app));
        lines.extend(unfinished.filter(|line| choice.is_of_app(&line.app)));
        lines.retain(|line| {
            choice.since.is_none_or(|since| line.made_at >= since)
                && choice.until.is_none_or(|until| line.made_at <= until)
        });
        let of_commands = lines.iter_mut().filter_map(|line| {
            let run = line.run.as_deref_mut()?.whole_mut()?;
            Some((&*line.app, run, &mut line.failed))
        });
        runs::judge_all(store, of_commands.collect())?;
        // Keys differ, so that the order is always the same.
        lines.sort_unstable_by_key(|line| (Reverse(line.made_at), line.key));
        let has_failed =
            |line: &&Line| line.failed.is_some() && line.standing == Some(Standing::Current);
        let listing = Self {
            failed: lines.iter().filter(has_failed).count(),
            called: 0,
            lines,
            is_part: keys.is_some(),
            columns,
            codes,
            found,
        };
        Ok((listing, apps))
    }
}

/// What is found while entries are read.
#[derive(Debug, Default)]
pub struct Reading {
    /// The columns of the cells that were kept.
    pub columns: Columns,
    /// The codes of the entries.
    pub codes: Codes,
    /// The apps of all entries, chosen or not.
    pub apps: BTreeSet<Arc<str>>,
    /// The beginnings of the keys of what others called: a workflow may have called millions.
    pub called: HashSet<u64>,
}

impl Reading {
    /// Notes the app of an entry, and what it called. Gives whether it is chosen.
    pub fn sees(&mut self, entry: &Entry, choice: &Choice) -> bool {
        let app = &entry.record.app;
        if !self.apps.contains(app) {
            self.apps.insert(Arc::clone(app));
        }
        let is_chosen = choice.is_of_app(app);
        if is_chosen {
            let calls = entry.record.calls.iter();
            // A recursive app is one table.
            let others = calls.filter(|(of, _)| of != app);
            self.called.extend(others.map(|(_, key)| prefix(key)));
        }
        is_chosen
    }

    /// The chosen computations of these keys, or of all.
    pub fn lines(
        &mut self,
        store: &mut Snapshot,
        keys: Option<&HashSet<u64>>,
        choice: &Choice,
        keep: Keep<'_>,
    ) -> (Vec<Line>, Resolved<Line>) {
        let mut found = Computations::default();
        let is_of_keys = |listed: &Listed| {
            listed.is_uses() || keys.is_some_and(|keys| keys.contains(&listed.prefix()))
        };
        let wanted = keys.map(|_| &is_of_keys as Wanted<'_>);
        store.walk(wanted, |_, item| {
            found.add(item, |entry| {
                self.sees(&entry, choice).then(|| {
                    let run = Run::of(&entry);
                    let cells = keep(&entry, run.as_ref(), &mut self.columns);
                    let code = self.codes.of(&entry.record, run.is_some());
                    Line::of(entry, cells, run, code)
                })
            });
        });
        let mut found = found.resolve(Line::merge);
        store.gone |= found.gone;
        let of = |line: &Line| line.failed.is_some().then_some(line.key);
        let failures = failed::standing(&found.all, of);
        let all = std::mem::take(&mut found.all).into_iter();
        let standing = all.map(|one| Line {
            is_called: self.called.contains(&prefix(&one.of.key)),
            standing: Some(
                match one.of.failed.is_none() || failures.contains(&one.key) {
                    true => one.standing,
                    false => Standing::Replaced,
                },
            ),
            ..one.of
        });
        (standing.collect(), found)
    }
}

impl Choice {
    fn is_of_app(&self, app: &str) -> bool {
        match &self.app {
            Some(chosen) => chosen.is(app),
            None => app != RULES_APP,
        }
    }
}

/// The beginning of a key.
pub fn prefix(key: &Key) -> u64 {
    let first = key.as_bytes().first_chunk();
    first.map_or(0, |first| u64::from_be_bytes(*first))
}

/// Notes when the codes of these lines were active.
pub fn note_codes(lines: &[Line], found: &Resolved<Line>, codes: &mut Codes) {
    for line in lines {
        if let (Some(code), Some(standing)) = (line.code, line.standing) {
            let counts = match (standing, &line.failed) {
                (Standing::Current, None) => Counts::Result,
                (Standing::Current, Some(_)) => Counts::Failure,
                _ => Counts::Nothing,
            };
            // Uses are of results that count.
            let uses = found.uses(&line.key);
            let uses = uses.filter(|_| matches!(counts, Counts::Result));
            let used = uses.map(|uses| time::of_nanos(uses.last));
            codes.note(code, line.made_at, used, counts);
        }
    }
}

/// Notes of which lines the code is current.
fn mark_current(lines: &mut [Line], codes: &Codes) {
    let current = codes.current();
    for line in lines {
        let is_current = |code: u32| current.contains(&code);
        line.is_of_current_code = line.code.is_none_or(is_current);
    }
}
