//! The power fails, or all processes are killed, in each call of a program in turn.

use crate::count;
use crate::kit::{CHANGING, Order, Sim, Then};
use crate::script::Script;

#[test]
fn ended_in_each_call_the_store_has_what_was_acknowledged() {
    let mut tried = 0;
    for seed in 100..count(102, 140) {
        let steps = 30;
        let mut script = Script::new(Sim::new(), seed);
        script.run(steps);
        for at in 1..=script.sim.count(CHANGING) {
            let sim = Sim::new();
            sim.seed(at);
            sim.order(Order::of(CHANGING, at, Then::PowerOff));
            let mut script = Script::new(sim, seed);
            script.run(steps);
            let killed = script.sim.after_kill();
            let losses = (0..3).map(|seed| script.sim.power_loss(seed));
            for left in [killed].into_iter().chain(losses) {
                let checked = script.truth.check(&left, &script.dir, at % 2 == 0);
                checked.unwrap_or_else(|why| panic!("seed {seed}, ended in call {at}: {why}"));
            }
            tried += 1;
        }
    }
    println!("ended in each of {tried} calls");
}
