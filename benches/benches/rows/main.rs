//! Rows 1 to 8 of the speed table, each against its reference in the same run.
//!
//! `cargo bench -p sde-benches --bench rows` prints the table in Markdown; names after `--` are the
//! parts to run.

mod allocations;
mod bulk;
mod hits;
mod many;
mod misses;
mod peers;
mod threads;
mod work;

use sde_benches::Settings;
use sde_benches::table::{Row, print_head, wanted};

#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting;

/// Measures some of the rows.
type Part = fn(Settings) -> Vec<Row>;

fn main() {
    let settings = Settings {
        warm_up: work::KEYS as u64,
        ..Settings::from_args()
    };
    println!("{}\n", work::about());
    print_head();
    let parts: [(&str, Part); 5] = [
        ("hits", hits::rows),
        ("many", many::rows),
        ("threads", threads::rows),
        ("bulk", bulk::rows),
        ("misses", misses::rows),
    ];
    for (part, rows) in parts {
        if wanted(part) {
            rows(settings).iter().for_each(Row::print);
        }
    }
    if wanted("allocations") {
        println!("\nRow 8, allocations (none is asked):\n");
        for (what, allocations, calls) in allocations::lines() {
            println!("- {what}: {allocations} in {calls} calls");
        }
    }
}
