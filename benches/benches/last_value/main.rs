//! The last-value cells against locks: one thread, two, and with a writer stopped half-way.
//!
//! `cargo bench -p sde-benches --bench last_value` prints four tables in Markdown.

mod cells;
mod runs;
mod small;
mod starved;
mod stopped;
mod table;

use sde_benches::Settings;

fn main() {
    let settings = Settings::from_args();
    println!(
        "Nanoseconds for one call on each thread: median (quartiles) of {} rounds in turn.\n",
        settings.rounds
    );
    small::report(settings);
    stopped::report(settings);
    starved::report(settings);
    runs::report(settings);
}
