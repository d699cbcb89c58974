//! A program that goes through a sweep in as many jobs as it takes: `legs STORE POINTS`.

use std::time::Duration;

/// Takes a while, so that not all fits a short job.
#[sde::app(name = "legs.point")]
fn point(x: u64) -> u64 {
    std::thread::sleep(Duration::from_millis(100));
    x * x
}

#[sde::main]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let store = arguments.next().ok_or("no store was given")?;
    let points: u64 = arguments.next().ok_or("no number was given")?.parse()?;
    let sde = sde::builder(store)?.threads(2).build()?;
    let squares = point.par_call(&sde, 0..points);
    println!("computed {}", sde.stats().total.computed);
    println!(
        "sum {}",
        squares?.iter().map(|square| **square).sum::<u64>()
    );
    Ok(())
}
