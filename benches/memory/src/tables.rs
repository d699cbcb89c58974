//! The results as Markdown.

use std::fmt::Write;

use super::results::{Cell, NAMES};

/// Below this part of the best a cell counts as lost.
const LOST: f64 = 0.98;

pub fn of(set: &str, cells: &[Cell]) -> String {
    let mut text = format!("### {}{}\n\n", set[..1].to_uppercase(), &set[1..]);
    aims(&mut text, set, cells);
    lost(&mut text, cells);
    let header = NAMES.join(" | ");
    writeln!(
        text,
        "\n| traces | {header} |\n|---|---:|---:|---:|---:|---:|---:|"
    )
    .unwrap();
    for name in names(cells, |cell| &cell.pattern) {
        row(&mut text, name, cells, |cell| cell.pattern == name);
    }
    for name in names(cells, |cell| cell.costs) {
        let title = format!("costs {name}");
        row(&mut text, &title, cells, |cell| cell.costs == name);
    }
    row(&mut text, "**all**", cells, |_| true);
    text
}

/// Each name once, in order of appearance.
pub fn names<'a>(cells: &'a [Cell], name: impl Fn(&'a Cell) -> &'a str) -> Vec<&'a str> {
    let mut names = Vec::new();
    for cell in cells {
        if !names.contains(&name(cell)) {
            names.push(name(cell));
        }
    }
    names
}

/// The mean savings over some cells.
pub fn mean<'a>(cells: impl Iterator<Item = &'a Cell>) -> [f64; 6] {
    let (mut sum, mut count) = ([0.0; 6], 0.0);
    for cell in cells {
        sum = std::array::from_fn(|at| sum[at] + cell.saved[at]);
        count += 1.0;
    }
    sum.map(|sum| sum / count)
}

fn row(text: &mut String, title: &str, cells: &[Cell], is_in: impl Fn(&Cell) -> bool) {
    let means = mean(cells.iter().filter(|cell| is_in(cell)));
    let means = means.map(|mean| format!("{:.1} %", 100.0 * mean));
    writeln!(text, "| {title} | {} |", means.join(" | ")).unwrap();
}

/// The aims, as rows of row 19.
fn aims(text: &mut String, set: &str, cells: &[Cell]) {
    let means = mean(cells.iter());
    let others = means.into_iter().zip(NAMES).take(4);
    let (best, name) = others
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .unwrap();
    let (sum, least) = (means[4] / best, cells.iter().map(ratio).fold(1.0, f64::min));
    let met = |is_met: bool| if is_met { "yes" } else { "**no**" };
    let (ours, best) = (100.0 * means[4], 100.0 * best);
    let (few, all) = (
        cells.iter().filter(|cell| ratio(cell) < LOST).count(),
        cells.len(),
    );
    writeln!(
        text,
        "| # | work | reference | ratio | aim | met | work | reference |\n|---|---|---|---:|---:|---|---:|---:|\n\
         | 19 | {set}: time saved, in all | {name} | {sum:.2} | > 1 | {} | {ours:.1} % | {best:.1} % |\n\
         | 19 | {set}: in each of {all} cells, of which {few} are below | the best other | {least:.3} at least | ≥ {LOST} | {} | - | - |\n",
        met(sum > 1.0),
        met(few == 0),
    )
    .unwrap();
}

fn ratio(cell: &Cell) -> f64 {
    cell.ours() / cell.best().0
}

fn lost(text: &mut String, cells: &[Cell]) {
    let mut lost: Vec<_> = cells.iter().filter(|cell| ratio(cell) < LOST).collect();
    lost.sort_by(|one, other| ratio(one).total_cmp(&ratio(other)));
    text.push_str(
        "| trace | costs | budget | SDE | best other | ratio |\n|---|---|---:|---:|---:|---:|\n",
    );
    for cell in lost {
        let (best, name) = cell.best();
        writeln!(
            text,
            "| {} | {} | {} % | {:.1} % | {name}, {:.1} % | {:.3} |",
            cell.pattern,
            cell.costs,
            100.0 * cell.budget,
            100.0 * cell.ours(),
            100.0 * best,
            ratio(cell)
        )
        .unwrap();
    }
}
