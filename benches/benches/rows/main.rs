//! Rows 1 to 8 of the speed table, each against its reference in the same run.
//!
//! `cargo bench -p sde-benches --bench rows` prints the table in Markdown; names after `--` are the
//! parts to run.

mod allocations;
mod bulk;
mod hits;
mod misses;
mod peers;
mod table;
mod threads;
mod work;

use sde_benches::Settings;
use table::print_head;

#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting;

/// Whether this part is asked for: all are, if none is named.
fn wanted(part: &str) -> bool {
    let mut named = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'));
    let mut any = false;
    named.any(|word| {
        any = true;
        word == part
    }) || !any
}

/// Measures some of the rows.
type Part = fn(Settings) -> Vec<table::Row>;

fn main() {
    let settings = Settings {
        warm_up: work::KEYS as u64,
        ..Settings::from_args()
    };
    println!("{}\n", work::about());
    print_head();
    let parts: [(&str, Part); 4] = [
        ("hits", hits::rows),
        ("threads", threads::rows),
        ("bulk", bulk::rows),
        ("misses", misses::rows),
    ];
    for (part, rows) in parts {
        if wanted(part) {
            rows(settings).iter().for_each(table::Row::print);
        }
    }
    if wanted("allocations") {
        println!("\nRow 8, allocations (none is asked):\n");
        for (what, allocations, calls) in allocations::lines() {
            println!("- {what}: {allocations} in {calls} calls");
        }
    }
}
