//! The table that the benchmarks print, and the choice of its parts.

use crate::Spread;

/// The aim of a row.
#[derive(Debug, Clone, Copy)]
pub enum Aim {
    /// A ratio that is not above this.
    AtMost(f64),
    /// A ratio that is not below this.
    AtLeast(f64),
    /// Less time than the reference takes.
    Faster,
    /// At most this many nanoseconds, whatever the reference.
    Nanoseconds(f64),
    /// No aim; measured for information.
    Shown,
}

impl Aim {
    fn text(self) -> String {
        match self {
            Self::AtMost(most) => format!("≤ {most}"),
            Self::AtLeast(least) => format!("≥ {least}"),
            Self::Faster => "< 1".to_owned(),
            Self::Nanoseconds(most) if most >= 1e6 => format!("< {} ms", most / 1e6),
            Self::Nanoseconds(most) => format!("< {most} ns"),
            Self::Shown => "-".to_owned(),
        }
    }

    fn met(self, ratio: Option<Spread>, time: Option<Spread>) -> &'static str {
        let ratio = ratio.map_or(f64::NAN, |ratio| ratio.median);
        let met = match self {
            Self::AtMost(most) => ratio <= most,
            Self::AtLeast(least) => ratio >= least,
            Self::Faster => ratio < 1.0,
            Self::Nanoseconds(most) => time.is_some_and(|time| time.median < most),
            Self::Shown => return "-",
        };
        if met { "yes" } else { "**no**" }
    }
}

/// One line of the table.
#[derive(Debug)]
pub struct Row {
    /// The row of the design's table that it belongs to.
    pub number: u8,
    /// The work.
    pub work: String,
    /// The reference.
    pub reference: String,
    /// The ratio of the two in each round, as the aim has it.
    pub ratio: Option<Spread>,
    /// The aim of the ratio.
    pub aim: Aim,
    /// Nanoseconds for one operation of the work.
    pub time: Option<Spread>,
    /// Nanoseconds for one operation of the reference.
    pub reference_time: Option<Spread>,
}

/// Whether this part is asked for: all are, if none is named.
pub fn wanted(part: &str) -> bool {
    let mut named = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'));
    let mut any = false;
    named.any(|word| {
        any = true;
        word == part
    }) || !any
}

/// Prints the head of the table.
pub fn print_head() {
    println!("| # | work | reference | ratio (quartiles) | aim | met | work | reference |");
    println!("|---|---|---|---:|---:|---|---:|---:|");
}

impl Row {
    /// Prints the line.
    pub fn print(&self) {
        println!(
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            self.number,
            self.work,
            self.reference,
            self.ratio.map_or("-".to_owned(), |ratio| ratio.to_string()),
            self.aim.text(),
            self.aim.met(self.ratio, self.time),
            time(self.time),
            time(self.reference_time),
        );
    }
}

fn time(time: Option<Spread>) -> String {
    match time {
        None => "-".to_owned(),
        Some(time) if time.median >= 1e6 => format!("{:.1} ms", time.median / 1e6),
        Some(time) if time.median >= 1e4 => format!("{:.1} µs", time.median / 1e3),
        Some(time) => format!("{:.0} ns", time.median),
    }
}
