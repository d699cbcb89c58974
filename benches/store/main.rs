//! Rows 9 to 14 of the speed table: the store, each against its reference in the same run.
//!
//! `cargo bench -p sde-benches-store` prints the table in Markdown; names after `--` are the
//! parts to run. All files are in one folder below the target folder, or below `SDE_BENCH_DIR`, so
//! that all cases use the same disk; it is removed at the end.

mod arrays;
mod durable;
mod hits;
mod large;
mod peers;
mod place;
mod results;
mod small;

use place::Place;
use results::Scale;
use sde_benches::table::{Row, print_head, wanted};

/// Measures some of the rows.
type Part = fn(&Place, Scale) -> Vec<Row>;

fn main() {
    let (place, scale) = (Place::new(), Scale::from_args());
    println!("{}\n", place.about());
    print_head();
    let parts: [(&str, Part); 5] = [
        ("arrays", arrays::rows),
        ("small", small::rows),
        ("durable", durable::rows),
        ("hits", hits::rows),
        ("large", large::rows),
    ];
    for (part, rows) in parts {
        if wanted(part) {
            rows(&place, scale).iter().for_each(Row::print);
        }
    }
}
