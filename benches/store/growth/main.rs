//! What an operation takes, and an entry, with 10^3 to 10^7 entries.
//!
//! `cargo bench -p sde-benches-store --bench growth` prints the table in Markdown and writes the plots to `docs/growth.svg`. Each
//! number of entries has a process of its own, whose memory is that of so many entries. A number after `--` is the largest; without `cargo bench` the
//! smallest is tried, and no plot written.

mod measured;
mod plot;

use std::process::Command;

use measured::{MEASURED, Measured};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |argument: &String| argument.parse::<usize>().ok();
    let is_thorough = arguments.iter().any(|argument| argument == "--bench");
    if let Some(entries) = arguments
        .iter()
        .find_map(|one| number(&one.strip_prefix("entries=")?.to_owned()))
    {
        return measured::measure(entries).print();
    }
    let largest = arguments.iter().find_map(number);
    let largest = largest.unwrap_or(if is_thorough { 10_000_000 } else { 1000 });
    let sizes = (3..)
        .map(|power| 10_usize.pow(power))
        .take_while(|size| *size <= largest);
    let measured: Vec<Measured> = sizes.map(in_a_process).collect();
    print_table(&measured);
    if is_thorough {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/growth.svg");
        plot::write(path.as_ref(), &measured).unwrap();
    }
}

fn in_a_process(entries: usize) -> Measured {
    let mut child = Command::new(std::env::current_exe().unwrap());
    let output = child.arg(format!("entries={entries}")).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Measured::read(&String::from_utf8(output.stdout).unwrap())
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
