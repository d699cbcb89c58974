//! `sde ls`: what is in a store.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sde::{CodeId, Key};
use sde_archives::inspect::{Entry, Item, Listed};
use sde_archives::{Class, Precedence};
use serde_json::json;

use super::App;
use crate::args::Arguments;
use crate::failure::Failure;
use crate::kernels::{self, Program, Uses};
use crate::output::Output;
use crate::store::{self, Marks, Scratches, Store};
use crate::table::{self, Column};
use crate::whole::Id;
use crate::{json, text, time};

struct Options {
    app: Option<App>,
    class: Option<Class>,
    since: Option<SystemTime>,
    until: Option<SystemTime>,
    sort: Sort,
    limit: Option<usize>,
    all: bool,
}

/// How many lines there are in all.
#[derive(Clone, Copy)]
enum Total {
    Known(usize),
    /// More than are shown, perhaps.
    More,
}

impl Total {
    /// What comes after the number of those that are shown.
    fn of(self, shown: usize) -> String {
        match self {
            Self::Known(total) if total == shown => String::new(),
            Self::Known(total) => format!(" of {total}"),
            Self::More => ", the latest".to_owned(),
        }
    }
}

#[derive(Clone, Copy)]
enum Sort {
    Time,
    Size,
    Cost,
    App,
}

/// What a line shows. There may be millions, so no more is kept.
struct Row {
    key: Key,
    app: Rc<str>,
    code: Rc<CodeId>,
    made_at: SystemTime,
    took: Duration,
    results: usize,
    /// Results that are saved and their bytes, in each class.
    saved: [(usize, u64); 3],
    state: State,
    /// If it is of a kernel cache.
    program: Option<Box<Program>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Current,
    Replaced,
    Invalid,
    /// Of a run that has not finished.
    Scratch,
}

impl State {
    const fn name(self) -> &'static str {
        match self {
            Self::Current => "",
            Self::Replaced => "replaced",
            Self::Invalid => "invalid",
            Self::Scratch => "unfinished",
        }
    }
}

impl Row {
    fn size(&self) -> u64 {
        self.saved.iter().map(|(_, bytes)| bytes).sum()
    }

    fn count(&self) -> usize {
        self.saved.iter().map(|(count, _)| count).sum()
    }

    fn classes(&self) -> impl Iterator<Item = Class> {
        let with = Class::ALL.into_iter().zip(self.saved);
        with.filter(|(_, (count, _))| *count > 0)
            .map(|(class, _)| class)
    }
}

pub fn run(mut arguments: Arguments, out: &mut Output) -> Result<(), Failure> {
    let options = options(&mut arguments)?;
    let as_json = arguments.json;
    let [path] = arguments.values(["STORE"], 0)?;
    let (store, (rows, total, uses)) = store::read(path.unwrap_or_default(), |store| {
        let (rows, total) = match options.limit {
            None => some_rows(store, &options, None),
            Some(limit) => latest_rows(store, &options, limit),
        };
        let uses = match rows.iter().any(|row| row.program.is_some()) {
            true => Uses::of_store(store),
            false => Uses::default(),
        };
        Ok((rows, total, uses))
    })?;
    match as_json {
        true => rows
            .iter()
            .try_for_each(|row| out.json(&object(row, &uses)))?,
        false => print(&rows, &uses, total, out)?,
    }
    out.flush()?;
    store.tell_damage();
    out.found |= !store.is_whole();
    Ok(())
}

fn options(arguments: &mut Arguments) -> Result<Options, Failure> {
    let mut options = Options {
        app: None,
        class: None,
        since: None,
        until: None,
        sort: Sort::Time,
        limit: None,
        all: false,
    };
    let now = SystemTime::now();
    let when = "a time: 2h ago as 2h, a day as 2026-11-21, or 2026-11-21T16:00 in UTC";
    while let Some(option) = arguments.option()? {
        match &*option {
            "app" => options.app = Some(App::new(arguments.text()?)),
            "class" => {
                let expected = "a class: result, intermediate or scratch";
                let class = |name: &str| {
                    Class::ALL
                        .into_iter()
                        .find(|class| json::class(*class) == name)
                };
                options.class = Some(arguments.read(expected, class)?);
            }
            "since" => options.since = Some(arguments.read(when, |text| time::parse(text, now))?),
            "until" => options.until = Some(arguments.read(when, |text| time::parse(text, now))?),
            "sort" => {
                options.sort = arguments.read("time, size, cost or app", |text| match text {
                    "time" => Some(Sort::Time),
                    "size" => Some(Sort::Size),
                    "cost" => Some(Sort::Cost),
                    "app" => Some(Sort::App),
                    _ => None,
                })?;
            }
            "limit" => {
                let number = |text: &str| text.parse().ok();
                options.limit = Some(arguments.read("a number of lines", number)?);
            }
            "all" => options.all = true,
            other => return Err(arguments.unknown(other)),
        }
    }
    Ok(options)
}

