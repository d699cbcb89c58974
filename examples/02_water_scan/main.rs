//! Restricted Hartree-Fock energies of a molecule along a bond length or angle.
//!
//! With `--store DIR` every point is saved as soon as it is computed: run twice, it
//! computes nothing; killed half-way, it goes on from where it was.

mod log;
mod options;
mod report;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use options::{Asked, Options};
use sde::{Event, ProgressBar, ResultMap, SavePolicy, Sde, Value, inputs};
use sde_apps::hartree_fock::Scan;
use sde_archives::DirStore;

/// What went wrong, for a person, and the exit status: 1 if the calculation failed,
/// 2 if what was asked for makes no sense.
struct Failure {
    message: String,
    status: u8,
}

impl Failure {
    fn of_input(message: impl std::fmt::Display) -> Self {
        Self {
            message: message.to_string(),
            status: 2,
        }
    }

    fn of_calculation(message: impl std::fmt::Display) -> Self {
        Self {
            message: message.to_string(),
            status: 1,
        }
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {}", failure.message);
            ExitCode::from(failure.status)
        }
    }
}

fn run() -> Result<(), Failure> {
    let options = match options::parse(lexopt::Parser::from_env())? {
        Asked::Help => return report::print(options::HELP),
        Asked::Run(options) => options,
    };
    set_threads(&options)?;
    let saved = Arc::new(AtomicUsize::new(0));
    let sde = open(&options, &saved)?;
    let results = calculate(&sde, &options);
    // What was computed is worth keeping also if a point failed.
    let finished = sde.finish().map_err(Failure::of_calculation);
    let results = results?;
    finished?;
    if options.json {
        report::json(&sde, &options, &results)
    } else {
        report::table(&sde, &options, &results, saved.load(Ordering::Relaxed))
    }
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

fn open(options: &Options, saved: &Arc<AtomicUsize>) -> Result<Sde, Failure> {
    let saved = Arc::clone(saved);
    let verbose = options.verbose;
    let mut builder = Sde::builder()
        .observer(ProgressBar::new())
        .observer(move |event: &Event| {
            if verbose {
                log::tell(event);
            }
        })
        .observer(move |event: &Event| match event {
            Event::Saved { entries, .. } => {
                saved.fetch_add(*entries, Ordering::Relaxed);
            }
            Event::Warning { message } => eprintln!("warning: {message}"),
            _ => {}
        });
    if let Some(threads) = options.threads {
        builder = builder.threads(threads);
    }
    if let Some(directory) = &options.store {
        let store = DirStore::open(directory).map_err(Failure::of_input)?;
        builder = builder.store(store).save(SavePolicy::EveryResult);
    }
    builder.build().map_err(Failure::of_input)
}

fn calculate(sde: &Sde, options: &Options) -> Result<ResultMap, Failure> {
    let inputs = inputs! {
        molecule: Value::new(options.molecule.clone()),
        basis: Value::new(options.basis.clone()),
        harmonics: options.harmonics,
        scan: options.scan.clone(),
    };
    sde.run(&Scan, &inputs).map_err(Failure::of_calculation)
}
