//! A sweep of which some points fail: the others are remembered, and each error names its point.

use sde::AppError;

/// Heron's square root.
#[sde::app]
fn root(x: f64) -> Result<f64, AppError> {
    if x < 0.0 {
        return Err(AppError::message("the root of a negative number").permanent());
    }
    Ok((0..60).fold(x.max(1.0), |y, _| 0.5 * (y + x / y)))
}

fn main() -> Result<(), sde::Error> {
    let sde = sde::open("sweep_errors.sde")?;
    let points = [4.0, -1.0, 2.0, 9.0];
    for (x, y) in points.iter().zip(root.try_par_call(&sde, points)) {
        match y {
            Ok(y) => println!("{x:5.1} {:.6}", *y),
            Err(error) => println!("{x:5.1} {error:#}"),
        }
    }
    println!("{} computed", sde.stats().total.computed);
    sde.finish()
}
