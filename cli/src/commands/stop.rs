//! `sde stop`: has the programs at work with a store come to an end.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use clap::Args;
use jiff::Timestamp;
use sde_archives::inspect::Inspection;
use sde_archives::processes::{self, Process};
use serde_json::json;

use crate::args::Place;
use crate::failure::Failure;
use crate::output::Output;
use crate::{store, text, time};

/// Tells the programs at work with a store to stop
///
/// They look for that every 2 s, save what is new, end the items that are begun, and begin no more items of their
/// sweeps: these end with the error OutOfTime, and the programs with status 75, if that is how they end on errors
/// (`#[sde::main]`). Nothing is killed, and what is no sweep goes on. Programs that open the store later are not told.
///
/// Told are the programs that `sde watch` shows; its help says which are not seen. Whoever can write to the store's folder can
/// tell them.
#[derive(Args)]
pub struct Stop {
    #[command(flatten)]
    place: Place,
    /// At that time, today or tomorrow by this machine's clock (18:00), or after so long (2h); until then they begin what will be done
    #[arg(long, value_name = "TIME", value_parser = time::ahead)]
    after: Option<Timestamp>,
    /// Waits until they have ended, and shows those that have not: exit status 1
    #[arg(long, conflicts_with = "cancel")]
    wait: bool,
    /// For --wait: the longest that it waits
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = time::limit, requires = "wait")]
    timeout: Duration,
    /// Takes the request back; programs that have stopped do not go on
    #[arg(long, conflicts_with = "after")]
    cancel: bool,
}

/// From one look to the next.
const PAUSE: Duration = Duration::from_millis(200);

impl Stop {
    pub fn run(&self, out: &mut Output) -> Result<(), Failure> {
        let path = self.place.only()?;
        Inspection::open(&path).map_err(|error| store::not_opened(&path, error))?;
        if self.cancel {
            let was_there = processes::cancel_stop(&path)?;
            return match (out.json, was_there) {
                (true, _) => out.object(&json!({ "cancelled": was_there })),
                (_, true) => out.wrapped(
                    "the request is taken back; programs that have stopped do not go on",
                    2,
                ),
                (_, false) => out.line("nobody was told to stop"),
            };
        }
        let at = self.after.map(SystemTime::try_from).transpose();
        let told = processes::tell_to_stop(&path, at.map_err(Failure::told)?);
        let told = told.map_err(|error| {
            Failure::told(format!(
                "{error}; who can write to the store's folder can do it"
            ))
        })?;
        if !out.json {
            self.print(&told, out)?;
        }
        let left = match self.wait {
            true => self.wait_for(&path, &told, out)?,
            false => Vec::new(),
        };
        out.found |= !left.is_empty();
        if out.json {
            let of = |of: &Process| json!({ "host": of.host, "process": of.process, "id": of.id });
            let [told, left] = [&told, &left].map(|all| all.iter().map(of).collect::<Vec<_>>());
            let left = self.wait.then_some(left);
            return out.object(&json!({ "told": told, "at": self.after, "left": left }));
        }
        if !left.is_empty() {
            let programs = text::count(left.len(), "program goes", "programs go");
            out.wrapped(format!("{programs} on: {}", names(&left)), 2)?;
        }
        Ok(())
    }

    fn print(&self, told: &[Process], out: &mut Output) -> Result<(), Failure> {
        if told.is_empty() {
            return out.wrapped(
                "nobody is told to stop: nobody is seen at work; programs that share no work are not seen \
                 (`sde watch --help`)",
                2,
            );
        }
        let when = match self.after {
            Some(at) => format!("to stop at {}", time::local(at)),
            None => "to stop".to_owned(),
        };
        let programs = text::count(told.len(), "program is", "programs are");
        out.wrapped(format!("{programs} told {when}: {}", names(told)), 2)?;
        if !self.wait {
            out.wrapped(
                "the end comes when the items that are begun by then are done; `sde watch` shows what goes on, \
                 `sde stop --cancel` takes this back",
                2,
            )?;
        }
        out.flush()
    }

    /// Waits for processes, and gives those that go on.
    fn wait_for(
        &self,
        path: &Path,
        told: &[Process],
        out: &mut Output,
    ) -> Result<Vec<Process>, Failure> {
        let begun = Instant::now();
        out.flush()?;
        loop {
            let mut left = processes::list(path)?;
            left.retain(|of| of.alive && told.iter().any(|one| one.id == of.id));
            if left.is_empty() || begun.elapsed() >= self.timeout {
                return Ok(left);
            }
            std::thread::sleep(PAUSE);
        }
    }
}

fn names(of: &[Process]) -> String {
    let name = |of: &Process| format!("{}:{}", of.host, of.process);
    let names: Vec<String> = of.iter().map(name).collect();
    names.join(", ")
}
