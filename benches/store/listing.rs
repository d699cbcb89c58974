//! Time and memory of the commands that look at each entry, with a store of 10^6 of them; and what a miss takes that is
//! looked for in other stores too.
//!
//! `./bench listing` builds the program `sde` and runs this, which takes it from beside its own folder and prints the
//! table in Markdown. `make=DIR` after `--` only makes the store. Memory is the most that was resident, by GNU `time`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sde::Sde;
use sde_archives::{DirStore, StoreOptions};
use sde_benches::{Comparison, Settings, repeat};

const ENTRIES: u64 = 1_000_000;
/// Sessions that make the store.
const SESSIONS: u64 = 10;

#[sde::app(name = "sum", version = "1")]
fn sum(a: u64, b: u64, c: f64) -> f64 {
    a as f64 + b as f64 + c
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let of = |name: &str| arguments.iter().find_map(|one| one.strip_prefix(name));
    let entries = match arguments.iter().any(|one| one == "--bench") {
        true => ENTRIES,
        false => 1000,
    };
    if let Some(dir) = of("make=") {
        return make(Path::new(dir), entries);
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let store = folder.path().join("store");
    make(&store, entries);
    let copy = folder.path().join("copy").display().to_string();
    println!("| {entries} entries | processor | memory |\n|---|---:|---:|");
    let cases: [&[&str]; 12] = [
        &["table"],
        &["table", "--csv"],
        &["table", "--csv", "--sort", "b"],
        &["table", "-n", "20"],
        &["ls"],
        &["copy"],
        &["gc", "--where", "b=7", "-n"],
        &["gc", "--old-code", "-n"],
        &["gc", "-n"],
        &["verify"],
        &["stats"],
        &["gc", "--where", "b=7"],
    ];
    for case in cases {
        let mut arguments = case.to_vec();
        arguments.insert(1, store.to_str().unwrap());
        if case[0] == "copy" {
            arguments.push(&copy);
        }
        let (seconds, megabytes) = measure(&arguments);
        println!(
            "| `sde {}` | {seconds:.1} s | {megabytes:.0} MB |",
            case.join(" ")
        );
    }
    misses(folder.path(), entries);
}

fn engine(store: &Path) -> Sde {
    let store = DirStore::open(store).unwrap();
    Sde::builder()
        .store(store)
        .save(sde::SavePolicy::OnRequest)
        .build()
        .unwrap()
}

fn make(store: &Path, entries: u64) {
    let part = entries / SESSIONS;
    for session in 0..SESSIONS {
        let sde = engine(store);
        for number in session * part..(session + 1) * part {
            let _ = sum.call(&sde, number, number % 1000, number as f64 * 0.37);
        }
        sde.finish().unwrap();
    }
}

/// Prints what a miss takes with no, one and two stores to look in too, of 10^5 entries each.
fn misses(folder: &Path, entries: u64) {
    let others = ["one", "two"].map(|name| folder.join(name));
    for other in &others {
        make(other, entries / 10);
    }
    let engines = [0, 1, 2].map(|count| {
        let own = folder.join(format!("own-{count}"));
        let others = others[..count].iter();
        let options = others.fold(
            StoreOptions::new().without_environment(),
            StoreOptions::also,
        );
        let store = options.open(&own).unwrap();
        let builder = Sde::builder().store(store).save(sde::SavePolicy::OnRequest);
        builder.build().unwrap()
    });
    let mut comparison = Comparison::new(Settings::from_args());
    let names = ["none", "one", "two"];
    for (name, sde) in names.iter().zip(&engines) {
        comparison.case(*name, 1, move |run| {
            repeat(run, |at| sum.call(sde, (1 << 40) + at, 0, 0.5).unwrap())
        });
    }
    let measured = comparison.run();
    println!(
        "\n| other stores | a miss, ns | more than with none, ns (quartiles) | ratio (quartiles) |"
    );
    println!("|---|---:|---:|---:|");
    for name in names {
        let time = measured.nanoseconds(name).unwrap().median;
        let more = measured.of_each_round([name, names[0]], |[with, without]| with - without);
        let (more, ratio) = (more.unwrap(), measured.ratio(name, names[0]).unwrap());
        println!(
            "| {name} | {time:.0} | {:.0} ({:.0}-{:.0}) | {:.2} ({:.2}-{:.2}) |",
            more.median, more.low, more.high, ratio.median, ratio.low, ratio.high
        );
    }
}

/// Seconds of the processor, and megabytes at most, of a command.
fn measure(arguments: &[&str]) -> (f64, f64) {
    let mut command = Command::new("time");
    command
        .args(["-f", "%U %S %M"])
        .arg(program())
        .args(arguments);
    let done = command.stdout(Stdio::null()).output().unwrap();
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{told}");
    let last = told.lines().last().unwrap();
    let mut numbers = last.split(' ').map(|number| number.parse::<f64>().unwrap());
    let mut next = || numbers.next().unwrap();
    let (user, system, kibibytes) = (next(), next(), next());
    (user + system, kibibytes * 1.024e-3)
}

/// The program `sde`, which is built beside this one's folder.
fn program() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.parent().unwrap().parent().unwrap().join("sde")
}
