//! The table that is printed.

use sde_benches::Spread;

/// What a row is to reach.
#[derive(Clone, Copy)]
pub enum Aim {
    AtMost(f64),
    AtLeast(f64),
    /// Less time than the reference takes.
    Faster,
    /// At most so many nanoseconds, whatever the reference.
    Nanoseconds(f64),
    /// Nothing is asked; measured to be seen.
    Shown,
}

impl Aim {
    fn text(self) -> String {
        match self {
            Self::AtMost(most) => format!("≤ {most}"),
            Self::AtLeast(least) => format!("≥ {least}"),
            Self::Faster => "< 1".to_owned(),
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
pub struct Row {
    pub number: u8,
    pub work: String,
    pub reference: String,
    pub ratio: Option<Spread>,
    pub aim: Aim,
    /// Nanoseconds for one operation of the work.
    pub time: Option<Spread>,
    /// Nanoseconds for one operation of the reference.
    pub reference_time: Option<Spread>,
}

/// Prints the head of the table.
pub fn print_head() {
    println!("| # | work | reference | ratio (quartiles) | aim | met | work | reference |");
    println!("|---|---|---|---:|---:|---|---:|---:|");
}

impl Row {
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
