//! Two methods for one problem, each on half of the ranks.
//!
//! ```text
//! mpirun -n 4 two_methods --store DIR
//! ```
//!
//! The Poisson equation on a square, with a charge density that lies on all ranks as one
//! distributed array. The ranks are split: one half solves by conjugate gradients, the other by
//! Chebyshev iteration, each with the whole array on its own ranks. After the release every rank
//! has both solutions, again as arrays over all ranks, and they are compared.
//!
//! With `--store DIR` everything is saved, each rank its parts. Run again, on any number of ranks,
//! it computes nothing.

#![forbid(unsafe_code)]

mod solvers;

use std::path::PathBuf;
use std::process::ExitCode;

use lexopt::prelude::*;
use sde::ranks::Transfer;
use sde::store::{Cbor, StoreOptions};
use sde::{DistArray, Handle, SavePolicy, Sde};
use solvers::{chebyshev, conjugate_gradients};

const HELP: &str = "\
The Poisson equation by two methods, each on half of the ranks.

usage: mpirun -n RANKS two_methods [options]

  --size N      points along a side of the square (default: 32)
  --store DIR   save everything there, and go on from what is there
  --help        this text
";

struct Options {
    size: usize,
    store: Option<PathBuf>,
}

/// The charge density at the points: a positive and a negative charge, smeared out.
#[sde::app(name = "poisson.density", distributed)]
fn density(sde: &Handle, size: usize) -> Result<DistArray<f64>, sde::Error> {
    let step = 1.0 / (size + 1) as f64;
    let charge = |x: f64, y: f64, at: (f64, f64)| {
        let distance = (x - at.0).powi(2) + (y - at.1).powi(2);
        (-distance / 0.005).exp()
    };
    DistArray::from_fn(sde, &[size, size], |index| {
        let (x, y) = ((index[0] + 1) as f64 * step, (index[1] + 1) as f64 * step);
        charge(x, y, (0.3, 0.4)) - charge(x, y, (0.7, 0.6))
    })
}

/// The largest difference between two solutions, and the largest value of the first.
#[sde::app(name = "poisson.compare", distributed)]
fn compare(sde: &Handle, a: &DistArray<f64>, b: &DistArray<f64>) -> Result<(f64, f64), sde::Error> {
    let difference = a.zip(b, |a, b| (a - b).abs())?.max(sde)?;
    let most = a.map(|a| a.abs()).max(sde)?;
    Ok((difference.unwrap_or(0.0), most.unwrap_or(0.0)))
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let Some(options) = parse(lexopt::Parser::from_env())? else {
        print!("{HELP}");
        return Ok(());
    };
    let session = sde::mpi::Session::start()?;
    let world = session.world();
    let mut builder = Sde::builder();
    if let Some(directory) = &options.store {
        builder = builder.store(StoreOptions::new().open_together(directory, &world)?);
        builder = builder.save(SavePolicy::EveryResult);
    }
    let sde = builder.process_group(world, Cbor).build()?;
    let (rank, ranks) = (sde.rank()?, sde.ranks()?);
    let charges = density.call(&sde, options.size)?;
    let half = u32::from(rank >= ranks / 2);
    let charges_too = Transfer::of_apps(["poisson.density"]);
    sde.split_for_with(half, 0, &charges_too, |half_of_ranks| {
        // The array as it lies on this half: it was moved, not computed again.
        let charges = density.call(half_of_ranks, options.size)?;
        match half {
            0 => conjugate_gradients.call(half_of_ranks, &charges).map(drop),
            _ => chebyshev.call(half_of_ranks, &charges).map(drop),
        }
    })?;
    // Remembered; on one rank, which is half of nothing, the first is computed now.
    let first = conjugate_gradients.call(&sde, &charges)?;
    let second = chebyshev.call(&sde, &charges)?;
    let iterations = [first.iterations, second.iterations];
    if options.store.is_some() {
        sde.checkpoint_all()?;
    }
    let (difference, most) = *compare.call(&sde, &first.potential, &second.potential)?;
    let computed = sde.gather("statistics", sde.stats().total.computed)?;
    sde.finish()?;
    if rank == 0 {
        let computed: u64 = computed.iter().map(|one| **one).sum();
        println!("ranks                       {ranks}");
        println!("points                      {0} x {0}", options.size);
        println!("conjugate gradients         {} iterations", iterations[0]);
        println!("Chebyshev                   {} iterations", iterations[1]);
        println!("largest potential           {most:.15}");
        println!("largest difference          {difference:.3e}");
        println!("computed on all ranks       {computed}");
    }
    Ok(())
}

fn parse(mut parser: lexopt::Parser) -> Result<Option<Options>, lexopt::Error> {
    let mut options = Options {
        size: 32,
        store: None,
    };
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("size") => {
                options.size = parser.value()?.parse()?;
                if !(2..=4096).contains(&options.size) {
                    return Err("--size: give a number from 2 to 4096".into());
                }
            }
            Long("store") => options.store = Some(parser.value()?.into()),
            _ => return Err(argument.unexpected()),
        }
    }
    Ok(Some(options))
}
