//! Cases with one and two threads, and the table they make.

use sde_benches::{Comparison, Measured, Run, Settings};
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of calls, and of those that computed.
#[derive(Default)]
pub struct Found {
    calls: AtomicU64,
    computed: AtomicU64,
}

impl Found {
    /// Adds the calls of one run.
    pub fn add(&self, run: Run, computed: u64) {
        self.calls.fetch_add(run.count, Ordering::Relaxed);
        self.computed.fetch_add(computed, Ordering::Relaxed);
    }

    fn percent(&self) -> f64 {
        let calls = self.calls.load(Ordering::Relaxed) as f64;
        100.0 * (1.0 - self.computed.load(Ordering::Relaxed) as f64 / calls)
    }
}

/// One column: the work of each row, on this many threads.
pub struct Column {
    pub title: &'static str,
    pub threads: usize,
}

/// Rows and columns of cases, measured together.
pub struct Table<'a> {
    comparison: Comparison<'a>,
    columns: &'a [Column],
    rows: Vec<(&'static str, &'a [Found])>,
}

impl<'a> Table<'a> {
    pub fn new(settings: Settings, columns: &'a [Column]) -> Self {
        Self {
            comparison: Comparison::new(settings),
            columns,
            rows: Vec::new(),
        }
    }

    /// Adds a row. `work` gets the number of the column and returns the number of computations; `found`
    /// has a place for each column.
    pub fn row(
        &mut self,
        name: &'static str,
        found: &'a [Found],
        work: impl Fn(usize, Run) -> u64 + Sync + Copy + 'a,
    ) {
        for (number, (column, found)) in self.columns.iter().zip(found).enumerate() {
            self.comparison
                .case(case(name, column), column.threads, move |run| {
                    found.add(run, work(number, run));
                });
        }
        self.rows.push((name, found));
    }

    /// Measures and prints; ratios are to the row called `reference`.
    pub fn print(self, title: &str, reference: &str) {
        let measured = self.comparison.run();
        println!("### {title}\n");
        let titles = self
            .columns
            .iter()
            .map(|column| format!(" {}, ns | found | to {reference} |", column.title));
        println!("| |{}", titles.collect::<String>());
        println!("|---|{}", "---:|---:|---:|".repeat(self.columns.len()));
        for (name, found) in self.rows {
            let cells = self.columns.iter().zip(found);
            let cells =
                cells.map(|(column, found)| cell(&measured, name, column, found, reference));
            println!("| {name} |{}", cells.collect::<String>());
        }
        println!();
    }
}

fn case(row: &str, column: &Column) -> String {
    format!("{row}, {}", column.title)
}

fn cell(
    measured: &Measured,
    name: &str,
    column: &Column,
    found: &Found,
    reference: &str,
) -> String {
    let this = case(name, column);
    let time = measured.nanoseconds(&this).unwrap();
    let ratio = measured.ratio(&this, &case(reference, column)).unwrap();
    let (low, high) = (time.low, time.high);
    format!(
        " {:.1} ({low:.1}-{high:.1}) | {:.1} % | {:.2} |",
        time.median,
        found.percent(),
        ratio.median
    )
}
