//! A nested sweep: an app that calls another with many arguments. Both are remembered, and an edit of the inner one has the outer
//! one computed again.

use sde::Handle;

/// One over `k` squared, for each `k` of a block of so many.
#[sde::app]
fn block(number: u64, terms: u64) -> f64 {
    let of_block = number * terms + 1..=(number + 1) * terms;
    of_block.map(|k| 1.0 / (k * k) as f64).sum()
}

/// Pi by Euler's sum.
#[sde::app]
fn pi(sde: &Handle, blocks: u64) -> Result<f64, sde::Error> {
    let sums = block.par_call(sde, (0..blocks).map(|number| (number, 100_000)))?;
    Ok((6.0 * sums.iter().map(|sum| **sum).sum::<f64>()).sqrt())
}

fn main() -> Result<(), sde::Error> {
    let sde = sde::open("nested.sde")?;
    for (blocks, sum) in [1, 10, 40].iter().zip(pi.par_call(&sde, [1, 10, 40])?) {
        println!("{blocks:3} blocks: {:.9}", *sum);
    }
    println!("{} computed", sde.stats().total.computed);
    sde.finish()
}
