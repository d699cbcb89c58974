//! `sde watch`: who is at what.

use std::collections::HashMap;
use std::io::{IsTerminal, stdin, stdout};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime};

use clap::Args;
use console::Term;
use sde::archiver::Archiver;
use sde_archives::inspect::Inspection;
use sde_archives::processes::{self, Process, Running};
use sde_archives::{DirStore, StoreOptions};
use serde::Serialize;

use crate::args::Place;
use crate::failure::Failure;
use crate::output::Output;
use crate::table::TextTable;
use crate::{store, text, time};

/// Who is at what, since when, and what takes ten times its usual cost
///
/// Shows the runs that processes have announced in the store, with the median of what runs of the app took before. In a terminal it
/// is shown anew every 2 s, until Ctrl-C, or q and Enter. Nothing in the store is changed or locked.
///
/// Not seen are runs of less than 20 ms and those of programs that share no work (SharedWork::Off, SavePolicy::Never):
/// of these only sweeps of 1 s or more are seen. Nothing is seen of programs that only read the store, run on several
/// ranks, or on another system than Linux. A new run's app is seen up to 2 s later than its key. A process on another machine
/// counts as gone if it has told nothing for 30 s.
#[derive(Args)]
pub struct Watch {
    #[command(flatten)]
    place: Place,
    /// Shows it once, as it does where the output is no terminal
    #[arg(long)]
    once: bool,
}

/// From one look to the next.
const PAUSE: Duration = Duration::from_secs(2);

/// A run that takes so many times as long as usual is told.
const MANY: u32 = 10;

/// Usual costs are found anew after that time: there are more runs then.
const COSTS_LAST: Duration = Duration::from_secs(60);

/// A process that lives, and has not told so for that long, is told.
const SILENT: Duration = Duration::from_secs(30);

impl Watch {
    pub fn run(&self, out: &mut Output) -> Result<(), Failure> {
        let path = self.place.only()?;
        Inspection::open(&path).map_err(|error| store::not_opened(&path, error))?;
        let mut costs = Costs::of(&path)?;
        if self.once || out.json || !stdout().is_terminal() {
            return show(&path, &mut costs, out);
        }
        let told = told_to_end();
        loop {
            // The screen of a terminal that can't be cleared scrolls.
            let _ = Term::stdout().clear_screen();
            show(&path, &mut costs, out)?;
            out.line("q and Enter, or Ctrl-C, ends this")?;
            out.flush()?;
            match told.recv_timeout(PAUSE) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(PAUSE),
            }
        }
    }
}

/// Receives when the user enters a q.
fn told_to_end() -> Receiver<()> {
    let (tell, told) = mpsc::channel();
    if stdin().is_terminal() {
        std::thread::spawn(move || {
            let lines = stdin().lines().map_while(Result::ok);
            let mut quits = lines.filter(|line| line.trim().eq_ignore_ascii_case("q"));
            quits.next().is_some_and(|_| tell.send(()).is_ok())
        });
    }
    told
}

fn show(path: &Path, costs: &mut Costs, out: &mut Output) -> Result<(), Failure> {
    let now = SystemTime::now();
    let processes = processes::list(path)?;
    let rows: Vec<Row> = processes
        .iter()
        .flat_map(|process| Row::of(process, now, costs))
        .collect();
    if out.json {
        return rows.iter().try_for_each(|row| out.object(row));
    }
    if rows.is_empty() {
        return out.wrapped(
            "nobody is seen at work; programs that share no work are not seen (`sde watch --help`)",
            2,
        );
    }
    let title = |row: &Row| format!("{}:{}", row.host, row.process);
    let seconds = |seconds: Option<f64>| seconds.map_or_else(String::new, text::duration);
    TextTable::of(&rows)
        .left("PROCESS", 6, title)
        .least(12)
        .left("APP", 5, |row| row.app.clone().unwrap_or_default())
        .least(10)
        .left("KEY", 2, |row| row.key_short.clone().unwrap_or_default())
        .right("FOR", 4, |row| seconds(row.seconds))
        .right("USUAL", 1, |row| seconds(row.usual_seconds))
        .left("NOTE", 3, Row::note)
        .least(10)
        .write(out)?;
    Ok(())
}