/// Each with its rank among those of its key.
type Computations = HashMap<Id, (Precedence, Row)>;

/// So many lines, and whether there are more. By time no more is read than it takes: the frames that were saved last, and
/// all that there is of their keys; more of them, if of those too few are wanted.
fn latest_rows(store: &mut Store, options: &Options, limit: usize) -> (Vec<Row>, Total) {
    let mut frames = limit.saturating_mul(2).saturating_add(16);
    loop {
        let latest = match options.sort {
            Sort::Time => store.latest(frames),
            _ => None,
        };
        let is_all = latest.is_none();
        let (mut rows, _) = some_rows(store, options, latest);
        if is_all || rows.len() >= limit {
            let total = if is_all {
                Total::Known(rows.len())
            } else {
                Total::More
            };
            rows.truncate(limit);
            return (rows, total);
        }
        frames = frames.saturating_mul(8);
    }
}

/// The lines of all keys, or of those that begin so.
fn some_rows(
    store: &mut Store,
    options: &Options,
    keys: Option<HashSet<u64>>,
) -> (Vec<Row>, Total) {
    let mut rows = rows(store, keys.as_ref());
    rows.retain(|row| wanted(row, options));
    sort(&mut rows, options.sort);
    let total = rows.len();
    (rows, Total::Known(total))
}

fn rows(store: &mut Store, keys: Option<&HashSet<u64>>) -> Vec<Row> {
    let mut rows = Computations::new();
    let mut names: HashSet<Rc<str>> = HashSet::new();
    let mut codes: HashSet<Rc<CodeId>> = HashSet::new();
    let mut marks = Marks::default();
    let mut scratches = Scratches::default();
    let of_keys = |listed: &Listed| keys.is_some_and(|keys| keys.contains(&listed.prefix()));
    let wanted: Option<&dyn Fn(&Listed) -> bool> = match keys {
        Some(_) => Some(&of_keys),
        None => None,
    };
    store.walk_wanted(wanted, |segment, item| match item {
        Item::Entry(entry) => {
            scratches.finish(&entry);
            add(&mut rows, &mut names, &mut codes, &entry);
        }
        Item::Mark { mark, .. } => marks.add(mark),
        Item::Scratch(scratch) => scratches.add(segment, scratch),
        _ => {}
    });
    let mut highest: HashMap<Key, Precedence> = HashMap::new();
    for (rank, row) in rows.values() {
        let known = highest.entry(row.key).or_insert(*rank);
        *known = (*known).max(*rank);
    }
    for (id, (rank, row)) in &mut rows {
        row.state = match marks.of(id) {
            Some(_) => State::Invalid,
            None if highest.get(&row.key) == Some(rank) => State::Current,
            None => State::Replaced,
        };
    }
    let mut rows: Vec<Row> = rows.into_values().map(|(_, row)| row).collect();
    rows.extend(scratches.left().into_iter().map(|(_, scratch)| Row {
        key: scratch.key,
        app: scratch.app.into(),
        code: Rc::new(CodeId::Version("".into())),
        made_at: UNIX_EPOCH + Duration::from_nanos(scratch.saved_at),
        took: Duration::ZERO,
        results: 1,
        saved: [(0, 0), (0, 0), (1, scratch.payload.length())],
        state: State::Scratch,
        program: None,
    }));
    rows
}

fn add(
    rows: &mut Computations,
    names: &mut HashSet<Rc<str>>,
    codes: &mut HashSet<Rc<CodeId>>,
    entry: &Entry,
) {
    let record = &entry.record;
    let new = || {
        let row = Row {
            key: record.key,
            app: one_of(names, &Rc::from(&*record.app)),
            code: one_of(codes, &Rc::new(record.code.clone())),
            made_at: record.made_at,
            took: record.took,
            results: entry.results.len(),
            saved: [(0, 0); 3],
            state: State::Current,
            program: Program::of(entry).map(Box::new),
        };
        (entry.precedence(), row)
    };
    let id = (record.key, record.run);
    let (rank, row) = rows.entry(id).or_insert_with(new);
    *rank = entry.precedence().max(*rank);
    let payloads = entry
        .results
        .iter()
        .filter_map(|saved| saved.payload.as_ref());
    let here = payloads.fold((0, 0), |(count, bytes), payload| {
        (count + 1, bytes + payload.length())
    });
    // The same may be there twice: what was not all saved the first time was saved again.
    if let Some((_, saved)) = Class::ALL
        .iter()
        .zip(&mut row.saved)
        .find(|(class, _)| **class == entry.class)
    {
        *saved = (*saved).max(here);
    }
}

