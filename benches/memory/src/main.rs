//! What a memory budget saves: a simulator of what leaves first, on fixed traces, beside other policies.
//!
//! Without arguments it runs the traces on which the policy was tuned and prints the tables of `docs/benchmarks.md`; with
//! `--second` those on which it was not, with `--picture FILE` it draws what comes out too. `--scale` measures what
//! coming and leaving take.

mod bound;
mod ours;
mod patterns;
mod peers;
mod picture;
mod random;
mod results;
mod scale;
mod tables;
mod traces;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let mut traces: fn() -> Vec<traces::Trace> = traces::first;
    let mut file = None;
    while let Some(arg) = args.next() {
        match (&*arg, args.next()) {
            ("--scale", None) => {
                scale::print();
                return ExitCode::SUCCESS;
            }
            ("--second", next) => {
                traces = traces::second;
                file = next.filter(|next| next == "--picture").and(args.next());
            }
            ("--picture", Some(path)) => file = Some(path),
            _ => {
                eprintln!("unknown: {arg}; there are --second, --picture FILE and --scale");
                return ExitCode::FAILURE;
            }
        }
    }
    let cells = results::of(&traces());
    print!("{}", tables::of(&cells));
    if let Some(file) = file {
        std::fs::write(file, picture::of(&cells)).unwrap();
    }
    ExitCode::SUCCESS
}
