//! A sweep over all ranks that ends before its job's time is up, with status 75, and goes on in the next job:
//! `mpirun -n 4 sweep_mpi DIR`.

#![forbid(unsafe_code)]

use std::time::Duration;

/// Takes 0.1 to 0.45 s, as a run of hours would.
#[sde::app]
fn energy(point: u64) -> f64 {
    std::thread::sleep(Duration::from_millis(100 + point * 37 % 8 * 50));
    0.5 * point as f64
}

#[sde::main]
fn main() -> Result<(), sde::Error> {
    let store = std::env::args().nth(1).unwrap_or("sweep.sde".to_owned());
    let sde = sde::mpi::open(store)?;
    let energies = energy.par_call(&sde, 0..60);
    // In one piece, or lines of ranks would meet.
    let computed = format!("computed {}\n", sde.stats().total.computed);
    eprint!("{computed}");
    let sum: f64 = energies?.iter().map(|value| **value).sum();
    if sde.rank()? == 0 {
        println!("{sum}");
    }
    sde.finish()
}
