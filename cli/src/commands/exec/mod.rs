//! `sde exec`: runs a program, and remembers the run.
//!
//! The guide's page is `docs/guide/10-commands.md`. Standard output is the program's alone: what `sde` has to tell goes
//! to standard error. The exit status is the program's, where others would be confused with it they are those of shells.

mod each;
mod options;
mod signals;
mod tell;
mod why;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgAction, Args, ValueHint};
use sde::{Observer, Sde, SharedWork};
use sde_archives::{DirStore, StoreOptions};
use sde_command::{CommandError, Ran};

use crate::args;
use crate::failure::Failure;
use crate::output::{Output, warn};
use crate::time;
use signals::{Phase, Signals};

/// The status of what is no end of the program: it was refused, or its result could not be saved.
pub const FAILED: u8 = 125;

/// How long another process that runs the same is waited for: programs take long, and one that is killed, or does not tell
/// that it lives, is not waited for.
const PATIENCE: Duration = Duration::from_secs(365 * 24 * 3600);

const GIVEN: &str = "What it is given";
const GIVES: &str = "What it gives";
const SUCCESS: &str = "When it is a success";
const EACH: &str = "Rows of a file";
const HOW: &str = "Where and how it runs";

const USAGE: &str = "sde exec [OPTIONS] [--] PROGRAM [ARGUMENTS]...";

const EXAMPLES: &str = r"  sde exec -- python3 fit.py data.csv
  sde exec -o xtbopt.xyz --get 'energy=TOTAL ENERGY +(\S+)' -- xtb mol.xyz --opt
  sde exec --each mols.csv -o xtbopt.xyz={name}.xyz -- xtb {file} --chrg {charge}
  sde exec --uses awk -i a.csv=in.csv --reject NaN -- sh sums.sh in.csv
Status: the program's; 1 a rule, 124 time, 125 sde, 126/127 no program, 128+n
Of rows: 0 all well, 1 some failed, 75 some are left, since the job's time is up";

/// Runs a program, unless this run is remembered: then gives what it gave
#[derive(Args, Clone)]
#[command(disable_help_flag = true,
    override_usage = USAGE, after_help = EXAMPLES, help_template = "{about}\n{usage-heading} {usage}\n\n{all-args}{after-help}")]
