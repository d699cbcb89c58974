//! A plate that cools down, on all ranks:
//!
//! ```text
//! mpirun -n 4 heat --store DIR
//! ```
//!
//! The heat equation on a square plate of copper whose edges are held at one temperature, by explicit steps. The
//! plate lies on all ranks as one distributed array; at each step they exchange what lies along the borders of their parts.
//!
//! With `--store DIR` the state of the iteration is saved now and then, each rank its part. Kill the job at any moment, and
//! run it again on any number of ranks: it goes on from there, and ends in the same bits.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use lexopt::prelude::*;
use sde::ranks::Edge;
use sde::store::{Cbor, StoreOptions};
use sde::{Builder, DistArray, Distributed, Handle, SavePolicy};
use serde::{Deserialize, Serialize};

const HELP: &str = "\
A hot plate of copper that cools down at its edges.

usage: mpirun -n RANKS heat [options]

  --size N      points along a side of the plate (default: 64)
  --steps N     time steps (default: 2000)
  --store DIR   save everything there, and go on from what is there
  --save-each   save each state that is kept, not only one in two seconds
  --help        this text
";

struct Options {
    size: usize,
    steps: u32,
    store: Option<PathBuf>,
    saves_each: bool,
}

/// The side of the plate in metres, and the diffusivity of copper in square metres a second.
const SIDE: f64 = 0.1;
const DIFFUSIVITY: f64 = 1.17e-4;
/// Of the edges in degrees Celsius, and how much hotter the middle is at the beginning.
const EDGES: f64 = 20.0;
const HOTTER: f64 = 80.0;
/// Time step times diffusivity over the square of the distance between points; above 1/4 the method is not stable.
const RATIO: f64 = 0.2;
/// A state is kept after so many steps.
const EVERY: u32 = 10;

/// How far it has come.
#[derive(Clone, Distributed, Serialize, Deserialize)]
struct State {
    #[distributed(same)]
    step: u32,
    plate: DistArray<f64>,
}

/// What is said of the plate at the end, in degrees Celsius.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Cooled {
    hottest: f64,
    mean: f64,
}

/// The temperatures at the points after so many steps.
#[sde::app(name = "heat.cool", distributed)]
fn cool(sde: &Handle, size: usize, steps: u32) -> Result<DistArray<f64>, sde::Error> {
    let scratch = sde.scratch::<State>().distributed();
    let mut state = match scratch.load()? {
        Some(state) => State::clone(&state),
        None => State {
            step: 0,
            plate: start(sde, size)?,
        },
    };
    if state.step > 0 && sde.rank()? == 0 {
        eprintln!("it goes on from step {}", state.step);
    }
    while state.step < steps {
        let padded = state
            .plate
            .padded(sde, &[1, 1], &[Edge::Constant(EDGES); 2])?;
        state.plate = padded.map(|near| {
            let here = near.at([0, 0]);
            let around = near.at([-1, 0]) + near.at([1, 0]) + near.at([0, -1]) + near.at([0, 1]);
            here + RATIO * (around - 4.0 * here)
        });
        state.step += 1;
        if state.step.is_multiple_of(EVERY) {
            scratch.save(state.clone())?;
        }
    }
    Ok(state.plate)
}

/// One half wave in each direction, which only gets flatter.
fn start(sde: &Handle, size: usize) -> Result<DistArray<f64>, sde::Error> {
    let wave = |at: usize| (std::f64::consts::PI * (at + 1) as f64 / (size + 1) as f64).sin();
    DistArray::from_fn(sde, &[size, size], |at| {
        EDGES + HOTTER * wave(at[0]) * wave(at[1])
    })
}

/// Sums have the same bits on any number of ranks.
#[sde::app(name = "heat.describe", distributed)]
fn describe(sde: &Handle, plate: &DistArray<f64>) -> Result<Cooled, sde::Error> {
    let points: usize = plate.shape().iter().product();
    Ok(Cooled {
        hottest: plate.max(sde)?.unwrap_or(EDGES),
        mean: plate.sum(sde)? / points as f64,
    })
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
    let mut builder = Builder::for_program();
    if options.saves_each {
        builder = builder.save(SavePolicy::EveryResult);
    }
    if let Some(directory) = &options.store {
        builder = builder.store(StoreOptions::new().open_together(directory, &world)?);
    }
    let sde = builder.process_group(world, Cbor).build()?;
    let plate = cool.call(&sde, options.size, options.steps)?;
    let cooled = *describe.call(&sde, &plate)?;
    if sde.rank()? == 0 {
        tell(&options, cooled);
    }
    sde.finish()?;
    Ok(())
}

/// The wave keeps its form, and how fast it gets flatter is known.
fn tell(options: &Options, cooled: Cooled) {
    use std::f64::consts::PI;
    let intervals = (options.size + 1) as f64;
    let time = f64::from(options.steps) * RATIO * (SIDE / intervals).powi(2) / DIFFUSIVITY;
    let of_wave = 1.0 / (PI / (2.0 * intervals)).tan() / options.size as f64;
    let decay = (cooled.mean - EDGES) / (HOTTER * of_wave.powi(2));
    let exact = (-2.0 * PI.powi(2) * DIFFUSIVITY * time / SIDE.powi(2)).exp();
    println!("points          {0} x {0}", options.size);
    println!("time            {time:.6} s in {} steps", options.steps);
    println!("hottest point   {:.13} degrees", cooled.hottest);
    println!("mean            {:.13} degrees", cooled.mean);
    println!("of the wave     {decay:.9}");
    println!("exact           {exact:.9}");
}

fn parse(mut parser: lexopt::Parser) -> Result<Option<Options>, lexopt::Error> {
    let mut options = Options {
        size: 64,
        steps: 2000,
        store: None,
        saves_each: false,
    };
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("size") => {
                options.size = parser.value()?.parse()?;
                if !(1..=4096).contains(&options.size) {
                    return Err("--size: give a number from 1 to 4096".into());
                }
            }
            Long("steps") => options.steps = parser.value()?.parse()?,
            Long("store") => options.store = Some(parser.value()?.into()),
            Long("save-each") => options.saves_each = true,
            _ => return Err(argument.unexpected()),
        }
    }
    Ok(Some(options))
}
