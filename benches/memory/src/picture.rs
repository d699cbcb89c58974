//! The results as a picture: the savings by budget, for each kind of costs.

use std::fmt::Write;

use super::results::{BUDGETS, Cell, NAMES};
use super::tables::{mean, names};

const COLOURS: [&str; 6] = [
    "#999999", "#0072b2", "#56b4e9", "#e69f00", "#d62728", "#333333",
];
const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 210.0;
/// From one panel to the next, and from the edge to the first.
const STEP_X: f64 = 370.0;
const STEP_Y: f64 = 280.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 70.0;

pub fn of(cells: &[Cell]) -> String {
    let kinds = names(cells, |cell| cell.costs);
    let width = LEFT + 2.0 * STEP_X - 40.0;
    let height = TOP + STEP_Y * kinds.len().div_ceil(2) as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    legend(&mut svg);
    for (number, kind) in kinds.iter().enumerate() {
        let x = LEFT + STEP_X * (number % 2) as f64;
        let y = TOP + STEP_Y * (number / 2) as f64;
        let of_kind: Vec<_> = cells.iter().filter(|cell| cell.costs == *kind).collect();
        panel(&mut svg, [x, y], kind, &of_kind);
    }
    svg.push_str("</svg>\n");
    svg
}

fn text(svg: &mut String, [x, y]: [f64; 2], anchor: &str, text: &str) {
    writeln!(
        svg,
        "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{text}</text>"
    )
    .unwrap();
}

fn line(svg: &mut String, points: &[[f64; 2]], at: usize) {
    let points: Vec<_> = points
        .iter()
        .map(|[x, y]| format!("{x:.1},{y:.1}"))
        .collect();
    let dashes = if at == 5 {
        " stroke-dasharray=\"4 3\""
    } else {
        ""
    };
    let (colour, points) = (COLOURS[at], points.join(" "));
    let width = if at == 4 { 2.5 } else { 1.5 };
    writeln!(
        svg,
        "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"{dashes}/>"
    )
    .unwrap();
}

fn legend(svg: &mut String) {
    for (at, name) in NAMES.iter().enumerate() {
        let x = LEFT + 118.0 * at as f64;
        line(svg, &[[x, 22.0], [x + 24.0, 22.0]], at);
        text(svg, [x + 30.0, 26.0], "start", name);
    }
}

fn panel(svg: &mut String, [x, y]: [f64; 2], costs: &str, cells: &[&Cell]) {
    writeln!(
        svg,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"#cccccc\"/>"
    )
    .unwrap();
    text(
        svg,
        [x + WIDTH / 2.0, y - 8.0],
        "middle",
        &format!("costs: {costs}"),
    );
    let across = |budget: f64| x + WIDTH * (budget / BUDGETS[0]).log10() / 2.0;
    let up = |saved: f64| y + HEIGHT * (1.0 - saved);
    for saved in [0.0, 0.2, 0.4, 0.6, 0.8, 1.0] {
        text(
            svg,
            [x - 6.0, up(saved) + 4.0],
            "end",
            &format!("{:.0} %", 100.0 * saved),
        );
    }
    for budget in BUDGETS {
        text(
            svg,
            [across(budget), y + HEIGHT + 16.0],
            "middle",
            &format!("{}", 100.0 * budget),
        );
    }
    let title = "budget, % of all that is asked for";
    text(svg, [x + WIDTH / 2.0, y + HEIGHT + 34.0], "middle", title);
    let (up_x, up_y) = (x - 46.0, y + HEIGHT / 2.0);
    writeln!(svg, "<g transform=\"rotate(-90 {up_x} {up_y})\">").unwrap();
    text(svg, [up_x, up_y], "middle", "time saved");
    svg.push_str("</g>\n");
    let means = BUDGETS.map(|budget| {
        let of_budget = cells.iter().filter(|cell| cell.budget == budget);
        (across(budget), mean(of_budget.copied()))
    });
    for at in 0..NAMES.len() {
        line(svg, &means.map(|(x, saved)| [x, up(saved[at])]), at);
    }
}
