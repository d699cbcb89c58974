//! An array that all ranks of a job make together and remember: `mpirun -n 4 array_mpi DIR`.

#![forbid(unsafe_code)]

use sde::ranks::Edge;
use sde::{DistArray, Handle};

/// A field that evens out, on all ranks together.
#[sde::app(distributed)]
fn diffusion(sde: &Handle, length: usize, steps: u32) -> Result<DistArray<f64>, sde::Error> {
    let mut field = DistArray::from_fn(sde, &[length], |at| (at[0] % 3) as f64)?;
    for _ in 0..steps {
        let padded = field.padded(sde, &[1], &[Edge::Periodic])?;
        field = padded.map(|near| 0.5 * near.at([0]) + 0.25 * (near.at([-1]) + near.at([1])));
    }
    Ok(field)
}

fn main() -> Result<(), sde::Error> {
    let store = std::env::args().nth(1).unwrap_or("array.sde".to_owned());
    let sde = sde::mpi::open(store)?;
    let field = diffusion.call(&sde, 9, 50)?;
    let whole = field.gather(&sde)?;
    if sde.rank()? == 0 {
        let computed = sde.stats().total.computed;
        println!("{:.3?}, {computed} computed", &whole[..3]);
    }
    sde.finish()
}
