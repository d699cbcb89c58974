//! Recorded traces.

use super::traces::{Item, Trace};

/// Requests that programs made; the first line of each file names the program and the format. Each trace comes with the
/// cost of a run that finds the results it calls, and with that of one that finds nothing.
pub fn recorded() -> Vec<Trace> {
    let files = [
        ("water scans", include_str!("../traces/water.txt")),
        ("kernels", include_str!("../traces/kernels.txt")),
    ];
    let traces = files.iter().flat_map(|(name, text)| {
        [("alone", 2), ("nested", 3)].map(|(costs, column)| read(name, text, costs, column))
    });
    traces.collect()
}

fn read(pattern: &str, text: &str, costs: &'static str, column: usize) -> Trace {
    let (items, requests) = text.split_once("\n\n").unwrap();
    let item = |line: &str| {
        let number = |at| line.split(' ').nth(at).unwrap().parse().unwrap();
        Item {
            bytes: number(1),
            cost: number(column),
        }
    };
    let requests = requests.split_whitespace();
    Trace {
        pattern: pattern.to_owned(),
        costs,
        items: items.lines().skip(1).map(item).collect(),
        requests: requests.map(|number| number.parse().unwrap()).collect(),
    }
}
