//! What a memory budget saves: a simulator of what leaves first, beside other policies.
//!
//! It runs the traces on which the policy was tuned, those on which it was not, and recorded ones, measures what coming and
//! leaving take, and prints the tables of `docs/benchmarks.md`. With `--picture FILE` it draws what the first traces give.

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
    let first = tables::of(&first);
    println!("### Traces on which the policy was tuned\n\n{first}");
    let second = tables::of(&results::of(&traces::second()));
    println!("### Traces on which it was not\n\n{second}");
    let recorded = tables::of(&results::of(&recorded::recorded()));
    println!("### Recorded traces\n\n{recorded}");
    println!("### What coming and leaving take\n");
    scale::print();
    ExitCode::SUCCESS
}
