//! The savings of a memory budget: a simulator of eviction, beside other policies.
//!
//! It runs the traces on which the policy was tuned, others, and recorded ones, measures the time of inserting and
//! evicting, and prints the tables of `docs/benchmarks.md`. With `--picture FILE` it draws the results of the first
//! traces.

mod bound;
mod ours;
mod patterns;
mod peers;
mod picture;
mod random;
mod recorded;
mod results;
mod scale;
mod tables;
mod traces;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let picture = match &*args {
        [] => None,
        [name, file] if name == "--picture" => Some(file),
        _ => {
            eprintln!("unknown: {}; there is --picture FILE", args.join(" "));
            return ExitCode::FAILURE;
        }
    };
    let first = results::of(&traces::first());
    if let Some(file) = picture {
        std::fs::write(file, picture::of(&first)).unwrap();
    }
    println!(
        "{}",
        tables::of("traces on which the policy was tuned", &first)
    );
    let second = results::of(&traces::second());
    println!("{}", tables::of("traces on which it was not", &second));
    let recorded = results::of(&recorded::recorded());
    println!("{}", tables::of("recorded traces", &recorded));
    println!("### What coming and leaving take\n");
    scale::print();
    ExitCode::SUCCESS
}
