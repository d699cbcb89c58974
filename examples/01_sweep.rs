//! The program of the README: a sweep that is computed once, however often it is run and stopped.

/// The Lyapunov exponent of x -> r x (1 - x): where it is positive, the map is chaotic.
#[sde::app]
fn lyapunov(r: f64) -> f64 {
    let (mut x, mut sum) = (0.4, 0.0);
    for _ in 0..2_000_000 {
        x = r * x * (1.0 - x);
        sum += (r - 2.0 * r * x).abs().ln();
    }
    sum / 2e6
}

fn main() -> Result<(), sde::Error> {
    let sde = sde::open("lyapunov.sde")?;
    let grid = (0..200).map(|i| 3.4 + 0.003 * f64::from(i));
    for (r, exponent) in grid.clone().zip(lyapunov.par_call(&sde, grid)?) {
        println!("{r:.3} {exponent:8.5}");
    }
    println!("{}", sde.stats());
    sde.finish()
}