pub struct Exec {
    /// A file for the run's folder
    #[arg(short, long, value_name = "FILE[=NAME]", value_hint = ValueHint::FilePath, help_heading = GIVEN)]
    input: Vec<String>,
    /// A folder, with all that is in it
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = GIVEN)]
    tree: Vec<PathBuf>,
    /// Its standard input; `-`: that of this command
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = GIVEN)]
    stdin: Option<PathBuf>,
    /// A variable; this counts
    #[arg(long, value_name = "NAME[=VALUE]", help_heading = GIVEN)]
    env: Vec<String>,
    /// A variable that can't change what it gives
    #[arg(long, value_name = "NAME", help_heading = GIVEN)]
    pass: Vec<String>,
    /// What it starts or reads where it is; counts
    #[arg(long, value_name = "PROGRAM|PATH", help_heading = GIVEN)]
    uses: Vec<String>,
    /// An argument that is just a word
    #[arg(long, value_name = "ARGUMENT", help_heading = GIVEN)]
    text: Vec<String>,
    /// Its version, in place of all digests of code
    #[arg(long, value_name = "TEXT", help_heading = GIVEN)]
    program_is: Option<String>,
    /// Runs it under apptainer, in this image
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = GIVEN)]
    image: Option<PathBuf>,

    /// A file it writes (?NAME: may), put at PATH
    #[arg(short, long, value_name = "NAME[=PATH]", help_heading = GIVES)]
    output: Vec<String>,
    /// An output that each run writes alike
    #[arg(long, value_name = "NAME", help_heading = GIVES)]
    compare: Vec<String>,
    /// A value, for `sde table`
    #[arg(long, value_name = "NAME=[FILE:]REGEX", help_heading = GIVES)]
    get: Vec<String>,

    /// A line of what it writes matches
    #[arg(long, value_name = "[FILE:]REGEX", help_heading = SUCCESS)]
    require: Vec<String>,
    /// No line matches
    #[arg(long, value_name = "[FILE:]REGEX", help_heading = SUCCESS)]
    reject: Vec<String>,
    /// It ends with such a status, not with 0
    #[arg(long, value_name = "N,..", value_delimiter = ',', help_heading = SUCCESS)]
    ok_status: Vec<u8>,

    /// A run for each row, with its {column}s; `-`: standard input
    #[arg(long, value_name = "FILE.csv", value_hint = ValueHint::FilePath, help_heading = EACH)]
    each: Option<PathBuf>,
    /// How many run at once [1]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), requires = "each", help_heading = EACH)]
    jobs: Option<u16>,
    /// Only tells what rows would do, and how long
    #[arg(long, requires = "each", help_heading = EACH)]
    dry_run: bool,

    /// The app, in place of the program's name
    #[arg(long, value_name = "NAME", help_heading = HOW)]
    name: Option<String>,
    /// Where results are kept: else SDE_STORE, or commands.sde
    #[arg(short, long, value_name = "STORE", value_hint = ValueHint::DirPath, help_heading = HOW)]
    store: Option<PathBuf>,
    /// Where the run's folder is made: else TMPDIR
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = HOW)]
    scratch: Option<PathBuf>,
    /// When it is ended: after 30m, 2h
    #[arg(long, value_name = "TIME", value_parser = time::limit, help_heading = HOW)]
    timeout: Option<Duration>,
    /// And killed, so long after that [10s]
    #[arg(long, value_name = "TIME", value_parser = time::duration, help_heading = HOW)]
    grace: Option<Duration>,
    /// How often a run that fails is run again
    #[arg(long, value_name = "N", help_heading = HOW)]
    retry: Option<u32>,
    /// A file that the next attempt of a run goes on from
    #[arg(long, value_name = "FILE", help_heading = HOW)]
    carry: Vec<String>,
    /// How often it is copied meanwhile [10m]
    #[arg(long, value_name = "TIME", value_parser = time::limit, help_heading = HOW)]
    carry_every: Option<Duration>,
    /// Links inputs, copies nothing
    #[arg(long, help_heading = HOW)]
    link: bool,
    /// Reads programs and libraries anew
    #[arg(long, help_heading = HOW)]
    rehash: bool,
    /// What failed is given, and not run again
    #[arg(long, help_heading = HOW)]
    keep_failures: bool,
    /// What is remembered is run again
    #[arg(long, help_heading = HOW)]
    again: bool,
    /// Names what it read undeclared; =strict: such is not kept
    #[arg(long, value_name = "MODE", num_args = 0..=1, require_equals = true, default_missing_value = "warn", value_parser = ["warn", "strict"], hide_possible_values = true, help_heading = HOW)]
    trace: Option<String>,
    /// Only tells what would be done
    #[arg(long, help_heading = HOW)]
    why: bool,
    /// Prints this
    #[arg(short, long, action = ArgAction::Help, help_heading = HOW)]
    help: Option<bool>,
    /// Takes the place of that of all commands: what the program prints is not JSON.
    #[arg(long, hide = true)]
    json: bool,
    #[arg(
        required = true,
        trailing_var_arg = true,
        value_name = "PROGRAM",
        hide = true
    )]
    line: Vec<String>,
}

impl Exec {
    pub fn run(&self, out: &mut Output) -> Result<(), Failure> {
        if self.json {
            warn(
                "--json is refused: what the program prints is printed as it is; `sde table --json` tells of runs",
            );
            return Err(Failure::Status(FAILED));
        }
        let done = match (&self.each, self.why) {
            (Some(file), _) => self.execute_each(file, out),
            (None, true) => self.explain(out),
            (None, false) => self.execute(),
        };
        let status = done.unwrap_or_else(|failure| {
            if let Failure::Told(message) = failure {
                message.lines().for_each(warn);
            }
            FAILED
        });
        Err(Failure::Status(status))
    }

