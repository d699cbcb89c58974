//! The cost of an operation, and of an entry, with 10^3 to 10^7 entries; and resident memory beside a budget's count.
//!
//! `cargo bench -p sde-benches-store --bench growth` prints the tables in Markdown and writes the plots to
//! `docs/growth.svg`. Each number of entries has a process of its own, so that its memory is that of these entries.
//! A number after `--` is the largest. Without `cargo bench` the smallest is tried, and no plot written. `programs`
//! after `--` measures only programs that share a store.

mod measured;
mod plot;
mod programs;
mod resident;

use std::process::Command;

use measured::{MEASURED, Measured};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |argument: &String| argument.parse::<usize>().ok();
    let of = |name| {
        arguments
            .iter()
            .find_map(|one| one.strip_prefix(name)?.parse().ok())
    };
    if arguments.iter().any(|argument| argument == "programs") {
        return programs::measure(usize::MAX, in_a_process);
    }
    if let Some(entries) = of("entries=") {
        return measured::measure(entries).print();
    }
    if let Some(entries) = of("saved=") {
        return measured::measure_saved(entries);
    }
    if let Some(program) = arguments
        .iter()
        .find_map(|one| one.strip_prefix("program="))
    {
        return programs::run(program);
    }
    if let Some(case) = of("resident=") {
        return resident::measure(resident::CASES[case]);
    }
    let is_thorough = arguments.iter().any(|argument| argument == "--bench");
    let largest = arguments.iter().find_map(number);
    let largest = largest.unwrap_or(if is_thorough { 10_000_000 } else { 1000 });
    let sizes = (3..).map(|power| 10_usize.pow(power));
    let sizes = sizes.take_while(|size| *size <= largest);
    let measured: Vec<_> = sizes
        .map(|entries| Measured::read(&in_a_process(&format!("entries={entries}"))))
        .collect();
    print_table(&measured);
    if is_thorough {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/growth.svg");
        plot::write(path.as_ref(), &measured).unwrap();
        resident::print_head();
        for case in 0..resident::CASES.len() {
            print!("{}", in_a_process(&format!("resident={case}")));
        }
        programs::measure(largest, in_a_process);
    }
}

/// The output of this program, run with an argument.
fn in_a_process(argument: &str) -> String {
    let mut child = Command::new(std::env::current_exe().unwrap());
    let output = child.arg(argument).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn print_table(measured: &[Measured]) {
    let sizes = measured
        .iter()
        .map(|of| format!(" {:.0e} |", of.entries as f64));
    println!("| of one entry |{}", sizes.collect::<String>());
    println!("|---|{}", "---:|".repeat(measured.len()));
    for (at, (what, unit)) in MEASURED.iter().enumerate() {
        let values = measured
            .iter()
            .map(|of| format!(" {} |", rounded(of.values[at])));
        println!("| {what}, {unit} |{}", values.collect::<String>());
    }
}

fn rounded(value: f64) -> String {
    match value {
        _ if value >= 100.0 => format!("{value:.0}"),
        _ => format!("{value:.1}"),
    }
}