/// The same text once for all rows.
fn one_of<T: Eq + std::hash::Hash + ?Sized>(known: &mut HashSet<Rc<T>>, one: &Rc<T>) -> Rc<T> {
    if let Some(known) = known.get(one) {
        return Rc::clone(known);
    }
    known.insert(Rc::clone(one));
    Rc::clone(one)
}

fn wanted(row: &Row, options: &Options) -> bool {
    let shown = options.all || matches!(row.state, State::Current | State::Scratch);
    shown
        && options.app.as_ref().is_none_or(|app| app.is(&row.app))
        && options
            .class
            .is_none_or(|class| row.classes().any(|of| of == class))
        && options.since.is_none_or(|since| row.made_at >= since)
        && options.until.is_none_or(|until| row.made_at <= until)
}

fn sort(rows: &mut [Row], sort: Sort) {
    use std::cmp::Reverse;
    // First by what is always different, so that the order is the same each time.
    rows.sort_by_key(|row| (Reverse(row.made_at), row.key));
    match sort {
        Sort::Time => {}
        Sort::Size => rows.sort_by_key(|row| Reverse(row.size())),
        Sort::Cost => rows.sort_by_key(|row| Reverse(row.took)),
        Sort::App => rows.sort_by(|a, b| a.app.cmp(&b.app)),
    }
}

const COLUMNS: [Column; 8] = [
    Column::new("APP", 7).least(12),
    Column::new("VERSION", 2).least(8),
    Column::new("KEY", 9).least(12),
    Column::new("MADE (UTC)", 5),
    Column::new("RESULTS", 3).right(),
    Column::new("SIZE", 6).right(),
    Column::new("COST", 4).right(),
    Column::new("STATE", 8),
];

fn print(rows: &[Row], uses: &Uses, total: Total, out: &mut Output) -> Result<(), Failure> {
    if matches!(total, Total::Known(0)) {
        return out.line("no entries");
    }
    let programs = rows.iter().map(|row| Some((row, row.program.as_deref()?)));
    if let Some(programs) = programs.collect::<Option<Vec<_>>>() {
        return print_programs(&programs, uses, total, out);
    }
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let results = match row.count() == row.results {
                true => row.results.to_string(),
                false => format!("{}/{}", row.count(), row.results),
            };
            let unfinished = row.state == State::Scratch;
            vec![
                row.app.to_string(),
                if unfinished {
                    String::new()
                } else {
                    super::code(&row.code)
                },
                row.key.short(),
                time::text(row.made_at).chars().take(16).collect(),
                if unfinished { String::new() } else { results },
                text::size(row.size()),
                if unfinished {
                    String::new()
                } else {
                    text::duration(row.took)
                },
                row.state.name().to_owned(),
            ]
        })
        .collect();
    table::write(out, &COLUMNS, &cells)?;
    let size = text::size(rows.iter().map(Row::size).sum());
    let shown = text::count(rows.len(), "entry", "entries");
    out.line(format!("{shown}{}, {size}", total.of(rows.len())))
}

/// A kernel cache.
fn print_programs(
    programs: &[(&Row, &Program)],
    uses: &Uses,
    total: Total,
    out: &mut Output,
) -> Result<(), Failure> {
    let cells: Vec<_> = programs
        .iter()
        .map(|(row, program)| program.cells(&row.key, uses.of(&row.key), row.state.name()))
        .collect();
    table::write(out, &kernels::COLUMNS, &cells)?;
    let all = programs.iter().map(|(_, program)| program);
    let shown = text::count(programs.len(), "program", "programs");
    let of = total.of(programs.len());
    out.line(format!(
        "{shown}{of}, {}, built in {}",
        text::size(all.clone().map(|program| program.bytes).sum()),
        // What a file says of itself may be anything.
        text::duration(all.fold(Duration::ZERO, |sum, program| {
            sum.saturating_add(program.build)
        }))
    ))
}

fn object(row: &Row, uses: &Uses) -> serde_json::Value {
    let mut object = json!({
        "app": row.app,
        "code": json::code(&row.code),
        "key": row.key.to_string(),
        "made_at": time::iso(row.made_at),
        "seconds": row.took.as_secs_f64(),
        "results": row.results,
        "saved": row.count(),
        "bytes": row.size(),
        "classes": row.classes().map(json::class).collect::<Vec<_>>(),
        "state": match row.state {
            State::Current => "current",
            other => other.name(),
        },
    });
    if let Some(program) = &row.program {
        object["program"] = program.object(uses.of(&row.key));
    }
    object
}
