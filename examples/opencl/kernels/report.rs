//! What is shown at the end.

use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _};

use crate::failure::Failure;
use crate::meter::Costs;
use crate::options::Options;
use crate::start::Told;
use crate::workflow::What;

/// Shows what all starts told. It is a failure if numbers do not agree.
pub fn show(options: &Options, told: &Told) -> Result<(), Failure> {
    match options.json {
        true => {
            let text = serde_json::to_string(told).map_err(Failure::of_calculation)?;
            print(&(text + "\n"))?;
        }
        false => print(&table(options, told).map_err(Failure::of_calculation)?)?,
    }
    let checks = told.starts.iter().flat_map(|start| &start.checks);
    match checks.filter(|check| !check.agrees()).count() {
        0 => Ok(()),
        wrong => Err(Failure::of_calculation(format!(
            "{wrong} comparisons with the processor fail; the device or its driver computes something else"
        ))),
    }
}

fn table(options: &Options, told: &Told) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    writeln!(text, "{}, {}", told.device.trim(), told.driver)?;
    writeln!(
        text,
        "{} atoms in {}; seconds until the kernels were had, and in launches\n",
        options.molecule.atoms().len(),
        options.set.name()
    )?;
    writeln!(
        text,
        "{:<12} {:<10} {:>7} {:>6} {:>6} {:>6} {:>9} {:>9} {:>9}",
        "start", "kernels", "number", "built", "loaded", "ready", "had in", "launches", "in"
    )?;
    for start in &told.starts {
        let mut all = Costs::default();
        for (at, (family, costs)) in start.families.iter().enumerate() {
            let name = if at == 0 { &*start.name } else { "" };
            line(&mut text, name, family.name(), costs)?;
            all.add(costs);
        }
        line(&mut text, "", "all", &all)?;
        writeln!(
            text,
            "{:<12} first launch finished after {:.3} s, everything after {:.3} s\n",
            "", start.first_launch, start.total
        )?;
    }
    let (captured, took) = told.captured;
    writeln!(
        text,
        "The first process captured {captured} binaries again after their first launch, in {took:.3} s.\n"
    )?;
    checks(&mut text, told)?;
    Ok(text)
}

fn line(text: &mut String, start: &str, family: &str, costs: &Costs) -> std::fmt::Result {
    writeln!(
        text,
        "{start:<12} {family:<10} {:>7} {:>6} {:>6} {:>6} {:>9.4} {:>9} {:>9.4}",
        costs.kernels(),
        costs.built,
        costs.loaded,
        costs.ready,
        costs.having,
        costs.launches,
        costs.launching
    )
}

/// The largest differences over all starts.
fn checks(text: &mut String, told: &Told) -> std::fmt::Result {
    writeln!(
        text,
        "{:<34} {:>9} {:>12} {:>10}",
        "compared with the processor", "numbers", "difference", "allowed"
    )?;
    let all = || told.starts.iter().flat_map(|start| &start.checks);
    let mut seen = Vec::new();
    for check in all() {
        if seen.contains(&(check.what, check.element)) {
            continue;
        }
        seen.push((check.what, check.element));
        let same =
            || all().filter(|other| (other.what, other.element) == (check.what, check.element));
        let what = match check.what {
            What::Integrals => "repulsion integrals",
            What::Energy => "energies",
            What::Products => "matrix products",
        };
        writeln!(
            text,
            "{:<34} {:>9} {:>12.1e} {:>10.0e}",
            format!("{what}, {}", check.element.name()),
            same().map(|check| check.compared).sum::<usize>(),
            same().map(|check| check.difference).fold(0.0, f64::max),
            check.tolerance
        )?;
    }
    Ok(())
}

/// Lists the devices.
pub fn devices() -> Result<(), Failure> {
    let mut text = String::new();
    for (number, found) in sde::opencl::devices()?.iter().enumerate() {
        let info = &found.info;
        text += &format!(
            "{number}  {}  {}  {} {}\n",
            info.kind.name(),
            info.identity.name.trim(),
            info.identity.platform,
            info.identity.driver
        );
    }
    print(&text)
}

/// Writes to standard output; a reader that has gone away is no failure.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::of_calculation(
            format!("writing to standard output: {error}"),
        )),
        _ => Ok(()),
    }
}