/// A run that goes on, or a process that has announced none.
#[derive(Serialize)]
struct Row {
    host: String,
    process: u32,
    id: String,
    alive: bool,
    renewed_at: jiff::Timestamp,
    /// When it was told to stop; `None` if it was not.
    stop_at: Option<jiff::Timestamp>,
    stop_by: Option<String>,
    app: Option<String>,
    key: Option<String>,
    #[serde(skip)]
    key_short: Option<String>,
    since: Option<jiff::Timestamp>,
    seconds: Option<f64>,
    usual_seconds: Option<f64>,
    ten_times: bool,
    #[serde(skip)]
    silent: Option<Duration>,
}

impl Row {
    /// The rows of a process. One that is gone is told if it has left runs behind.
    fn of(process: &Process, now: SystemTime, costs: &mut Costs) -> Vec<Self> {
        let runs = process.runs.iter();
        let mut rows: Vec<Self> = runs
            .map(|run| Self::of_run(process, run, now, costs))
            .collect();
        if rows.is_empty() && process.alive {
            rows.push(Self::new(process, now, process.since));
        }
        rows.sort_by_key(|row| row.since);
        rows
    }

    fn of_run(process: &Process, run: &Running, now: SystemTime, costs: &mut Costs) -> Self {
        let (app, since) = run.about.clone().unzip();
        let usual = app.as_deref().and_then(|app| costs.usual(app));
        let took = since.and_then(|since| now.duration_since(since).ok());
        let is_many = usual
            .zip(took)
            .is_some_and(|(usual, took)| took > MANY * usual);
        Self {
            app,
            key: Some(run.key.to_string()),
            key_short: Some(run.key.short()),
            usual_seconds: usual.map(|usual| usual.as_secs_f64()),
            ten_times: is_many,
            ..Self::new(process, now, since)
        }
    }

    fn new(process: &Process, now: SystemTime, since: Option<SystemTime>) -> Self {
        let told = process.told.as_ref();
        let silent = now.duration_since(process.renewed).ok();
        Self {
            host: match &*process.host {
                "" => "?".to_owned(),
                host => host.to_owned(),
            },
            process: process.process,
            id: process.id.clone(),
            alive: process.alive,
            renewed_at: time::of(process.renewed),
            stop_at: told.map(|told| time::of(told.at)),
            stop_by: told.map(|told| told.by.clone()),
            app: None,
            key: None,
            key_short: None,
            since: since.map(time::of),
            seconds: since
                .and_then(|since| now.duration_since(since).ok())
                .map(|took| took.as_secs_f64()),
            usual_seconds: None,
            ten_times: false,
            silent: silent.filter(|silent| *silent > SILENT),
        }
    }

    fn note(&self) -> String {
        let mut notes = Vec::new();
        if !self.alive {
            notes.push("gone".to_owned());
        }
        if self.ten_times {
            notes.push(format!("{MANY}x"));
        }
        match (self.stop_at, self.alive) {
            (Some(at), true) if at > jiff::Timestamp::now() => {
                notes.push(format!("stops {}", time::local(at)));
            }
            (Some(_), true) => notes.push("stops".to_owned()),
            _ => {}
        }
        match (self.silent, &self.key) {
            (Some(silent), Some(_)) if self.alive => {
                notes.push(format!("silent {}", text::duration(silent.as_secs_f64())));
            }
            (Some(_), None) => notes.push("idle".to_owned()),
            (None, None) => notes.push("unannounced".to_owned()),
            _ => {}
        }
        notes.join(", ")
    }
}

/// What runs of apps usually take.
struct Costs {
    store: DirStore,
    known: HashMap<String, (Instant, Option<Duration>)>,
}

impl Costs {
    /// Only the times are read from the store, so it may be anybody's.
    fn of(path: &Path) -> Result<Self, Failure> {
        let options = StoreOptions::new().read_only().trust_others();
        let store = options.open(path);
        Ok(Self {
            store: store.map_err(|error| store::not_opened(path, error))?,
            known: HashMap::new(),
        })
    }

    /// The median of the latest runs; `None` if there are none.
    fn usual(&mut self, app: &str) -> Option<Duration> {
        if let Some((at, usual)) = self.known.get(app)
            && at.elapsed() < COSTS_LAST
        {
            return *usual;
        }
        // What can't be read is damaged, or gone: `sde verify` tells.
        let _ = self.store.refresh();
        let mut took = Vec::new();
        let _ = self
            .store
            .records(app, &mut |record| took.push(record.took));
        let usual = time::median(&took);
        self.known.insert(app.to_owned(), (Instant::now(), usual));
        usual
    }
}
