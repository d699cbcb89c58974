//! An array that lies on several ranks, here on threads; on MPI the group is `sde::mpi`'s.

use sde::ranks::{Edge, ThreadGroup};
use sde::store::Cbor;
use sde::{DistArray, Handle, Sde};

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

fn main() {
    let of_ranks = ThreadGroup::run(3, |group| -> Result<_, sde::Error> {
        let sde = Sde::builder().process_group(group, Cbor).build()?;
        let field = diffusion.call(&sde, 9, 50)?;
        let again = diffusion.call(&sde, 9, 50)?;
        let whole = again.gather(&sde)?;
        Ok((field.local().len(), whole, sde.stats().total.computed))
    });
    for (rank, of_rank) in of_ranks.into_iter().enumerate() {
        let (points, whole, computed) = of_rank.expect("no error");
        println!(
            "rank {rank}: {points} points of its own, {:.3?}, {computed} computed",
            &whole[..3]
        );
    }
}
