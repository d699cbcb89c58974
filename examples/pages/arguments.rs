//! A function with three arguments: remembered by their values, and by the function's own text.

/// The area under x^power from 0 to `end`, by the midpoint rule.
#[sde::app]
fn integrate(power: i32, end: f64, steps: u32) -> f64 {
    let width = end / f64::from(steps);
    (0..steps)
        .map(|i| ((f64::from(i) + 0.5) * width).powi(power) * width)
        .sum()
}

fn main() -> Result<(), sde::Error> {
    let sde = sde::open("arguments.sde")?;
    println!("{:.6}", *integrate.call(&sde, 2, 3.0, 1_000_000)?);
    println!("{} computed", sde.stats().total.computed);
    sde.finish()
}
