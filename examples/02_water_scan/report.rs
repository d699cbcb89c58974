//! What is shown at the end.

use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _};

use sde::{ResultMap, Sde};
use sde_apps::molecule::{Coordinate, Scan};
use sde_apps::scf::DipoleMoment;

use super::Failure;
use super::options::Options;

/// One hartree in kcal/mol (CODATA 2018).
const KCAL_PER_MOL: f64 = 627.509_474_063;

/// The points: the value of the coordinate, the energy, the dipole moment.
struct Points {
    values: Vec<Option<f64>>,
    energies: Vec<f64>,
    dipoles: Vec<DipoleMoment>,
}

impl Points {
    fn of(results: &ResultMap) -> Result<Self, sde::Error> {
        let energies = results.get::<Vec<f64>>("energies")?.to_vec();
        let values = results.get::<Vec<f64>>("values")?;
        Ok(Self {
            values: (0..energies.len())
                .map(|place| values.get(place).copied())
                .collect(),
            dipoles: results.get::<Vec<DipoleMoment>>("dipoles")?.to_vec(),
            energies,
        })
    }
}

#[derive(serde::Serialize)]
struct Report {
    points: Vec<Point>,
    stats: Counts,
}

#[derive(serde::Serialize)]
struct Point {
    value: Option<f64>,
    energy: f64,
    dipole_debye: f64,
}

/// What the ranks did, all together.
#[derive(Clone, Default, serde::Serialize, serde::Deserialize)]
pub struct Counts {
    computed: u64,
    hits: u64,
    waits: u64,
    loads: u64,
    duplicates: u64,
    ranks: u64,
    saved: u64,
}

impl Counts {
    /// Collective.
    pub fn of_all_ranks(sde: &Sde, saved: u64) -> Result<Self, sde::Error> {
        let stats = sde.stats();
        let own = Self {
            computed: stats.total.computed,
            hits: stats.total.hits(),
            waits: stats.total.waits,
            loads: stats.total.loads,
            duplicates: stats.total.duplicates,
            ranks: 1,
            saved,
        };
        let mut sum = Self::default();
        for one in sde.gather("statistics", own)? {
            sum.computed += one.computed;
            sum.hits += one.hits;
            sum.waits += one.waits;
            sum.loads += one.loads;
            sum.duplicates += one.duplicates;
            sum.ranks += one.ranks;
            sum.saved += one.saved;
        }
        Ok(sum)
    }
}

pub fn json(counts: &Counts, results: &ResultMap) -> Result<(), Failure> {
    let points = Points::of(results).map_err(Failure::of_calculation)?;
    let report = Report {
        points: (0..points.energies.len())
            .map(|at| Point {
                value: points.values[at],
                energy: points.energies[at],
                dipole_debye: points.dipoles[at].magnitude_debye(),
            })
            .collect(),
        stats: counts.clone(),
    };
    let mut text = serde_json::to_string(&report).map_err(Failure::of_calculation)?;
    text.push('\n');
    print(&text)
}

pub fn table(
    sde: &Sde,
    options: &Options,
    results: &ResultMap,
    counts: &Counts,
) -> Result<(), Failure> {
    let points = Points::of(results).map_err(Failure::of_calculation)?;
    let text = draw(sde, options, &points, counts).map_err(Failure::of_calculation)?;
    print(&text)
}

fn draw(
    sde: &Sde,
    options: &Options,
    points: &Points,
    counts: &Counts,
) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let lowest = points
        .energies
        .iter()
        .copied()
        .fold(f64::INFINITY, f64::min);
    writeln!(text, "RHF/{}", options.basis.name())?;
    writeln!(
        text,
        "{:>16}  {:>18}  {:>14}  {:>10}",
        heading(&options.scan),
        "energy/hartree",
        "rel./kcal/mol",
        "dipole/D"
    )?;
    for (at, energy) in points.energies.iter().enumerate() {
        let value = points.values[at].map_or("-".to_owned(), |value| format!("{value:.4}"));
        writeln!(
            text,
            "{value:>16}  {energy:>18.9}  {:>14.3}  {:>10.4}",
            (energy - lowest) * KCAL_PER_MOL,
            points.dipoles[at].magnitude_debye()
        )?;
    }
    writeln!(text, "\nWhat each app did:\n{}", sde.stats())?;
    let all = match counts.ranks {
        1 => String::new(),
        ranks => format!("rank 0 of {ranks} above, all of them: "),
    };
    write!(
        text,
        "\n{all}{} computed, {} remembered, {} duplicates",
        counts.computed,
        counts.hits + counts.waits + counts.loads,
        counts.duplicates
    )?;
    match &options.store {
        Some(directory) => writeln!(
            text,
            "; {} entries saved to {}",
            counts.saved,
            directory.display()
        )?,
        None => writeln!(text, "; nothing saved (give --store DIR)")?,
    }
    Ok(text)
}

fn heading(scan: &Scan) -> String {
    match scan {
        Scan::None => "point".to_owned(),
        Scan::Range { coordinate, .. } => match coordinate {
            Coordinate::Bond(i, j) => format!("r({i}-{j})/A"),
            Coordinate::Angle(i, j, k) => format!("a({i}-{j}-{k})/deg"),
        },
    }
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
