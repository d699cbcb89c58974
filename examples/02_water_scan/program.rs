//! The program, whatever ranks it runs on.
//!
//! It is written as for one process. On several ranks `Scan`, which is a distributed app, deals its
//! points out to them; all have all results afterwards, and the first of them tells.

mod log;
mod options;
mod report;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use options::{Asked, Options};
use sde::archiver::ArchiveError;
use sde::store::DirStore;
use sde::{Builder, Event, Handle, ResultMap, SavePolicy, Sde, Value, inputs};
use sde_apps::hartree_fock::Scan;

/// What went wrong, for a person, and the exit status: 1 if the calculation failed,
/// 2 if what was asked for makes no sense.
pub struct Failure {
    message: String,
    status: u8,
    /// Whether other ranks may know nothing of it.
    is_own: bool,
}

impl Failure {
    fn of_input(message: impl std::fmt::Display) -> Self {
        Self {
            message: format!("{message:#}"),
            status: 2,
            is_own: false,
        }
    }

    fn of_calculation(message: impl std::fmt::Display) -> Self {
        Self {
            message: format!("{message:#}"),
            status: 1,
            is_own: false,
        }
    }

    fn of_this_rank(self) -> Self {
        Self {
            is_own: true,
            ..self
        }
    }
}

/// The ranks that it runs on.
pub trait Ranks {
    fn is_first(&self) -> bool;
    fn open(&self, store: &Path) -> Result<DirStore, ArchiveError>;
    fn put_on(self, builder: Builder) -> Builder;
}

/// Runs it. What all ranks find alike the first tells.
pub fn main(ranks: impl Ranks) -> ExitCode {
    let is_first = ranks.is_first();
    match run(ranks) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if is_first || failure.is_own {
                eprintln!("error: {}", failure.message);
            }
            ExitCode::from(failure.status)
        }
    }
}

fn run(ranks: impl Ranks) -> Result<(), Failure> {
    let is_first = ranks.is_first();
    let options = match options::parse(lexopt::Parser::from_env())? {
        Asked::Help if is_first => return report::print(options::HELP),
        Asked::Help => return Ok(()),
        Asked::Run(options) => options,
    };
    set_threads(&options)?;
    let saved = Arc::new(AtomicUsize::new(0));
    let sde = open(&options, &saved, ranks)?;
    if options.dry_run {
        let program = |sde: &Handle| calculate(sde, &options).map_err(|failure| failure.message);
        let plan = sde.plan(program).map_err(Failure::of_input)?;
        return report::print(&format!("{plan}\n"));
    }
    let results = calculate(&sde, &options);
    // What was computed is worth keeping also if a point failed.
    let finished = sde.finish().map_err(Failure::of_calculation);
    let results = results?;
    let saved = saved.load(Ordering::Relaxed) as u64;
    let counts = report::Counts::of_all_ranks(&sde, saved).map_err(Failure::of_calculation)?;
    match is_first {
        true if options.json => report::json(&counts, &results)?,
        true => report::table(&sde, &options, &results, &counts)?,
        false => {}
    }
    // Last: what was computed is shown, although it could not be saved.
    finished
}

/// The integrals are computed on rayon's threads.
fn set_threads(options: &Options) -> Result<(), Failure> {
    let Some(threads) = options.threads else {
        return Ok(());
    };
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build_global()
        .map_err(|error| Failure::of_input(format!("{threads} threads can't be started: {error}")))
}

fn open(options: &Options, saved: &Arc<AtomicUsize>, ranks: impl Ranks) -> Result<Sde, Failure> {
    let saved = Arc::clone(saved);
    let verbose = options.verbose;
    let mut builder = Builder::for_program()
        .save(SavePolicy::EveryResult)
        .observer(move |event: &Event| {
            if verbose {
                log::tell(event);
            }
        })
        .observer(move |event: &Event| {
            if let Event::Saved { entries, .. } = event {
                saved.fetch_add(*entries, Ordering::Relaxed);
            }
        });
    if let Some(threads) = options.threads {
        builder = builder.threads(threads);
    }
    // What only plans makes no store.
    let store = options.store.as_ref();
    if let Some(directory) = store.filter(|store| !options.dry_run || store.exists()) {
        let store = ranks.open(directory).map_err(Failure::of_input)?;
        builder = builder.store(store);
    }
    let builder = ranks.put_on(builder);
    builder
        .build()
        .map_err(|error| Failure::of_input(error).of_this_rank())
}

fn calculate(sde: &Handle, options: &Options) -> Result<ResultMap, Failure> {
    let inputs = inputs! {
        molecule: Value::new(options.molecule.clone()),
        basis: Value::new(options.basis.clone()),
        harmonics: options.harmonics,
        scan: options.scan.clone(),
    };
    sde.run(&Scan::app(), &inputs)
        .map_err(Failure::of_calculation)
}
