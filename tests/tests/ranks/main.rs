//! Process sets, with threads that stand for ranks.

mod arrays;
mod errors;
mod restart;
mod runs;
mod sets;
mod spread;

use sde::{EventLog, Sde, ThreadGroup};
use sde_archives::Cbor;
use sde_tests::{LIMIT, Watchdog};

/// Runs a program on so many ranks; what it returns, in their order.
fn on_ranks<R: Send>(size: usize, program: impl Fn(Sde) -> R + Sync) -> Vec<R> {
    on_ranks_with_log(size, |sde, _| program(sde))
}

fn on_ranks_with_log<R: Send>(size: usize, program: impl Fn(Sde, EventLog) -> R + Sync) -> Vec<R> {
    let _in_time = Watchdog::new("a program on several ranks", LIMIT);
    ThreadGroup::run(size, |group| {
        let log = EventLog::new();
        let builder = Sde::builder().observer(log.clone());
        let sde = builder.process_group(group, Cbor).build().unwrap();
        program(sde, log)
    })
}
