//! Rows 17 and 18 of the speed table: the cost of getting kernels, in a new process and in a loop.
//!
//! `cargo run --release -p sde-benches-opencl` prints the table in Markdown; names after `--` are the
//! parts to run. Row 17 needs a device, and takes some minutes; row 18 needs none. `SDE_OPENCL_DEVICE=1` takes
//! the second device that is found.

mod child;
mod kernels;
mod ready;
mod starts;

use std::time::Instant;

use sde_benches::Settings;
use sde_benches::table::{Row, print_head, wanted};

fn main() {
    // The time of a child process begins here.
    let begun = Instant::now();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, how, count, folder] = &arguments[..]
        && first == child::START
    {
        let count = count.parse().expect("a number of kernels");
        return child::be(begun, how, count, folder.as_ref());
    }
    print_head();
    if wanted("ready") {
        ready::rows(Settings::thorough())
            .iter()
            .for_each(Row::print);
    }
    if wanted("starts") {
        match sde_opencl::devices() {
            Ok(found) => {
                let info = &found[child::number_of_device()].info;
                eprintln!(
                    "row 17 on {}, {}",
                    info.identity.name.trim(),
                    info.identity.driver
                );
                starts::rows().for_each(|row| row.print());
            }
            Err(error) => eprintln!("row 17 is left out: {error}"),
        }
    }
}