    /// Gives the status to end with.
    fn execute(&self) -> Result<u8, Failure> {
        let signals = Signals::take()?;
        let (command, _stdin) = self.command()?;
        let command = command.echo().stop(&signals.stop);
        let sde = self.engine(1, signals.observer())?;
        let given = match command.run(&sde) {
            Ok(ran) => {
                let given = self.give(&ran, &signals);
                tell::traced(&ran);
                given
            }
            Err(error) => self.fail(&error, &signals),
        };
        signals.enter(Phase::Keeping);
        // What it gave is read from its folder until it is saved, and the folder goes with the engine.
        let kept = sde.finish().map_err(|error| {
            Failure::told(format!("the result is not kept: {}", tell::chain(&error)))
        });
        drop(sde);
        // What can't be removed now is in nobody's way.
        let _ = sde_command::sweep(&self.scratch_folder());
        let status = given.and_then(|status| kept.map(|()| status))?;
        signals.end();
        Ok(status)
    }

    fn fail(&self, error: &CommandError, signals: &Signals) -> Result<u8, Failure> {
        let failed = match error {
            CommandError::Failed(failed) => failed,
            // It passes, so what it gave is given.
            CommandError::Untraced(untraced) => {
                self.give(&untraced.ran, signals)?;
                return Ok(told_as(error));
            }
            _ => return Ok(told_as(error)),
        };
        let printed = tell::print(&failed.ran, signals);
        tell::notes(&failed.ran);
        tell::traced(&failed.ran);
        let status = told_as(error);
        printed.map(|()| status)
    }

    fn give(&self, ran: &Ran, signals: &Signals) -> Result<u8, Failure> {
        signals.enter(Phase::Keeping);
        let places = self.places()?;
        let put = ran.put_each(|name| options::place(&places, name));
        // Neither keeps the other from being done.
        let printed = tell::print(ran, signals);
        tell::notes(ran);
        put.map_err(|error| {
            Failure::told(format!(
                "the program's outputs are not put here, but kept: {error}"
            ))
        })?;
        printed?;
        Ok(u8::try_from(ran.status()).unwrap_or(FAILED))
    }

    /// The store, unless nothing is remembered.
    fn store(&self) -> Option<PathBuf> {
        let store = || args::named_store(self.store.as_ref());
        (!sde_command::is_disabled()).then(|| store().unwrap_or_else(|| args::STORE.into()))
    }

    /// The store to be looked in only, and with it those that SDE_ALSO names; the first of those where no store is
    /// there yet.
    fn looked_in(&self) -> Result<Option<DirStore>, Failure> {
        let Some(own) = self.store() else {
            return Ok(None);
        };
        let options = StoreOptions::new().read_only();
        if own.exists() {
            return Ok(Some(options.also_from_env().open(own)?));
        }
        let mut others = args::other_stores().into_iter();
        let first = others.find(|dir| dir.join("FORMAT").exists());
        let options = others.fold(options.trust_others(), StoreOptions::also);
        Ok(first.map(|first| options.open(first)).transpose()?)
    }

    /// Where the run's folder is made.
    fn scratch_folder(&self) -> PathBuf {
        self.scratch.clone().unwrap_or_else(std::env::temp_dir)
    }

    fn engine(&self, threads: usize, observer: impl Observer + 'static) -> Result<Sde, Failure> {
        let builder = match self.store() {
            None => sde::Builder::for_program(),
            Some(store) => opened(&store)?,
        };
        let builder = match self.each {
            Some(_) => builder,
            // A single run is begun whatever time is left.
            None => builder.time_limit(Duration::MAX),
        };
        let builder = builder
            .without_progress()
            .without_signals()
            .threads(threads)
            .shared_work(SharedWork::Within(PATIENCE))
            .observer(observer);
        builder.build().map_err(told)
    }
}

fn opened(store: &Path) -> Result<sde::Builder, Failure> {
    let is_first = !store.exists() && store == Path::new(args::STORE);
    let builder = sde_archives::builder(store).map_err(|error| {
        Failure::told(format!(
            "{}; SDE_STORE or --store names another store, and with {}=1 nothing is kept",
            tell::chain(&error),
            sde_command::DISABLE
        ))
    })?;
    if is_first {
        warn(format!(
            "results are kept in {}; SDE_STORE names another store",
            args::STORE
        ));
    }
    Ok(builder)
}

fn told(error: sde::Error) -> Failure {
    Failure::told(tell::chain(&error))
}

/// Tells of an error, and gives its status.
fn told_as(error: &CommandError) -> u8 {
    tell::chain(error).lines().for_each(warn);
    u8::try_from(error.exit_status()).unwrap_or(FAILED)
}
