//! A run that takes long keeps its state: killed, it goes on from there when the program is run again.

use sde::Handle;

/// The temperatures in a rod after so many steps.
#[sde::app]
fn cooled(sde: &Handle, points: usize, steps: u32) -> Result<Vec<f64>, sde::Error> {
    let scratch = sde.scratch::<(u32, Vec<f64>)>();
    let (mut step, mut rod) = scratch.resume_or(|| (0, vec![100.0; points]))?;
    while step < steps {
        let at = |i: usize| rod.get(i).copied().unwrap_or(20.0);
        let next = |i: usize| at(i) + 0.4 * (at(i.wrapping_sub(1)) - 2.0 * at(i) + at(i + 1));
        rod = (0..points).map(next).collect();
        step += 1;
        if step % 1000 == 0 {
            scratch.save((step, rod.clone()))?;
        }
    }
    Ok(rod)
}

fn main() -> Result<(), sde::Error> {
    let sde = sde::open("restart.sde")?;
    let rod = cooled.call(&sde, 200, 20_000)?;
    println!("{:.3} in the middle", rod[100]);
    println!("{} computed", sde.stats().total.computed);
    sde.finish()
}
