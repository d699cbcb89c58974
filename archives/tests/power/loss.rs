//! The power fails at any moment: nothing acknowledged is lost, nothing wrong is loaded.
//!
//! A kill leaves the page cache, so only a medium that forgets what was not synced shows a
//! sync that is missing.

use crate::count;
use crate::kit::{CHANGING, Order, Sim, Then};
use crate::script::Script;

/// One program that is run, struck by a power failure, and run again on what is left; so many
/// times. Gives how many failures it saw.
pub fn program(sim: Sim, seed: u64, times: u64) -> Result<u64, String> {
    let mut script = Script::new(sim, seed);
    for time in 0..times {
        let seed = seed * 1000 + time;
        let at = 1 + seed.wrapping_mul(0x9e37_79b9) % 251;
        script.sim.seed(seed);
        script.sim.order(Order {
            calls: CHANGING,
            at,
            then: Then::PowerOff,
        });
        script.run(60);
        let left = match seed % 5 {
            0 => script.sim.after_kill(),
            _ => script.sim.power_loss(seed),
        };
        script = script.again(left);
        script
            .check()
            .map_err(|why| format!("seed {seed}, after {at} calls: {why}"))?;
    }
    Ok(times)
}

#[test]
fn nothing_acknowledged_is_lost_when_the_power_fails() {
    let losses = count(600, 10_000);
    let mut seen = 0;
    for seed in 0.. {
        seen += program(Sim::new(), seed, 4).unwrap();
        if seen >= losses {
            break;
        }
    }
    println!("{seen} power failures");
}
