//! Three starts, in two processes.
//!
//! The first process has nothing: it builds (a cold start), and computes a second geometry with the kernels
//! that it has (in memory). The second process is new, and finds the binaries that the first kept. Each
//! has an empty cache of the driver's own, which would answer in the place of ours otherwise; the driver
//! looks for it when a process starts, so they are processes of their own.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use sde::Sde;
use sde::opencl::{DRIVER_CACHES, Settings};
use serde::{Deserialize, Serialize};

use crate::device::Gpu;
use crate::failure::Failure;
use crate::meter::{Costs, Family, Meter};
use crate::options::Options;
use crate::workflow::{Check, Problem};

/// What one start cost, and how good its numbers are.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Start {
    pub name: String,
    pub families: Vec<(Family, Costs)>,
    /// Seconds from the beginning until the first launch was finished.
    pub first_launch: f64,
    /// Seconds until everything was computed.
    pub total: f64,
    pub checks: Vec<Check>,
}

/// What a process tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Told {
    pub device: String,
    pub driver: String,
    pub starts: Vec<Start>,
    /// How many binaries were captured again after their first launch, and the seconds it took.
    pub captured: (usize, f64),
}

/// Has all starts happen, in processes of their own.
pub fn all(options: &Options) -> Result<Told, Failure> {
    // Without a device there is nothing to start.
    sde::opencl::devices()?;
    let cache = tempfile::tempdir().map_err(Failure::of_calculation)?;
    let cache = options.cache.as_deref().unwrap_or(cache.path());
    let mut told = process("first", cache, options)?;
    told.starts.extend(process("again", cache, options)?.starts);
    Ok(told)
}

fn process(name: &str, cache: &Path, options: &Options) -> Result<Told, Failure> {
    let drivers = tempfile::tempdir().map_err(Failure::of_calculation)?;
    let program = std::env::current_exe().map_err(Failure::of_calculation)?;
    let mut command = Command::new(program);
    command
        .args(&options.said)
        .args(["--start", name, "--cache"])
        .arg(cache)
        .envs(DRIVER_CACHES.iter().map(|name| (name, drivers.path())))
        .stdout(Stdio::piped());
    let child = command.spawn().map_err(Failure::of_calculation)?;
    let output = child.wait_with_output().map_err(Failure::of_calculation)?;
    match output.status.code() {
        Some(0) => {}
        Some(status) => return Err(Failure::told(status.try_into().unwrap_or(1))),
        None => {
            let status = output.status;
            return Err(Failure::of_calculation(format!(
                "the process of the {name} start ended with {status}; its driver may be at fault"
            )));
        }
    }
    serde_json::from_slice(&output.stdout).map_err(|error| {
        Failure::of_calculation(format!("what the {name} start told can't be read: {error}"))
    })
}

/// Is one of these processes.
pub fn be(name: &str, options: &Options) -> Result<(), Failure> {
    // What the processor computes is no part of a start.
    let first = Problem::new(options.molecule.clone(), &options.set)?;
    let cache = options.cache.as_deref();
    let cache = cache.ok_or_else(|| Failure::of_input("--start needs --cache"))?;
    let settings = Settings::from_env().map_err(Failure::of_input)?.dir(cache);
    let gpu = Gpu::open(options.device, settings)?;
    gpu.check_tiles(&options.tiles)?;
    let sde = Sde::new();
    let mut told = Told {
        device: gpu.info().identity.name.clone(),
        driver: format!(
            "{} {}",
            gpu.info().identity.platform,
            gpu.info().identity.driver
        ),
        starts: Vec::new(),
        captured: (0, 0.0),
    };
    match name {
        "first" => {
            told.starts
                .push(start("cold", &first, &sde, &gpu, options)?);
            let second = stretched(options)?;
            *gpu.meter() = Meter::since(Instant::now());
            told.starts
                .push(start("in memory", &second, &sde, &gpu, options)?);
            // Many drivers finish code at the first launch. It is kept too.
            let begun = Instant::now();
            let captured = gpu.context().keep_launched();
            told.captured = (captured, begun.elapsed().as_secs_f64());
        }
        "again" => {
            let again = start("new process", &first, &sde, &gpu, options)?;
            told.starts.push(again);
        }
        other => return Err(Failure::of_input(format!("no start is called {other}"))),
    }
    let text = serde_json::to_string(&told).map_err(Failure::of_calculation)?;
    crate::report::print(&text)
}

fn start(
    name: &str,
    problem: &Problem,
    sde: &Sde,
    gpu: &Gpu,
    options: &Options,
) -> Result<Start, Failure> {
    let checks = problem.on(sde, gpu, &options.tiles)?;
    let meter = gpu.meter();
    Ok(Start {
        name: name.to_owned(),
        families: meter.costs(),
        first_launch: meter.first_launch(),
        total: meter.total(),
        checks,
    })
}

/// The same molecule with its first bond longer by a twentieth.
fn stretched(options: &Options) -> Result<Problem, Failure> {
    let molecule = &options.molecule;
    let longer = molecule
        .bond_length(1, 2)
        .and_then(|bond| molecule.with_bond_length(1, 2, 1.05 * bond));
    Problem::new(longer.map_err(Failure::of_calculation)?, &options.set)
}
