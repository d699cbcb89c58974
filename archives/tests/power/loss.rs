//! The power fails at any moment: nothing acknowledged is lost, nothing wrong is loaded.
//!
//! A kill leaves the page cache, so only a medium that forgets what was not synced shows a
//! sync that is missing.

use crate::count;
use crate::kit::{CHANGING, Order, Random, Sim, Then};
use crate::script::Script;

/// One program that is run, struck by a power failure, and run again on what is left; so many
/// times. Gives the last medium, and what went wrong.
pub fn program(sim: Sim, seed: u64, times: u64) -> (Sim, Result<(), String>) {
    let mut script = Script::new(sim, seed);
    for time in 0..times {
        let seed = seed * 1000 + time;
        let mut random = Random::new(seed);
        // Most names are made in the first calls.
        let most = random.pick(&[40, 300]);
        let at = random.within(1..most);
        script.sim.seed(seed);
        script.sim.order(Order::of(CHANGING, at, Then::PowerOff));
        script.run(random.pick(&[8, 60]));
        let left = match seed % 3 {
            0 => script.sim.after_kill(),
            _ => script.sim.power_loss(seed),
        };
        script = script.again(left);
        if let Err(why) = script.check() {
            let why = format!("seed {seed}, after {at} calls: {why}");
            return (script.sim, Err(why));
        }
    }
    (script.sim, Ok(()))
}

#[test]
fn nothing_acknowledged_is_lost_when_the_power_fails() {
    let losses = count(600, 10_000);
    let mut seen = 0;
    for seed in 0.. {
        program(Sim::new(), seed, 4).1.unwrap();
        seen += 4;
        if seen >= losses {
            break;
        }
    }
    println!("{seen} power failures");
}
