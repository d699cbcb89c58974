//! Rows 15, 16, 20 and 21 of the speed table: data that moves between ranks, against one call of MPI that moves
//! as many bytes, `par_map` on all ranks, and repeated collectives, in the same run.
//!
//! `mpirun -n 2 target/release/rows_mpi` prints the table in Markdown, on rank 0; names after it are the
//! parts to run. A time is that of the slowest rank, from a barrier on.

#![forbid(unsafe_code)]

mod map;
mod meet;
mod redistribute;
mod release;
mod together;

use sde_benches::table::{Row, print_head, wanted};
use sde_mpi::Session;
use together::Together;

/// Measures some of the rows.
type Part = fn(&Together<'_>) -> Vec<Row>;

fn main() {
    let session = Session::start().expect("MPI starts");
    let together = Together::new(&session);
    if session.rank() == 0 {
        println!("{} ranks\n", session.size());
        print_head();
    }
    let parts: [(&str, Part); 4] = [
        ("release", release::rows),
        ("redistribute", redistribute::rows),
        ("map", map::rows),
        ("meet", meet::rows),
    ];
    for (part, rows) in parts {
        if wanted(part) {
            let rows = rows(&together);
            if session.rank() == 0 {
                rows.iter().for_each(Row::print);
            }
        }
    }
}
